#include "src/runtime/warmup.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/runtime/runtime_fixture.h"

namespace gemvjit::test {
namespace {

class WarmupTest : public RuntimeTest {
 protected:
  // Warm up and keep the reports.
  WarmupResult warm(Context& context, const std::vector<ProblemRequest>& requests, WarmupOptions run = {}) {
    reports.clear();
    run.on_kernel = [this](const KernelReport& report) {
      EXPECT_EQ(++inside, 1) << "two callbacks at once";
      reports.push_back(report);
      --inside;
      return true;
    };
    return warm_up(context, requests, run);
  }

  std::vector<KernelReport> reports;
  std::atomic<int> inside{0};
};

TEST_F(WarmupTest, EveryNtOfAShapeIsMadeReady) {
  const auto context = make();
  const auto result = warm(*context, {nvfp4(1024, 2048), bf16(512, 1024)});
  EXPECT_TRUE(result.overall) << result.overall.text();
  ASSERT_EQ(reports.size(), 6u);
  std::set<std::string> keys;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const KernelReport& report = reports[i];
    EXPECT_EQ(report.outcome, Outcome::compiled);
    EXPECT_EQ(report.done, i + 1);
    EXPECT_EQ(report.total, 6u);
    EXPECT_EQ(report.digest.size(), 64u);
    EXPECT_EQ(report.resources.registers, 64u);
    EXPECT_EQ(report.compile_ms, 7u);
    EXPECT_GT(report.cubin_bytes, 0u);
    EXPECT_GT(report.dynamic_smem_bytes, 0u);
    EXPECT_EQ(report.match, report.family == Family::nvfp4_gemv ? Match::nearest_shape : Match::family_default);
    EXPECT_EQ(report.path.rfind(options.cache_dir, 0), 0u) << report.path;
    EXPECT_EQ(report.problem_index, report.family == Family::nvfp4_gemv ? 0u : 1u);
    keys.insert(report.key.text());
  }
  EXPECT_EQ(keys.size(), 6u);
  EXPECT_EQ(context->registry().size(), 6u);
  EXPECT_EQ(context->counters().kernels_of(Match::nearest_shape), 3u);
  EXPECT_EQ(context->counters().kernels_of(Match::family_default), 3u);

