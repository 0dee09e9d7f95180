// gemvjit_flush, and the counters of the remote cache.
#include <gtest/gtest.h>

#include "tests/api/api_fixture.h"
#include "tests/support/fake_http_server.h"

namespace gemvjit::test {
namespace {

class ApiFlush : public ApiTest {
 protected:
  ApiFlush() {
    options.device = device_none;
    remote = [this](const RemoteOptions&) { return server.transport(); };
  }
  gemvjit_context* open_with_remote(bool writes) {
    options.remote.url = FakeHttpServer::address;
    options.remote.write = writes;
    return open();
  }
  static gemvjit_status warm_one(gemvjit_context* context) {
    gemvjit_problem wanted = problem(GEMVJIT_NVFP4_GEMV, 64, 1024);
    wanted.nt = 1;
    wanted.arch = "sm_90a";
    return gemvjit_warmup(context, &wanted, 1, nullptr);
  }
  static gemvjit_stats_data stats_of(const gemvjit_context* context) {
    gemvjit_stats_data stats{};
    stats.struct_size = sizeof stats;
    EXPECT_EQ(gemvjit_stats(context, &stats), GEMVJIT_OK);
    return stats;
  }
  FakeHttpServer server;
};

TEST_F(ApiFlush, NothingToSendIsSentAtOnce) {
  EXPECT_EQ(gemvjit_flush(open(), 0), GEMVJIT_OK);
  EXPECT_EQ(gemvjit_flush(open_with_remote(true), 0), GEMVJIT_OK);
  EXPECT_TRUE(server.asked().empty());
}

TEST_F(ApiFlush, WhatAWarmupCompiledIsThereAfterIt) {
  gemvjit_context* const context = open_with_remote(true);
  ASSERT_EQ(warm_one(context), GEMVJIT_OK) << gemvjit_last_error();
  EXPECT_EQ(gemvjit_flush(context, 60'000), GEMVJIT_OK);
  EXPECT_EQ(server.files().size(), 2u);  // a payload and its manifest
  EXPECT_EQ(stats_of(context).remote_misses, 1u);
  EXPECT_EQ(stats_of(context).remote_uploads, 1u);
  EXPECT_EQ(stats_of(context).remote_failures + stats_of(context).remote_upload_failures, 0u);
}

TEST_F(ApiFlush, WhatCouldNotBeSentIsAnError) {
  gemvjit_context* const context = open_with_remote(true);
  server.set_fault(FakeHttpServer::always(500));
  ASSERT_EQ(warm_one(context), GEMVJIT_OK) << gemvjit_last_error();  // compiled
  EXPECT_EQ(gemvjit_flush(context, 60'000), GEMVJIT_IO_ERROR);
  EXPECT_NE(std::string(gemvjit_last_error()).find(FakeHttpServer::address), std::string::npos);
  EXPECT_EQ(stats_of(context).remote_failures, 1u);
  EXPECT_EQ(stats_of(context).remote_upload_failures, 1u);
}

TEST_F(ApiFlush, BadArgumentsAreRefused) {
  EXPECT_EQ(gemvjit_flush(nullptr, 0), GEMVJIT_INVALID_ARGUMENT);
  EXPECT_EQ(gemvjit_flush(open(), -1), GEMVJIT_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace gemvjit::test
