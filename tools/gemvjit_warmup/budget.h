// Budget: the time after which a run begins nothing more. Asked whenever a kernel is finished, since only then another
// one begins.
#pragma once

#include <chrono>
#include <functional>
#include <utility>

namespace gemvjit::tools {

class Budget {
 public:
  using Clock = std::function<double()>;  // seconds, monotonic

  // `seconds` 0: no limit. The time runs from now on.
  explicit Budget(double seconds, Clock clock = machine_clock()) : seconds_(seconds), clock_(std::move(clock)) {
    begin_ = clock_();
  }
  bool is_spent() const { return seconds_ > 0 && clock_() - begin_ >= seconds_; }

  static Clock machine_clock() {
    return [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); };
  }

 private:
  double seconds_, begin_ = 0;
  Clock clock_;
};

}  // namespace gemvjit::tools
