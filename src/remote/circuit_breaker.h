// CircuitBreaker: leaves a server alone that has failed some times in a row; after a while one request may try it
// again.
//
// Threads: any.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>

namespace gemvjit {

class CircuitBreaker {
 public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;
  CircuitBreaker(int failures, std::chrono::milliseconds probe_after, Clock clock)
      : limit_(failures), probe_after_(probe_after), clock_(std::move(clock)) {}

  // Whether a request may be sent now. Whoever was allowed says how it ended.
  bool allow();
  void succeeded();  // the server answered, be it "not there"
  void failed();
  bool is_open() const;  // without asking for a probe

 private:
  const int limit_;
  const std::chrono::milliseconds probe_after_;
  const Clock clock_;
  mutable std::mutex mutex_;
  int failures_ = 0;  // in a row
  std::chrono::steady_clock::time_point next_probe_{};
};

}  // namespace gemvjit
