#include "src/catalog/arch.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace gemvjit {
namespace {

// Shared memory: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability" (maximum per thread
// block). Clusters and PDL: from compute capability 9.0. On 12.x clusters are documented, and a device's occupancy
// query is what tells; a table entry decides whether they are used.
struct Row {
  int sm;
  bool has_clusters;
  bool has_pdl;
  int max_smem_bytes;
  bool verified_on_device;
};
constexpr Row kRows[] = {
    {80, false, false, 163 * 1024, false},  //
    {86, false, false, 99 * 1024, false},   //
    {87, false, false, 163 * 1024, false},  //
    {88, false, false, 163 * 1024, false},  //
    {89, false, false, 99 * 1024, false},   //
    {90, true, true, 227 * 1024, true},     //
    {100, true, true, 227 * 1024, false},   //
    {103, true, true, 227 * 1024, false},   //
    {110, true, true, 227 * 1024, false},   //
    {120, true, true, 99 * 1024, false},    //
    {121, true, true, 99 * 1024, false},    //
};

// Which NVRTC builds for a target: the release history of the PTX ISA (which names the CUDA release of each version and
// its targets), and of NVRTC 12.8 to 13.5 their own nvrtcGetSupportedArchs. 0.0: none does.
struct NvrtcRow {
  int sm;
  NvrtcVersion first, first_a, first_f;
  NvrtcVersion last = {};  // 0.0: newer ones do, too
  int new_name = 0;
};
constexpr NvrtcRow kNvrtcRows[] = {
    {80, {11, 0}, {}, {}},
    {86, {11, 1}, {}, {}},
    {87, {11, 4}, {}, {}},
    {88, {13, 0}, {}, {}},
    {89, {11, 8}, {}, {}},
    {90, {11, 8}, {12, 0}, {}},
    {100, {12, 8}, {12, 8}, {12, 9}},
    {101, {12, 8}, {12, 8}, {12, 9}, {12, 9}, 110},
    {103, {12, 9}, {12, 9}, {12, 9}},
    {107, {13, 4}, {13, 4}, {13, 4}},
    {110, {13, 0}, {13, 0}, {13, 0}},
    {120, {12, 8}, {12, 8}, {12, 9}},
    {121, {12, 9}, {12, 9}, {12, 9}},
};

}  // namespace

Result<ArchFacts> arch_facts(const Arch& arch) {
  if (arch.sm < kRows[0].sm) {
    return Status(StatusCode::unsupported,
                  fmt::format("target {} has no BF16 tensor cores; sm_80 and newer are served", arch.text()));
  }
  // The newest row of the same major version at or below the number; for an unknown major version, the last row.
  const Row* best = nullptr;
  for (const Row& row : kRows) {
    if (row.sm / 10 == arch.sm / 10 && row.sm <= arch.sm) best = &row;
  }
  if (best == nullptr) best = std::end(kRows) - 1;
  ArchFacts facts;
  facts.arch = arch;
  facts.has_clusters = best->has_clusters;
  facts.has_wgmma = arch.sm == 90 && arch.suffix == 'a';  // PTX ISA: wgmma is of sm_90a alone
  facts.max_smem_bytes_per_cta = best->max_smem_bytes;
  facts.verified_on_device = best->verified_on_device && best->sm == arch.sm;
  facts.is_listed = best->sm == arch.sm;
  // Overlap is a matter of order in memory, which a chip that nobody has looked at may get wrong: correct and slower.
  facts.has_pdl = best->has_pdl && facts.is_listed;
  return facts;
}

std::vector<Arch> targets_for_device(int major, int minor) {
  const int sm = major * 10 + minor;
  const Result<ArchFacts> facts = arch_facts({sm, 0});
  if (facts && !facts->is_listed) return {{sm, 'f'}, {sm, 'a'}, {sm, 0}};
  return {{sm, 'a'}, {sm, 'f'}, {sm, 0}};
}

std::vector<Arch> possible_targets(int major, int minor) {
  std::vector<Arch> targets;
  for (const Arch& arch : targets_for_device(major, minor)) {
    const Result<ArchFacts> facts = arch_facts(arch);
    if (facts && (arch.suffix == 0 || facts->has_clusters)) targets.push_back(arch);
  }
  return targets;
}

std::string nvrtc_that_builds(const Arch& arch) {
  for (const NvrtcRow& row : kNvrtcRows) {
    if (row.sm != arch.sm) continue;
    NvrtcVersion first = arch.suffix == 'a' ? row.first_a : arch.suffix == 'f' ? row.first_f : row.first;
    if (first.major == 0) return fmt::format("no NVRTC builds for {}", arch.text());
    first = std::max(first, kOldestNvrtc);
    if (row.last.major == 0) {
      return fmt::format("NVRTC {}.{} and newer build for {}", first.major, first.minor, arch.text());
    }
    const std::string versions = first < row.last ? fmt::format("NVRTC {}.{} to {}.{} build", first.major, first.minor,
                                                                row.last.major, row.last.minor)
                                                  : fmt::format("NVRTC {}.{} builds", row.last.major, row.last.minor);
    return fmt::format("{} for {}; newer ones call the chip sm_{}", versions, arch.text(), row.new_name);
  }
  return "";
}

std::string doubt_of(const Arch& arch) {
  for (const NvrtcRow& row : kNvrtcRows) {
    if (row.sm != arch.sm) continue;
    const NvrtcVersion& first = arch.suffix == 'a' ? row.first_a : arch.suffix == 'f' ? row.first_f : row.first;
    return first.major == 0 || row.last.major != 0 ? nvrtc_that_builds(arch) : "";
  }
  // Older ones than the first are refused, with a reason of their own.
  if (arch.sm < kRows[0].sm) return "";
  return fmt::format("no target {} is known to this version; whether an NVRTC builds for it shows when it compiles",
                     arch.text());
}

std::vector<int> known_sms() {
  std::vector<int> sms;
  for (const Row& row : kRows) sms.push_back(row.sm);
  return sms;
}

std::vector<Arch> tested_archs() {
  return {{80, 0},    {86, 0},    {89, 0},    {90, 'a'},  {100, 'a'}, {100, 'f'},
          {103, 'a'}, {110, 'a'}, {120, 'a'}, {120, 'f'}, {121, 'a'}};
}

}  // namespace gemvjit
