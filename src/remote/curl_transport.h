// HttpTransport by libcurl: connections are kept and used again, each by one request at a time.
//
// libcurl is opened, and the token's file read, at the first request. Proxies are those of the environment (http_proxy,
// https_proxy, no_proxy), which libcurl reads itself. Redirects of GET and HEAD are followed three times, never from
// https to http, not for S3, and not with a client's certificate. What says who this is (token, netrc file, signature,
// certificate) goes to the origin of the options' address, the same scheme, host and port, and nowhere else; after a
// redirect elsewhere not there either.
//
// A request whose connection fails before anything was said is sent once more after 100 to 400 ms, within its own time,
// where HttpRequest::may_repeat says so.
#pragma once

#include <memory>
#include <string>

#include "src/remote/http_transport.h"
#include "src/remote/remote_options.h"

namespace gemvjit {

std::unique_ptr<HttpTransport> make_curl_transport(RemoteOptions options);

// "libcurl/7.88.1 ..." of the library that would be used, or why there is none.
Result<std::string> describe_libcurl(const std::string& file);

}  // namespace gemvjit
