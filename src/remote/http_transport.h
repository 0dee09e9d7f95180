// HttpTransport: one request, one answer. The real one is libcurl's (curl_transport.h); tests give their own.
#pragma once

#include <cstddef>
#include <string>

#include "src/base/files.h"
#include "src/base/status.h"

namespace gemvjit {

enum class HttpMethod { get, head, put };
const char* http_method_name(HttpMethod method);

struct HttpRequest {
  HttpMethod method = HttpMethod::get;
  std::string url;
  const Bytes* body = nullptr;  // of put
  std::size_t body_limit = 0;   // bytes of an answer that are taken; a longer one is a failure
  int timeout_ms = 0;           // from the start to the last byte, redirects and repetition included
  bool may_repeat = true;       // once, if the connection fails before the server has said anything
};

struct HttpResponse {
  long status = 0;  // as the server says it: 200, 404, 500, ...
  Bytes body;
};

class HttpTransport {
 public:
  virtual ~HttpTransport() = default;
  // What the server said, whatever it was; io_error where there was no whole answer, unsupported where this machine
  // cannot ask at all (no libcurl, a certificate that cannot be read). Messages hold no secret. Threads: any, at once.
  virtual Result<HttpResponse> send(const HttpRequest& request) = 0;
};

}  // namespace gemvjit
