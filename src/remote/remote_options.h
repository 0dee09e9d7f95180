// What a user says of the remote cache. Plain data; src/runtime/options.h reads it from the settings.
#pragma once

#include <string>

#include "src/base/status.h"

namespace gemvjit {

inline constexpr const char* default_libcurl = "libcurl.so.4";

inline constexpr const char* no_remote =
    "none";  // where an address is expected: whatever else names one, there is none

inline constexpr int default_flush_ms = 30000;

struct RemoteOptions {
  std::string url;     // "http://host:port/prefix", "https://...", "s3://bucket/prefix"; "": no remote cache
  bool write = false;  // also publish what is compiled here
  // Who this is; each may be empty. The token is sent as "Authorization: Bearer"; the file is read at each start of a
  // client, its white space at the ends left out, and wins over `token`.
  std::string token_file, token;
  std::string netrc;          // a file as netrc(5) has it
  std::string ca, cert, key;  // PEM files: who the server may be, and the client's own certificate and key
  // Of s3:// addresses. An empty endpoint is the one of Amazon's for the region.
  std::string s3_endpoint, s3_region = "us-east-1", s3_access_key, s3_secret_key, s3_session_token;
  std::string libcurl = default_libcurl;

  int connect_ms = 1000;            // for a connection, TLS included
  int request_ms = 5000;            // for a request, from the start to the last byte
  int budget_ms = 30000;            // for all the downloads of a warmup
  int flush_ms = default_flush_ms;  // for the uploads after it, where they are waited for
  int breaker_failures = 3;         // in a row: the remote is left alone
  int probe_after_ms = 60000;       // after that time one request tries it again
  int connections = 16;             // at once

  bool is_set() const { return !url.empty(); }
  bool is_s3() const { return url.starts_with("s3://"); }
};

// invalid_argument, with what is accepted, for an address that is none: another scheme, no host or bucket, a query, a
// user or password within it (which messages would show). The text of an address that is refused is not repeated.
Status check_remote_url(const std::string& url);

// The address in front of "/cas/..." and "/ac/...", without a slash at its end: "https://host/prefix",
// "https://s3.us-east-1.amazonaws.com/bucket/prefix".
std::string remote_base_url(const RemoteOptions& options);

}  // namespace gemvjit
