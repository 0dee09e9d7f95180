#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "src/base/log.h"
#include "src/base/status.h"

namespace gemvjit {
namespace {

using testing::ElementsAre;

TEST(Status, TextHasTheCodeAndTheMessage) {
  EXPECT_EQ(Status().text(), "ok");
  EXPECT_EQ(Status(StatusCode::sealed, "why").text(), "context sealed against compiling: why");
  EXPECT_EQ(status_text(static_cast<StatusCode>(12345)), "unknown status");
}

Result<int> half(int value) {
  if (value % 2 != 0) return Status(StatusCode::invalid_argument, "odd");
  return value / 2;
}

Result<int> quarter(int value) {
  GEMVJIT_TRY_ASSIGN(const int first, half(value));
  return half(first);
}

Status check_quarter(int value) {
  GEMVJIT_TRY(quarter(value).status());
  return Status::ok();
}

TEST(Result, TryReturnsTheFirstFailure) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_EQ(quarter(6).status().message(), "odd");
  EXPECT_EQ(check_quarter(5).code(), StatusCode::invalid_argument);
  EXPECT_TRUE(check_quarter(4).is_ok());
}

TEST(Log, LevelNamesParseAndOthersDoNot) {
  LogLevel level = LogLevel::error;
  EXPECT_TRUE(parse_log_level("debug", level));
  EXPECT_EQ(level, LogLevel::debug);
  EXPECT_TRUE(parse_log_level("warning", level));
  EXPECT_EQ(level, LogLevel::warning);
  EXPECT_TRUE(parse_log_level("off", level));
  EXPECT_EQ(level, LogLevel::off);
  for (const char* text : {"", "warn", "Debug", "off ", "5"}) {
    EXPECT_FALSE(parse_log_level(text, level)) << text;
    EXPECT_EQ(level, LogLevel::off);
  }
}

TEST(Log, SinkSeesMessagesAtTheLevelAndAbove) {
  std::vector<std::string> seen;
  const Log log = Log::create(LogLevel::warning, [&](LogLevel level, std::string_view text) {
    seen.push_back(std::to_string(static_cast<int>(level)) + " " + std::string(text));
  });
  log.debug("no {}", 1);
  log.info("no {}", 2);
  log.warning("yes {}", 3);
  log.error("braces stay: {}", "{} %s");
  EXPECT_THAT(seen, ElementsAre("2 yes 3", "3 braces stay: {} %s"));
  EXPECT_FALSE(log.enabled(LogLevel::info));
  EXPECT_TRUE(log.enabled(LogLevel::warning));
}

TEST(Log, OffAndSilentDropAll) {
  int seen = 0;
  const Log off = Log::create(LogLevel::off, [&](LogLevel, std::string_view) { ++seen; });
  off.error("x");
  Log::silent().error("x");
  EXPECT_EQ(seen, 0);
  EXPECT_FALSE(Log::silent().enabled(LogLevel::error));
}

TEST(Log, WithoutASinkItWritesToStderr) {
  testing::internal::CaptureStderr();
  Log::create(LogLevel::info).warning("disk {} is full", 7);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "gemvjit: warning: disk 7 is full\n");
}

TEST(Log, SinkIsNeverCalledFromTwoThreadsAtOnce) {
  std::atomic<int> inside = 0;
  std::atomic<bool> overlapped = false;
  int calls = 0;  // not atomic: the log's lock guards it
  const Log log = Log::create(LogLevel::info, [&](LogLevel, std::string_view) {
    if (inside.fetch_add(1) != 0) overlapped = true;
    ++calls;
    std::this_thread::yield();
    inside.fetch_sub(1);
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 200; ++n) log.info("{}", n);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(calls, 800);
  EXPECT_FALSE(overlapped);
}

TEST(Log, WhatASinkThrowsIsDropped) {
  testing::internal::CaptureStderr();  // spdlog tells of the failure there
  const Log log = Log::create(LogLevel::info, [](LogLevel, std::string_view text) {
    if (text == "1") throw std::runtime_error("broken sink");
    throw 2;
  });
  EXPECT_NO_THROW(log.info("1"));
  EXPECT_NO_THROW(log.info("2"));
  testing::internal::GetCapturedStderr();
}

}  // namespace
}  // namespace gemvjit
