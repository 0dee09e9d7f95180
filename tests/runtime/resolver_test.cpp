// From a key to a compiled and a loaded kernel: what is built, what is found, what is refused.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>

#include "cache/build_records.h"
#include "cache/entry_files.h"
#include "src/base/files.h"
#include "tests/runtime/runtime_fixture.h"

namespace gemvjit::test {
namespace {

class ResolverTest : public RuntimeTest {};

TEST_F(ResolverTest, AKernelIsBuiltOnceAndFoundAfterwards) {
  const auto context = make();
  const WorkItem wanted = item(*context, nvfp4(1024, 1024, 1));
  const auto built = context->resolver().ensure_cached(wanted.candidates);
  ASSERT_TRUE(built) << built.status().text();
  EXPECT_TRUE(built->compiled);
  EXPECT_TRUE(built->kept) << built->kept.text();
  EXPECT_EQ(::access(built->path.c_str(), R_OK), 0) << built->path;
  const auto found = context->resolver().ensure_cached(wanted.candidates);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->compiled);
  EXPECT_EQ(found->entry->cubin.bytes, built->entry->cubin.bytes);
  EXPECT_EQ(compilers.compiled().size(), 1u);
  EXPECT_EQ(context->counters().compiles, 1u);
  EXPECT_EQ(context->counters().cache_hits, 1u);
  EXPECT_EQ(context->counters().cache_misses, 1u);
  EXPECT_EQ(context->counters().cache_writes, 1u);
  EXPECT_EQ(context->counters().compile_milliseconds, 7u);
}

TEST_F(ResolverTest, WhatIsCompiledAgainHasTheSameBytesAndWhenAndHowLongIsKeptBesideIt) {
  const auto context = make();
  const auto built = context->resolver().ensure_cached(item(*context, nvfp4(1024, 1024, 1)).candidates);
  ASSERT_TRUE(built) << built.status().text();
  EXPECT_EQ(built->entry->cubin.compile_ms, 7u);  // for who asked for it
  const Entry kept = *load_entry_file(options.cache_dir, built->entry->id);
  EXPECT_EQ(kept.created_unix_seconds, 0);
  EXPECT_EQ(kept.cubin.compile_ms, 0u);
  const auto record = BuildRecords::read(options.cache_dir).find(kept.id.digest);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->milliseconds, 7u);
  EXPECT_NEAR(static_cast<double>(record->when), static_cast<double>(std::time(nullptr)), 60);
}

TEST_F(ResolverTest, AFullCacheNeedsNoCompiler) {
  make()->resolver().ensure_cached(item(*make(), nvfp4(1024, 1024, 1)).candidates).value();
  compilers.missing = true;
  compilers.opened = 0;
  const auto context = make();
  const auto ready = context->resolver().resolve(item(*context, nvfp4(1024, 1024, 1)).candidates, nullptr);
  ASSERT_TRUE(ready) << ready.status().text();
  EXPECT_FALSE(ready->compiled);
  EXPECT_EQ(compilers.opened, 0);
  // And what is not there says what was missing and for which kernel.
  const WorkItem other = item(*context, nvfp4(2048, 1024, 1));
  const auto missing = context->resolver().resolve(other.candidates, nullptr);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.status().code(), StatusCode::no_compiler);
  EXPECT_NE(missing.status().message().find(other.key().text()), std::string::npos) << missing.status().message();
}

TEST_F(ResolverTest, TheCompilersTargetIsTheFirstItSupports) {
  compilers.supports = [](const Arch& arch) { return arch == Arch{90, 0}; };
  const auto context = make();
  EXPECT_STREQ(context->device_target_text(), "sm_90a");
  const WorkItem wanted = item(*context, nvfp4(1024, 1024, 1));
  ASSERT_EQ(wanted.candidates.size(), 3u);
  const auto built = context->resolver().ensure_cached(wanted.candidates);
  ASSERT_TRUE(built) << built.status().text();
  EXPECT_EQ(built->entry->id.key.arch.text(), "sm_90");
  EXPECT_STREQ(context->device_target_text(), "sm_90");
}

