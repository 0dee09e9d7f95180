#include "src/remote/ramp.h"

#include <algorithm>

namespace gemvjit {

Ramp::Ramp(int most) : most_(std::max(1, most)), least_(std::min(2, most_)), allowed_(least_) {}

void Ramp::answered() {
  {
    const std::lock_guard lock(mutex_);
    if (allowed_ == most_) return;
    ++allowed_;
  }
  changed_.notify_one();
}

void Ramp::failed() {
  const std::lock_guard lock(mutex_);
  allowed_ = std::max(least_, allowed_ / 2);
}

void Ramp::enter() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return taken_ < allowed_; });
  ++taken_;
}

void Ramp::leave() {
  {
    const std::lock_guard lock(mutex_);
    --taken_;
  }
  changed_.notify_one();
}

}  // namespace gemvjit
