#include "src/remote/ramp.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <list>
#include <thread>

namespace gemvjit {
namespace {

// How many get a place at once, where so many are expected.
int places(Ramp& ramp, int expected) {
  std::atomic<int> got{0};
  std::atomic<bool> leave{false};
  std::list<std::jthread> threads;
  for (int i = 0; i < 20; ++i) {
    threads.emplace_back([&] {
      const Ramp::Place place(ramp);
      ++got;
      while (!leave) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
  }
  for (int i = 0; i < 10'000 && got < expected; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const int at_once = got;
  leave = true;
  threads.clear();
  EXPECT_EQ(got, 20);  // each had its turn
  return at_once;
}

TEST(Ramp, GrowsWithAnswersAndHalvesWithFailures) {
  Ramp ramp(16);
  EXPECT_EQ(places(ramp, 2), 2);
  for (int i = 0; i < 5; ++i) ramp.answered();
  EXPECT_EQ(places(ramp, 7), 7);
  for (int i = 0; i < 50; ++i) ramp.answered();
  EXPECT_EQ(places(ramp, 16), 16);
  ramp.failed();
  EXPECT_EQ(places(ramp, 8), 8);
  for (int i = 0; i < 10; ++i) ramp.failed();
  EXPECT_EQ(places(ramp, 2), 2);
  Ramp narrow(1);
  EXPECT_EQ(places(narrow, 1), 1);
}

}  // namespace
}  // namespace gemvjit