TEST_F(ResolverTest, AnEntryForALaterTargetIsFoundWithoutACompiler) {
  compilers.supports = [](const Arch& arch) { return arch == Arch{90, 'f'}; };
  {
    const auto context = make();
    context->resolver().ensure_cached(item(*context, nvfp4(1024, 1024, 1)).candidates).value();
  }
  compilers.missing = true;
  const auto context = make();
  const auto found = context->resolver().ensure_cached(item(*context, nvfp4(1024, 1024, 1)).candidates);
  ASSERT_TRUE(found) << found.status().text();
  EXPECT_EQ(found->entry->id.key.arch.text(), "sm_90f");
  EXPECT_EQ(context->counters().cache_hits, 1u);
  EXPECT_EQ(context->counters().cache_misses, 0u);
}

TEST_F(ResolverTest, ATargetThatTheCompilerLacksNamesWhatItHas) {
  compilers.supports = [](const Arch&) { return false; };
  const auto context = make();
  const auto built = context->resolver().ensure_cached(item(*context, on(nvfp4(1024, 1024, 1), "sm_100a")).candidates);
  ASSERT_FALSE(built);
  EXPECT_EQ(built.status().code(), StatusCode::no_compiler);
  EXPECT_NE(built.status().message().find("sm_100a"), std::string::npos);
  EXPECT_NE(built.status().message().find("sm_80, sm_90"), std::string::npos) << built.status().message();
}

TEST_F(ResolverTest, SixteenThreadsShareOneBuild) {
  const auto context = make();
  const auto second = make();  // of the same directory
  std::atomic<int> arrived{0};
  compilers.while_compiling = [&] {
    for (int i = 0; i < 2000 && arrived < 16; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // those that arrived get as far as the flight
  };
  const WorkItem wanted = item(*context, nvfp4(1024, 1024, 1));
  std::vector<std::thread> threads;
  std::atomic<int> built{0}, failed{0};
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&, i] {
      ++arrived;
      const auto delivered = (i % 2 != 0 ? second : context)->resolver().ensure_cached(wanted.candidates);
      if (!delivered) ++failed;
      if (delivered && delivered->compiled) ++built;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(built, 1);
  EXPECT_EQ(compilers.compiled().size(), 1u);
}

// What a context without a policy has built and not signed is not handed to one that asks for signatures, although it
// asked while that was under way.
TEST_F(ResolverTest, ContextsOfDifferentPoliciesDoNotShareADelivery) {
  const auto lenient = make();
  options.signatures.policy = SignaturePolicy::all;
  const auto strict = make();
  const auto wanted = item(*lenient, nvfp4(1024, 1024, 1)).candidates;
  std::atomic<bool> leading{false}, asked{false};
  compilers.while_compiling = [&] {
    if (leading.exchange(true)) return;
    while (!asked) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the other gets as far as the flight
  };
  std::thread leader([&] { EXPECT_TRUE(lenient->resolver().ensure_cached(wanted)); });
  while (!leading) std::this_thread::yield();
  asked = true;
  const auto own = strict->resolver().ensure_cached(wanted);
  leader.join();
  ASSERT_TRUE(own) << own.status().text();
  EXPECT_TRUE(own->compiled);
  EXPECT_EQ(compilers.compiled().size(), 2u);
}

TEST_F(ResolverTest, ACacheFolderThatOthersMadeAfterTheContextIsNotUsed) {
  const auto context = make();
  ASSERT_TRUE(make_directories(options.cache_dir));
  ASSERT_EQ(::chmod(options.cache_dir.c_str(), 0777), 0);
  const auto built = context->resolver().ensure_cached(item(*context, nvfp4(1024, 1024, 1)).candidates);
  ASSERT_TRUE(built);
  EXPECT_FALSE(built->kept);
  EXPECT_EQ(logged("all users may write it"), 1u);
  EXPECT_EQ(::access((options.cache_dir + "/v1").c_str(), F_OK), -1);
}

TEST_F(ResolverTest, AnEntryThatOthersMayWriteIsBuiltAgain) {
  const auto wanted = item(*make(), nvfp4(1024, 1024, 1)).candidates;
  const auto built = make()->resolver().ensure_cached(wanted);
  ASSERT_TRUE(built && built->kept);
  ASSERT_EQ(::chmod(built->path.c_str(), 0666), 0);
  const auto again = make()->resolver().ensure_cached(wanted);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->compiled);
}

