#include "src/runtime/settings.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "src/base/files.h"
#include "src/base/json_depth.h"
#include "src/base/suggestion.h"
#include "src/base/unique_keys.h"
#include "src/base/write_access.h"

namespace gemvjit {
namespace {

constexpr std::size_t size_limit = std::size_t{64} * 1024;
constexpr const char* file_variable = "GEMVJIT_CONFIG";

std::string set_text(const EnvironmentReader& environment, const char* variable) {
  return environment(variable).value_or("");
}

Status check_owner(const std::string& path, int descriptor, const struct stat& info, bool of_root) {
  const std::string danger = who_else_may_write(descriptor, info, {.user = of_root ? 0 : ::geteuid()});
  if (danger.empty()) return Status::ok();
  return {StatusCode::invalid_argument, fmt::format("{} is not taken as configuration: {}", path, danger)};
}

// A setting as its variable would say it; nothing for what no variable can say. A list is what options of several paths
// may be.
std::optional<std::string> text_of(const nlohmann::json& value, bool may_be_list) {
  if (value.is_string()) {
    std::string text = value.get<std::string>();
    if (text.find('\0') != std::string::npos) return std::nullopt;
    return text;
  }
  if (value.is_number_unsigned()) return std::to_string(value.get<std::uint64_t>());
  if (!value.is_array() || !may_be_list) return std::nullopt;
  std::string joined;
  for (const nlohmann::json& part : value) {
    if (!part.is_string() || part.get_ref<const std::string&>().find(':') != std::string::npos) return std::nullopt;
    joined += (joined.empty() ? "" : ":") + part.get_ref<const std::string&>();
  }
  return joined;
}

const OptionRow* find_row(const std::string& name) {
  for (const OptionRow& row : option_rows()) {
    if (name == row.name && row.variable[0] != '\0') return &row;
  }
  return nullptr;
}

std::vector<std::string> file_options() {
  std::vector<std::string> names;
  for (const OptionRow& row : option_rows()) {
    if (row.variable[0] != '\0') names.emplace_back(row.name);
  }
  return names;
}

Result<nlohmann::json> parse(const std::string& path, const Bytes& bytes) {
  const auto refuse = [&](const std::string& why) {
    return Status(StatusCode::invalid_argument, fmt::format("{}: {}", path, why));
  };
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (json_nests_deeper_than(text, kMaxJsonLevels)) return refuse("nested too deep");
  try {
    nlohmann::json object = parse_unique_keys(text, /*allow_exceptions=*/true, /*ignore_comments=*/true);
    if (!object.is_object()) return refuse("not a JSON object of options");
    return object;
  } catch (const KeyTwice& twice) {
    return refuse(fmt::format("\"{}\" is there twice", twice.key));
  } catch (const nlohmann::json::exception& error) {  // says the line
    return refuse("no JSON: " + json_error_text(error.what()));
  }
}

}  // namespace

Status Settings::add_file(const std::string& path, bool must_exist, bool of_root) {
  // Links are followed: so are such files brought into containers. What is read is what was examined, or nothing.
  char* const real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) {
    if (!must_exist && (errno == ENOENT || errno == ENOTDIR || errno == EACCES)) return Status::ok();
    return {StatusCode::io_error, fmt::format("cannot read the configuration {}: {}", path, std::strerror(errno))};
  }
  const std::string file = real;
  std::free(real);
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return {StatusCode::invalid_argument, fmt::format("the configuration {} is no regular file", path)};
  }
  GEMVJIT_TRY_ASSIGN(const Bytes bytes, read_file(file, size_limit, [&](int descriptor, const struct stat& opened) {
                       return check_owner(file, descriptor, opened, of_root);
                     }));
  GEMVJIT_TRY_ASSIGN(const nlohmann::json object, parse(path, bytes));
  std::map<std::string, std::string> found;
  for (const auto& [name, value] : object.items()) {
    const OptionRow* row = find_row(name);
    if (row == nullptr) {
      return {StatusCode::invalid_argument,
              fmt::format("{}: there is no option \"{}\"{}", path, name, did_you_mean(name, file_options()))};
    }
    if (value.is_null()) continue;
    const auto text = text_of(value, row->name == std::string_view("cache_ro"));
    // What a value may be, the one place knows that also reads it; its message would name the variable.
    const auto alone = [&](const char* variable) -> std::optional<std::string> {
      return text && std::string_view(variable) == row->variable ? text : std::nullopt;
    };
    if (!text || !resolve_options({}, alone)) {
      const std::string shown = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
      return {StatusCode::invalid_argument, fmt::format("{}: {} {} is not accepted: {}", path, name, shown, row->text)};
    }
    found[row->variable] = *text;
  }
  for (auto& [variable, text] : found) values_->try_emplace(variable, Value{std::move(text), path});
  files_.push_back(path);
  return Status::ok();
}

Result<Settings> Settings::read(EnvironmentReader environment, const std::string& system_file) {
  Settings settings(std::move(environment));
  const std::string named = set_text(settings.environment_, file_variable);
  if (named == "none") return settings;
  if (!named.empty()) {
    GEMVJIT_TRY(settings.add_file(named, true, false));
    return settings;
  }
  const std::string user =
      user_config_folder(set_text(settings.environment_, "XDG_CONFIG_HOME"), set_text(settings.environment_, "HOME"));
  if (!user.empty()) GEMVJIT_TRY(settings.add_file(user + "/config.json", false, false));
  GEMVJIT_TRY(settings.add_file(system_file, false, true));
  return settings;
}

EnvironmentReader Settings::reader() const {
  return [environment = environment_,
          values = std::shared_ptr<const Values>(values_)](const char* variable) -> std::optional<std::string> {
    std::optional<std::string> value = environment(variable);
    if (value && !value->empty()) return value;
    const auto found = values->find(variable);
    return found == values->end() ? value : std::optional<std::string>(found->second.text);
  };
}

std::string Settings::origin_of(const OptionRow& row) const {
  if (row.variable[0] == '\0') return "";
  if (!set_text(environment_, row.variable).empty()) return row.variable;
  const auto found = values_->find(row.variable);
  return found == values_->end() ? "" : found->second.file;
}

Result<Settings> process_settings() { return Settings::read(process_environment()); }

}  // namespace gemvjit
