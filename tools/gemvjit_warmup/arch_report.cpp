#include "tools/gemvjit_warmup/arch_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "tools/common/printable.h"

namespace gemvjit::tools {

std::vector<std::string> arch_notes(const WarmupOptions& options) {
  std::vector<std::string> notes;
  for (const WarmupOptions::ArchName& arch : options.arch_names) {
    if (arch.targets.size() != 1 || arch.targets.front() != arch.name) {
      notes.push_back(fmt::format("--arch {}: {}", printable(arch.name), fmt::join(arch.targets, ", ")));
    }
    if (!arch.note.empty()) notes.push_back(fmt::format("--arch {}: {}", printable(arch.name), arch.note));
  }
  return notes;
}

nlohmann::ordered_json archs_json(const WarmupOptions& options) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const WarmupOptions::ArchName& arch : options.arch_names) {
    list.push_back({{"name", arch.name}, {"targets", arch.targets}, {"note", arch.note}});
  }
  return list;
}

}  // namespace gemvjit::tools
