// TimeLeft: an honest guess of how long the rest of a run takes, from how long its steps took before.
//
// For each kind of step: the median of this run once three are done (this machine, under this load), else the median
// remembered from earlier, else that of the one or two of this run. Where a kind with steps left has none of these,
// there is no guess. No clock of its own, no threads.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

namespace gemvjit::tools {

class TimeLeft {
 public:
  struct Work {
    std::size_t steps = 0;
    std::optional<double> remembered_ms{};  // the median of earlier ones
  };
  // `work` by kind, done `jobs` at a time. `now`: seconds, monotonic, as below.
  TimeLeft(std::map<int, Work> work, int jobs, double now);

  // A step of a kind; one that is not in the work is ignored. No time: it was not done as such steps are, or failed.
  void finished(int kind, std::optional<double> milliseconds, double now);

  // Steps through jobs, but at least the longest kind that is left: two jobs do not halve one step. Counts down between
  // finished steps. Nullopt where there is no basis, and when the guess has proven too short.
  std::optional<double> seconds(double now) const;

 private:
  std::optional<double> median_ms(int kind) const;
  std::optional<double> guess() const;

  std::map<int, Work> work_;
  std::map<int, std::vector<double>> seen_;
  int jobs_;
  double since_;
};

}  // namespace gemvjit::tools
