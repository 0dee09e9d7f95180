#include "src/remote/curl_transport.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string_view>
#include <vector>

#include "src/base/blocked_signal.h"
#include "src/base/process_end.h"
#include "src/base/sha256.h"
#include "src/remote/curl_api.h"
#include "src/remote/curl_connection.h"

namespace gemvjit {
namespace {

constexpr long most_redirects = 3;
constexpr std::size_t token_file_limit = 64u << 10;
constexpr std::size_t key_file_limit = 1u << 20;

// What a write callback fills: nothing is thrown through libcurl.
struct Received {
  Bytes* body = nullptr;
  std::size_t limit = 0;
  bool too_long = false, no_memory = false;
};

std::size_t receive(const char* data, std::size_t size, std::size_t count, void* user) {
  Received& received = *static_cast<Received*>(user);
  const std::size_t bytes = size * count;
  if (bytes > received.limit - received.body->size()) return received.too_long = true, 0;
  try {
    received.body->insert(received.body->end(), data, data + bytes);
  } catch (const std::bad_alloc&) {
    return received.no_memory = true, 0;
  }
  return bytes;
}

std::string trimmed(const Bytes& bytes) {
  std::string text(bytes.begin(), bytes.end());
  const char* blank = " \t\r\n";
  text.erase(text.find_last_not_of(blank) + 1);
  return text.erase(0, std::min(text.find_first_not_of(blank), text.size()));
}

struct FreeList {
  const curl::Api* api;
  void operator()(curl::List* list) const { api->slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl::List, FreeList>;

class CurlTransport final : public HttpTransport {
 public:
  explicit CurlTransport(RemoteOptions options) : options_(std::move(options)) {}
  ~CurlTransport() override {
    const LibraryCall call;
    if (call.allowed()) return;
    for (auto& connection : idle_) (void)connection.release();  // the process is ending, and they with it
  }

  Result<HttpResponse> send(const HttpRequest& request) override;

 private:
  Status open();
  Status read_token();
  Status check_keys() const;
  std::unique_ptr<curl::Connection> take();
  void give_back(std::unique_ptr<curl::Connection> connection);
  Status set_up(curl::Handle* handle, const HttpRequest& request, curl::List* headers) const;
  Status set_identity(curl::Handle* handle) const;
  Result<HeaderList> headers_of(const HttpRequest& request) const;

  const RemoteOptions options_;
  std::once_flag once_;
  Status opened_;                         // after once_, as the three that follow
  std::shared_ptr<const curl::Api> api_;  // null if it could not be opened
  std::string token_;
  std::mutex mutex_;  // guards idle_
  std::vector<std::unique_ptr<curl::Connection>> idle_;
};

Status CurlTransport::read_token() {
  token_ = options_.token;
  if (options_.token_file.empty()) return Status::ok();
  const Result<Bytes> bytes = read_file(options_.token_file, token_file_limit);
  if (!bytes) {
    return {StatusCode::unsupported, fmt::format("the token of the remote cache: {}", bytes.status().message())};
  }
  token_ = trimmed(*bytes);
  return Status::ok();
}

// OpenSSL would ask the terminal for the password of such a key, and wait for as long as that takes.
Status CurlTransport::check_keys() const {
  for (const std::string& path : {options_.cert, options_.key}) {
    const Result<Bytes> bytes = path.empty() ? Result<Bytes>(Bytes()) : read_file(path, key_file_limit);
    if (!bytes) continue;  // libcurl says what it makes of the name
    const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    if (text.find("BEGIN ENCRYPTED PRIVATE KEY") == text.npos && text.find("4,ENCRYPTED") == text.npos) continue;
    return {StatusCode::unsupported, fmt::format("{}: a key with a password, which there is nobody to give", path)};
  }
  return Status::ok();
}

Status CurlTransport::open() {
  if (options_.is_s3() && (options_.s3_access_key.empty() || options_.s3_secret_key.empty())) {
    return {StatusCode::unsupported,
            "the remote cache is an s3:// address, and AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY is not set"};
  }
  GEMVJIT_TRY(read_token());
  GEMVJIT_TRY(check_keys());
  if (!options_.netrc.empty() && ::access(options_.netrc.c_str(), R_OK) != 0) {  // libcurl would ask as nobody
    return {StatusCode::unsupported, fmt::format("{} of remote_netrc cannot be read", options_.netrc)};
  }
  const bool one_line =
      std::all_of(token_.begin(), token_.end(), [](unsigned char c) { return c >= 0x20 && c != 0x7F; });
  if (!one_line) return {StatusCode::unsupported, "the token of the remote cache is not one line of text"};
  GEMVJIT_TRY_ASSIGN(api_, curl::load(options_.libcurl));
  return Status::ok();
}

std::unique_ptr<curl::Connection> CurlTransport::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto connection = std::move(idle_.back());  // the last one used: it is the likeliest to be open still
      idle_.pop_back();
      return connection;
    }
  }
  return curl::Connection::open(api_);
}

void CurlTransport::give_back(std::unique_ptr<curl::Connection> connection) {
  connection->reset();  // all options, but neither connections nor what is known of the host
  const std::lock_guard lock(mutex_);
  try {
    idle_.push_back(std::move(connection));
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it is closed instead
  }
}

Result<HeaderList> CurlTransport::headers_of(const HttpRequest& request) const {
  std::vector<std::string> lines;
  if (request.method == HttpMethod::put) {
    lines.emplace_back("Content-Type: application/octet-stream");
    // No round trip before the body. Not for S3: libcurl 7.88 signs this header as empty, and then does not send it.
    if (!options_.is_s3()) lines.emplace_back("Expect:");
  }
  if (options_.is_s3()) {
    // Said here, since libcurl 7.88 signs the body's digest of uploads wrongly.
    static const Bytes nothing;
    const Bytes& body = request.body != nullptr ? *request.body : nothing;
    lines.push_back("x-amz-content-sha256: " + to_hex(Sha256::of(body.data(), body.size())));
    if (!options_.s3_session_token.empty()) lines.push_back("x-amz-security-token: " + options_.s3_session_token);
  }
  HeaderList list(nullptr, FreeList{api_.get()});
  for (const std::string& line : lines) {
    curl::List* const longer = api_->slist_append(list.get(), line.c_str());
    if (longer == nullptr) return Status(StatusCode::out_of_memory, "libcurl has no memory for a header");
    (void)list.release();  // the same list, or its first line
    list.reset(longer);
  }
  return list;
}

// Who this is, and who the server may be.
Status CurlTransport::set_identity(curl::Handle* handle) const {
  const auto set = [&](curl::Option option, const std::string& text) {
    return text.empty() || api_->easy_setopt(handle, option, text.c_str()) == 0;
  };
  bool accepted =
      set(curl::CAINFO, options_.ca) && set(curl::SSLCERT, options_.cert) && set(curl::SSLKEY, options_.key);
  if (options_.is_s3()) {
    const std::string scheme = fmt::format("aws:amz:{}:s3", options_.s3_region);
    accepted = accepted && set(curl::AWS_SIGV4, scheme) && set(curl::USERNAME, options_.s3_access_key) &&
               set(curl::PASSWORD, options_.s3_secret_key);
  } else if (!token_.empty()) {
    accepted = accepted && set(curl::XOAUTH2_BEARER, token_) &&
               api_->easy_setopt(handle, curl::HTTPAUTH, curl::auth_bearer) == 0;
  } else if (!options_.netrc.empty()) {
    accepted = accepted && set(curl::NETRC_FILE, options_.netrc) &&
               api_->easy_setopt(handle, curl::NETRC, curl::netrc_required) == 0 &&
               api_->easy_setopt(handle, curl::HTTPAUTH, curl::auth_basic) == 0;
  }
  if (accepted) return Status::ok();
  return {StatusCode::unsupported, fmt::format("{} lacks what the remote cache's options ask for", api_->version)};
}

Status CurlTransport::set_up(curl::Handle* handle, const HttpRequest& request, curl::List* headers) const {
  const auto number = [&](curl::Option option, long value) { return api_->easy_setopt(handle, option, value) == 0; };
  bool accepted = api_->easy_setopt(handle, curl::URL, request.url.c_str()) == 0 &&
                  api_->easy_setopt(handle, curl::HTTPHEADER, headers) == 0 &&
                  api_->easy_setopt(handle, curl::USERAGENT, "gemvjit") == 0 &&
                  number(curl::NOSIGNAL, 1) &&  // signals are the engine's
                  number(curl::TCP_KEEPALIVE, 1) && number(curl::CONNECTTIMEOUT_MS, options_.connect_ms) &&
                  number(curl::TIMEOUT_MS, std::max(1, request.timeout_ms)) &&
                  number(curl::PROTOCOLS, curl::protocol_http | curl::protocol_https);
  // Else a request whose time is up waits for the thread that asks for the host's address, which may take half a minute
  // where no name server answers. Libraries before 7.87 do not know it, and do wait.
  (void)number(curl::QUICK_EXIT, 1);
  switch (request.method) {
    case HttpMethod::get:
    case HttpMethod::head: {
      const bool encrypted = request.url.starts_with("https:");
      // Not for S3: a signature is of one host, and libcurl would take the session's token along. Not with a client's
      // certificate, which it would show to the other host, too.
      const bool follows = !options_.is_s3() && options_.cert.empty();
      accepted = accepted && number(request.method == HttpMethod::get ? curl::HTTPGET : curl::NOBODY, 1) &&
                 number(curl::FOLLOWLOCATION, follows ? 1 : 0) && number(curl::MAXREDIRS, most_redirects) &&
                 number(curl::REDIR_PROTOCOLS, curl::protocol_https | (encrypted ? 0 : curl::protocol_http));
      break;
    }
    case HttpMethod::put:
      accepted =
          accepted && api_->easy_setopt(handle, curl::POSTFIELDS, request.body->data()) == 0 &&
          api_->easy_setopt(handle, curl::POSTFIELDSIZE_LARGE, static_cast<std::int64_t>(request.body->size())) == 0 &&
          api_->easy_setopt(handle, curl::CUSTOMREQUEST, "PUT") == 0;
      break;
  }
  if (!accepted) return {StatusCode::unsupported, fmt::format("{} refuses an option", api_->version)};
  return set_identity(handle);
}

Result<HttpResponse> CurlTransport::send(const HttpRequest& request) {
  const LibraryCall call;
  if (!call.allowed()) return Status(StatusCode::cancelled, "no request is made any more: the process is ending");
  std::call_once(once_, [this] { opened_ = open(); });
  GEMVJIT_TRY(opened_);
  GEMVJIT_TRY_ASSIGN(const HeaderList headers, headers_of(request));
  const auto give = [this](curl::Connection* used) { give_back(std::unique_ptr<curl::Connection>(used)); };
  const std::unique_ptr<curl::Connection, decltype(give)> taken(take().release(), give);  // before the headers go
  curl::Handle* const handle = taken == nullptr ? nullptr : taken->handle();
  HttpResponse response;
  Received received{&response.body, request.body_limit};
  std::array<char, curl::error_size> error{};
  Status status = handle == nullptr ? Status(StatusCode::out_of_memory, "libcurl has no memory for a connection")
                                    : set_up(handle, request, headers.get());
  if (status) {
    api_->easy_setopt(handle, curl::WRITEFUNCTION, &receive);
    api_->easy_setopt(handle, curl::WRITEDATA, &received);
    api_->easy_setopt(handle, curl::ERRORBUFFER, error.data());
    // With NOSIGNAL libcurl leaves SIGPIPE to its caller, and not every library that it encrypts with writes without
    // one.
    const BlockedSignal no_sigpipe(SIGPIPE);
    const int code = taken->perform();
    api_->easy_getinfo(handle, curl::info_response_code, &response.status);
    const bool is_page = received.too_long && (response.status < 200 || response.status >= 300);
    if (is_page) {  // what a status says counts, however much is said of it
      response.body.clear();
    } else if (code != 0) {
      // A text with "@" is of a proxy's address as the variables have it, perhaps with a password.
      const bool is_telling = error[0] != '\0' && std::strchr(error.data(), '@') == nullptr;
      const char* const reason = received.too_long    ? "the answer is too long"
                                 : received.no_memory ? "no memory for the answer"
                                 : is_telling         ? error.data()
                                                      : api_->easy_strerror(code);
      status = {StatusCode::io_error, fmt::format("{} {}: {}", http_method_name(request.method), request.url, reason)};
    }
  }
  if (!status) return status;
  return response;
}

}  // namespace

const char* http_method_name(HttpMethod method) {
  switch (method) {
    case HttpMethod::get:
      return "GET";
    case HttpMethod::head:
      return "HEAD";
    case HttpMethod::put:
      return "PUT";
  }
  return "?";
}

std::unique_ptr<HttpTransport> make_curl_transport(RemoteOptions options) {
  return std::make_unique<CurlTransport>(std::move(options));
}

Result<std::string> describe_libcurl(const std::string& file) {
  GEMVJIT_TRY_ASSIGN(const std::shared_ptr<const curl::Api> api, curl::load(file));
  return api->version;
}

}  // namespace gemvjit
