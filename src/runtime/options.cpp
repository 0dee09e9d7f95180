#include "src/runtime/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <thread>

#include "cache/read_only_layer.h"
#include "cache/store.h"
#include "src/base/host_memory.h"

namespace gemvjit {
namespace {

constexpr OptionRow rows[] = {
#define X(name, variable, default_text, text) {#name, variable, default_text, text},
    GEMVJIT_RUNTIME_OPTIONS(X)
#undef X
};

// One row by name, so that code says option::log_level where it needs the variable.
namespace option {
#define X(name, variable, default_text, text) constexpr OptionRow name{#name, variable, default_text, text};
GEMVJIT_RUNTIME_OPTIONS(X)
#undef X
}  // namespace option

// A variable that is set to nothing counts as not set.
std::optional<std::string> variable_of(const OptionRow& row, const EnvironmentReader& environment) {
  std::optional<std::string> value = environment(row.variable);
  if (value && value->empty()) value.reset();
  return value;
}

Status refuse(const OptionRow& row, const std::string& from, const std::string& value) {
  return {StatusCode::invalid_argument,
          fmt::format("{} \"{}\" is not accepted for {}: {}", from, value, row.name, row.text)};
}

// A text that is a whole number from end to end.
template <typename Number>
std::optional<Number> whole_number(const std::string& text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

int default_compile_threads() { return default_compile_jobs(std::thread::hardware_concurrency(), free_host_memory()); }

Result<int> choose_compile_threads(const OptionRequest& request, const EnvironmentReader& environment) {
  const auto in_range = [](int threads) { return threads >= 1 && threads <= max_compile_threads; };
  if (request.compile_threads != 0) {
    if (in_range(request.compile_threads)) return request.compile_threads;
    return refuse(option::compile_threads, "the value", std::to_string(request.compile_threads));
  }
  const std::optional<std::string> text = variable_of(option::compile_threads, environment);
  if (!text) return default_compile_threads();
  const auto threads = whole_number<int>(*text);
  if (threads && in_range(*threads)) return *threads;
  return refuse(option::compile_threads, option::compile_threads.variable, *text);
}

Result<std::uint64_t> choose_cache_max_bytes(const EnvironmentReader& environment) {
  constexpr std::uint64_t least = std::uint64_t{1} << 20;
  const std::optional<std::string> text = variable_of(option::cache_max_bytes, environment);
  if (!text) return ContextOptions{}.cache_max_bytes;
  const auto bytes = whole_number<std::uint64_t>(*text);
  if (bytes && (*bytes == 0 || *bytes >= least)) return *bytes;
  return refuse(option::cache_max_bytes, option::cache_max_bytes.variable, *text);
}

Result<CacheTrust> choose_cache_trust(const EnvironmentReader& environment) {
  const std::string text = variable_of(option::cache_trust, environment).value_or("owner");
  if (text == "owner") return CacheTrust::owner;
  if (text == "shared") return CacheTrust::shared;
  return refuse(option::cache_trust, option::cache_trust.variable, text);
}

Result<LogLevel> choose_log_level(const OptionRequest& request, const EnvironmentReader& environment) {
  if (request.log_level) return *request.log_level;
  LogLevel level = LogLevel::warning;
  const std::optional<std::string> text = variable_of(option::log_level, environment);
  if (text && !parse_log_level(*text, level)) return refuse(option::log_level, option::log_level.variable, *text);
  return level;
}

std::string choose_cache(const OptionRequest& request, const EnvironmentReader& environment) {
  if (request.cache_dir) return *request.cache_dir;
  CacheEnvironment values;
  values.gemvjit_cache_dir = variable_of(option::cache_dir, environment).value_or("");
  values.xdg_cache_home = environment("XDG_CACHE_HOME").value_or("");
  values.home = environment("HOME").value_or("");
  return choose_cache_dir("", values);
}

std::string choose_folder(const std::optional<std::string>& requested, const OptionRow& row,
                          const EnvironmentReader& environment) {
  return requested ? *requested : variable_of(row, environment).value_or("");
}

}  // namespace

std::span<const OptionRow> option_rows() { return rows; }

const OptionRow& option_row(std::string_view name) {
  return *std::find_if(std::begin(rows), std::end(rows), [&](const OptionRow& row) { return row.name == name; });
}

EnvironmentReader process_environment() {
  return [](const char* variable) -> std::optional<std::string> {
    const char* value = ::secure_getenv(variable);
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

Result<SignatureOptions> resolve_signature_options(const EnvironmentReader& environment) {
  SignatureOptions options;
  const std::string text = variable_of(option::cache_signatures, environment).value_or("off");
  const auto policy = parse_signature_policy(text);
  if (!policy) return refuse(option::cache_signatures, option::cache_signatures.variable, text);
  options.policy = *policy;
  if (const auto folder = variable_of(option::cache_trust_dir, environment)) {
    options.trust_dirs = {*folder};
    options.trust_dirs_named = true;
  } else {
    options.trust_dirs =
        default_trust_dirs(environment("XDG_CONFIG_HOME").value_or(""), environment("HOME").value_or(""));
  }
  options.signing_key = variable_of(option::cache_signing_key, environment).value_or("");
  return options;
}

Result<RemoteOptions> resolve_remote_options(const EnvironmentReader& environment) {
  const auto text = [&](const OptionRow& row) { return variable_of(row, environment).value_or(""); };
  const auto first = [&](std::initializer_list<const char*> variables) -> std::string {
    for (const char* variable : variables) {
      if (std::string value = environment(variable).value_or(""); !value.empty()) return value;
    }
    return "";
  };
  RemoteOptions options;
  options.url = text(option::remote);
  if (options.url == no_remote) options.url.clear();
  options.s3_endpoint = text(option::remote_s3_endpoint);
  for (const OptionRow* row : {&option::remote, &option::remote_s3_endpoint}) {
    const std::string url = text(*row);
    if (url == no_remote) continue;
    const Status accepted = url.empty() ? Status::ok() : check_remote_url(url);
    if (!accepted) {  // not the value: it may hold a password
      return Status(StatusCode::invalid_argument, fmt::format("{}: {}", row->variable, accepted.message()));
    }
  }
  if (options.s3_endpoint.starts_with("s3:"))
    return refuse(option::remote_s3_endpoint, "GEMVJIT_REMOTE_S3_ENDPOINT", options.s3_endpoint);
  const std::string write = text(option::remote_write);
  if (!write.empty() && write != "0" && write != "1")
    return refuse(option::remote_write, option::remote_write.variable, write);
  options.write = write == "1";
  if (const std::string budget = text(option::remote_budget); !budget.empty()) {
    const auto seconds = whole_number<int>(budget);
    if (!seconds || *seconds < 1 || *seconds > 3600) {
      return refuse(option::remote_budget, option::remote_budget.variable, budget);
    }
    options.budget_ms = 1000 * *seconds;
  }
  options.token_file = text(option::remote_token_file);
  options.token = first({"GEMVJIT_REMOTE_TOKEN"});
  options.netrc = text(option::remote_netrc);
  options.ca = text(option::remote_ca);
  options.cert = text(option::remote_cert);
  options.key = text(option::remote_key);
  if (!options.is_s3()) return options;
  if (options.s3_endpoint.empty()) {
    options.s3_endpoint = first({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
    if (!options.s3_endpoint.empty()) {
      const Status accepted = check_remote_url(options.s3_endpoint);
      if (!accepted)
        return Status(StatusCode::invalid_argument,
                      fmt::format("AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL: {}", accepted.message()));
    }
  }
  if (const std::string region = first({"AWS_REGION", "AWS_DEFAULT_REGION"}); !region.empty())
    options.s3_region = region;
  options.s3_access_key = first({"AWS_ACCESS_KEY_ID"});
  options.s3_secret_key = first({"AWS_SECRET_ACCESS_KEY"});
  options.s3_session_token = first({"AWS_SESSION_TOKEN"});
  return options;
}

Result<ContextOptions> resolve_options(const OptionRequest& request, const EnvironmentReader& environment) {
  if (request.device < device_none) return refuse(option::device, "the value", std::to_string(request.device));
  ContextOptions options;
  options.device = request.device;
  options.compile_on_miss = request.compile_on_miss;
  options.cache_dir = choose_cache(request, environment);
  GEMVJIT_TRY_ASSIGN(options.cache_max_bytes, choose_cache_max_bytes(environment));
  GEMVJIT_TRY_ASSIGN(options.cache_trust, choose_cache_trust(environment));
  GEMVJIT_TRY_ASSIGN(options.signatures, resolve_signature_options(environment));
  GEMVJIT_TRY_ASSIGN(options.remote, resolve_remote_options(environment));
  options.cache_ro = split_layer_paths(choose_folder(request.cache_ro, option::cache_ro, environment));
  options.runtime_dir = environment("XDG_RUNTIME_DIR").value_or("");
  options.tuning_dir = choose_folder(request.tuning_dir, option::tuning_dir, environment);
  options.dump_dir = choose_folder(request.dump_dir, option::dump_dir, environment);
  GEMVJIT_TRY_ASSIGN(options.compile_threads, choose_compile_threads(request, environment));
  GEMVJIT_TRY_ASSIGN(options.log_level, choose_log_level(request, environment));
  options.log_sink = request.log_sink;
  options.on_launch_miss = request.on_launch_miss;
  return options;
}

}  // namespace gemvjit
