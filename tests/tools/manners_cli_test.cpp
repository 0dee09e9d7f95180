// How the tools behave on a terminal, in a pipe and towards typing errors.
#include <set>
#include <sstream>

#include "tests/tools/cli_fixture.h"
#include "tests/tools/pseudo_terminal.h"

namespace gemvjit::test {
namespace {

using nlohmann::json;

constexpr const char* kEscapes = "\r\x1b";

class Manners : public CliTest {
 protected:
  Manners() {
    environment_["NO_COLOR"] = "";
    environment_["COLUMNS"] = "";
    environment_["TERM"] = "xterm";
  }
  TerminalOutput on_terminal(std::vector<std::string> arguments, unsigned short columns = 120) const {
    arguments.insert(arguments.begin(), GEMVJIT_WARMUP_BINARY);
    return run_on_terminal(arguments, environment_, columns);
  }
  // One kernel that is not there; takes no compiler.
  static std::vector<std::string> check(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"--shape", "64x64:dequant", "--arch", "sm_90a", "--check"});
    return more;
  }
  static std::vector<json> lines_of(const std::string& text) {
    std::vector<json> events;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
      events.push_back(json::parse(line, nullptr, false));
      EXPECT_TRUE(events.back().is_object()) << line;
    }
    return events;
  }
};

TEST_F(Manners, TheProgressLineIsDrawnOnATerminalOnly) {
  const TerminalOutput terminal = on_terminal(check());
  if (terminal.exit_code < 0) GTEST_SKIP() << "no pseudo-terminal here";
  EXPECT_EQ(terminal.exit_code, 9) << terminal.screen;
  EXPECT_TRUE(contains(terminal.screen, "\r\x1b[K[####")) << terminal.screen;
  const ProgramOutput pipe = warmup(check());
  EXPECT_EQ(pipe.exit_code, 9);
  EXPECT_EQ((pipe.out + pipe.err).find_first_of(kEscapes), std::string::npos) << pipe.out << pipe.err;
  environment_["TERM"] = "dumb";
  const TerminalOutput dumb = on_terminal(check());
  EXPECT_EQ(dumb.screen.find('\x1b'), std::string::npos) << dumb.screen;
  environment_["TERM"] = "xterm";
  for (const char* choice : {"none", "plain"}) {
    const TerminalOutput chosen = on_terminal(check({"--progress", choice, "--color=never"}));
    EXPECT_EQ(chosen.exit_code, 9);
    EXPECT_EQ(chosen.screen.find('\x1b'), std::string::npos) << chosen.screen;
  }
}

TEST_F(Manners, ColorsFollowTheOptionTheVariableAndTheTerminal) {
  const std::string missing = "\x1b[33mmissing\x1b[0m";
  const TerminalOutput terminal = on_terminal(check());
  if (terminal.exit_code < 0) GTEST_SKIP() << "no pseudo-terminal here";
  EXPECT_TRUE(contains(terminal.screen, missing)) << terminal.screen;
  EXPECT_FALSE(contains(on_terminal(check({"--color", "never"})).screen, missing));
  EXPECT_TRUE(contains(warmup(check({"--color=always"})).out, missing));
  EXPECT_FALSE(contains(warmup(check()).out, missing));
  environment_["NO_COLOR"] = "1";
  EXPECT_FALSE(contains(on_terminal(check()).screen, missing));
  EXPECT_TRUE(contains(on_terminal(check({"--color=always"})).screen, missing));
  // Also where the command line cannot be read.
  EXPECT_TRUE(contains(warmup({"--color=always", "--no-such"}).err, "\x1b[31mgemvjit-warmup:\x1b[0m"));
  EXPECT_EQ(warmup({"--color=sometimes", "--shape", "64x64"}).exit_code, 2);
}