TEST_F(ResolverTest, AFailedCompileIsToldAndItsSourcesAreKept) {
  options.dump_dir = dir.path("dump");
  compilers.refuse = [](const Recipe& recipe) {
    return Status(StatusCode::compile_failed, recipe.key.text() + ": error: no such thing");
  };
  const auto context = make();
  const WorkItem wanted = item(*context, nvfp4(1024, 1024, 1));
  const auto built = context->resolver().ensure_cached(wanted.candidates);
  ASSERT_FALSE(built);
  EXPECT_EQ(built.status().code(), StatusCode::compile_failed);
  EXPECT_NE(built.status().message().find("no such thing"), std::string::npos);
  const std::string folder = options.dump_dir + "/" + wanted.key().text();
  EXPECT_NE(built.status().message().find(folder), std::string::npos) << built.status().message();
  EXPECT_NE(read_text(folder + "/kernels/nvfp4_gemv.cu").find("__global__"), std::string::npos);
  EXPECT_FALSE(read_text(folder + "/options.txt").empty());
  EXPECT_EQ(context->counters().compile_failures, 1u);
}

TEST_F(ResolverTest, ADamagedEntryIsBuiltAgain) {
  std::string path;
  {
    const auto context = make();
    path = context->resolver().ensure_cached(item(*context, nvfp4(1024, 1024, 1)).candidates)->path;
  }
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(100);
    file.put('!');
  }
  const auto context = make();
  const WorkItem wanted = item(*context, nvfp4(1024, 1024, 1));
  const auto built = context->resolver().ensure_cached(wanted.candidates);
  ASSERT_TRUE(built) << built.status().text();
  EXPECT_TRUE(built->compiled);
  EXPECT_EQ(logged("warning: "), 1u);
  EXPECT_EQ(context->store().stats().damaged, 1u);
  EXPECT_FALSE(context->resolver().ensure_cached(wanted.candidates)->compiled);
}

TEST_F(ResolverTest, AnUnusableCacheStillDelivers) {
  dir.write("cache", "a file where the directory should be");
  const auto context = make();
  for (const int n : {1024, 2048}) {
    const auto ready = context->resolver().resolve(item(*context, nvfp4(n, 1024, 1)).candidates, nullptr);
    ASSERT_TRUE(ready) << ready.status().text();
    EXPECT_FALSE(ready->kept);
    EXPECT_NE(ready->kernel->kernel, nullptr);
  }
  EXPECT_EQ(logged("not kept"), 1u);  // said once
  EXPECT_EQ(context->counters().cache_write_failures, 2u);
}

TEST_F(ResolverTest, ACachedKernelThatTheDriverRefusesIsBuiltOnceMore) {
  { make()->resolver().ensure_cached(item(*make(), nvfp4(1024, 1024, 1)).candidates).value(); }
  int loads = 0;
  recording.on_load = [&](const void*) { return ++loads == 1 ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS; };
  const auto context = make();
  const auto ready = context->resolver().resolve(item(*context, nvfp4(1024, 1024, 1)).candidates, nullptr);
  ASSERT_TRUE(ready) << ready.status().text();
  EXPECT_TRUE(ready->compiled);
  EXPECT_EQ(loads, 2);
  EXPECT_EQ(compilers.compiled().size(), 2u);
  EXPECT_EQ(logged("refuses the cached kernel"), 1u);
}