  const auto again = warm(*context, {nvfp4(1024, 2048), bf16(512, 1024)});
  EXPECT_TRUE(again.overall);
  for (const KernelReport& report : reports) {
    EXPECT_EQ(report.outcome, Outcome::cached);
    EXPECT_EQ(report.resources.registers, 64u);
  }
  EXPECT_EQ(compilers.compiled().size(), 6u);
}

TEST_F(WarmupTest, TheLargestAreBegunFirst) {
  options.compile_threads = 1;
  const auto context = make();
  warm(*context, {nvfp4(256, 1024, 1), nvfp4(8192, 8192, 1), nvfp4(1024, 1024, 1)});
  ASSERT_EQ(reports.size(), 3u);
  EXPECT_EQ(reports[0].key.n, 8192);
  EXPECT_EQ(reports[1].key.n, 1024);
  EXPECT_EQ(reports[2].key.n, 256);
  EXPECT_EQ(reports[0].problem_index, 1u);
}

TEST_F(WarmupTest, ProblemsThatMeanOneKernelBuildItOnce) {
  // The table says that PDL loses for nt 2, so that with and without it are the same kernel.
  const auto context = make();
  const auto result = warm(*context, {nvfp4(4096, 4096, 2), without_pdl(nvfp4(4096, 4096, 2)), nvfp4(4096, 4096, 2)});
  EXPECT_TRUE(result.overall);
  EXPECT_EQ(reports.size(), 1u);
  EXPECT_EQ(compilers.compiled().size(), 1u);
  EXPECT_EQ(context->registry().size(), 1u);
}

TEST_F(WarmupTest, ANamedTargetIsNotServedByAnotherOne) {
  {
    compilers.supports = [](const Arch& arch) { return arch.text() == "sm_90"; };
    const auto context = make();
    ASSERT_TRUE(warm(*context, {nvfp4(1024, 1024, 1)}).overall);
    EXPECT_EQ(reports.at(0).key.arch.text(), "sm_90");
  }
  compilers.missing = true;
  for (const bool named_first : {false, true}) {
    const auto context = make();
    std::vector<ProblemRequest> requests = {nvfp4(1024, 1024, 1), on(nvfp4(1024, 1024, 1), "sm_90a")};
    if (named_first) std::swap(requests[0], requests[1]);
    const auto result = warm(*context, requests);
    EXPECT_TRUE(result.problems[named_first ? 1 : 0]) << result.problems[named_first ? 1 : 0].text();
    EXPECT_EQ(result.problems[named_first ? 0 : 1].code(), StatusCode::no_compiler);
  }
  compilers.missing = false;
  compilers.supports = [](const Arch&) { return true; };
  const auto context = make();
  EXPECT_TRUE(warm(*context, {nvfp4(1024, 1024, 1), on(nvfp4(1024, 1024, 1), "sm_90a")}).overall);
  // The one that names no target takes the cached sm_90, or the sm_90a if another thread has loaded that one before.
  ASSERT_EQ(reports.size(), 2u);
  const auto is_named = [](const KernelReport& report) { return report.key.arch.text() == "sm_90a"; };
  EXPECT_TRUE(std::any_of(reports.begin(), reports.end(), is_named));
}

TEST_F(WarmupTest, MeasuredOnlyIsNotServedByATargetThatIsNotMeasured) {
  std::string table(test_table(true));
  const std::string archs = R"("sm_90a", "sm_90f", "sm_90", )";
  table.replace(table.find(archs), archs.size(), R"("sm_90f", "sm_90", )");
  table.replace(table.find(R"("n": 4096)"), 9, R"("n": 4104)");
  dir.write("tables/clusters.json", table);
  std::string measured(test_table(true));
  measured.replace(measured.find(R"(, "sm_90f", "sm_90", "sm_100a", "sm_120a")"), 41, "");
  dir.write("tables/measured.json", measured);
  const auto context = make();
  ProblemRequest strict = nvfp4(4096, 4096, 1);
  strict.allow_untuned = false;
  EXPECT_EQ(item(*context, strict).candidates.size(), 1u);
  EXPECT_EQ(item(*context, nvfp4(4096, 4096, 1)).candidates.size(), 3u);
  const std::vector<ProblemRequest> requests = {strict, nvfp4(4096, 4096, 1)};
  EXPECT_EQ(plan_work(*context, requests).items.size(), 2u);
}

TEST_F(WarmupTest, AMalformedProblemFailsAlone) {
  ProblemRequest malformed;
  malformed.malformed = {StatusCode::invalid_argument, "nonsense"};
  ProblemRequest wrong_nt = nvfp4(1024, 1024, 3);
  const auto context = make();
  const auto result = warm(*context, {nvfp4(1024, 1024, 1), malformed, nvfp4(1020, 1024), wrong_nt});
  EXPECT_EQ(result.overall.code(), StatusCode::invalid_argument);
  ASSERT_EQ(result.problems.size(), 4u);
  EXPECT_TRUE(result.problems[0]);
  EXPECT_EQ(result.problems[1].code(), StatusCode::invalid_argument);
  EXPECT_EQ(result.problems[2].code(), StatusCode::invalid_shape);
  EXPECT_EQ(result.problems[3].code(), StatusCode::invalid_argument);
  EXPECT_NE(result.problems[3].message().find("1, 2, 4"), std::string::npos) << result.problems[3].message();
  EXPECT_EQ(reports.size(), 1u);
}

TEST_F(WarmupTest, AFailedKernelFailsTheProblemsThatNeedItAndNoOther) {
  compilers.refuse = [](const Recipe& recipe) {
    return recipe.key.nt == 2 ? Status(StatusCode::compile_failed, "nt 2 is not wanted") : Status::ok();
  };
  const auto context = make();
  const auto result = warm(*context, {nvfp4(1024, 1024, 1), nvfp4(1024, 1024), nvfp4(1024, 1024, 2)});
  EXPECT_EQ(result.overall.code(), StatusCode::compile_failed);
  EXPECT_TRUE(result.problems[0]);
  EXPECT_EQ(result.problems[1].code(), StatusCode::compile_failed);
  EXPECT_EQ(result.problems[2].code(), StatusCode::compile_failed);
  EXPECT_EQ(reports.size(), 3u);
  EXPECT_EQ(std::count_if(reports.begin(), reports.end(), [](const auto& r) { return r.outcome == Outcome::failed; }),
            1);
}

TEST_F(WarmupTest, UntunedConfigurationsMustBeAllowed) {
  const auto context = make();
  ProblemRequest strict = nvfp4(1024, 1024);
  strict.allow_untuned = false;
  EXPECT_EQ(warm(*context, {strict}).overall.code(), StatusCode::untuned);
  EXPECT_TRUE(reports.empty());
  // Where some nt are measured, those are what it takes.
  ProblemRequest measured = nvfp4(256, 8192);
  measured.allow_untuned = false;
  EXPECT_TRUE(warm(*context, {measured}).overall);
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].match, Match::exact);
  EXPECT_EQ(context->counters().kernels_of(Match::exact), 1u);
  for (const Match match : {Match::predicted, Match::nearest_shape, Match::family_default}) {
    EXPECT_EQ(context->counters().kernels_of(match), 0u);
  }
  measured.nt = 2;
  EXPECT_EQ(warm(*context, {measured}).overall.code(), StatusCode::untuned);
}

