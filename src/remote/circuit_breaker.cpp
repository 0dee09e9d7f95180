#include "src/remote/circuit_breaker.h"

#include <algorithm>

namespace gemvjit {

std::optional<CircuitBreaker::Ticket> CircuitBreaker::allow() {
  const std::lock_guard lock(mutex_);
  if (failures_ < limit_) return counted_;
  const auto now = clock_();
  if (now < next_probe_) return std::nullopt;
  next_probe_ = now + probe_after_;  // this one is the probe
  return counted_;
}

void CircuitBreaker::succeeded() {
  const std::lock_guard lock(mutex_);
  failures_ = 0;
}

bool CircuitBreaker::failed(Ticket ticket) {
  const std::lock_guard lock(mutex_);
  if (ticket != counted_) return false;
  ++counted_;
  failures_ = std::min(failures_ + 1, limit_);
  if (failures_ == limit_) next_probe_ = clock_() + probe_after_;
  return true;
}

void CircuitBreaker::open() {
  const std::lock_guard lock(mutex_);
  if (failures_ == limit_) return;
  ++counted_;
  failures_ = limit_;
  next_probe_ = clock_() + probe_after_;
}

bool CircuitBreaker::is_open() const {
  const std::lock_guard lock(mutex_);
  return failures_ >= limit_;
}

bool CircuitBreaker::is_well() const {
  const std::lock_guard lock(mutex_);
  return failures_ == 0;
}

}  // namespace gemvjit
