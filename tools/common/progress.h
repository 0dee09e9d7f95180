// Progress on stderr: on a terminal one bar that is redrawn in place, elsewhere (logs, pipes) a line every few seconds.
//
// Threads: update() and message() from any. A thread of its own keeps the clock running while one step takes long.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace gemvjit::tools {

// "  12/96  12%  3.4/s  ETA 25 s": what both forms show. Without the total (0) only what is done.
std::string progress_text(std::size_t done, std::size_t total, double seconds);
// "[####------]" of `width` cells between the brackets.
std::string progress_bar(std::size_t done, std::size_t total, std::size_t width);

class Progress {
 public:
  enum class Mode { none, bar, lines };
  // bar on a terminal, else lines; none if quiet.
  static Mode mode_for_stderr(bool quiet);

  explicit Progress(Mode mode);
  ~Progress();  // finish()
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::size_t done, std::size_t total);
  // A line of its own on stderr, above the bar. Shown in every mode.
  void message(std::string_view line);
  // The last state once more, then nothing. More calls do nothing.
  void finish();

 private:
  void run();
  void draw_locked(bool last);
  void clear_bar_locked();

  const Mode mode_;
  double start_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false, finished_ = false, bar_on_screen_ = false, line_written_ = false;
  std::size_t done_ = 0, total_ = 0;
  std::thread ticker_;
};

}  // namespace gemvjit::tools