TEST_F(WarmupTest, EachClassOfMatchIsReportedAndCounted) {
  const auto context = make();
  ASSERT_TRUE(
      warm(*context, {nvfp4(4096, 4096, 1), nvfp4(512, 65536, 1), nvfp4(5120, 4096, 1), nvfp4(64, 64, 1)}).overall);
  ASSERT_EQ(reports.size(), 4u);
  for (const KernelReport& report : reports) {
    const Match expected[] = {Match::exact, Match::predicted, Match::nearest_shape, Match::family_default};
    EXPECT_EQ(report.match, expected[report.problem_index]) << report.key.text();
  }
  for (const Match match : {Match::exact, Match::predicted, Match::nearest_shape, Match::family_default}) {
    EXPECT_EQ(context->counters().kernels_of(match), 1u) << match_name(match);
  }
  // A kernel that fails counts nowhere.
  compilers.refuse = [](const Recipe&) { return Status(StatusCode::compile_failed, "no"); };
  EXPECT_FALSE(warm(*context, {nvfp4(128, 64, 1)}).overall);
  EXPECT_EQ(context->counters().kernels_of(Match::family_default), 1u);
}

TEST_F(WarmupTest, AForeignTargetIsCompiledAndNotLoaded) {
  const auto context = make();
  const auto result = warm(*context, {on(nvfp4(1024, 1024, 1), "sm_120a")});
  EXPECT_TRUE(result.overall) << result.overall.text();
  EXPECT_EQ(reports.at(0).outcome, Outcome::compiled);
  EXPECT_EQ(recording.count("cuLibraryLoadData"), 0u);
  WarmupOptions compile_only;
  compile_only.load = std::nullopt;
  EXPECT_TRUE(warm(*context, {nvfp4(1024, 1024, 1)}, compile_only).overall);
  EXPECT_EQ(recording.count("cuLibraryLoadData"), 0u);
  EXPECT_TRUE(warm(*context, {on(nvfp4(1024, 1024, 1), "sm_90a")}).overall);
  EXPECT_EQ(recording.count("cuLibraryLoadData"), 1u);
}

TEST_F(WarmupTest, AnOldDeviceGetsKernelsWithoutPdl) {
  recording.devices = {device_of(8, 6)};
  const auto context = make();
  EXPECT_TRUE(warm(*context, {nvfp4(1024, 1024, 1), without_pdl(nvfp4(1024, 1024, 1))}).overall);
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].key.arch.text(), "sm_86");
  EXPECT_EQ(get_flag(reports[0].key.flags, flag_field::pdl), 0u);
}

TEST_F(WarmupTest, WithoutADeviceAProblemMustNameItsTarget) {
  options.device = device_none;
  const auto context = make();
  const auto result = warm(*context, {nvfp4(1024, 1024, 1), on(nvfp4(1024, 1024, 1), "sm_100a")});
  EXPECT_EQ(result.problems[0].code(), StatusCode::no_driver);
  EXPECT_TRUE(result.problems[1]);
  EXPECT_EQ(driver_asked, 0);
  EXPECT_TRUE(recording.calls().empty());
}

