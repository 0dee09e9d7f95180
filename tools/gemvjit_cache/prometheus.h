// Numbers of the cache in Prometheus's text format, for a node exporter's textfile collector.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cache/quarantine.h"
#include "tools/gemvjit_cache/cache_folder.h"

namespace gemvjit::tools {

struct EntryGroup {
  std::size_t entries = 0;
  std::uint64_t bytes = 0, compile_ms = 0;
};
using EntryGroups = std::map<std::pair<std::string, std::string>, EntryGroup>;  // by arch and family

// What a folder tells of the past, without a process that counts.
struct FolderHistory {
  QuarantineContent quarantine;
  std::size_t recent_evictions = 0;  // in the last ten minutes, by whichever process; at most the 128 that are noted
};

// Also looks at the read-only layers of GEMVJIT_CACHE_RO.
std::string prometheus_text(const EntryGroups& groups, const EntryCounts& counts, const FolderHistory& history);

}  // namespace gemvjit::tools
