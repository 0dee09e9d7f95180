// CircuitBreaker: leaves a server alone that has failed some times in a row; after a while one request may try it
// again. Requests that were under way together and fail count as one failure: they met with one and the same trouble.
//
// Threads: any.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

namespace gemvjit {

class CircuitBreaker {
 public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;
  CircuitBreaker(int failures, std::chrono::milliseconds probe_after, Clock clock)
      : limit_(failures), probe_after_(probe_after), clock_(std::move(clock)) {}

  // Which failures a request knew of when it began.
  using Ticket = std::uint64_t;
  // Whether a request may be sent now. Whoever was allowed says how it ended.
  std::optional<Ticket> allow();
  void succeeded();  // the server answered, be it "not there"
  // False: it is of a burst that was counted already.
  bool failed(Ticket ticket);
  void open();           // somebody else has found it to be down
  bool is_open() const;  // without asking for a probe
  bool is_well() const;  // no failure since the last answer

 private:
  const int limit_;
  const std::chrono::milliseconds probe_after_;
  const Clock clock_;
  mutable std::mutex mutex_;
  int failures_ = 0;    // in a row
  Ticket counted_ = 0;  // failures so far
  std::chrono::steady_clock::time_point next_probe_{};
};

}  // namespace gemvjit