TEST_F(ResolverTest, AKernelThatTheDriverRefusesTwiceFailsWithKeyAndFile) {
  std::string path;
  {
    const auto context = make();
    path = context->resolver().ensure_cached(item(*context, nvfp4(1024, 1024, 1)).candidates)->path;
  }
  recording.on_get_kernel = [](const std::string&) { return CUDA_ERROR_NO_BINARY_FOR_GPU; };
  const auto context = make();
  const WorkItem wanted = item(*context, nvfp4(1024, 1024, 1));
  const auto ready = context->resolver().resolve(wanted.candidates, nullptr);
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.status().code(), StatusCode::cuda_error);
  EXPECT_NE(ready.status().message().find(wanted.key().text()), std::string::npos) << ready.status().message();
  EXPECT_NE(ready.status().message().find(path), std::string::npos);
  EXPECT_NE(ready.status().message().find("NO_BINARY_FOR_GPU"), std::string::npos);
  EXPECT_EQ(compilers.compiled().size(), 2u);  // the first, and once more
}

TEST_F(ResolverTest, ASealedContextLoadsButDoesNotBuild) {
  { make()->resolver().ensure_cached(item(*make(), nvfp4(1024, 1024, 1)).candidates).value(); }
  const auto context = make();
  context->seal();
  EXPECT_TRUE(context->resolver().resolve(item(*context, nvfp4(1024, 1024, 1)).candidates, nullptr));
  const auto other = context->resolver().resolve(item(*context, nvfp4(2048, 1024, 1)).candidates, nullptr);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.status().code(), StatusCode::sealed);
  EXPECT_EQ(compilers.compiled().size(), 1u);
}

// Failures that say nothing about the entry's bytes, at every call of a load.
struct OtherFailure {
  const char* function;
  CUresult result;
};
constexpr OtherFailure other_failures[] = {
    {"cuLibraryLoadData", CUDA_ERROR_OUT_OF_MEMORY},   {"cuLibraryGetKernel", CUDA_ERROR_OUT_OF_MEMORY},
    {"cuKernelGetFunction", CUDA_ERROR_OUT_OF_MEMORY}, {"cuKernelGetFunction", CUDA_ERROR_INVALID_CONTEXT},
    {"cuLibraryLoadData", CUDA_ERROR_LAUNCH_FAILED},   {"cuCtxPushCurrent", CUDA_ERROR_INVALID_CONTEXT},
};

TEST_F(ResolverTest, AFailureThatSaysNothingOfTheEntryLeavesItAlone) {
  std::string path;
  {
    const auto context = make();
    path = context->resolver().ensure_cached(item(*context, nvfp4(1024, 1024, 1)).candidates)->path;
  }
  const Bytes before = read_file(path, 1 << 20).value();
  enum class Setting { compiler_there, compiler_missing, sealed };
  for (const Setting setting : {Setting::compiler_there, Setting::compiler_missing, Setting::sealed}) {
    compilers.missing = setting == Setting::compiler_missing;
    for (const OtherFailure& failure : other_failures) {
      SCOPED_TRACE(failure.function);
      const auto context = make();
      if (setting == Setting::sealed) context->seal();
      recording.errors = {{failure.function, failure.result}};
      const WorkItem wanted = item(*context, nvfp4(1024, 1024, 1));
      const auto ready = context->resolver().resolve(wanted.candidates, nullptr);
      ASSERT_FALSE(ready);
      EXPECT_EQ(ready.status().code(), StatusCode::cuda_error);
      EXPECT_NE(ready.status().message().find(failure.function), std::string::npos) << ready.status().message();
      EXPECT_EQ(read_file(path, 1 << 20).value(), before);
      recording.errors.clear();
      EXPECT_TRUE(context->resolver().resolve(wanted.candidates, nullptr));  // it passes, and the entry serves
    }
  }
  EXPECT_EQ(compilers.compiled().size(), 1u);
  EXPECT_EQ(logged("warning: "), 0u);
}

