// A server of files in memory behind HttpTransport, for tests of the remote cache: what it has, what it was asked, and
// what it does wrong. Threads: any.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "src/remote/http_transport.h"

namespace gemvjit::test {

class FakeHttpServer {
 public:
  // Each is asked before the server answers as it should; nothing: it does.
  using Fault = std::function<std::optional<Result<HttpResponse>>(const HttpRequest& request)>;

  std::unique_ptr<HttpTransport> transport() { return std::make_unique<Transport>(*this); }
  void set_fault(Fault fault) {
    const std::lock_guard lock(mutex_);
    fault_ = std::move(fault);
  }
  static Fault always(long status) {
    return [status](const HttpRequest&) { return Result<HttpResponse>(HttpResponse{status, {}}); };
  }
  static Fault no_answer() {
    return [](const HttpRequest& request) {
      return Result<HttpResponse>(Status(StatusCode::io_error, request.url + ": nobody there"));
    };
  }

  // "GET /ac/..." in order, without the address.
  std::vector<std::string> asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  std::size_t count(const std::string& beginning) const {
    std::size_t count = 0;
    for (const std::string& one : asked()) count += one.starts_with(beginning) ? 1u : 0u;
    return count;
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    asked_.clear();
  }
  std::map<std::string, Bytes> files() const {  // by path below the address
    const std::lock_guard lock(mutex_);
    return files_;
  }
  void put(const std::string& path, Bytes bytes) {
    const std::lock_guard lock(mutex_);
    files_[path] = std::move(bytes);
  }
  void remove(const std::string& path) {
    const std::lock_guard lock(mutex_);
    files_.erase(path);
  }

  static constexpr const char* address = "http://fake.example/kernels";

 private:
  class Transport final : public HttpTransport {
   public:
    explicit Transport(FakeHttpServer& server) : server_(server) {}
    Result<HttpResponse> send(const HttpRequest& request) override { return server_.answer(request); }

   private:
    FakeHttpServer& server_;
  };

  Result<HttpResponse> answer(const HttpRequest& request) {
    Fault fault;
    const std::string path = request.url.substr(std::string(address).size());
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(std::string(http_method_name(request.method)) + " " + path);
      fault = fault_;
    }
    if (fault) {
      if (auto answered = fault(request)) return std::move(*answered);
    }
    const std::lock_guard lock(mutex_);
    if (request.method == HttpMethod::put) {
      files_[path] = *request.body;
      return HttpResponse{201, {}};
    }
    const auto found = files_.find(path);
    if (found == files_.end()) return HttpResponse{404, {}};
    if (request.method == HttpMethod::head) return HttpResponse{200, {}};
    if (found->second.size() > request.body_limit) return Status(StatusCode::io_error, "the answer is too long");
    return HttpResponse{200, found->second};
  }

  mutable std::mutex mutex_;
  std::map<std::string, Bytes> files_;
  std::vector<std::string> asked_;
  Fault fault_;
};

}  // namespace gemvjit::test
