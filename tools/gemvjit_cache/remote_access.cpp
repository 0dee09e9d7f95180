#include "tools/gemvjit_cache/remote_access.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "src/remote/curl_transport.h"
#include "src/runtime/options.h"
#include "tools/cache_view/tool_settings.h"

namespace gemvjit::tools {
namespace {

constexpr int most_requests = 3;  // whose times doctor takes

// The settings', with --remote in the place of the address.
Result<RemoteOptions> remote_options(const std::string& address) {
  const EnvironmentReader& settings = tool_environment();
  if (address.empty()) return resolve_remote_options(settings);
  return resolve_remote_options([&](const char* variable) -> std::optional<std::string> {
    return std::string_view(variable) == option_row("remote").variable ? address : settings(variable);
  });
}

}  // namespace

ExitCode open_remote(const CacheArguments& arguments, bool write, std::shared_ptr<const Signatures> signatures,
                     std::unique_ptr<RemoteStore>& remote) {
  Result<RemoteOptions> options = remote_options(arguments.remote);
  if (!options) {
    complain(options.status().message());
    return exit_usage;
  }
  if (!options->is_set()) {
    complain("no remote cache is named: say --remote URL, or set GEMVJIT_REMOTE");
    return exit_remote_failed;
  }
  options->write = write;
  remote = std::make_unique<RemoteStore>(*options, make_curl_transport(*options), std::move(signatures), Log::silent());
  return exit_done;
}

Status check_set_name(const std::string& name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  if (!name.empty() && name.size() <= 128 && std::all_of(name.begin(), name.end(), is_plain)) return Status::ok();
  return {StatusCode::invalid_argument, "--set: a name has 1 to 128 letters, digits and ._-"};
}

Deadline no_deadline() { return std::chrono::steady_clock::now() + std::chrono::hours(24 * 365); }

nlohmann::ordered_json examine_remote() {
  const Result<RemoteOptions> options = remote_options("");
  nlohmann::ordered_json report{{"url", ""},          {"libcurl", nullptr},
                                {"answers", nullptr}, {"latency_ms", nullptr},
                                {"writes", nullptr},  {"problem", ""}};
  if (!options) {
    report["problem"] = options.status().message();
    return report;
  }
  if (!options->is_set()) return report;
  report["url"] = options->url;
  const Result<std::string> libcurl = describe_libcurl(options->libcurl);
  if (!libcurl) {
    report["problem"] = libcurl.status().message();
    return report;
  }
  report["libcurl"] = *libcurl;
  RemoteStore remote(*options, make_curl_transport(*options), nullptr, Log::silent());
  double fastest = 0;
  for (int i = 0; i < most_requests; ++i) {  // the first makes the connection
    const auto begin = std::chrono::steady_clock::now();
    const Status answers = remote.ping(remote.deadline_in(options->request_ms));
    report["answers"] = answers.is_ok();
    if (!answers) {
      report["problem"] = answers.message();
      return report;
    }
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    fastest = i == 0 ? ms : std::min(fastest, ms);
  }
  report["latency_ms"] = std::round(fastest * 1000) / 1000;
  if (!options->write) return report;
  const Status written = remote.try_write(remote.deadline_in(options->budget_ms));
  report["writes"] = written.is_ok();
  report["problem"] = written.message();
  return report;
}

}  // namespace gemvjit::tools
