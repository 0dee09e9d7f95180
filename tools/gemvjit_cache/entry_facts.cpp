#include "tools/gemvjit_cache/entry_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "tools/cache_view/compile_times.h"
#include "tools/common/human_units.h"

namespace gemvjit::tools {

EntryFacts entry_facts(const ListedEntry& listed, const BuildRecords& records) {
  const Entry& entry = *listed.entry;
  EntryFacts facts;
  facts.path = listed.path;
  facts.key = entry.id.key.text();
  facts.digest = to_hex(entry.id.digest);
  facts.flags_text = flags_text(entry.id.key.flags);
  facts.entry_name = entry.cubin.entry_name;
  facts.compiler = entry.cubin.compiler_version;
  facts.n = entry.id.key.n;
  facts.k = entry.id.key.k;
  facts.nt = entry.id.key.nt;
  facts.flags = entry.id.key.flags;
  facts.arch = entry.id.key.arch.text();
  facts.build = build_of(entry, records);
  if (facts.build) facts.age_seconds = static_cast<std::int64_t>(std::time(nullptr)) - facts.build->when;
  facts.file_bytes = listed.file_bytes;
  facts.cubin_bytes = entry.cubin.bytes.size();
  facts.resources = entry.cubin.resources;
  facts.waits_for_predecessor = entry.cubin.waits_for_predecessor;
  if (const auto spec = describe_key(entry.id.key)) {
    facts.family = family_row(spec->family).name;
    facts.launch = launch_config(*spec);
  } else {
    facts.family = "unknown";
  }
  return facts;
}

nlohmann::ordered_json entry_json(const EntryFacts& facts) {
  nlohmann::ordered_json json{{"key", facts.key},
                              {"digest", facts.digest},
                              {"family", facts.family},
                              {"n", facts.n},
                              {"k", facts.k},
                              {"nt", facts.nt},
                              {"flags", fmt::format("{:016x}", facts.flags)},
                              {"flags_text", facts.flags_text},
                              {"arch", facts.arch},
                              {"file_bytes", facts.file_bytes},
                              {"cubin_bytes", facts.cubin_bytes},
                              {"registers", facts.resources.registers},
                              {"static_smem_bytes", facts.resources.static_smem_bytes},
                              {"dynamic_smem_bytes", nullptr},
                              {"spill_store_bytes", facts.resources.spill_store_bytes},
                              {"spill_load_bytes", facts.resources.spill_load_bytes},
                              {"stack_bytes", facts.resources.stack_bytes},
                              {"waits_for_predecessor", facts.waits_for_predecessor},
                              {"compile_ms", nullptr},
                              {"compiler", facts.compiler},
                              {"entry_name", facts.entry_name},
                              {"created_unix_seconds", nullptr},
                              {"age_seconds", nullptr},
                              {"path", facts.path}};
  if (facts.launch) json["dynamic_smem_bytes"] = facts.launch->smem_bytes;
  if (facts.build) {
    json["compile_ms"] = facts.build->milliseconds;
    json["created_unix_seconds"] = facts.build->when;
    json["age_seconds"] = facts.age_seconds;
  }
  return json;
}

std::string compile_time_text(const EntryFacts& facts) {
  return facts.build ? fmt::format("{} ms", facts.build->milliseconds) : "unknown";
}

std::string age_text(const EntryFacts& facts) { return facts.build ? human_age(facts.age_seconds) : "unknown"; }

std::string named_problem(const std::string& path, const std::string& reason) {
  return reason.find(path) == std::string::npos ? fmt::format("{}: {}", path, reason) : reason;
}

nlohmann::ordered_json problem_json(const ListedEntry& listed) {
  return {{"path", listed.path}, {"file_bytes", listed.file_bytes}, {"problem", listed.problem.message()}};
}

bool is_of_target(const ListedEntry& listed, const std::vector<std::string>& targets) {
  return targets.empty() || std::ranges::any_of(targets, [&](const std::string& arch) {
           if (listed.entry) return listed.entry->id.key.arch.text() == arch;
           return (listed.path + "/").find("/" + arch + "/") != std::string::npos;
         });
}

}  // namespace gemvjit::tools
