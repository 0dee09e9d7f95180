// The progress, drawn by a clock that the test turns, and the time left.
#include "tools/common/progress.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/common/time_left.h"

namespace gemvjit::tools {
namespace {

StreamStyle terminal(bool can_redraw) { return {.is_terminal = true, .can_redraw = can_redraw, .columns = 80}; }

TEST(Progress, ModeFollowsTheChoiceAndTheStream) {
  const StreamStyle pipe;
  EXPECT_EQ(progress_mode("auto", false, terminal(true)), ProgressMode::line);
  EXPECT_EQ(progress_mode("auto", false, terminal(false)), ProgressMode::plain) << "TERM=dumb";
  EXPECT_EQ(progress_mode("auto", false, pipe), ProgressMode::plain);
  EXPECT_EQ(progress_mode("auto", true, terminal(true)), ProgressMode::none);
  EXPECT_EQ(progress_mode("line", false, pipe), ProgressMode::plain) << "never escapes into a pipe";
  EXPECT_EQ(progress_mode("line", true, terminal(true)), ProgressMode::line) << "asked for by name";
  EXPECT_EQ(progress_mode("plain", false, terminal(true)), ProgressMode::plain);
  EXPECT_EQ(progress_mode("json", true, pipe), ProgressMode::json);
  EXPECT_EQ(progress_mode("none", false, terminal(true)), ProgressMode::none);
}

TEST(Progress, TextShowsDoneTotalRateAndTimeLeft) {
  EXPECT_EQ(progress_text({.done = 12, .total = 96, .seconds = 6}), "12/96 kernels  12%  2.0/s  ETA 42.0 s");
  EXPECT_EQ(progress_text({.done = 96, .total = 96, .seconds = 48}), "96/96 kernels 100%  2.0/s  in 48.0 s");
  EXPECT_EQ(progress_text({.done = 0, .total = 96, .seconds = 2}), "0/96 kernels   0%  2.0 s");
  EXPECT_EQ(progress_text({.done = 0, .total = 0, .seconds = 2}), "0 kernels  2.0 s");
  EXPECT_EQ(progress_text({.done = 1, .total = 4, .seconds = 2, .by_rate = false, .left = 9.0}),
            "1/4 kernels  25%  2.0 s  ETA 9.0 s");
  EXPECT_EQ(progress_text({.done = 1, .total = 4, .seconds = 2, .by_rate = false}),
            "1/4 kernels  25%  2.0 s  ETA unknown");
}

TEST(Progress, TheBarFillsUp) {
  EXPECT_EQ(progress_bar(0, 10, 10), "[----------]");
  EXPECT_EQ(progress_bar(5, 10, 10), "[#####-----]");
  EXPECT_EQ(progress_bar(10, 10, 10), "[##########]");
  EXPECT_EQ(progress_bar(3, 0, 10), "[----------]");
}

TEST(Progress, TheLineFitsEveryWidth) {
  const ProgressState state{.done = 12, .total = 96, .seconds = 6, .last = "n4096-k14336-nt1-f0000410208848021-sm_90a"};
  for (std::size_t columns = 1; columns < 200; ++columns) {
    EXPECT_LT(progress_line(state, columns).size(), columns) << columns;
  }
  const std::string wide = progress_line(state, 200), medium = progress_line(state, 100);
  EXPECT_NE(wide.find(state.last), std::string::npos);
  EXPECT_NE(medium.find("..."), std::string::npos) << medium;
  EXPECT_EQ(medium.find(state.last), std::string::npos);
  EXPECT_TRUE(medium.ends_with("sm_90a")) << "the middle is left out, not the end";
  EXPECT_EQ(progress_line(state, 50), progress_text(state)) << "no bar, no key";
  // Whole parts only: never a bare "ETA", and no part of a number.
  for (const bool by_rate : {true, false}) {
    ProgressState narrow = state;
    narrow.by_rate = by_rate;
    narrow.left = 42;
    for (std::size_t columns = 20; columns < 200; ++columns) {
      const std::string line = progress_line(narrow, columns);
      const std::size_t at = line.find("ETA");
      EXPECT_TRUE(at == std::string::npos || line.substr(at).starts_with("ETA 42")) << columns << line;
      EXPECT_NE(line.find("12/96 kernels"), std::string::npos) << columns << line;
    }
    EXPECT_EQ(progress_line(narrow, 33).find("ETA 42"), 20u) << progress_line(narrow, 33);
  }
}

struct Screen {
  double now = 100;
  std::string text;
  std::vector<std::string> writes;
  ProgressDisplay::Surroundings around() {
    ProgressDisplay::Surroundings surroundings;
    surroundings.clock = [this] { return now; };
    surroundings.write = [this](const std::string& written) { text += written, writes.push_back(written); };
    surroundings.message = surroundings.write;
    surroundings.columns = [] { return std::size_t{80}; };
    return surroundings;
  }
};

TEST(Progress, PlainLinesComeEveryThreeSecondsWithoutEscapes) {
  Screen screen;
  ProgressDisplay display(ProgressMode::plain, screen.around());
  for (int tenth = 0; tenth < 100; ++tenth) {
    display.update(tenth / 10, 20, "key");
    display.tick();
    screen.now += 0.1;
  }
  EXPECT_EQ(screen.writes.size(), 3u) << screen.text;
  display.message("a note");
  display.finish();
  EXPECT_EQ(screen.writes.size(), 5u) << screen.text;
  EXPECT_EQ(screen.text.find_first_of("\r\x1b"), std::string::npos) << screen.text;
  EXPECT_TRUE(screen.text.ends_with("\n"));
}

TEST(Progress, AShortRunSaysNothingWhereNothingIsRedrawn) {
  Screen screen;
  ProgressDisplay display(ProgressMode::plain, screen.around());
  screen.now += 1;
  display.tick();
  display.finish();
  EXPECT_EQ(screen.text, "");
}

TEST(Progress, TheLineIsRedrawnAndGivesWayToMessages) {
  Screen screen;
  ProgressDisplay display(ProgressMode::line, screen.around());
  display.update(1, 2);
  display.tick();
  display.message("a note");
  display.update(2, 2);
  display.finish();
  ASSERT_EQ(screen.writes.size(), 4u) << screen.text;
  EXPECT_TRUE(screen.writes[0].starts_with("\r\x1b[K["));
  EXPECT_EQ(screen.writes[0].find('\n'), std::string::npos);
  EXPECT_EQ(screen.writes[1], "\r\x1b[K");
  EXPECT_EQ(screen.writes[2], "a note\n");
  EXPECT_TRUE(screen.writes[3].ends_with("\n"));
  EXPECT_NE(screen.writes[3].find("2/2 kernels 100%"), std::string::npos);
}

TEST(Progress, EventsAreObjectsWithOneSchema) {
  Screen screen;
  auto around = screen.around();
  std::optional<double> left = 7.5;
  around.left = [&](double) { return left; };
  ProgressDisplay display(ProgressMode::json, around);
  display.update(0, 4);
  display.event("start", {{"mode", "build"}});
  screen.now += 0.5;
  display.tick();  // too early
  screen.now += 0.75;
  display.update(1, 4);
  display.tick();
  left = std::nullopt;
  display.event("kernel", {{"key", "\xff"}});
  display.finish();
  ASSERT_EQ(screen.writes.size(), 3u) << screen.text;
  std::vector<nlohmann::json> events;
  for (const std::string& line : screen.writes) {
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    events.push_back(nlohmann::json::parse(line));
    EXPECT_EQ(events.back()["schema"], 1);
    EXPECT_EQ(events.back()["total"], 4);
  }
  EXPECT_EQ(events[0]["event"], "start");
  EXPECT_EQ(events[0]["eta_seconds"], 7.5);
  EXPECT_EQ(events[1]["event"], "progress");
  EXPECT_EQ(events[1]["done"], 1);
  EXPECT_EQ(events[1]["elapsed_seconds"], 1.25);
  EXPECT_TRUE(events[2]["eta_seconds"].is_null());
}

TEST(TimeLeft, RemembersMediansUntilThisRunHasItsOwn) {
  TimeLeft left({{1, {.steps = 10, .remembered_ms = 1000}}}, 2, 0);
  EXPECT_DOUBLE_EQ(*left.seconds(0), 5);
  EXPECT_DOUBLE_EQ(*left.seconds(2), 3) << "counts down";
  left.finished(1, 3000, 2);
  EXPECT_DOUBLE_EQ(*left.seconds(2), 4.5) << "one step does not say more than what is remembered";
  left.finished(1, 3000, 3);
  left.finished(1, 3000, 4);
  EXPECT_DOUBLE_EQ(*left.seconds(4), 10.5) << "three do: 7 of 3 s, two at a time";
}

TEST(TimeLeft, IsUnknownWithoutABasisAndWhenItProvedTooShort) {
  TimeLeft left({{1, {.steps = 2, .remembered_ms = 1000}}, {2, {.steps = 2, .remembered_ms = {}}}}, 1, 0);
  EXPECT_FALSE(left.seconds(0)) << "nothing is known of kind 2";
  left.finished(2, 500, 1);
  EXPECT_DOUBLE_EQ(*left.seconds(1), 2.5);
  EXPECT_FALSE(left.seconds(4));
  left.finished(1, std::nullopt, 5);  // failed
  EXPECT_DOUBLE_EQ(*left.seconds(5), 1.5);
  left.finished(9, 100, 5);
  left.finished(1, 1000, 6);
  left.finished(2, 500, 7);
  EXPECT_DOUBLE_EQ(*left.seconds(60), 0) << "nothing is left";
}

TEST(TimeLeft, JobsDoNotHalveOneStep) {
  const TimeLeft left({{1, {.steps = 1, .remembered_ms = 4000}}}, 8, 0);
  EXPECT_DOUBLE_EQ(*left.seconds(0), 4);
}

}  // namespace
}  // namespace gemvjit::tools
