// Where a warmup takes kernels from when there is a remote cache, and who asks that at all.
#include "src/runtime/remote_warmup.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "src/runtime/launch_kernels.h"
#include "src/runtime/warmup.h"
#include "tests/runtime/runtime_fixture.h"
#include "tests/support/fake_http_server.h"

namespace gemvjit::test {
namespace {

class RemoteWarmupTest : public RuntimeTest {
 protected:
  RemoteWarmupTest() {
    options.remote.url = FakeHttpServer::address;
    remote = [this](const RemoteOptions&) { return server.transport(); };
  }

  std::unique_ptr<Context> node(const std::string& cache, bool writes = false) {
    options.cache_dir = cache.empty() ? "" : dir.path(cache);
    options.remote.write = writes;
    return make();
  }
  // Warms 4096x4096 and its BF16 twin: six kernels.
  Status warm(Context& context) {
    const std::vector<ProblemRequest> requests = {nvfp4(4096, 4096), bf16(4096, 4096)};
    return warm_up(context, requests, {}).overall;
  }
  std::size_t compiles() { return compilers.compiled().size(); }

  FakeHttpServer server;
};

TEST_F(RemoteWarmupTest, OneNodeCompilesAndTheNextFetches) {
  {
    const auto first = node("a", true);
    ASSERT_TRUE(warm(*first));
    EXPECT_EQ(compiles(), 6u);
    EXPECT_EQ(first->remote()->stats().misses, 6u);
  }
  server.forget();
  const auto second = node("b");
  ASSERT_TRUE(warm(*second));
  EXPECT_EQ(compiles(), 6u);
  EXPECT_EQ(second->counters().compiles.load(), 0u);
  EXPECT_EQ(second->remote()->stats().hits, 6u);
  EXPECT_EQ(server.count("GET /ac/"), 1u);
  EXPECT_EQ(server.count("PUT"), 0u);
  // What was fetched is the local cache's now: the next start asks nobody.
  server.forget();
  ASSERT_TRUE(warm(*node("b")));
  EXPECT_TRUE(server.asked().empty());
  EXPECT_EQ(compiles(), 6u);
}

TEST_F(RemoteWarmupTest, InMemoryOnlyItWorksToo) {
  { ASSERT_TRUE(warm(*node("a", true))); }
  const auto second = node("");
  ASSERT_TRUE(warm(*second));
  EXPECT_EQ(second->counters().compiles.load(), 0u);
}

TEST_F(RemoteWarmupTest, AReadOnlyLayerIsAskedBefore) {
  { ASSERT_TRUE(warm(*node("a", true))); }
  server.forget();
  options.cache_ro = {dir.path("a")};
  const auto second = node("b");
  ASSERT_TRUE(warm(*second));
  EXPECT_TRUE(server.asked().empty());
  EXPECT_EQ(compiles(), 6u);
}

TEST_F(RemoteWarmupTest, WhateverFailsIsCompiledAndWarnedOfOnce) {
  for (const auto& fault : {FakeHttpServer::no_answer(), FakeHttpServer::always(500), FakeHttpServer::always(403),
                            FakeHttpServer::always(200)}) {  // with an empty body
    server.set_fault(fault);
    const std::size_t before = compiles(), warned = logged("warning: remote cache");
    const auto context = node("cache" + std::to_string(before));
    ASSERT_TRUE(warm(*context));
    EXPECT_EQ(compiles(), before + 6);
    EXPECT_EQ(context->remote()->stats().failures, 6u);
    EXPECT_EQ(logged("warning: remote cache"), warned + 1);
  }
}

TEST_F(RemoteWarmupTest, NodesOnlyReadUnlessTheyAreToldTo) {
  ASSERT_TRUE(warm(*node("a")));
  EXPECT_EQ(server.count("PUT"), 0u);
}

TEST_F(RemoteWarmupTest, ASealedContextFetchesWhatItMayNotCompile) {
  { ASSERT_TRUE(warm(*node("a", true))); }
  const auto second = node("b");
  second->seal();
  EXPECT_TRUE(warm(*second));
  EXPECT_EQ(second->remote()->stats().hits, 6u);
}

TEST_F(RemoteWarmupTest, ALaunchAsksNobodyEvenWhereItCompiles) {
  options.compile_on_miss = true;
  const auto context = node("a", true);
  const LaunchShape shape{.n = 4096, .k = 4096, .family = Family::nvfp4_gemv, .pdl_allowed = true};
  GemvArguments arguments{};
  arguments.m = 1;
  const LaunchOutcome outcome = launch_gemv(*context, shape, arguments, nullptr);
  ASSERT_EQ(outcome.code, StatusCode::ok) << outcome.detail.text();
  EXPECT_EQ(compiles(), 1u);
  EXPECT_TRUE(server.asked().empty());
}

TEST_F(RemoteWarmupTest, ThreadsThatWarmTheSamePlanFetchItOnce) {
  { ASSERT_TRUE(warm(*node("a", true))); }
  server.forget();
  const auto one = node("b"), two = node("b");
  std::thread other([&] { EXPECT_TRUE(warm(*one)); });
  EXPECT_TRUE(warm(*two));
  other.join();
  EXPECT_EQ(compiles(), 6u);
  EXPECT_EQ(server.count("GET /cas/"), 6u);
}

TEST_F(RemoteWarmupTest, WhoWaitsForAnotherIsToldThatTheRemoteIsDead) {
  std::atomic<bool> is_asked{false}, is_waited_for{false};
  const auto until = [](const std::atomic<bool>& flag) {
    for (int i = 0; i < 20'000 && !flag; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return flag.load();
  };
  server.set_fault([&](const HttpRequest&) -> std::optional<Result<HttpResponse>> {
    is_asked = true;
    EXPECT_TRUE(until(is_waited_for));
    return Result<HttpResponse>(Status(StatusCode::io_error, "dead"));
  });
  timing.sleep = [&](Milliseconds) {
    is_waited_for = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  const auto one = node("b"), two = node("b");
  std::thread first([&] { EXPECT_TRUE(warm(*one)); });
  EXPECT_TRUE(until(is_asked));
  EXPECT_TRUE(warm(*two));
  first.join();
  EXPECT_EQ(compiles(), 6u);
  EXPECT_EQ(two->remote()->stats().requests, 0u);
}

TEST_F(RemoteWarmupTest, WaitingForAnotherThatFetchesIsPartOfTheTimeForIt) {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_asked = false, is_let_go = false;
  server.set_fault([&](const HttpRequest&) -> std::optional<Result<HttpResponse>> {
    std::unique_lock lock(mutex);
    is_asked = true;
    changed.notify_all();
    changed.wait_for(lock, std::chrono::seconds(20), [&] { return is_let_go; });
    return HttpResponse{404, {}};
  });
  const auto one = node("b");
  options.remote.budget_ms = 20;
  const auto two = node("b");
  std::thread slow([&] { EXPECT_TRUE(warm(*one)); });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return is_asked; });
  }
  EXPECT_TRUE(warm(*two));  // by compiling
  EXPECT_EQ(compiles(), 6u);
  EXPECT_EQ(two->remote()->stats().requests, 0u);
  EXPECT_EQ(one->counters().compiles.load(), 0u) << "the other was waited for to its end";
  {
    const std::lock_guard lock(mutex);
    is_let_go = true;
  }
  changed.notify_all();
  slow.join();
}

TEST_F(RemoteWarmupTest, ACancelledWarmupAsksForNoMore) {
  { ASSERT_TRUE(warm(*node("a", true))); }
  server.forget();
  const volatile std::int32_t cancel = 1;
  WarmupOptions run;
  run.cancel = &cancel;
  const std::vector<ProblemRequest> requests = {nvfp4(4096, 4096)};
  const auto context = node("b");
  EXPECT_EQ(warm_up(*context, requests, run).overall.code(), StatusCode::cancelled);
  EXPECT_EQ(server.count("GET /cas/"), 0u);
}

}  // namespace
}  // namespace gemvjit::test
