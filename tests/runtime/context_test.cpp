// Which device a context takes, and what it leaves behind.
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/runtime/runtime_fixture.h"

namespace gemvjit::test {
namespace {

class ContextTest : public RuntimeTest {};

TEST_F(ContextTest, NothingIsTouchedByCreating) {
  const auto context = make();
  EXPECT_NE(::access(options.cache_dir.c_str(), F_OK), 0);
  EXPECT_EQ(compilers.opened, 0);
  EXPECT_STREQ(context->device_target_text(), "sm_90a");
  EXPECT_EQ(context->tables().digest().size(), 64u);
}

TEST_F(ContextTest, TheDeviceIsThatOfTheCurrentContext) {
  recording.devices = {device_of(8, 0), device_of(12, 0)};
  options.device = device_current;
  EXPECT_STREQ(make()->device_target_text(), "sm_80");  // no context is current: device 0, which has no 'a' target
  recording.set_current_context(recording.primary_context(1));
  EXPECT_STREQ(make()->device_target_text(), "sm_120a");
  options.device = 0;
  EXPECT_STREQ(make()->device_target_text(), "sm_80");
}

TEST_F(ContextTest, WithoutADriverCurrentMeansNoneAndAnOrdinalIsAnError) {
  no_driver = true;
  options.device = device_current;
  EXPECT_EQ(make()->device(), nullptr);
  EXPECT_EQ(make()->device_target_text(), nullptr);
  options.device = 0;
  const auto failed = Context::create(options, dependencies());
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.status().code(), StatusCode::no_driver);
  options.device = device_none;
  driver_asked = 0;
  EXPECT_EQ(make()->device(), nullptr);
  EXPECT_EQ(driver_asked, 0);
}

TEST_F(ContextTest, AnOrdinalThatIsNotThereIsTold) {
  options.device = 3;
  const auto failed = Context::create(options, dependencies());
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.status().code(), StatusCode::no_driver);
  EXPECT_NE(failed.status().message().find("shows 1"), std::string::npos) << failed.status().message();
}

TEST_F(ContextTest, ADriverWithoutDevicesMeansNone) {
  recording.devices.clear();
  options.device = device_current;
  EXPECT_EQ(make()->device(), nullptr);
}

TEST_F(ContextTest, ADeviceThatIsTooOldIsToldWhereItWasNamed) {
  recording.devices = {device_of(7, 0)};
  options.device = 0;
  const auto failed = Context::create(options, dependencies());
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.status().code(), StatusCode::unsupported);
  options.device = device_current;
  EXPECT_EQ(make()->device(), nullptr);
  EXPECT_EQ(recording.primary_contexts_retained(0), 0);
}

TEST_F(ContextTest, TheEndUnloadsAndReleases) {
  auto context = make();
  EXPECT_EQ(recording.primary_contexts_retained(0), 1);
  ASSERT_TRUE(context->resolver().resolve(item(*context, nvfp4(1024, 1024, 1)).candidates, nullptr));
  EXPECT_EQ(recording.libraries_loaded(), 1u);
  context.reset();
  EXPECT_EQ(recording.libraries_loaded(), 0u);
  EXPECT_EQ(recording.primary_contexts_retained(0), 0);
}

TEST_F(ContextTest, TheEndSurvivesADriverThatRefusesEverything) {
  auto context = make();
  ASSERT_TRUE(context->resolver().resolve(item(*context, nvfp4(1024, 1024, 1)).candidates, nullptr));
  recording.errors["cuLibraryUnload"] = CUDA_ERROR_NOT_INITIALIZED;
  recording.errors["cuDevicePrimaryCtxRelease"] = CUDA_ERROR_NOT_INITIALIZED;
  context.reset();
  EXPECT_EQ(recording.count("cuDevicePrimaryCtxRelease"), 1u);
}

TEST_F(ContextTest, TablesThatDoNotParseFailTheContext) {
  dir.write("tables/broken.json", "{");
  const auto failed = Context::create(options, dependencies());
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.status().message().find("broken.json"), std::string::npos) << failed.status().message();
}

}  // namespace
}  // namespace gemvjit::test