TEST_F(Manners, KeysAreShortenedForATerminalOnly) {
  const std::string key = document(warmup(check({"--json"})))["results"][0]["key"];
  const TerminalOutput narrow = on_terminal(check({"--progress=none"}), 70);
  if (narrow.exit_code < 0) GTEST_SKIP() << "no pseudo-terminal here";
  const auto table_row = [](const std::string& text) {
    const std::size_t begin = text.find('\n') + 1;
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  EXPECT_FALSE(contains(table_row(narrow.screen), key)) << narrow.screen;
  EXPECT_TRUE(contains(table_row(narrow.screen), "...")) << narrow.screen;
  EXPECT_TRUE(contains(table_row(on_terminal(check({"--progress=none"}), 200).screen), key));
  environment_["COLUMNS"] = "70";
  EXPECT_TRUE(contains(table_row(warmup(check()).out), key)) << "a pipe has no width";
  EXPECT_TRUE(contains(table_row(on_terminal(check({"--progress=none"}), 0).screen), "...")) << "COLUMNS";
}

TEST_F(Manners, ARunSaysFirstWhatItFindsAndThenDoes) {
  const ProgramOutput cold = warm_one_kernel();
  ASSERT_EQ(cold.exit_code, 0) << cold.err;
  EXPECT_TRUE(contains(cold.err, "FAMILY           TARGET  KERNELS  CACHE  LAYERS  COMPILE  EACH")) << cold.err;
  EXPECT_TRUE(contains(cold.err, "0 kernels from the cache, 0 from layers, 1 to compile; no entry tells")) << cold.err;
  const ProgramOutput warm = warm_one_kernel();
  EXPECT_TRUE(contains(warm.err, "1 kernels from the cache, 0 from layers, 0 to compile")) << warm.err;
  EXPECT_FALSE(contains(warm.out, "from layers")) << "results only";
  // What was compiled before says how long the next one takes.
  const ProgramOutput next = warmup({"--shape", "128x64:dequant", "--arch", "sm_90a"});
  EXPECT_TRUE(contains(next.err, "1 to compile: about ")) << next.err;
  for (const char* option : {"-q", "--progress=none"}) {
    EXPECT_FALSE(contains(warm_one_kernel({option}).err, "FAMILY")) << option;
  }
}

TEST_F(Manners, EventsAreOneObjectALineAndStdoutStaysOneDocument) {
  const ProgramOutput output = warm_one_kernel({"--progress=json", "--json"});
  ASSERT_EQ(output.exit_code, 0) << output.err;
  EXPECT_EQ(document(output)["summary"]["compiled"], 1);
  const std::vector<json> events = lines_of(output.err);
  ASSERT_GE(events.size(), 3u) << output.err;
  for (const json& event : events) {
    EXPECT_EQ(event["schema"], 1);
    for (const char* field : {"event", "done", "total", "elapsed_seconds", "eta_seconds"}) {
      EXPECT_TRUE(event.contains(field)) << field << " " << event;
    }
  }
  EXPECT_EQ(events.front()["event"], "start");
  EXPECT_EQ(events.front()["mode"], "build");
  EXPECT_EQ(events.front()["total"], 1);
  EXPECT_EQ(events.front()["forecast"]["compiles"], 1);
  EXPECT_TRUE(events.front()["eta_seconds"].is_null()) << "nothing was compiled before";
  std::size_t kernels = 0;
  for (const json& event : events) {
    if (event["event"] != "kernel") continue;
    ++kernels;
    EXPECT_EQ(event["status"], "compiled");
    for (const char* field : {"key", "family", "arch", "ms", "error"}) EXPECT_TRUE(event.contains(field)) << field;
  }
  EXPECT_EQ(kernels, 1u);
  EXPECT_EQ(events.back()["event"], "end");
  EXPECT_EQ(events.back()["exit_code"], 0);
  EXPECT_EQ(events.back()["done"], 1);
  EXPECT_EQ(events.back()["summary"]["compiled"], 1);
  const std::vector<json> next =
      lines_of(warmup({"--shape", "128x64:dequant", "--arch", "sm_90a", "--progress=json"}).err);
  EXPECT_GT(next.front()["eta_seconds"], 0) << "now something was";
}

TEST_F(Manners, WithEventsErrorsAreEventsToo) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"--progress=json", "--no-such"}, {"--shape", "nonsense", "--progress", "json"}}) {
    const ProgramOutput output = warmup(arguments);
    EXPECT_EQ(output.exit_code, 2);
    const std::vector<json> events = lines_of(output.err);
    ASSERT_EQ(events.size(), 1u) << output.err;
    EXPECT_EQ(events[0]["event"], "message");
    EXPECT_EQ(events[0]["level"], "error");
  }
  const std::vector<json> failed = lines_of(warmup(check({"--progress=json", "-q"})).err);
  ASSERT_FALSE(failed.empty());
  EXPECT_EQ(failed.back()["event"], "end");
  EXPECT_EQ(failed.back()["exit_code"], 9);
}

