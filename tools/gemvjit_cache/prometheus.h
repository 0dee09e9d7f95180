// Numbers of the cache in Prometheus's text format, for a node exporter's textfile collector.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/gemvjit_cache/cache_folder.h"

namespace gemvjit::tools {

struct EntryGroup {
  std::size_t entries = 0;
  std::uint64_t bytes = 0, compile_ms = 0;
};
using EntryGroups = std::map<std::pair<std::string, std::string>, EntryGroup>;  // by arch and family

// Also looks at the read-only layers of GEMVJIT_CACHE_RO.
std::string prometheus_text(const EntryGroups& groups, const EntryCounts& counts);

}  // namespace gemvjit::tools
