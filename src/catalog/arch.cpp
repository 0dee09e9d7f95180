#include "src/catalog/arch.h"

#include <fmt/format.h>

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
  facts.has_pdl = best->has_pdl;
  facts.has_wgmma = arch.sm == 90 && arch.suffix == 'a';  // PTX ISA: wgmma is of sm_90a alone
  facts.max_smem_bytes_per_cta = best->max_smem_bytes;
  facts.verified_on_device = best->verified_on_device && best->sm == arch.sm;
  return facts;
}

std::vector<Arch> targets_for_device(int major, int minor) {
  const int sm = major * 10 + minor;
  return {{sm, 'a'}, {sm, 'f'}, {sm, 0}};
}

std::vector<Arch> tested_archs() {
  return {{80, 0},    {86, 0},    {89, 0},    {90, 'a'},  {100, 'a'}, {100, 'f'},
          {103, 'a'}, {110, 'a'}, {120, 'a'}, {120, 'f'}, {121, 'a'}};
}

}  // namespace gemvjit
