// gemvjit-cache config: the run-time options as a context here would take them, and where each comes from.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/cache_view/tool_settings.h"
#include "tools/common/printable.h"
#include "tools/common/table.h"
#include "tools/gemvjit_cache/commands.h"

namespace gemvjit::tools {

ExitCode show_config(const CacheArguments& arguments) {
  const auto& settings = tool_settings();
  if (!settings) {
    complain(settings.status().message());
    return exit_usage;
  }
  const EnvironmentReader reader = settings->reader();
  if (const auto resolved = resolve_options({}, reader); !resolved) {
    complain(resolved.status().message());
    return exit_usage;
  }
  nlohmann::ordered_json options = nlohmann::ordered_json::array();
  std::vector<Table::Column> columns{{"option"}, Table::Column{.title = "value", .can_shorten = true}};
  if (arguments.origin) columns.push_back(Table::Column{.title = "from", .can_shorten = true});
  Table table(columns);
  for (const OptionRow& row : option_rows()) {
    if (row.variable[0] == '\0') continue;  // a caller's alone
    const bool flag = arguments.cache_dir && std::string_view(row.name) == "cache_dir";
    const std::string origin = flag ? "--cache-dir" : settings->origin_of(row);
    const std::string value = flag ? *arguments.cache_dir : origin.empty() ? "" : reader(row.variable).value_or("");
    options.push_back({{"option", row.name},
                       {"variable", row.variable},
                       {"value", origin.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(value)},
                       {"default", row.default_text},
                       {"origin", origin.empty() ? "default" : origin}});
    std::vector<std::string> cells{row.name, origin.empty() ? fmt::format("({})", row.default_text) : printable(value)};
    if (arguments.origin) cells.push_back(origin.empty() ? "default" : printable(origin));
    table.add_row(std::move(cells));
  }
  if (arguments.json) {
    print_json({{"files", settings->files()}, {"options", options}});
    return exit_done;
  }
  print_table(table);
  for (const std::string& file : settings->files()) tell("read {}\n", printable(file));
  return exit_done;
}

}  // namespace gemvjit::tools
