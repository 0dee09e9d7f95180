#include "src/remote/circuit_breaker.h"

#include <gtest/gtest.h>

namespace gemvjit {
namespace {

using std::chrono::milliseconds;

class BreakerTest : public testing::Test {
 protected:
  std::chrono::steady_clock::time_point now{milliseconds(1'000'000)};
  CircuitBreaker breaker{3, milliseconds(60'000), [this] { return now; }};

  void open() {
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(breaker.allow());
      breaker.failed();
    }
    ASSERT_TRUE(breaker.is_open());
  }
};

TEST_F(BreakerTest, ThreeFailuresInARowOpenItAndASuccessBeforeDoesNot) {
  for (int round = 0; round < 4; ++round) {
    breaker.failed();
    breaker.failed();
    EXPECT_TRUE(breaker.allow());
    breaker.succeeded();
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
  EXPECT_TRUE(breaker.allow());
  EXPECT_FALSE(breaker.allow());  // while that one is under way
  breaker.failed();
  now += milliseconds(59'999);
  EXPECT_FALSE(breaker.allow());
  now += milliseconds(1);
  EXPECT_TRUE(breaker.allow());
  breaker.succeeded();
  EXPECT_FALSE(breaker.is_open());
  EXPECT_TRUE(breaker.allow());
}

TEST_F(BreakerTest, ThoseThatFailLateDoNotPutTheProbeOff) {
  open();
  now += milliseconds(5'000);
  for (int i = 0; i < 13; ++i) breaker.failed();  // requests that were under way when it opened
  now += milliseconds(55'000);
  EXPECT_TRUE(breaker.allow());
}

}  // namespace
}  // namespace gemvjit
