#include "tools/common/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/common/human_units.h"
#include "tools/common/output.h"

namespace gemvjit::tools {
namespace {

constexpr auto tick_interval = std::chrono::milliseconds(100);
constexpr double plain_interval_s = 3, event_interval_s = 1;
constexpr std::size_t bar_cells = 30;

double milliseconds_exact(double seconds) { return std::round(seconds * 1000) / 1000; }

ProgressDisplay::Surroundings on_stderr(std::function<std::optional<double>(double)> left) {
  ProgressDisplay::Surroundings around;
  around.clock = &Progress::now;
  around.write = [](const std::string& text) { (void)std::fwrite(text.data(), 1, text.size(), stderr); };
  around.columns = [] { return style_of(STDERR_FILENO).columns; };
  around.message = [](const std::string& text) { say(text); };
  around.left = std::move(left);
  return around;
}

}  // namespace

const std::vector<std::string>& progress_choices() {
  static const std::vector<std::string> choices{"auto", "line", "plain", "json", "none"};
  return choices;
}

ProgressMode progress_mode(std::string_view choice, bool quiet, const StreamStyle& stderr_style) {
  if (choice == "none" || (choice == "auto" && quiet)) return ProgressMode::none;
  if (choice == "json") return ProgressMode::json;
  return choice != "plain" && stderr_style.can_redraw ? ProgressMode::line : ProgressMode::plain;
}

std::string progress_text(const ProgressState& state) {
  if (state.total == 0) return fmt::format("{} kernels  {}", state.done, human_seconds(state.seconds));
  std::string text = fmt::format("{}/{} kernels {:3}%", state.done, state.total, state.done * 100 / state.total);
  const double rate = state.seconds > 0 ? static_cast<double>(state.done) / state.seconds : 0;
  const bool is_done = state.done >= state.total;
  if (!state.by_rate) {
    if (is_done) return text + "  in " + human_seconds(state.seconds);
    return text + fmt::format("  {}  ETA {}", human_seconds(state.seconds),
                              state.left ? human_seconds(*state.left) : "unknown");
  }
  if (rate <= 0) return text + "  " + human_seconds(state.seconds);
  text += fmt::format("  {:.1f}/s", rate);
  if (is_done) return text + "  in " + human_seconds(state.seconds);
  return text + "  ETA " + human_seconds(static_cast<double>(state.total - state.done) / rate);
}

std::string progress_bar(std::size_t done, std::size_t total, std::size_t width) {
  const std::size_t filled = total == 0 ? 0 : std::min(width, done * width / total);
  return "[" + std::string(filled, '#') + std::string(width - filled, '-') + "]";
}

std::string progress_line(const ProgressState& state, std::size_t columns) {
  const std::string text = progress_text(state), bar = progress_bar(state.done, state.total, bar_cells) + " ";
  // The last column stays free: some terminals wrap as soon as it is written.
  const std::size_t room = std::max<std::size_t>(columns, 1) - 1;
  if (text.size() >= room) {
    // Whole parts only: the time left is worth more than the time taken, and a bare "ETA" nothing.
    const std::string count =
        text.substr(0, text.find("%") == std::string::npos ? text.find("  ") : text.find("%") + 1);
    const std::size_t last = text.rfind("  ");
    const std::string left = last >= count.size() && last != std::string::npos ? text.substr(last) : "";
    if (count.size() + left.size() <= room) return count + left;
    return count.substr(0, room);
  }
  std::string line = bar.size() + text.size() <= room ? bar + text : text;
  constexpr std::size_t least = 12;  // of a key; less tells nothing
  if (!state.last.empty() && line.size() + 2 + least <= room) {
    line += "  " + shorten_middle(state.last, room - line.size() - 2);
  }
  return line;
}

ProgressDisplay::ProgressDisplay(ProgressMode mode, Surroundings around)
    : mode_(mode), around_(std::move(around)), start_(around_.clock()), drawn_(start_) {}

void ProgressDisplay::update(std::size_t done, std::size_t total, std::string_view last) {
  done_ = std::max(done_, done);
  total_ = total;
  last_ = last;
}

void ProgressDisplay::tick() {
  if (mode_ == ProgressMode::none) return;
  const double now = around_.clock();
  const double interval = mode_ == ProgressMode::line    ? 0
                          : mode_ == ProgressMode::plain ? plain_interval_s
                                                         : event_interval_s;
  if (now - drawn_ < interval) return;
  drawn_ = now;
  draw(false);
}

void ProgressDisplay::message(std::string_view line) {
  clear();
  around_.message(std::string(line) + "\n");
}

void ProgressDisplay::event(std::string_view name, const nlohmann::ordered_json& fields) {
  if (mode_ != ProgressMode::json) return;
  const ProgressState state = this->state();
  nlohmann::ordered_json event{{"schema", 1}, {"event", name}};
  event.update(fields);
  event["done"] = state.done;
  event["total"] = nullptr;
  if (state.total > 0) event["total"] = state.total;
  event["elapsed_seconds"] = milliseconds_exact(state.seconds);
  event["eta_seconds"] = nullptr;
  if (state.left) event["eta_seconds"] = milliseconds_exact(*state.left);
  around_.write(event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void ProgressDisplay::finish() {
  // Elsewhere than on a terminal a run shorter than one interval says nothing: its result says it all.
  if (mode_ == ProgressMode::line || (mode_ == ProgressMode::plain && line_written_)) draw(true);
}

ProgressState ProgressDisplay::state() const {
  ProgressState state{done_, total_, around_.clock() - start_, !around_.left, std::nullopt, last_};
  if (around_.left) {
    state.left = done_ >= total_ && total_ > 0 ? 0 : around_.left(around_.clock());
  } else if (done_ > 0 && total_ > 0 && state.seconds > 0) {
    state.left = static_cast<double>(total_ - std::min(done_, total_)) * state.seconds / static_cast<double>(done_);
  }
  return state;
}

void ProgressDisplay::draw(bool last) {
  if (mode_ == ProgressMode::json) return event("progress", nlohmann::ordered_json::object());
  ProgressState state = this->state();
  if (mode_ == ProgressMode::plain) {
    line_written_ = true;
    return around_.write(progress_text(state) + "\n");
  }
  if (last) state.last.clear();
  around_.write("\r\x1b[K" + progress_line(state, around_.columns()) + (last ? "\n" : ""));
  on_screen_ = !last;
}

void ProgressDisplay::clear() {
  if (on_screen_) around_.write("\r\x1b[K");
  on_screen_ = false;
}

Progress::Progress(ProgressMode mode, std::function<std::optional<double>(double)> left)
    : mode_(mode), display_(mode, on_stderr(std::move(left))) {
  if (mode_ != ProgressMode::none) ticker_ = std::thread([this] { run(); });
}

Progress::~Progress() { finish(); }

void Progress::update(std::size_t done, std::size_t total, std::string_view last) {
  const std::lock_guard lock(mutex_);
  display_.update(done, total, last);
}

void Progress::message(std::string_view line) {
  const std::lock_guard lock(mutex_);
  display_.message(line);
}

void Progress::event(std::string_view name, const nlohmann::ordered_json& fields) {
  const std::lock_guard lock(mutex_);
  display_.event(name, fields);
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
  display_.finish();
}

double Progress::now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void Progress::run() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, tick_interval, [this] { return stopping_; })) display_.tick();
}

}  // namespace gemvjit::tools
