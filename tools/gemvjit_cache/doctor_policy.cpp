#include "tools/gemvjit_cache/doctor_policy.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "src/catalog/arch_policy.h"
#include "tools/common/output.h"
#include "tools/common/table.h"

namespace gemvjit::tools {

using nlohmann::ordered_json;

ordered_json examine_policy(const cuda::NvrtcApi& nvrtc) {
  ordered_json rows = ordered_json::array();
  const auto supports = [&](const Arch& arch) { return nvrtc.supports(arch.sm, arch.suffix); };
  for (const PolicyRow& row : arch_policy(nvrtc.supported_sms, supports)) {
    ordered_json one{{"capability", fmt::format("{}.{}", row.sm / 10, row.sm % 10)},
                     {"target", nullptr},
                     {"reason", reason_token(row.reason)},
                     {"note", row.note}};
    if (row.target) one["target"] = row.target->text();
    rows.push_back(std::move(one));
  }
  return rows;
}

void print_policy(const ordered_json& policy) {
  if (policy.empty()) return;
  tell("Targets by compute capability\n");
  Table table({{"  CAPABILITY"}, {"TARGET"}, {"REASON"}, Table::Column{.title = "NOTE", .can_shorten = true}});
  for (const ordered_json& row : policy) {
    table.add_row({"  " + row["capability"].get<std::string>(),
                   row["target"].is_null() ? "-" : row["target"].get<std::string>(), row["reason"].get<std::string>(),
                   row["note"].get<std::string>()});
  }
  print_table(table);
}

}  // namespace gemvjit::tools