TEST_F(WarmupTest, TheCallbackCancels) {
  options.compile_threads = 1;
  const auto context = make();
  WarmupOptions run;
  int called = 0;
  run.on_kernel = [&](const KernelReport&) { return ++called < 2; };
  const std::vector<ProblemRequest> requests = {nvfp4(4096, 1024), nvfp4(1024, 1024)};
  const auto result = warm_up(*context, requests, run);
  EXPECT_EQ(result.overall.code(), StatusCode::cancelled);
  EXPECT_EQ(called, 2);
  EXPECT_EQ(result.problems[1].code(), StatusCode::cancelled);
  EXPECT_EQ(context->registry().size(), 2u);  // what was finished is kept
}

TEST_F(WarmupTest, ACallbackThatThrowsCancelsAndIsNotCalledAgain) {
  const auto context = make();
  WarmupOptions run;
  int called = 0;
  run.on_kernel = [&](const KernelReport&) -> bool {
    ++called;
    throw 5;
  };
  const std::vector<ProblemRequest> requests = {nvfp4(4096, 1024), nvfp4(1024, 1024), nvfp4(2048, 1024)};
  const auto result = warm_up(*context, requests, run);
  EXPECT_EQ(result.overall.code(), StatusCode::internal_error);
  EXPECT_NE(result.overall.message().find("callback"), std::string::npos) << result.overall.message();
  EXPECT_EQ(called, 1);
}

TEST_F(WarmupTest, TheFlagCancels) {
  options.compile_threads = 2;
  const auto context = make();
  volatile std::int32_t cancel = 0;
  compilers.while_compiling = [&] { __atomic_store_n(&cancel, 1, __ATOMIC_RELAXED); };
  WarmupOptions run;
  run.cancel = &cancel;
  const auto result = warm(*context, {nvfp4(4096, 1024), nvfp4(1024, 1024), nvfp4(2048, 1024)}, run);
  EXPECT_EQ(result.overall.code(), StatusCode::cancelled);
  EXPECT_LE(compilers.compiled().size(), 2u);
  EXPECT_EQ(reports.size(), compilers.compiled().size());  // running ones finish
  cancel = 1;
  const auto nothing = warm(*context, {nvfp4(512, 1024)}, run);
  EXPECT_EQ(nothing.overall.code(), StatusCode::cancelled);
  EXPECT_TRUE(reports.empty());
}

TEST_F(WarmupTest, RequireCacheFailsWhatIsNotKept) {
  dir.write("cache", "a file where the directory should be");
  const auto context = make();
  EXPECT_TRUE(warm(*context, {nvfp4(1024, 1024, 1)}).overall);
  EXPECT_EQ(reports.at(0).outcome, Outcome::compiled);
  WarmupOptions run;
  run.require_cache = true;
  for (const int n : {1024, 2048}) {  // loaded already, and not
    const auto result = warm(*context, {nvfp4(n, 1024, 1)}, run);
    EXPECT_EQ(result.overall.code(), StatusCode::cache_not_writable) << n << " " << result.overall.text();
    EXPECT_EQ(reports.at(0).outcome, Outcome::failed);
  }
  EXPECT_EQ(context->registry().size(), 2u);  // delivered all the same
  options.cache_dir = "";
  const auto memory = make();
  EXPECT_EQ(warm(*memory, {nvfp4(1024, 1024, 1)}, run).overall.code(), StatusCode::cache_not_writable);
  options.cache_dir = dir.path("good");
  const auto good = make();
  EXPECT_TRUE(warm(*good, {nvfp4(1024, 1024, 1)}, run).overall);
  EXPECT_TRUE(warm(*good, {nvfp4(1024, 1024, 1)}, run).overall);
  EXPECT_EQ(reports.at(0).outcome, Outcome::cached);
}

TEST_F(WarmupTest, ManyWarmupsAtOnceBuildEachKernelOnce) {
  const auto context = make();
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const std::vector<ProblemRequest> requests = {nvfp4(1024, 1024), bf16(1024, 1024), nvfp4(256, 8192)};
      if (!warm_up(*context, requests, {}).overall) ++failed;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(compilers.compiled().size(), 9u);
  EXPECT_EQ(recording.libraries_loaded(), 9u);
}

TEST_F(WarmupTest, NothingToDoIsDone) {
  const auto context = make();
  EXPECT_TRUE(warm(*context, {}).overall);
}

}  // namespace
}  // namespace gemvjit::test
