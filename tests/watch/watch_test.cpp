// What a process that uses the library does to files, from its start to a launch: watched in front of libc, and by
// strace where it is installed and allowed.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <sstream>

#include "cache/store.h"
#include "tests/runtime/runtime_fixture.h"
#include "tests/tools/subprocess.h"

namespace gemvjit::test {
namespace {

#ifdef WATCH_SHIM

class WatchTest : public RuntimeTest {
 protected:
  WatchTest() {
    std::filesystem::create_directory(home());
    options.device = device_none;
    options.tuning_dir = "";  // as the program has it
    options.cache_dir = home() + "/.cache/gemvjit";
  }
  std::string home() const { return dir.path("home"); }

  // Puts the kernel that library_user asks for into the cache, made up: nothing executes it.
  void fill_cache() {
    const auto context = make();
    ProblemRequest request = on(nvfp4(64, 64), "sm_90a");
    request.problem.family = Family::dequantize_rows;
    const auto built = context->resolver().ensure_cached(item(*context, request).candidates);
    ASSERT_TRUE(built && built->kept);
  }

  Environment environment() const {
    return {{"HOME", home()},
            {"XDG_CACHE_HOME", ""},
            {"XDG_RUNTIME_DIR", ""},
            {"GEMVJIT_CACHE_DIR", ""},
            {"GEMVJIT_CACHE_RO", ""},
            {"GEMVJIT_TUNING_DIR", ""},
            {"GEMVJIT_DUMP_DIR", ""},
            {"GEMVJIT_LOG", ""},
            {"GEMVJIT_NVRTC", dir.path("no_nvrtc_here")},
            {"GEMVJIT_LIBCUDA", WATCH_LIBCUDA}};
  }

  // What library_user did up to `stage`, a line a call.
  std::vector<std::string> watch(const std::string& stage) {
    Environment variables = environment();
    const std::string log_file = dir.path("watch_" + stage);
    variables["LD_PRELOAD"] = WATCH_SHIM;
    variables["GEMVJIT_WATCH_LOG"] = log_file;
    const ProgramOutput output = run_program({LIBRARY_USER, GEMVJIT_LIBRARY, stage}, variables);
    EXPECT_EQ(output.exit_code, 0) << output.err;
    return lines_of(read_text(log_file));
  }
  // The file calls that strace saw; false if there is no strace that works here.
  bool strace(const std::string& stage, std::vector<std::string>& calls) {
    const std::string log_file = dir.path("strace_" + stage);
    const ProgramOutput output =
        run_program({"/usr/bin/env", "strace", "-f", "-qq", "-e", "trace=file,fchmod,fchown,ftruncate", "-o", log_file,
                     LIBRARY_USER, GEMVJIT_LIBRARY, stage},
                    environment());
    if (output.exit_code != 0 || !std::filesystem::exists(log_file)) return false;
    calls = lines_of(read_text(log_file));
    return !calls.empty();
  }

