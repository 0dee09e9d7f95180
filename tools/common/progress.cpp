#include "tools/common/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "tools/common/human_units.h"
#include "tools/common/printable.h"

namespace gemvjit::tools {
namespace {

constexpr auto bar_interval = std::chrono::milliseconds(100);
constexpr auto line_interval = std::chrono::seconds(3);
constexpr std::size_t bar_cells = 30;

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::size_t terminal_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void write_stderr(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

}  // namespace

std::string progress_text(std::size_t done, std::size_t total, double seconds) {
  if (total == 0) return fmt::format("{} kernels  {}", done, human_seconds(seconds));
  std::string text = fmt::format("{}/{} kernels {:3}%", done, total, done * 100 / total);
  if (done == 0 || seconds <= 0) return text + "  " + human_seconds(seconds);
  const double rate = static_cast<double>(done) / seconds;
  text += fmt::format("  {:.1f}/s", rate);
  if (done < total) return text + "  ETA " + human_seconds(static_cast<double>(total - done) / rate);
  return text + "  in " + human_seconds(seconds);
}

std::string progress_bar(std::size_t done, std::size_t total, std::size_t width) {
  const std::size_t filled = total == 0 ? 0 : std::min(width, done * width / total);
  return "[" + std::string(filled, '#') + std::string(width - filled, '-') + "]";
}

Progress::Mode Progress::mode_for_stderr(bool quiet) {
  if (quiet) return Mode::none;
  return ::isatty(STDERR_FILENO) == 1 ? Mode::bar : Mode::lines;
}

Progress::Progress(Mode mode) : mode_(mode), start_(now_seconds()) {
  if (mode_ != Mode::none) ticker_ = std::thread([this] { run(); });
}

Progress::~Progress() { finish(); }

void Progress::update(std::size_t done, std::size_t total) {
  const std::lock_guard lock(mutex_);
  done_ = std::max(done_, done);
  total_ = total;
}

void Progress::message(std::string_view line) {
  const std::lock_guard lock(mutex_);
  clear_bar_locked();
  write_stderr(printable_message(line) + "\n");
}

void Progress::finish() {
  {
    const std::lock_guard lock(mutex_);
    if (finished_) return;
    finished_ = stopping_ = true;
  }
  wake_.notify_all();
  if (ticker_.joinable()) ticker_.join();
  const std::lock_guard lock(mutex_);
  // Elsewhere than on a terminal a run shorter than one interval says nothing: its result says it all.
  if (mode_ == Mode::bar || line_written_) draw_locked(true);
}

void Progress::run() {
  const auto interval = mode_ == Mode::bar ? std::chrono::duration_cast<std::chrono::milliseconds>(bar_interval)
                                           : std::chrono::duration_cast<std::chrono::milliseconds>(line_interval);
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, interval, [this] { return stopping_; })) draw_locked(false);
}

void Progress::draw_locked(bool last) {
  const std::string text = progress_text(done_, total_, now_seconds() - start_);
  if (mode_ == Mode::lines) {
    line_written_ = true;
    write_stderr(text + "\n");
    return;
  }
  std::string line = progress_bar(done_, total_, bar_cells) + " " + text;
  const std::size_t columns = terminal_columns();
  if (line.size() >= columns) line = text.substr(0, columns - 1);
  write_stderr("\r\x1b[K" + line + (last ? "\n" : ""));
  bar_on_screen_ = !last;
}

void Progress::clear_bar_locked() {
  if (bar_on_screen_) write_stderr("\r\x1b[K");
  bar_on_screen_ = false;
}

}  // namespace gemvjit::tools
