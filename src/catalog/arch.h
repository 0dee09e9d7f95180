// What a compile target can do: the one place where `sm` is compared with a number. All others ask ArchFacts.
#pragma once

#include <string>
#include <vector>

#include "cache/kernel_key.h"
#include "src/base/status.h"

namespace gemvjit {

struct ArchFacts {
  Arch arch;
  bool has_clusters = false;
  bool has_pdl = false;
  bool has_wgmma = false;
  int max_smem_bytes_per_cta = 0;   // dynamic, with the opt-in attribute
  bool verified_on_device = false;  // its kernels ran on hardware (docs/verified.md); all others were only compiled
  bool is_listed = true;            // false: a chip that this version does not know; the facts are a neighbour's
};

// unsupported, with what is accepted, for a target below sm_80. A number that has no row gets the facts of the nearest
// lower row of its major version, or for an unknown major version those of the newest row without clusters: NVRTC
// decides whether the target exists at all.
Result<ArchFacts> arch_facts(const Arch& arch);

// Targets to try for a device of capability major.minor, best first: a, f, plain ("sm_90a", "sm_90f", "sm_90"); for a
// chip that this version does not know its family's first, which every NVRTC has that knows the chip. The same order
// names the entries to look for in a cache.
std::vector<Arch> targets_for_device(int major, int minor);

// Those of them that can exist, best first; none for a device that is too old. Suffixes came with clusters, so that an
// older device has the plain target only, and a family with sm_100.
std::vector<Arch> possible_targets(int major, int minor);

// The oldest NVRTC that is taken at all; src/cuda refuses older ones.
struct NvrtcVersion {
  int major = 0, minor = 0;
  auto operator<=>(const NvrtcVersion&) const = default;
};
inline constexpr NvrtcVersion kOldestNvrtc{12, 9};

// "NVRTC 13.4 and newer build for sm_107a", never one older than kOldestNvrtc; "" for a target that this version knows
// nothing of.
std::string nvrtc_that_builds(const Arch& arch);
// What to say of a target that cannot be had, or that this version does not know: "" for one that some NVRTC builds.
std::string doubt_of(const Arch& arch);

// The numbers of the chips that this version has facts of.
std::vector<int> known_sms();

// Targets that this version compiles in its tests.
std::vector<Arch> tested_archs();

}  // namespace gemvjit
