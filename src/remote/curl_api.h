// libcurl's easy and multi interfaces, opened when it is needed, and the numbers of it that are used. They are part of
// its stable ABI (libcurl.so.4 since 2006; https://curl.se/libcurl/c/ and curl/curl.h name them), and a test asks the
// library that is installed whether it has the same.
#pragma once

#include <memory>
#include <string>

#include "src/base/status.h"

namespace gemvjit {

// Of curl_easy_setopt: X(name, number). All are in oldest_version but QUICK_EXIT, of 7.87. 1 to 9999 take a long, 10000
// and above a pointer, 20000 a function, 30000 a 64-bit offset.
#define GEMVJIT_CURL_OPTIONS(X) \
  X(TIMEOUT_MS, 155)            \
  X(CONNECTTIMEOUT_MS, 156)     \
  X(NOBODY, 44)                 \
  X(HTTPGET, 80)                \
  X(FOLLOWLOCATION, 52)         \
  X(NETRC, 51)                  \
  X(NOSIGNAL, 99)               \
  X(HTTPAUTH, 107)              \
  X(PROTOCOLS, 181)             \
  X(TCP_KEEPALIVE, 213)         \
  X(QUICK_EXIT, 322)            \
  X(URL, 10002)                 \
  X(WRITEDATA, 10001)           \
  X(ERRORBUFFER, 10010)         \
  X(POSTFIELDS, 10015)          \
  X(USERAGENT, 10018)           \
  X(HTTPHEADER, 10023)          \
  X(SSLCERT, 10025)             \
  X(CUSTOMREQUEST, 10036)       \
  X(CAINFO, 10065)              \
  X(SSLKEY, 10087)              \
  X(NETRC_FILE, 10118)          \
  X(USERNAME, 10173)            \
  X(PASSWORD, 10174)            \
  X(XOAUTH2_BEARER, 10220)      \
  X(AWS_SIGV4, 10305)           \
  X(WRITEFUNCTION, 20011)       \
  X(OPENSOCKETFUNCTION, 20163)  \
  X(POSTFIELDSIZE_LARGE, 30120)

namespace curl {

enum Option : int {
#define X(name, number) name = number,
  GEMVJIT_CURL_OPTIONS(X)
#undef X
};

inline constexpr long global_default = 3;            // CURL_GLOBAL_DEFAULT
inline constexpr int info_response_code = 0x200002;  // CURLINFO_RESPONSE_CODE
inline constexpr int info_redirect_url = 0x10001F;   // CURLINFO_REDIRECT_URL
// Of CURLcode.
inline constexpr int couldnt_connect = 7, operation_timedout = 28, ssl_connect_error = 35, got_nothing = 52,
                     send_error = 55, recv_error = 56;
inline constexpr long protocol_http = 1, protocol_https = 2;
inline constexpr long auth_basic = 1, auth_bearer = 1 << 6;
inline constexpr long netrc_required = 2;             // CURL_NETRC_REQUIRED
inline constexpr std::size_t error_size = 256;        // CURL_ERROR_SIZE
inline constexpr unsigned oldest_version = 0x074B00;  // 7.75.0, the first that signs for S3

struct Handle;    // CURL
struct Multi;     // CURLM
struct List;      // struct curl_slist
struct Message {  // CURLMsg
  int kind;
  Handle* handle;
  union {
    void* whatever;
    int result;
  };
};
inline constexpr int message_done = 1;  // CURLMSG_DONE
inline constexpr int failed = 43;       // CURLE_BAD_FUNCTION_ARGUMENT, where the functions were called wrongly

// CURLcode, an int; 0 is success.
struct Api {
  std::string file;     // that was opened
  std::string version;  // "libcurl/7.88.1 OpenSSL/3.0.17 ..."
  int (*global_init)(long flags) = nullptr;
  char* (*version_text)() = nullptr;
  Handle* (*easy_init)() = nullptr;
  void (*easy_cleanup)(Handle*) = nullptr;
  void (*easy_reset)(Handle*) = nullptr;
  int (*easy_setopt)(Handle*, int option, ...) = nullptr;
  int (*easy_getinfo)(Handle*, int info, ...) = nullptr;
  const char* (*easy_strerror)(int code) = nullptr;
  Multi* (*multi_init)() = nullptr;  // these: CURLMcode, 0 is success
  int (*multi_cleanup)(Multi*) = nullptr;
  int (*multi_add_handle)(Multi*, Handle*) = nullptr;
  int (*multi_remove_handle)(Multi*, Handle*) = nullptr;
  int (*multi_perform)(Multi*, int* running) = nullptr;
  int (*multi_poll)(Multi*, void* more, unsigned count, int milliseconds, int* ready) = nullptr;
  int (*multi_wakeup)(Multi*) = nullptr;
  Message* (*multi_info_read)(Multi*, int* left) = nullptr;
  List* (*slist_append)(List*, const char*) = nullptr;
  void (*slist_free_all)(List*) = nullptr;
  const void* (*easy_option_by_name)(const char* name) = nullptr;  // null in old libraries; for the test
};

// Opens and initializes the library; never closes it. unsupported, naming the files that were tried, if it is not
// there or too old. Threads: any; initialized once in a process.
Result<std::shared_ptr<const Api>> load(const std::string& file);

}  // namespace curl
}  // namespace gemvjit
