#include "src/remote/curl_api.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <charconv>
#include <map>
#include <mutex>
#include <string_view>

#include "src/base/process_end.h"
#include "src/base/secure_program.h"
#include "src/remote/remote_options.h"

namespace gemvjit::curl {
namespace {

// Where the default name is not there: Debian and Ubuntu have this build of it, too, with the same ABI.
constexpr const char* other_default = "libcurl-gnutls.so.4";

template <typename Function>
bool find(void* handle, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(handle, name));
  return function != nullptr;
}

// "libcurl/7.88.1 ..." as 0x075801; 0 if it is no such text.
unsigned number_of(std::string_view text) {
  const std::size_t slash = text.find('/');
  unsigned number = 0;
  const char* at = text.data() + (slash == std::string_view::npos ? text.size() : slash + 1);
  const char* const end = text.data() + text.size();
  for (int part = 0; part < 3; ++part) {
    unsigned value = 0;
    const auto parsed = std::from_chars(at, end, value);
    if (parsed.ec != std::errc() || value > 255) return 0;
    number = number << 8 | value;
    at = parsed.ptr;
    if (at < end && *at == '.') ++at;
  }
  return number;
}

Result<std::shared_ptr<const Api>> open(const std::string& file) {
  void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = ::dlerror();
    return Status(StatusCode::not_found, reason == nullptr ? file + ": no reason given" : std::string(reason));
  }
  auto api = std::make_shared<Api>();
  api->file = file;
  const bool complete =
      find(handle, "curl_global_init", api->global_init) && find(handle, "curl_version", api->version_text) &&
      find(handle, "curl_easy_init", api->easy_init) && find(handle, "curl_easy_cleanup", api->easy_cleanup) &&
      find(handle, "curl_easy_reset", api->easy_reset) && find(handle, "curl_easy_setopt", api->easy_setopt) &&
      find(handle, "curl_multi_init", api->multi_init) && find(handle, "curl_multi_cleanup", api->multi_cleanup) &&
      find(handle, "curl_multi_add_handle", api->multi_add_handle) &&
      find(handle, "curl_multi_remove_handle", api->multi_remove_handle) &&
      find(handle, "curl_multi_perform", api->multi_perform) && find(handle, "curl_multi_poll", api->multi_poll) &&
      find(handle, "curl_multi_wakeup", api->multi_wakeup) &&
      find(handle, "curl_multi_info_read", api->multi_info_read) &&
      find(handle, "curl_easy_getinfo", api->easy_getinfo) && find(handle, "curl_easy_strerror", api->easy_strerror) &&
      find(handle, "curl_slist_append", api->slist_append) && find(handle, "curl_slist_free_all", api->slist_free_all);
  if (!complete) return Status(StatusCode::unsupported, file + " lacks functions of libcurl");
  (void)find(handle, "curl_easy_option_by_name", api->easy_option_by_name);
  if (const int code = api->global_init(global_default); code != 0) {
    return Status(StatusCode::unsupported, fmt::format("{} cannot be initialized: {}", file, api->easy_strerror(code)));
  }
  watch_process_end();
  api->version = api->version_text();
  if (number_of(api->version) < oldest_version) {
    return Status(StatusCode::unsupported, fmt::format("{} is {}; 7.75 or later is needed", file, api->version));
  }
  return std::shared_ptr<const Api>(std::move(api));
}

}  // namespace

Result<std::shared_ptr<const Api>> load(const std::string& file) {
  // Never destroyed: threads may ask while the process ends.
  static std::mutex& mutex = *new std::mutex;
  static auto& opened = *new std::map<std::string, std::shared_ptr<const Api>>;
  const std::lock_guard lock(mutex);
  // libcurl's own: proxies, and a file that it writes keys to.
  if (const std::string variable = set_in_secure_program(
          {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "SSLKEYLOGFILE", "CURL_SSL_BACKEND"});
      !variable.empty()) {
    return Status(StatusCode::unsupported,
                  fmt::format("no remote cache is used: {} is set, which libcurl would heed with this program's rights "
                              "(set-ID or capabilities), that its user has not",
                              variable));
  }
  if (const auto found = opened.find(file); found != opened.end()) return found->second;
  Result<std::shared_ptr<const Api>> api = open(file);
  std::string tried = api.status().message();
  if (!api && api.status().code() == StatusCode::not_found && file == default_libcurl) {
    api = open(other_default);
    if (!api) tried += "; " + api.status().message();
  }
  if (!api) return Status(StatusCode::unsupported, fmt::format("a remote cache needs libcurl: {}", tried));
  opened.emplace(file, *api);
  return api;
}

}  // namespace gemvjit::curl
