// Questions that neither compile nor load.
#include "src/runtime/inspect.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "src/runtime/warmup.h"
#include "tests/runtime/runtime_fixture.h"

namespace gemvjit::test {
namespace {

class InspectTest : public RuntimeTest {
 protected:
  KernelCallback keep() {
    reports.clear();
    return [this](const KernelReport& report) {
      reports.push_back(report);
      return true;
    };
  }
  std::vector<KernelReport> reports;
};

TEST_F(InspectTest, SupportedIsAboutTheShapeAndTheTarget) {
  const auto context = make();
  ProblemRequest request = nvfp4(1024, 1024);
  request.allow_untuned = false;
  EXPECT_TRUE(supported(*context, request)) << supported(*context, request).text();
  EXPECT_EQ(supported(*context, nvfp4(1020, 1024)).code(), StatusCode::invalid_shape);
  EXPECT_EQ(supported(*context, nvfp4(1024, 1000)).code(), StatusCode::invalid_shape);
  EXPECT_EQ(supported(*context, nvfp4(1024, 1024, 3)).code(), StatusCode::invalid_argument);
  EXPECT_EQ(supported(*context, on(nvfp4(1024, 1024), "sm_70")).code(), StatusCode::unsupported);
  EXPECT_TRUE(supported(*context, on(nvfp4(1024, 1024), "sm_86")));
  request.problem = {Family::dequantize_rows, 7, 16, true, true};
  EXPECT_EQ(supported(*context, request).code(), StatusCode::unsupported);
  options.device = device_none;
  EXPECT_EQ(supported(*make(), nvfp4(1024, 1024)).code(), StatusCode::no_driver);
}

TEST_F(InspectTest, PickNtIsTheSmallestMeasuredToWin) {
  const auto context = make();
  ProblemRequest tuned = nvfp4(4096, 4096);
  tuned.allow_untuned = false;
  EXPECT_EQ(pick_nt(*context, tuned, 1).value(), 1);
  EXPECT_EQ(pick_nt(*context, tuned, 16).value(), 2);
  EXPECT_EQ(pick_nt(*context, tuned, 17).value(), 0);  // measured to lose
  EXPECT_EQ(pick_nt(*context, tuned, 0).value(), 0);
  EXPECT_EQ(pick_nt(*context, tuned, 33).value(), 0);
  EXPECT_EQ(pick_nt(*context, nvfp4(1024, 1024), 17).value(), 4);
  tuned = nvfp4(1024, 1024);
  tuned.allow_untuned = false;
  EXPECT_EQ(pick_nt(*context, tuned, 1).value(), 0);
  EXPECT_TRUE(is_tuned(*context, nvfp4(4096, 4096)).value());
  EXPECT_FALSE(is_tuned(*context, nvfp4(1024, 1024)).value());
  EXPECT_EQ(pick_nt(*context, nvfp4(1020, 1024), 1).status().code(), StatusCode::invalid_shape);
}

TEST_F(InspectTest, ExplainNamesKernelConfigurationAndReason) {
  const auto context = make();
  const std::string text = explain(*context, nvfp4(4096, 4096), 5).value();
  for (const char* part : {"choice: nt=1", "n4096-k4096-nt1-f", "sm_90a", "exact", "6.00 us", "10.00 us", "pdl on",
                           "the table says that it loses", "not loaded"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  EXPECT_NE(explain(*context, without_pdl(nvfp4(4096, 4096)), 40)->find("choice: none"), std::string::npos);
  EXPECT_NE(explain(*context, without_pdl(nvfp4(4096, 4096)), 1)->find("not allowed by the problem"),
            std::string::npos);
}

TEST_F(InspectTest, ExplainNamesTheClassOfMatchAndTheNeighbour) {
  const auto context = make();
  const auto says = [&](const ProblemRequest& request, const std::string& part) {
    const std::string text = explain(*context, request, 1).value();
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  };
  says(nvfp4(4096, 4096), "exact (Recording GPU, driver 1, Fake 1.0, 2026-01-01), measured 6.00 us, the best other");
  says(nvfp4(512, 65536), "predicted (predicted, not measured)\n");
  says(nvfp4(8192, 4096), "nearest_shape N=4096 K=4096, distance 0.69, measured there 6.00 us (Recording GPU");
  says(nvfp4(64, 64), "family_default (untuned)\n");
  ProblemRequest strict = nvfp4(8192, 4096);
  strict.allow_untuned = false;
  says(strict, "untuned ones are not allowed");
}

TEST_F(InspectTest, PlanNamesKernelsAndOpensNothing) {
  const auto context = make();
  recording.forget_calls();
  EXPECT_TRUE(plan(*context, std::vector{nvfp4(1024, 1024), nvfp4(1024, 1024, 2), bf16(64, 64, 1)}, keep()));
  ASSERT_EQ(reports.size(), 4u);
  EXPECT_EQ(reports[3].family, Family::bf16_gemv);
  EXPECT_EQ(reports[3].problem_index, 2u);
  EXPECT_EQ(reports[3].done, 4u);
  for (const KernelReport& report : reports) EXPECT_EQ(report.outcome, Outcome::missing);
  EXPECT_TRUE(recording.calls().empty());
  EXPECT_EQ(compilers.opened, 0);
  EXPECT_EQ(plan(*context, std::vector{nvfp4(1020, 1024), nvfp4(64, 64, 1)}, keep()).code(), StatusCode::invalid_shape);
  EXPECT_EQ(reports.size(), 1u);
  const Status cancelled = plan(*context, std::vector{nvfp4(64, 64)}, [](const KernelReport&) { return false; });
  EXPECT_EQ(cancelled.code(), StatusCode::cancelled);
}

TEST_F(InspectTest, CheckTellsMissingWholeAndDamaged) {
  const auto context = make();
  const std::vector<ProblemRequest> requests = {nvfp4(1024, 1024)};
  EXPECT_EQ(check(*context, requests, keep()).code(), StatusCode::not_ready);
  EXPECT_EQ(reports.at(0).outcome, Outcome::missing);
  EXPECT_EQ(reports.at(0).status.code(), StatusCode::not_ready);
  ASSERT_TRUE(warm_up(*context, requests, {}).overall);
  recording.forget_calls();
  compilers.opened = 0;
  const auto fresh = make();
  EXPECT_TRUE(check(*fresh, requests, keep()));
  ASSERT_EQ(reports.size(), 3u);
  EXPECT_EQ(reports[0].outcome, Outcome::cached);
  EXPECT_EQ(reports[0].resources.registers, 64u);
  EXPECT_EQ(compilers.opened, 0);
  EXPECT_EQ(recording.count("cuLibraryLoadData"), 0u);
  const std::string path = reports[1].path;
  { std::ofstream(path, std::ios::trunc) << "not an entry"; }
  const Status damaged = check(*fresh, requests, keep());
  EXPECT_EQ(damaged.code(), StatusCode::entry_damaged);
  EXPECT_NE(damaged.message().find(path), std::string::npos) << damaged.message();
  EXPECT_EQ(reports[1].outcome, Outcome::failed);
  EXPECT_EQ(reports[2].outcome, Outcome::cached);
}

// What cannot be read, or what others may write, a warmup builds again: it is missing, with the reason.
TEST_F(InspectTest, CheckTakesTheUnreadableForMissing) {
  const auto context = make();
  const std::vector<ProblemRequest> requests = {nvfp4(1024, 1024, 1)};
  ASSERT_TRUE(warm_up(*context, requests, {}).overall);
  ASSERT_TRUE(check(*make(), requests, keep()));
  const std::string path = reports.at(0).path;
  const auto expect_unreadable = [&](const std::string& reason) {
    reports.clear();
    EXPECT_EQ(check(*make(), requests, keep()).code(), StatusCode::not_ready);
    ASSERT_EQ(reports.size(), 1u);
    EXPECT_EQ(reports[0].outcome, Outcome::missing);
    EXPECT_EQ(reports[0].status.code(), StatusCode::io_error);
    EXPECT_TRUE(reports[0].status.message().starts_with("unreadable: ")) << reports[0].status.message();
    EXPECT_NE(reports[0].status.message().find(reason), std::string::npos) << reports[0].status.message();
  };
  namespace fs = std::filesystem;
  fs::permissions(path, fs::perms::others_write, fs::perm_options::add);
  expect_unreadable("all users may write it");
  fs::remove(path);
  fs::create_directory(path);
  reports.clear();
  EXPECT_EQ(check(*make(), requests, keep()).code(), StatusCode::entry_damaged) << "a folder is no entry";
  EXPECT_NE(reports.at(0).status.message().find(path), std::string::npos) << reports[0].status.message();
}

TEST_F(InspectTest, CheckLooksForEveryTargetOfTheDevice) {
  compilers.supports = [](const Arch& arch) { return arch == Arch{90, 0}; };
  ASSERT_TRUE(warm_up(*make(), std::vector{nvfp4(1024, 1024)}, {}).overall);
  EXPECT_TRUE(check(*make(), std::vector{nvfp4(1024, 1024)}, keep()));
  EXPECT_EQ(reports.at(0).key.arch.text(), "sm_90");
}

}  // namespace
}  // namespace gemvjit::test
