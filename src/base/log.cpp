#include "src/base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <mutex>
#include <optional>

#include "src/base/blocked_signal.h"
#include "src/base/process_end.h"

namespace gemvjit {
namespace {

constexpr std::string_view level_names[] = {"debug", "info", "warning", "error", "off"};

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::off:
      break;
  }
  return spdlog::level::off;
}

LogLevel from_spdlog(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
    case spdlog::level::debug:
      return LogLevel::debug;
    case spdlog::level::info:
      return LogLevel::info;
    case spdlog::level::warn:
      return LogLevel::warning;
    default:
      return LogLevel::error;
  }
}

// base_sink holds its mutex around sink_it_, so the function is never called from two threads at once.
class FunctionSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FunctionSink(Log::Sink function) : function_(std::move(function)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (process_is_ending()) return;  // what the function needs may be gone
    function_(from_spdlog(message.level), std::string_view(message.payload.data(), message.payload.size()));
  }
  void flush_() override {}

 private:
  Log::Sink function_;
};

}  // namespace

struct Log::State {
  LogLevel level;
  bool to_stderr;
  spdlog::logger logger;  // not registered with spdlog: its names and levels are the host program's own
};

bool parse_log_level(std::string_view text, LogLevel& level) {
  for (int i = 0; i < static_cast<int>(std::size(level_names)); ++i) {
    if (text == level_names[i]) {
      level = static_cast<LogLevel>(i);
      return true;
    }
  }
  return false;
}

Log Log::create(LogLevel level, Sink sink) {
  spdlog::sink_ptr target;
  const bool to_stderr = !sink;
  if (sink) {
    target = std::make_shared<FunctionSink>(std::move(sink));
  } else {
    target = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    target->set_pattern("%n: %l: %v");
  }
  auto state = std::make_shared<State>(State{level, to_stderr, spdlog::logger("gemvjit", std::move(target))});
  state->logger.set_level(to_spdlog(level));
  return Log(std::move(state));
}

Log Log::silent() { return Log(nullptr); }

bool Log::enabled(LogLevel level) const {
  return state_ != nullptr && level != LogLevel::off && static_cast<int>(level) >= static_cast<int>(state_->level);
}

void Log::write(LogLevel level, std::string_view message) const {
  if (!enabled(level)) return;
  try {
    // What stderr is, a closed pipe or a file that may grow no more, must not end the process either.
    std::optional<BlockedSignal> no_sigpipe, no_sigxfsz;
    if (state_->to_stderr) {
      no_sigpipe.emplace(SIGPIPE);
      no_sigxfsz.emplace(SIGXFSZ);
    }
    state_->logger.log(to_spdlog(level), spdlog::string_view_t(message.data(), message.size()));
  } catch (...) {
    // A log that fails must not fail the work it tells about.
  }
}

}  // namespace gemvjit
