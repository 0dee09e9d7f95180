#include "tools/common/time_left.h"

#include <algorithm>

namespace gemvjit::tools {

TimeLeft::TimeLeft(std::map<int, Work> work, int jobs, double now)
    : work_(std::move(work)), jobs_(std::max(jobs, 1)), since_(now) {}

void TimeLeft::finished(int kind, std::optional<double> milliseconds, double now) {
  const auto place = work_.find(kind);
  if (place == work_.end()) return;
  if (place->second.steps > 0) --place->second.steps;
  if (milliseconds) seen_[kind].push_back(*milliseconds);
  since_ = now;
}

std::optional<double> TimeLeft::seconds(double now) const {
  const std::optional<double> whole = guess();
  if (!whole || *whole <= 0) return whole;
  const double left = *whole - (now - since_);
  return left > 0 ? std::optional(left) : std::nullopt;
}

std::optional<double> TimeLeft::median_ms(int kind) const {
  constexpr std::size_t enough = 3;
  const auto place = seen_.find(kind);
  const std::size_t count = place == seen_.end() ? 0 : place->second.size();
  const std::optional<double>& remembered = work_.at(kind).remembered_ms;
  if (count == 0 || (count < enough && remembered)) return remembered;
  std::vector<double> sorted = place->second;
  std::sort(sorted.begin(), sorted.end());
  return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

std::optional<double> TimeLeft::guess() const {
  double together = 0, longest = 0;
  for (const auto& [kind, work] : work_) {
    if (work.steps == 0) continue;
    const std::optional<double> median = median_ms(kind);
    if (!median) return std::nullopt;
    together += *median * static_cast<double>(work.steps);
    longest = std::max(longest, *median);
  }
  return std::max(together / jobs_, longest) / 1000;
}

}  // namespace gemvjit::tools