TEST_F(Manners, MistypedWordsAreAnsweredWithWhatWasPerhapsMeant) {
  const struct {
    std::vector<std::string> arguments;
    const char* meant;
  } cases[] = {{{"--modle", "x"}, "did you mean --model?"},
               {{"--shap=64x64"}, "did you mean --shape?"},
               {{"--model", "x", "--engine", "vlm"}, "did you mean vllm?"},
               {{"--shape", "64x64", "--pdl", "bth"}, "did you mean both?"},
               {{"--shape", "64x64:nvpf4"}, "did you mean nvfp4?"},
               {{"--shape", "64x64", "--arch", "sn_90a"}, "did you mean sm_90a?"},
               {{"--shape", "64x64", "--arch", "ntaive"}, "did you mean native?"},
               {{"--shape", "64x64", "--progress=jsno"}, "did you mean json?"},
               {{"--shape", "64x64", "--color=alway"}, "did you mean always?"}};
  for (const auto& c : cases) {
    const ProgramOutput output = warmup(c.arguments);
    EXPECT_EQ(output.exit_code, 2);
    EXPECT_TRUE(contains(output.err, c.meant)) << output.err;
  }
  const ProgramOutput far = warmup({"--qwertzuiop"});
  EXPECT_EQ(far.exit_code, 2);
  EXPECT_FALSE(contains(far.err, "did you mean")) << far.err;
  for (const auto& [arguments, meant] : {std::pair{std::vector<std::string>{"shwo", "abc"}, "did you mean show?"},
                                         {{"doctr"}, "did you mean doctor?"},
                                         {{"gc", "--max-bites", "5"}, "did you mean --max-bytes?"},
                                         {{"ls", "--jsno"}, "did you mean --json?"}}) {
    const ProgramOutput output = cache(arguments);
    EXPECT_EQ(output.exit_code, 2) << output.out;
    EXPECT_TRUE(contains(output.err, meant)) << output.err;
  }
}

TEST_F(Manners, EveryHelpHasAnExample) {
  EXPECT_TRUE(contains(warmup({"--help"}).out, "Examples:\n  gemvjit-warmup"));
  EXPECT_TRUE(contains(cache({"--help"}).out, "Examples:\n  gemvjit-cache"));
  std::size_t commands = 0;
  std::istringstream help(cache({"--help"}).out);
  bool in_commands = false;
  for (std::string line; std::getline(help, line);) {
    if (line.starts_with("Subcommands:")) in_commands = true;
    if (line.starts_with("Exit codes:")) in_commands = false;
    if (!in_commands || !line.starts_with("  ") || line[2] == ' ') continue;
    const std::string name = line.substr(2, line.find(' ', 2) - 2);
    if (name == "gemvjit-cache" || name == "GEMVJIT_CACHE_RO=/opt/kernels.gjb") continue;  // the examples
    ++commands;
    EXPECT_TRUE(contains(cache({name, "--help"}).out, "Example: gemvjit-cache " + name)) << name;
  }
  EXPECT_GE(commands, 10u);
}

}  // namespace
}  // namespace gemvjit::test
