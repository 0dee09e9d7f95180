// EntryFacts: what the tool says about one entry, worked out once for table, text and JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cache/build_records.h"
#include "cache/store.h"
#include "src/catalog/catalog.h"

namespace gemvjit::tools {

struct EntryFacts {
  std::string path, key, digest, family, flags_text, entry_name, compiler;
  std::int64_t n = 0, k = 0;
  std::uint64_t flags = 0, file_bytes = 0, cubin_bytes = 0;
  std::int32_t nt = 0;
  std::string arch;
  KernelResources resources;
  std::optional<BuildRecord> build;  // when it was compiled and how long that took; nothing: not known
  std::int64_t age_seconds = 0;      // since then
  bool waits_for_predecessor = false;
  std::optional<LaunchConfig> launch;  // nothing for a key that this version does not make

  std::uint32_t spill_bytes() const { return resources.spill_store_bytes + resources.spill_load_bytes; }
  std::uint32_t smem_bytes() const { return resources.static_smem_bytes + (launch ? launch->smem_bytes : 0); }
};

// Requires listed.entry. `records`: of the folder that it is in.
EntryFacts entry_facts(const ListedEntry& listed, const BuildRecords& records);
// "251 ms" and "3 days", or "unknown".
std::string compile_time_text(const EntryFacts& facts);
std::string age_text(const EntryFacts& facts);
nlohmann::ordered_json entry_json(const EntryFacts& facts);
// "PATH: why", with the path once, also where the reason names it itself.
std::string named_problem(const std::string& path, const std::string& reason);
// Whether it is for one of the targets; a damaged file by its folder's name. No targets: all.
bool is_of_target(const ListedEntry& listed, const std::vector<std::string>& targets);
nlohmann::ordered_json problem_json(const ListedEntry& listed);  // of a file that is no whole entry

}  // namespace gemvjit::tools