  static std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }
  static std::vector<std::string> with(const std::vector<std::string>& lines, const std::vector<std::string>& parts) {
    std::vector<std::string> found;
    for (const std::string& line : lines) {
      for (const std::string& part : parts) {
        if (line.find(part) == std::string::npos) continue;
        found.push_back(line);
        break;
      }
    }
    return found;
  }
  static std::vector<std::string> changes_seen(const std::vector<std::string>& lines) {
    std::vector<std::string> changes;
    for (const std::string& line : lines) {
      if (line.starts_with("write ") || line.starts_with("change ") || line.starts_with("stamp "))
        changes.push_back(line);
    }
    return changes;
  }
  static std::vector<std::string> changes_traced(const std::vector<std::string>& calls) {
    return with(calls, {"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", " mkdir", " creat(", " rename", " link", " symlink",
                        " unlink", " rmdir", " chmod", " fchmod", " fchown", " truncate(", " ftruncate(", " mknod",
                        " utimensat"});
  }
  static std::string joined(const std::vector<std::string>& lines) {
    std::string all;
    for (const std::string& line : lines) all += line + "\n";
    return all;
  }
};

// The watch itself: what writes is seen.
TEST_F(WatchTest, TheWatchSeesWhatWrites) {
  Environment variables = environment();
  variables["LD_PRELOAD"] = WATCH_SHIM;
  variables["GEMVJIT_WATCH_LOG"] = dir.path("watch");
  ASSERT_EQ(run_program({"/usr/bin/env", "mkdir", dir.path("made")}, variables).exit_code, 0);
  EXPECT_EQ(changes_seen(lines_of(read_text(dir.path("watch")))),
            std::vector<std::string>{"change " + dir.path("made")});
}

// Each call that can change a file is seen, by the watch and by what is looked for in strace's lines.
TEST_F(WatchTest, TheWatchSeesEveryCallThatChangesAFile) {
  const char* const calls[] = {"mkdir",     "mkdirat",  "link",     "linkat",    "symlink",   "symlinkat", "mkfifo",
                               "chmod",     "fchmodat", "truncate", "fchmod",    "ftruncate", "rename",    "renameat",
                               "renameat2", "unlink",   "unlinkat", "utimensat", "futimens"};
  Environment variables = environment();
  variables["LD_PRELOAD"] = WATCH_SHIM;
  variables["GEMVJIT_WATCH_LOG"] = dir.path("watch");
  std::filesystem::create_directory(dir.path("watched"));
  const ProgramOutput output = run_program({FILE_CHANGER, dir.path("watched")}, variables);
  ASSERT_EQ(output.exit_code, 0) << output.err;
  const std::string seen = read_text(dir.path("watch"));
  for (const std::string call : calls) {
    const bool stamp = call == "utimensat" || call == "futimens";
    const bool by_descriptor = call == "fchmod" || call == "ftruncate" || call == "futimens";
    const std::string path =
        by_descriptor ? std::filesystem::canonical(dir.path("watched")).string() + "/" + call : call;
    EXPECT_NE(seen.find((stamp ? "stamp " : "change ") + path + "\n"), std::string::npos) << call << " in\n" << seen;
  }

  const std::string log_file = dir.path("strace_changer");
  std::filesystem::create_directory(dir.path("traced"));
  const ProgramOutput traced =
      run_program({"/usr/bin/env", "strace", "-f", "-qq", "-e", "trace=file,fchmod,fchown,ftruncate", "-o", log_file,
                   FILE_CHANGER, dir.path("traced")},
                  environment());
  if (traced.exit_code != 0 || !std::filesystem::exists(log_file)) GTEST_SKIP() << "no strace that works here";
  EXPECT_GE(changes_traced(lines_of(read_text(log_file))).size(), std::size(calls));
}

// B38: opening the library and asking for its version writes nothing and makes no folder; nor does a context, nor
// whatever may be asked of it, before the first compile.
TEST_F(WatchTest, NothingIsWrittenBeforeTheFirstCompile) {
  for (const char* stage : {"version", "create"}) {
    SCOPED_TRACE(stage);
    const auto seen = watch(stage);
    EXPECT_TRUE(changes_seen(seen).empty()) << joined(changes_seen(seen));
    EXPECT_EQ(with(seen, {"dlopen "}).size(), stage == std::string("version") ? 1u : 3u)
        << "the library itself, again so that it stays loaded, then the driver\n" + joined(seen);
    std::vector<std::string> traced;
    if (strace(stage, traced)) {
      EXPECT_TRUE(changes_traced(traced).empty()) << joined(changes_traced(traced));
    }
    EXPECT_TRUE(std::filesystem::is_empty(home()));
  }
}

// B59: with a full cache nobody looks for an NVRTC, let alone opens one. (Looking for one by name is seen by strace.)
TEST_F(WatchTest, AWarmRunDoesNotTouchNvrtc) {
  fill_cache();
  const auto seen = watch("warm");
  EXPECT_TRUE(with(seen, {"nvrtc"}).empty()) << joined(with(seen, {"nvrtc"}));
  EXPECT_EQ(with(with(seen, {".entry"}), {"read "}).size(), 3u)
      << "for the check, for the warmup, and to stamp its use by a descriptor\n" + joined(seen);
  std::vector<std::string> traced;
  if (strace("warm", traced)) {
    EXPECT_TRUE(with(traced, {"nvrtc"}).empty()) << joined(with(traced, {"nvrtc"}));
  }
}

// B20: kernels reach the driver as cubins in memory, so that its own cache below ~/.nv has no part in it: no file there
// is opened or made by this library. (The driver here is a fake: what the real one does by itself needs a GPU.)
TEST_F(WatchTest, ALoadAndALaunchLeaveTheDriversCacheAlone) {
  fill_cache();
  const auto seen = watch("warm");
  EXPECT_TRUE(with(seen, {"/.nv", "ComputeCache"}).empty()) << joined(seen);
  // The entry's first use is stamped; nothing else is changed.
  const auto changes = changes_seen(seen);
  EXPECT_EQ(changes.size(), 1u) << joined(changes);
  EXPECT_EQ(with(changes, {"stamp " + options.cache_dir}).size(), 1u) << joined(changes);
  std::vector<std::string> traced;
  if (strace("warm", traced)) {
    EXPECT_TRUE(with(traced, {"/.nv", "ComputeCache"}).empty()) << joined(traced);
    const auto changed = changes_traced(traced);
    EXPECT_EQ(with(changed, {" utimensat"}).size(), changed.size()) << joined(changed);
    EXPECT_EQ(changed.size(), 1u) << joined(changed);
  }
  EXPECT_FALSE(std::filesystem::exists(home() + "/.nv"));
}

#else

TEST(WatchTest, NeedsABuildWithoutSanitizers) {
  GTEST_SKIP() << "a sanitizer's library has to come first, and so does the one that watches";
}

#endif

}  // namespace
}  // namespace gemvjit::test
