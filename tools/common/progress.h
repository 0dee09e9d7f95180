// Progress on stderr: on a terminal one line that is redrawn in place; in logs, pipes and on TERM=dumb plain lines
// every few seconds; or events, a JSON object a line (docs/tools.md lists them).
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tools/common/terminal.h"

namespace gemvjit::tools {

enum class ProgressMode { none, line, plain, json };
// What --progress takes, in this order: auto, line, plain, json, none.
const std::vector<std::string>& progress_choices();
// auto: the line on a terminal that can be redrawn, else plain; none if quiet. A line that cannot be redrawn is plain,
// too; what was asked for by name is given to the quiet as well.
ProgressMode progress_mode(std::string_view choice, bool quiet, const StreamStyle& stderr_style);

struct ProgressState {
  std::size_t done = 0, total = 0;  // total 0: not known
  double seconds = 0;               // since the beginning
  bool by_rate = true;              // time left from the rate so far; else `left`
  std::optional<double> left{};     // seconds; nullopt: unknown
  std::string last{};               // what was finished last, perhaps ""
};
// "12/96 kernels  12%  2.0/s  ETA 25.0 s", without by_rate "12/96 kernels  12%  6.0 s  ETA 25.0 s".
std::string progress_text(const ProgressState& state);
// "[####------]" of `width` cells between the brackets.
std::string progress_bar(std::size_t done, std::size_t total, std::size_t width);
// Bar, text and what was finished last, in less than `columns`: first the bar goes, then `last` is shortened.
std::string progress_line(const ProgressState& state, std::size_t columns);

// What is written when; no thread, clock or stream of its own.
class ProgressDisplay {
 public:
  struct Surroundings {
    std::function<double()> clock;                      // seconds, monotonic
    std::function<void(const std::string&)> write;      // to stderr, as it is
    std::function<std::size_t()> columns;               // of the terminal
    std::function<void(const std::string&)> message;    // a line for people, its newline included
    std::function<std::optional<double>(double)> left;  // seconds left at a time; empty: from the rate
  };
  ProgressDisplay(ProgressMode mode, Surroundings around);

  void update(std::size_t done, std::size_t total, std::string_view last = {});
  void tick();  // often: draws if it is time
  void message(std::string_view line);
  // Of ProgressMode::json only: {"schema": 1, "event": name, fields..., "done", "total", "elapsed_seconds",
  // "eta_seconds"}; total and eta_seconds are null where they are not known.
  void event(std::string_view name, const nlohmann::ordered_json& fields);
  void finish();  // the last state once more

 private:
  ProgressState state() const;
  void draw(bool last);
  void clear();

  ProgressMode mode_;
  Surroundings around_;
  double start_, drawn_;
  bool on_screen_ = false, line_written_ = false;
  std::size_t done_ = 0, total_ = 0;
  std::string last_;
};

// The display of this process on stderr, with a thread that keeps the clock running while one step takes long.
// Threads: any.
class Progress {
 public:
  explicit Progress(ProgressMode mode, std::function<std::optional<double>(double)> left = {});
  ~Progress();  // finish()
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::size_t done, std::size_t total, std::string_view last = {});
  // A line of its own on stderr, above the bar. Shown in every mode.
  void message(std::string_view line);
  void event(std::string_view name, const nlohmann::ordered_json& fields);
  // The last state once more, then nothing. More calls do nothing.
  void finish();

  static double now();  // the clock that `left` is asked by

 private:
  void run();

  const ProgressMode mode_;
  std::mutex mutex_;
  std::condition_variable wake_;
  ProgressDisplay display_;
  bool stopping_ = false, finished_ = false;
  std::thread ticker_;
};

}  // namespace gemvjit::tools
