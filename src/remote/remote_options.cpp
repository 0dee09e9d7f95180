#include "src/remote/remote_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace gemvjit {
namespace {

constexpr std::size_t longest_url = 2048;

Status refuse(const char* why) {
  return {StatusCode::invalid_argument,
          fmt::format("{}: http://host[:port][/prefix], https://host[:port][/prefix] and s3://bucket[/prefix] are "
                      "accepted",
                      why)};
}

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._~/:%[]").find(c) != std::string_view::npos;
}

std::string without_slashes(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

}  // namespace

Status check_remote_url(const std::string& url) {
  const std::size_t scheme_end = url.find("://");
  if (scheme_end == std::string::npos) return refuse("the address of a remote cache has no scheme");
  const std::string_view scheme = std::string_view(url).substr(0, scheme_end);
  if (scheme != "http" && scheme != "https" && scheme != "s3") {
    return refuse("the address of a remote cache has another scheme");
  }
  const std::string_view rest = std::string_view(url).substr(scheme_end + 3);
  if (rest.find('@') != std::string_view::npos) {
    return refuse("the address of a remote cache holds a user or password, which belong into a netrc file");
  }
  if (url.size() > longest_url || !std::all_of(rest.begin(), rest.end(), is_plain)) {
    return refuse("the address of a remote cache is too long or has characters that no address of one has");
  }
  if (rest.empty() || rest.front() == '/' || rest.front() == ':') {
    return refuse("the address of a remote cache names no host or bucket");
  }
  return Status::ok();
}

std::string remote_base_url(const RemoteOptions& options) {
  if (!options.is_s3()) return without_slashes(options.url);
  const std::string bucket_and_prefix = without_slashes(options.url.substr(5));
  if (!options.s3_endpoint.empty()) return without_slashes(options.s3_endpoint) + "/" + bucket_and_prefix;
  return fmt::format("https://s3.{}.amazonaws.com/{}", options.s3_region, bucket_and_prefix);
}

}  // namespace gemvjit
