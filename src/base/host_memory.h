// How much memory this process may still take, and how many compile jobs that is enough for.
//
// Pure but for reading small files below the two roots, which are parameters so that a test needs no special machine.
// Threads: any. Errors: what cannot be read or makes no sense is as if it were not there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gemvjit {

struct HostMemoryRoots {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
};

// Bytes: the least of the machine's MemAvailable and of what the limits of this process's cgroup and of those above it
// leave (version 2: memory.max less memory.current; version 1: memory.limit_in_bytes less memory.usage_in_bytes; file
// cache that the kernel would drop, inactive_file of memory.stat, does not count as used). A limit of a container that
// sees its own cgroup as the root is found too. Nothing where no such figure can be read.
std::optional<std::uint64_t> free_host_memory(const HostMemoryRoots& roots = {});

inline constexpr int kMostCompileJobs = 8;                      // by default
inline constexpr std::uint64_t kCompileJobBytes = 500'000'000;  // what a job is promised to stay below

// min(cores, 8, free memory / 0.5 GB), at least 1; without a figure of the memory that plays no part. `cores` 0: not
// known, 1.
int default_compile_jobs(unsigned cores, std::optional<std::uint64_t> free_memory);

}  // namespace gemvjit
