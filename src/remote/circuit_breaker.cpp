#include "src/remote/circuit_breaker.h"

#include <algorithm>

namespace gemvjit {

bool CircuitBreaker::allow() {
  const std::lock_guard lock(mutex_);
  if (failures_ < limit_) return true;
  const auto now = clock_();
  if (now < next_probe_) return false;
  next_probe_ = now + probe_after_;  // this one is the probe
  return true;
}

void CircuitBreaker::succeeded() {
  const std::lock_guard lock(mutex_);
  failures_ = 0;
}

void CircuitBreaker::failed() {
  const std::lock_guard lock(mutex_);
  failures_ = std::min(failures_ + 1, limit_);
  // Requests that were under way when it opened end later: they do not put the probe off further and further.
  if (failures_ == limit_ && clock_() >= next_probe_) next_probe_ = clock_() + probe_after_;
}

bool CircuitBreaker::is_open() const {
  const std::lock_guard lock(mutex_);
  return failures_ >= limit_;
}

}  // namespace gemvjit
