#include "src/remote/circuit_breaker.h"

#include <gtest/gtest.h>

#include <vector>

namespace gemvjit {
namespace {

using std::chrono::milliseconds;

class BreakerTest : public testing::Test {
 protected:
  std::chrono::steady_clock::time_point now{milliseconds(1'000'000)};
  CircuitBreaker breaker{3, milliseconds(60'000), [this] { return now; }};

  void fail() {  // a request of its own
    const auto ticket = breaker.allow();
    ASSERT_TRUE(ticket);
    EXPECT_TRUE(breaker.failed(*ticket));
  }
  void open() {
    for (int i = 0; i < 3; ++i) {
      fail();
    }
    ASSERT_TRUE(breaker.is_open());
  }
};

TEST_F(BreakerTest, ThreeFailuresInARowOpenItAndASuccessBeforeDoesNot) {
  for (int round = 0; round < 4; ++round) {
    fail();
    fail();
    EXPECT_TRUE(breaker.allow());
    EXPECT_FALSE(breaker.is_well());
    breaker.succeeded();
    EXPECT_TRUE(breaker.is_well());
  }
  EXPECT_FALSE(breaker.is_open());
  open();
  EXPECT_FALSE(breaker.allow());
}

TEST_F(BreakerTest, OneProbeAMinute) {
  open();
  now += milliseconds(59'999);
  EXPECT_FALSE(breaker.allow());
  now += milliseconds(1);
  const auto probe = breaker.allow();
  ASSERT_TRUE(probe);
  EXPECT_FALSE(breaker.allow());  // while that one is under way
  breaker.failed(*probe);
  now += milliseconds(59'999);
  EXPECT_FALSE(breaker.allow());
  now += milliseconds(1);
  EXPECT_TRUE(breaker.allow());
  breaker.succeeded();
  EXPECT_FALSE(breaker.is_open());
  EXPECT_TRUE(breaker.allow());
}

TEST_F(BreakerTest, RequestsThatWereUnderWayTogetherFailOnce) {
  for (int burst = 0; burst < 3; ++burst) {
    ASSERT_FALSE(breaker.is_open());
    std::vector<CircuitBreaker::Ticket> tickets;
    for (int i = 0; i < 16; ++i) tickets.push_back(*breaker.allow());
    int counted = 0;
    for (const CircuitBreaker::Ticket ticket : tickets) counted += breaker.failed(ticket) ? 1 : 0;
    EXPECT_EQ(counted, 1);
  }
  EXPECT_TRUE(breaker.is_open());
}

TEST_F(BreakerTest, ThoseThatFailLateDoNotPutTheProbeOff) {
  const auto late = breaker.allow();
  open();
  now += milliseconds(5'000);
  for (int i = 0; i < 13; ++i) breaker.failed(*late);  // requests that were under way when it opened
  now += milliseconds(55'000);
  EXPECT_TRUE(breaker.allow());
}

TEST_F(BreakerTest, WhatAnotherHasFoundOpensIt) {
  breaker.open();
  EXPECT_FALSE(breaker.allow());
  now += milliseconds(30'000);
  breaker.open();  // no news
  now += milliseconds(30'000);
  EXPECT_TRUE(breaker.allow());
  breaker.succeeded();
  EXPECT_TRUE(breaker.is_well());
}

}  // namespace
}  // namespace gemvjit
