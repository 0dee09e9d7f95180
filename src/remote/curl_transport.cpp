#include "src/remote/curl_transport.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

#include "src/base/blocked_signal.h"
#include "src/base/process_end.h"
#include "src/base/secret_file.h"
#include "src/base/sha256.h"
#include "src/remote/curl_api.h"
#include "src/remote/curl_connection.h"

namespace gemvjit {
namespace {

constexpr int most_redirects = 3;
// Before a request is sent once more: so many processes that met a full queue together do not meet it together again.
constexpr std::chrono::milliseconds least_pause{100}, longest_pause{400};
constexpr std::size_t token_file_limit = 64u << 10;
constexpr std::size_t key_file_limit = 1u << 20;
constexpr std::size_t netrc_limit = 1u << 20;

// What a write callback fills: nothing is thrown through libcurl.
struct Received {
  const curl::Api* api = nullptr;
  curl::Handle* handle = nullptr;
  Bytes* body = nullptr;
  std::size_t limit = 0;
  bool too_long = false, no_memory = false;

  long status() const {
    long status = 0;
    api->easy_getinfo(handle, curl::info_response_code, &status);
    return status;
  }
};

std::size_t receive(const char* data, std::size_t size, std::size_t count, void* user) {
  Received& received = *static_cast<Received*>(user);
  const std::size_t bytes = size * count;
  if (const long status = received.status(); status >= 300 && status < 400)
    return bytes;  // where it leads says a header
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

// "https://host:8080" of "https://host:8080/prefix".
std::string origin_of(const std::string& url) { return url.substr(0, url.find('/', url.find("://") + 3)); }

// Whether a URL is at that origin, letter for letter: what is only perhaps the same is another one. An origin ends
// where a path, a query or a fragment begins, so that "https://host:8080@elsewhere" is none of it.
bool is_at(const std::string& origin, const std::string& url) {
  return url.starts_with(origin) && (url.size() == origin.size() || std::strchr("/?#", url[origin.size()]) != nullptr);
}

// Whether a connection failed and not what was said over it: that may be well a moment later, as where a server that
// is well had no room in its queue.
bool is_of_connection(int code) {
  constexpr std::array<int, 6> codes{curl::couldnt_connect, curl::operation_timedout, curl::ssl_connect_error,
                                     curl::got_nothing,     curl::send_error,         curl::recv_error};
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

std::chrono::milliseconds pause() {
  const auto ticks = std::chrono::steady_clock::now().time_since_epoch().count();
  std::minstd_rand random(static_cast<std::uint_fast32_t>(ticks) ^ static_cast<std::uint_fast32_t>(::getpid()) << 12);
  std::uniform_int_distribution<int> within(static_cast<int>(least_pause.count()),
                                            static_cast<int>(longest_pause.count()));
  return std::chrono::milliseconds(within(random));
}

struct FreeList {
  const curl::Api* api;
  void operator()(curl::List* list) const { api->slist_free_all(list); }
};
using HeaderList = std::unique_ptr<curl::List, FreeList>;

class CurlTransport final : public HttpTransport {
 public:
  explicit CurlTransport(RemoteOptions options)
      : options_(std::move(options)), origin_(origin_of(remote_base_url(options_))) {}
  ~CurlTransport() override {
    const LibraryCall call;
    if (call.allowed()) return;
    for (Connections* connections : {&idle_, &idle_elsewhere_}) {
      for (auto& connection : *connections) (void)connection.release();  // the process is ending, and they with it
    }
  }

  Result<HttpResponse> send(const HttpRequest& request) override;

 private:
  using Time = std::chrono::steady_clock::time_point;
  using Connections = std::vector<std::unique_ptr<curl::Connection>>;
  // Where a request goes: to its own URL, or to where redirects led.
  struct Hop {
    std::string url;
    bool at_origin = true;   // the configured one, and by no way over another: who this is goes there alone
    bool encrypted = false;  // or one before was: it does not go on in the clear
  };
  struct Answer {
    HttpResponse response;
    Status status;                      // ok: the server said something
    bool is_connections_fault = false;  // not ok, and nothing was said
    std::string leads_to;               // of a redirect that is followed
  };
  Answer ask(const HttpRequest& request, const Hop& hop, curl::List* headers, Time end);
  Answer ask_patiently(const HttpRequest& request, const Hop& hop, curl::List* headers, Time end);
  void perform(curl::Connection& connection, const HttpRequest& request, Answer& answer);
  Status open();
  Status read_token();
  Status check_keys() const;
  Connections& idle(const Hop& hop) { return hop.at_origin ? idle_ : idle_elsewhere_; }
  std::unique_ptr<curl::Connection> take(const Hop& hop);
  void give_back(const Hop& hop, std::unique_ptr<curl::Connection> connection);
  Status set_up(curl::Handle* handle, const HttpRequest& request, const Hop& hop, curl::List* headers, Time end) const;
  Status set_identity(curl::Handle* handle) const;
  bool follows(const HttpRequest& request) const;
  Result<HeaderList> headers_of(const HttpRequest& request) const;

  const RemoteOptions options_;
  const std::string origin_;
  std::once_flag once_;
  Status opened_;                         // after once_, as the three that follow
  std::shared_ptr<const curl::Api> api_;  // null if it could not be opened
  std::string token_;
  std::mutex mutex_;  // guards what follows
  // That may still be open, the last used at the end. One that was told who this is never asks anybody else.
  Connections idle_, idle_elsewhere_;
};

Status CurlTransport::read_token() {
  token_ = options_.token;
  if (options_.token_file.empty()) return Status::ok();
  const auto secret = SecretFile::read(options_.token_file, token_file_limit, "the token file of the remote cache");
  if (!secret) return {StatusCode::unsupported, secret.status().message()};
  token_ = trimmed(secret->bytes());
  return Status::ok();
}

// OpenSSL would ask the terminal for the password of such a key, and wait for as long as that takes.
Status CurlTransport::check_keys() const {
  const std::string& path = options_.key.empty() ? options_.cert : options_.key;  // as libcurl looks for it
  if (path.empty()) return Status::ok();
  const auto secret = SecretFile::read(path, key_file_limit, "the key for the remote cache");
  if (!secret && secret.status().code() == StatusCode::io_error) return Status::ok();  // libcurl says what it is
  if (!secret) return {StatusCode::unsupported, secret.status().message()};
  const std::string_view text(reinterpret_cast<const char*>(secret->bytes().data()), secret->bytes().size());
  if (text.find("BEGIN ENCRYPTED PRIVATE KEY") == text.npos && text.find("4,ENCRYPTED") == text.npos) {
    return Status::ok();
  }
  return {StatusCode::unsupported, fmt::format("{}: a key with a password, which there is nobody to give", path)};
}

Status CurlTransport::open() {
  if (options_.is_s3() && (options_.s3_access_key.empty() || options_.s3_secret_key.empty())) {
    return {StatusCode::unsupported,
            "the remote cache is an s3:// address, and AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY is not set"};
  }
  GEMVJIT_TRY(read_token());
  GEMVJIT_TRY(check_keys());
  if (!options_.netrc.empty()) {  // libcurl would take one that all may read, and without one ask as nobody
    const auto secret = SecretFile::read(options_.netrc, netrc_limit, "the netrc file of the remote cache");
    if (!secret) return {StatusCode::unsupported, secret.status().message()};
  }
  const bool one_line =
      std::all_of(token_.begin(), token_.end(), [](unsigned char c) { return c >= 0x20 && c != 0x7F; });
  if (!one_line) return {StatusCode::unsupported, "the token of the remote cache is not one line of text"};
  GEMVJIT_TRY_ASSIGN(api_, curl::load(options_.libcurl));
  return Status::ok();
}

std::unique_ptr<curl::Connection> CurlTransport::take(const Hop& hop) {
  {
    const std::lock_guard lock(mutex_);
    Connections& connections = idle(hop);
    if (!connections.empty()) {
      auto connection = std::move(connections.back());  // the last one used: it is the likeliest to be open still
      connections.pop_back();
      return connection;
    }
  }
  return curl::Connection::open(api_);
}

void CurlTransport::give_back(const Hop& hop, std::unique_ptr<curl::Connection> connection) {
  connection->reset();  // all options, but neither connections nor what is known of the host
  const std::lock_guard lock(mutex_);
  try {
    idle(hop).push_back(std::move(connection));
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

// Who this is: for the configured origin alone.
Status CurlTransport::set_identity(curl::Handle* handle) const {
  const auto set = [&](curl::Option option, const std::string& text) {
    return text.empty() || api_->easy_setopt(handle, option, text.c_str()) == 0;
  };
  bool accepted = set(curl::SSLCERT, options_.cert) && set(curl::SSLKEY, options_.key);
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

// Not for S3, since a signature is of one host; nor with a client's certificate, whose server knows whom it lets in.
bool CurlTransport::follows(const HttpRequest& request) const {
  return request.method != HttpMethod::put && !options_.is_s3() && options_.cert.empty();
}

Status CurlTransport::set_up(curl::Handle* handle, const HttpRequest& request, const Hop& hop, curl::List* headers,
                             Time end) const {
  const auto number = [&](curl::Option option, long value) { return api_->easy_setopt(handle, option, value) == 0; };
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  bool accepted = api_->easy_setopt(handle, curl::URL, hop.url.c_str()) == 0 &&
                  api_->easy_setopt(handle, curl::HTTPHEADER, headers) == 0 &&
                  api_->easy_setopt(handle, curl::USERAGENT, "gemvjit") == 0 &&
                  number(curl::TCP_KEEPALIVE, 1) && number(curl::CONNECTTIMEOUT_MS, options_.connect_ms) &&
                  number(curl::TIMEOUT_MS, std::max<long>(1, left.count())) &&
                  number(curl::PROTOCOLS, curl::protocol_https | (hop.encrypted ? 0 : curl::protocol_http)) &&
                  // libcurl would ask the netrc file for every host that it is led to.
                  number(curl::FOLLOWLOCATION, 0);
  if (!options_.ca.empty()) accepted = accepted && api_->easy_setopt(handle, curl::CAINFO, options_.ca.c_str()) == 0;
  // Else a request whose time is up waits for the thread that asks for the host's address, which may take half a minute
  // where no name server answers. Libraries before 7.87 do not know it, and do wait.
  (void)number(curl::QUICK_EXIT, 1);
  switch (request.method) {
    case HttpMethod::get:
    case HttpMethod::head:
      accepted = accepted && number(request.method == HttpMethod::get ? curl::HTTPGET : curl::NOBODY, 1);
      break;
    case HttpMethod::put:
      accepted =
          accepted && api_->easy_setopt(handle, curl::POSTFIELDS, request.body->data()) == 0 &&
          api_->easy_setopt(handle, curl::POSTFIELDSIZE_LARGE, static_cast<std::int64_t>(request.body->size())) == 0 &&
          api_->easy_setopt(handle, curl::CUSTOMREQUEST, "PUT") == 0;
      break;
  }
  if (!accepted) return {StatusCode::unsupported, fmt::format("{} refuses an option", api_->version)};
  return hop.at_origin ? set_identity(handle) : Status::ok();
}

void CurlTransport::perform(curl::Connection& connection, const HttpRequest& request, Answer& answer) {
  curl::Handle* const handle = connection.handle();
  HttpResponse& response = answer.response;
  Received received{api_.get(), handle, &response.body, request.body_limit};
  std::array<char, curl::error_size> error{};
  api_->easy_setopt(handle, curl::WRITEFUNCTION, &receive);
  api_->easy_setopt(handle, curl::WRITEDATA, &received);
  api_->easy_setopt(handle, curl::ERRORBUFFER, error.data());
  // With NOSIGNAL libcurl leaves SIGPIPE to its caller, and not every library that it encrypts with writes without one.
  const BlockedSignal no_sigpipe(SIGPIPE);
  const int code = connection.perform();
  response.status = received.status();
  const bool is_page = received.too_long && (response.status < 200 || response.status >= 300);
  if (is_page) response.body.clear();  // what a status says counts, however much is said of it
  if (code == 0 || is_page) {
    const char* location = nullptr;
    api_->easy_getinfo(handle, curl::info_redirect_url, &location);
    if (location != nullptr && follows(request)) answer.leads_to = location;
    return;
  }
  // A text with "@" is of a proxy's address as the variables have it, perhaps with a password.
  const bool is_telling = error[0] != '\0' && std::strchr(error.data(), '@') == nullptr;
  const char* const reason = received.too_long    ? "the answer is too long"
                             : received.no_memory ? "no memory for the answer"
                             : is_telling         ? error.data()
                                                  : api_->easy_strerror(code);
  answer.status = {StatusCode::io_error,
                   fmt::format("{} {}: {}", http_method_name(request.method), request.url, reason)};
  answer.is_connections_fault = response.status == 0 && is_of_connection(code);
}

CurlTransport::Answer CurlTransport::ask(const HttpRequest& request, const Hop& hop, curl::List* headers, Time end) {
  Answer answer;
  std::unique_ptr<curl::Connection> connection = take(hop);
  answer.status = connection ? set_up(connection->handle(), request, hop, headers, end)
                             : Status(StatusCode::out_of_memory, "libcurl has no memory for a connection");
  if (answer.status) perform(*connection, request, answer);
  // One that failed is closed: it would be taken before those that are open still.
  if (answer.status) give_back(hop, std::move(connection));
  return answer;
}

CurlTransport::Answer CurlTransport::ask_patiently(const HttpRequest& request, const Hop& hop, curl::List* headers,
                                                   Time end) {
  Answer first = ask(request, hop, headers, end);
  const bool again = first.is_connections_fault && request.may_repeat;
  if (!again || std::chrono::steady_clock::now() + longest_pause >= end) return first;
  std::this_thread::sleep_for(pause());
  return ask(request, hop, headers, end);
}

Result<HttpResponse> CurlTransport::send(const HttpRequest& request) {
  const LibraryCall call;
  if (!call.allowed()) return Status(StatusCode::cancelled, "no request is made any more: the process is ending");
  std::call_once(once_, [this] { opened_ = open(); });
  GEMVJIT_TRY(opened_);
  GEMVJIT_TRY_ASSIGN(const HeaderList headers, headers_of(request));
  const Time end = std::chrono::steady_clock::now() + std::chrono::milliseconds(std::max(1, request.timeout_ms));
  Hop hop{request.url, is_at(origin_, request.url), request.url.starts_with("https:")};
  for (int redirects = 0;; ++redirects) {
    Answer answer = ask_patiently(request, hop, headers.get(), end);
    if (!answer.status) return answer.status;
    if (answer.leads_to.empty()) return std::move(answer.response);
    if (redirects == most_redirects) {
      return Status(StatusCode::io_error, fmt::format("{} {}: more than {} redirects", http_method_name(request.method),
                                                      request.url, most_redirects));
    }
    hop.at_origin = hop.at_origin && is_at(origin_, answer.leads_to);
    hop.url = std::move(answer.leads_to);
    hop.encrypted = hop.encrypted || hop.url.starts_with("https:");
  }
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
