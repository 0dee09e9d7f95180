// Targets as people write them.
#include "src/catalog/arch_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/catalog/arch.h"

namespace gemvjit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<Arch> targets(const char* text) {
  const auto named = parse_targets(text);
  EXPECT_TRUE(named) << named.status().message();
  return named ? named->targets : std::vector<Arch>{};
}

TEST(ArchNames, EachUsualSpellingOfANumberIsJustThatTarget) {
  for (const char* text : {"sm_90a", "9.0a", "90a", "compute_90a", "SM90A", "sm90a", "Sm_9.0A", "COMPUTE_90A"}) {
    EXPECT_THAT(targets(text), ElementsAre(Arch{90, 'a'})) << text;
  }
  for (const char* text : {"9.0", "90", "sm_90", "compute_90"}) {
    EXPECT_THAT(targets(text), ElementsAre(Arch{90, 0})) << text;
    EXPECT_THAT(parse_targets(text)->note, HasSubstr("looks for sm_90a first")) << text;
  }
  EXPECT_THAT(targets("10.3f"), ElementsAre(Arch{103, 'f'}));
  EXPECT_THAT(targets("120"), ElementsAre(Arch{120, 0}));
  EXPECT_EQ(parse_targets("sm_90a")->note, "");
  EXPECT_EQ(parse_targets("8.0")->note, "") << "there is no other target for it";
}

TEST(ArchNames, ATargetThatCannotBeHadIsDoubted) {
  EXPECT_EQ(parse_targets("sm_90f")->note, "no NVRTC builds for sm_90f");
  EXPECT_EQ(parse_targets("8.9a")->note, "no NVRTC builds for sm_89a");
  EXPECT_THAT(parse_targets("sm_101a")->note, HasSubstr("call the chip sm_110"));
  for (const char* text : {"sm_999", "sm_999f", "sm_81"}) {
    EXPECT_THAT(parse_targets(text)->note, HasSubstr("is known to this version")) << text;
    EXPECT_THAT(parse_targets(text)->note, testing::Not(HasSubstr("looks for"))) << text;
  }
  for (const Arch& arch : tested_archs()) EXPECT_EQ(doubt_of(arch), "") << arch.text();
  EXPECT_EQ(doubt_of({107, 'f'}), "") << "an NVRTC builds for it, whatever else is known";
}

TEST(ArchNames, GenerationsAreWhatTheirDevicesLookForFirst) {
  EXPECT_THAT(targets("hopper"), ElementsAre(Arch{90, 'a'}));
  EXPECT_THAT(targets("Ada"), ElementsAre(Arch{89, 0}));
  EXPECT_THAT(targets("ampere"), ElementsAre(Arch{80, 0}, Arch{86, 0}));
  EXPECT_THAT(targets("BLACKWELL"), ElementsAre(Arch{100, 'a'}, Arch{103, 'a'}, Arch{120, 'a'}, Arch{121, 'a'}));
  EXPECT_THAT(targets("native"), IsEmpty());
  for (const char* name : {"hopper", "ada", "ampere", "orin", "blackwell", "thor"}) {
    for (const Arch& arch : targets(name)) EXPECT_EQ(arch, possible_targets(arch.sm / 10, arch.sm % 10).front());
  }
}

TEST(ArchNames, AnythingElseIsRefusedWithTheNearestNameAndAllOfThem) {
  const std::string endless(10'000'000, '9');
  for (const char* text : {"", "sm_", "9", "a", "sm_90b", "sm_90aa", "sm_090", "sm_+90", "sm_-90", " sm_90", "9.00",
                           ".90", "90.", "9..0", "hopperr", "turing", "compute", endless.c_str()}) {
    const auto named = parse_targets(text);
    ASSERT_FALSE(named) << text;
    EXPECT_EQ(named.status().code(), StatusCode::invalid_argument);
    EXPECT_THAT(named.status().message(), HasSubstr("native, ampere, orin, ada, hopper, blackwell"));
    EXPECT_LT(named.status().message().size(), 500u);
  }
  EXPECT_THAT(parse_targets("hoper").status().message(), HasSubstr("did you mean hopper?"));
  EXPECT_THAT(parse_targets("sm_90b").status().message(), HasSubstr("did you mean sm_90a?"));
}

}  // namespace
}  // namespace gemvjit