TEST_F(ResolverTest, ARefusedEntryStaysWhereItCannotBeBuiltAgain) {
  std::string path;
  {
    const auto context = make();
    path = context->resolver().ensure_cached(item(*context, nvfp4(1024, 1024, 1)).candidates)->path;
  }
  recording.on_load = [](const void*) { return CUDA_ERROR_INVALID_IMAGE; };
  const auto refused = [&](const std::function<void(Context&)>& prepare) {
    const auto context = make();
    prepare(*context);
    const auto ready = context->resolver().resolve(item(*context, nvfp4(1024, 1024, 1)).candidates, nullptr);
    EXPECT_EQ(ready.status().code(), StatusCode::cuda_error);
    EXPECT_EQ(::access(path.c_str(), R_OK), 0);
    return ready.status().message();
  };
  const std::string sealed = refused([](Context& context) { context.seal(); });
  EXPECT_NE(sealed.find("INVALID_IMAGE"), std::string::npos) << sealed;
  compilers.missing = true;
  const std::string missing = refused([](Context&) {});
  EXPECT_NE(missing.find("INVALID_IMAGE"), std::string::npos) << missing;
  EXPECT_NE(missing.find("no NVRTC"), std::string::npos) << missing;
  compilers.missing = false;
  compilers.refuse = [](const Recipe&) { return Status(StatusCode::compile_failed, "no such thing"); };
  const std::string failed = refused([](Context&) {});
  EXPECT_NE(failed.find("INVALID_IMAGE"), std::string::npos) << failed;
  EXPECT_NE(failed.find("no such thing"), std::string::npos) << failed;
}

TEST_F(ResolverTest, NothingIsUnloadedWhileTheContextLives) {
  {
    const auto context = make();
    recording.errors["cuKernelGetFunction"] = CUDA_ERROR_OUT_OF_MEMORY;
    EXPECT_FALSE(context->resolver().resolve(item(*context, nvfp4(1024, 1024, 1)).candidates, nullptr));
    EXPECT_EQ(recording.count("cuLibraryUnload"), 0u);  // another thread may be capturing
    EXPECT_EQ(context->registry().size(), 0u);
  }
  EXPECT_EQ(recording.libraries_loaded(), 0u);
}

TEST_F(ResolverTest, LoadingResolvesInThePrimaryAndInTheCallersContext) {
  const auto context = make();
  const auto other = reinterpret_cast<CUcontext>(0x77770);
  const WorkItem wanted = item(*context, nvfp4(1024, 1024, 1));
  ASSERT_TRUE(context->resolver().resolve(wanted.candidates, nullptr));
  ASSERT_EQ(recording.functions().size(), 1u);
  EXPECT_EQ(recording.functions()[0].context, recording.primary_context(0));
  EXPECT_EQ(recording.current_context(), nullptr);  // the caller's is as it was
  ASSERT_TRUE(context->resolver().resolve(wanted.candidates, other));
  ASSERT_EQ(recording.functions().size(), 2u);
  EXPECT_EQ(recording.functions()[1].context, other);
  EXPECT_EQ(recording.libraries_loaded(), 1u);  // once a process
}

TEST_F(ResolverTest, WithoutADeviceNothingIsLoadedAndLibcudaIsNotAskedFor) {
  options.device = device_none;
  const auto context = make();
  EXPECT_EQ(context->device(), nullptr);
  const WorkItem wanted = item(*context, on(nvfp4(1024, 1024, 1), "sm_90a"));
  EXPECT_TRUE(context->resolver().ensure_cached(wanted.candidates));
  const auto ready = context->resolver().resolve(wanted.candidates, nullptr);
  ASSERT_FALSE(ready);
  EXPECT_EQ(ready.status().code(), StatusCode::no_driver);
  EXPECT_EQ(driver_asked, 0);
}

}  // namespace
}  // namespace gemvjit::test
