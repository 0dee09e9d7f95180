#include "src/base/host_memory.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <sstream>
#include <string_view>

#include "src/base/files.h"

namespace gemvjit {
namespace {

constexpr std::size_t longest_file = 64u << 10;  // of /proc and of a cgroup; far more than any has
constexpr int most_cgroup_levels = 64;

std::string read_small(const std::string& path) {
  const Result<Bytes> bytes = read_file(path, longest_file);
  return bytes ? std::string(bytes->begin(), bytes->end()) : "";
}

// The number that the text begins with, after blanks; nothing for "max" and for one that does not fit.
std::optional<std::uint64_t> number_in(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return std::nullopt;
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data() + begin, text.data() + text.size(), value);
  return parsed.ec == std::errc() ? std::optional(value) : std::nullopt;
}

// The number behind `name` at the beginning of a line.
std::optional<std::uint64_t> number_of_line(const std::string& text, std::string_view name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name)) return number_in(std::string_view(line).substr(name.size()));
  }
  return std::nullopt;
}

void lower_to(std::optional<std::uint64_t>& least, std::optional<std::uint64_t> value) {
  if (value) least = least ? std::min(*least, *value) : value;
}

// What one cgroup leaves; nothing where it has no limit. Version 1 says "no limit" by a number near 2^63.
std::optional<std::uint64_t> left_of(const std::string& folder, const char* limit_file, const char* usage_file,
                                     const char* inactive) {
  constexpr std::uint64_t no_limit = std::uint64_t{1} << 60;
  const auto limit = number_in(read_small(folder + "/" + limit_file));
  if (!limit || *limit >= no_limit) return std::nullopt;
  std::uint64_t used = number_in(read_small(folder + "/" + usage_file)).value_or(0);
  used -= std::min(used, number_of_line(read_small(folder + "/memory.stat"), inactive).value_or(0));
  return *limit - std::min(*limit, used);
}

// The cgroup at `path` and those above it, up to the mount's own.
template <typename Left>
void lower_by_levels(std::optional<std::uint64_t>& least, const std::string& mount, std::string path,
                     const Left& left) {
  for (int level = 0; level < most_cgroup_levels; ++level) {
    while (!path.empty() && path.back() == '/') path.pop_back();
    lower_to(least, left(mount + path));
    if (path.empty()) return;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

// A path of /proc/self/cgroup that climbs is of another namespace: the mount's own limit is what is left to read.
std::string usable(const std::string& path) { return path.find("..") == std::string::npos ? path : ""; }

void lower_by_cgroups(std::optional<std::uint64_t>& least, const HostMemoryRoots& roots) {
  std::istringstream lines(read_small(roots.proc + "/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = usable(line.substr(second + 1));
    if (controllers == ",,") {
      lower_by_levels(least, roots.cgroup, path, [](const std::string& folder) {
        return left_of(folder, "memory.max", "memory.current", "inactive_file ");
      });
    } else if (controllers.find(",memory,") != std::string::npos) {
      lower_by_levels(least, roots.cgroup + "/memory", path, [](const std::string& folder) {
        return left_of(folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ");
      });
    }
  }
}

}  // namespace

std::optional<std::uint64_t> free_host_memory(const HostMemoryRoots& roots) {
  std::optional<std::uint64_t> least;
  const auto kib = number_of_line(read_small(roots.proc + "/meminfo"), "MemAvailable:");
  if (kib && *kib < std::uint64_t{1} << 50) least = *kib * 1024;
  lower_by_cgroups(least, roots);
  return least;
}

int default_compile_jobs(unsigned cores, std::optional<std::uint64_t> free_memory) {
  std::uint64_t jobs = std::min<std::uint64_t>(std::max(cores, 1u), kMostCompileJobs);
  if (free_memory) jobs = std::min(jobs, *free_memory / kCompileJobBytes);
  return static_cast<int>(std::max<std::uint64_t>(jobs, 1));
}

}  // namespace gemvjit
