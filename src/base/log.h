// Log: where messages of one context go. A thin front over spdlog, so that no other room includes it.
//
// Threads: any. Cost: a message below the level is dropped before it is formatted. Never used on the launch path.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace gemvjit {

enum class LogLevel : int { debug = 0, info = 1, warning = 2, error = 3, off = 4 };

// Parse "debug", "info", "warning", "error", "off"; false if it is none of these.
bool parse_log_level(std::string_view text, LogLevel& level);

class Log {
 public:
  using Sink = std::function<void(LogLevel, std::string_view)>;

  // Messages at `level` and above go to `sink`, or to stderr if there is none. The sink may be called from any thread
  // that uses the context, never from two at once; it must not log through this Log itself. What it throws is dropped.
  static Log create(LogLevel level, Sink sink = nullptr);
  // A log that drops everything.
  static Log silent();

  bool enabled(LogLevel level) const;
  void write(LogLevel level, std::string_view message) const;

  template <typename... Args>
  void debug(fmt::format_string<Args...> format, Args&&... args) const {
    if (enabled(LogLevel::debug)) write(LogLevel::debug, fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void info(fmt::format_string<Args...> format, Args&&... args) const {
    if (enabled(LogLevel::info)) write(LogLevel::info, fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void warning(fmt::format_string<Args...> format, Args&&... args) const {
    if (enabled(LogLevel::warning)) write(LogLevel::warning, fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void error(fmt::format_string<Args...> format, Args&&... args) const {
    if (enabled(LogLevel::error)) write(LogLevel::error, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  struct State;
  explicit Log(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace gemvjit
