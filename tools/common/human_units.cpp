#include "tools/common/human_units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace gemvjit::tools {

std::string human_bytes(std::uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  static constexpr std::array<const char*, 4> units{"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return fmt::format("{:.1f} {}", value, units[unit]);
}

std::string human_seconds(double seconds) {
  if (seconds < 1) return fmt::format("{:.0f} ms", std::max(0.0, seconds) * 1000);
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  return fmt::format("{}:{:02} min", whole / 60, whole % 60);
}

std::string human_age(std::int64_t seconds) {
  if (seconds < 60) return fmt::format("{} s", std::max<std::int64_t>(0, seconds));
  if (seconds < 3600) return fmt::format("{} min", seconds / 60);
  if (seconds < std::int64_t{2} * 86400) return fmt::format("{} h", seconds / 3600);
  return fmt::format("{} days", seconds / 86400);
}

}  // namespace gemvjit::tools
