// Statistics of repeated timings. Pure functions.
#pragma once

#include <span>
#include <vector>

namespace gemvjit::tools {

struct Spread {
  double median = 0;
  double half_iqr = 0;  // half the distance between the quartiles: the noise of one sample
};

// Quartiles by linear interpolation between the sorted samples; zeros for none.
Spread summarize(std::vector<double> samples);

// 0 for none. All values must be positive.
double geometric_mean(std::span<const double> values);

}  // namespace gemvjit::tools
