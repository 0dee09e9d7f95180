// Which target is built for which compute capability under which NVRTC. B58, B140, B142.
#include "src/catalog/arch_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gemvjit {
namespace {

using testing::HasSubstr;
using testing::Not;

// What nvrtcGetSupportedArchs of these versions returns.
const std::vector<int> k12_9 = {50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 100, 101, 103, 120, 121};
const std::vector<int> k13_0 = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
const std::vector<int> k13_5 = {75, 80, 86, 87, 88, 89, 90, 100, 103, 107, 110, 120, 121};

// An a exists from 9.0 on, an f from 10.0 on.
bool exists(const Arch& arch) {
  return arch.suffix == 0 || (arch.suffix == 'a' && arch.sm >= 90) || (arch.suffix == 'f' && arch.sm >= 100);
}

struct Policy {
  std::vector<PolicyRow> rows;
  std::vector<Arch> asked, refused;
  const PolicyRow& of(int sm) const {
    for (const PolicyRow& row : rows) {
      if (row.sm == sm) return row;
    }
    ADD_FAILURE() << "no row for " << sm;
    return rows.front();
  }
};
Policy policy(const std::vector<int>& sms) {
  Policy result;
  result.rows = arch_policy(sms, [&](const Arch& arch) {
    result.asked.push_back(arch);
    if (!exists(arch)) result.refused.push_back(arch);
    return exists(arch);
  });
  return result;
}

TEST(ArchPolicy, KnownChipsGetTheirOwnTarget) {
  const Policy p = policy(k13_0);
  EXPECT_EQ(p.of(80).target, (Arch{80, 0}));
  EXPECT_EQ(p.of(80).reason, Reason::arch_plain);
  EXPECT_EQ(p.of(90).target, (Arch{90, 'a'}));
  EXPECT_EQ(p.of(121).target, (Arch{121, 'a'}));
  EXPECT_EQ(p.of(121).reason, Reason::arch_specific);
  for (const PolicyRow& row : p.rows) EXPECT_GE(row.sm, 80) << "older chips are not served";
}

// B58: a chip that is newer than the compiler: nothing is tried, and the version that can is named.
TEST(ArchPolicy, AChipThatTheCompilerLacksNamesTheVersionThatHasIt) {
  const Policy p = policy(k12_9);
  EXPECT_FALSE(p.of(110).target);
  EXPECT_EQ(p.of(110).reason, Reason::arch_not_built);
  EXPECT_EQ(p.of(110).note, "NVRTC 13.0 and newer build for sm_110a");
  for (const Arch& arch : p.asked) EXPECT_NE(arch.sm, 110);
}

// B140: a chip that this version knows nothing of is no reason to serve nothing.
TEST(ArchPolicy, AnUnknownChipGetsItsFamilysTarget) {
  std::vector<int> sms = k13_5;
  sms.push_back(130);
  const Policy p = policy(sms);
  for (const int sm : {107, 130}) {
    EXPECT_EQ(p.of(sm).target, (Arch{sm, 'f'})) << sm;
    EXPECT_EQ(p.of(sm).reason, Reason::arch_unknown_chip) << sm;
    EXPECT_FALSE(p.of(sm).is_listed);
  }
  EXPECT_TRUE(p.of(103).is_listed);
}

// B142: no target is tried that the policy knows the compiler to lack: as many questions as chips.
TEST(ArchPolicy, NothingIsTriedInVain) {
  for (const std::vector<int>& sms : {k12_9, k13_0, k13_5}) {
    const Policy p = policy(sms);
    EXPECT_TRUE(p.refused.empty()) << p.refused.front().text();
    std::size_t built = 0;
    for (const PolicyRow& row : p.rows) built += row.target ? 1 : 0;
    EXPECT_EQ(p.asked.size(), built);
  }
}

// Negative control: a compiler without the suffixes is asked on, down to the plain target.
TEST(ArchPolicy, ACompilerWithoutSuffixesFallsBackToThePlainTarget) {
  const auto rows = arch_policy(std::vector{90}, [](const Arch& arch) { return arch.suffix == 0; });
  const auto hopper = std::find_if(rows.begin(), rows.end(), [](const PolicyRow& row) { return row.sm == 90; });
  ASSERT_NE(hopper, rows.end());
  EXPECT_EQ(hopper->target, (Arch{90, 0}));
  EXPECT_EQ(hopper->reason, Reason::arch_plain);
}

TEST(NvrtcThatBuilds, NamesVersions) {
  EXPECT_EQ(nvrtc_that_builds({107, 'a'}), "NVRTC 13.4 and newer build for sm_107a");
  EXPECT_EQ(nvrtc_that_builds({100, 'f'}), "NVRTC 12.9 and newer build for sm_100f");
  EXPECT_EQ(nvrtc_that_builds({90, 'f'}), "no NVRTC builds for sm_90f");
  EXPECT_EQ(nvrtc_that_builds({101, 'a'}), "NVRTC 12.9 builds for sm_101a; newer ones call the chip sm_110");
  for (const int sm : known_sms()) {
    for (const char suffix : {'\0', 'a', 'f'}) {
      const std::string text = nvrtc_that_builds({sm, suffix});
      for (const char* old : {"NVRTC 11.", "NVRTC 12.0", "NVRTC 12.8"}) EXPECT_THAT(text, Not(HasSubstr(old)));
    }
  }
  EXPECT_EQ(nvrtc_that_builds({80, 0}), "NVRTC 12.9 and newer build for sm_80");
  EXPECT_EQ(nvrtc_that_builds({999, 0}), "");
}

}  // namespace
}  // namespace gemvjit
