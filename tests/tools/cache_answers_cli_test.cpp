// What the tools say is what the library does, and what the pages promise: refused folders, wrong signatures, exit
// codes, text that a terminal or Prometheus can take.
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <set>
#include <thread>

#include "cache/bundle.h"
#include "cache/layout.h"
#include "cache/store.h"
#include "tests/support/private_mounts.h"
#include "tests/support/signing_fixture.h"
#include "tests/tools/cli_entries.h"
#include "tests/tools/cli_fixture.h"

namespace gemvjit::test {
namespace {

using nlohmann::json;

class AnswersCli : public CliTest {
 protected:
  AnswersCli() { environment_["GEMVJIT_LIBCUDA"] = folder_.path("no-libcuda.so"); }
  static Entry entry(std::int64_t n) { return cli_entry(n); }
  static void put(const Entry& made, const std::string& root) {
    const Status status = make_dir_store(root, Log::silent())->put(made);
    ASSERT_TRUE(status) << status.message();
  }
  // Whether no byte of it steers a terminal.
  static bool is_harmless(const std::string& text) { return text.find('\x1b') == std::string::npos; }

  static constexpr const char* name = cli_entry_key;
  std::string file_ = folder_.path("out.gjb");
};

// B41, B47: the library keeps kernels in memory then.
TEST_F(AnswersCli, AFolderThatTheLibraryRefusesIsOfNoUseToDoctorExplainAndWarmup) {
  put(entry(64), cache_dir_);
  EXPECT_EQ(cache({"explain", name}).exit_code, 0);
  ASSERT_EQ(::chmod(cache_dir_.c_str(), 0777), 0);
  const ProgramOutput doctor = cache({"doctor", "--json"});
  EXPECT_EQ(doctor.exit_code, 5);
  const json report = document(doctor);
  EXPECT_EQ(report["cache"]["usable"], false);
  EXPECT_TRUE(contains(report["cache"]["problem"], cache_dir_ + " is not used: all users may write it"))
      << report["cache"];
  EXPECT_EQ(report["layers"][0]["problem"], report["cache"]["problem"]);

  const ProgramOutput explained = cache({"explain", name, "--json"});
  EXPECT_EQ(explained.exit_code, 9);
  EXPECT_EQ(document(explained)["result"], "miss");
  EXPECT_TRUE(contains(document(explained)["layers"][0]["problem"], "all users may write")) << explained.out;

  for (const std::vector<std::string>& more : {std::vector<std::string>{"-q"}, {"-q", "--cache-dir", cache_dir_}}) {
    const ProgramOutput warmed = warm_one_kernel(more);
    EXPECT_EQ(warmed.exit_code, 6);
    EXPECT_TRUE(contains(warmed.err, cache_dir_ + " is not used: all users may write it")) << warmed.err;
    EXPECT_FALSE(contains(warmed.err, "there is no cache folder")) << warmed.err;
  }
}

TEST_F(AnswersCli, AnEntryThatOthersMayWriteIsNoHit) {
  const Entry made = entry(64);
  put(made, cache_dir_);
  const std::string path = entry_path(cache_dir_, made.id);
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  ProgramOutput explained = cache({"explain", name, "--json"});
  EXPECT_EQ(document(explained)["result"], "untrusted") << explained.out;
  EXPECT_EQ(explained.exit_code, 9);
  environment_["GEMVJIT_CACHE_RO"] = cache_dir_;
  environment_["GEMVJIT_CACHE_DIR"] = folder_.path("own");
  EXPECT_EQ(document(cache({"explain", name, "--json"}))["result"], "untrusted") << "a layer's is examined as well";
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  EXPECT_EQ(document(cache({"explain", name, "--json"}))["result"], "hit");
}

TEST_F(AnswersCli, ExplainKnowsTheDigestsOfLayersToo) {
  const Entry made = entry(64);
  const std::string digest = to_hex(made.id.digest).substr(0, 12);
  EXPECT_EQ(cache({"explain", digest}).exit_code, 4);
  ASSERT_TRUE(write_bundle(file_, {&made}));
  put(made, folder_.path("layer"));
  environment_["GEMVJIT_CACHE_RO"] = file_ + ":" + folder_.path("layer");
  const ProgramOutput explained = cache({"explain", digest, "--json"});
  EXPECT_EQ(explained.exit_code, 0) << explained.err;
  EXPECT_EQ(document(explained)["key"], name);
  EXPECT_EQ(document(explained)["layer"], file_);
}

TEST_F(AnswersCli, OneLayerIsOneSeriesOfUtf8) {
  const Entry made = entry(64);
  const std::string odd = folder_.path("od\xff\xe9");
  put(made, odd);
  environment_["GEMVJIT_CACHE_RO"] = odd + ":" + odd;
  const std::string text = cache({"stats", "--prometheus"}).out;
  EXPECT_NO_THROW((void)json(text).dump()) << "no UTF-8: " << text;
  EXPECT_TRUE(contains(text, "od\\\\xff\\\\xe9\",kind=\"folder\"} 1\n")) << text;
  std::set<std::string> series;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with('#')) continue;
    EXPECT_TRUE(series.insert(line.substr(0, line.rfind(' '))).second) << line;
  }
}

TEST_F(AnswersCli, NothingThatWasTypedSteersTheTerminal) {
  put(entry(64), cache_dir_);
  const std::string steering = "\x1b[31m";
  const std::vector<std::vector<std::string>> commands{{"gc", "--max-bytes", steering},
                                                       {"gc", "--max-age", steering},
                                                       {"gc", "--arch", steering},
                                                       {"ls", steering},
                                                       {"show", steering},
                                                       {"export", file_, "--arch", steering},
                                                       {steering},
                                                       {"ls", "--" + steering},
                                                       {"ls", "--cache-dir", folder_.path(steering)},
                                                       {"import", steering},
                                                       {"disasm", name, "--cubin", "/" + steering + "/a"}};
  for (const auto& command : commands) {
    const ProgramOutput output = cache(command);
    EXPECT_NE(output.exit_code, 0);
    EXPECT_FALSE(output.err.empty());
    EXPECT_TRUE(is_harmless(output.err)) << command[0] << " " << output.err;
  }
  for (const char* option : {"--arch", "--shape", "--model", "--nt", "--shard", "--max-seconds", "--pdl", "-j"}) {
    const ProgramOutput output = warm_one_kernel({option, steering});
    EXPECT_NE(output.exit_code, 0) << option;
    EXPECT_TRUE(is_harmless(output.err)) << option << " " << output.err;
  }
}

// What cannot be removed is counted as what it is. A file system that is read-only stops root, too.
TEST_F(AnswersCli, GcSaysWhatItCouldNotRemove) {
  std::filesystem::create_directory(cache_dir_);
  std::string why_not;
  const bool ran = run_in_private_mounts(
      [&] {
        ASSERT_EQ(mount_tmpfs(cache_dir_, "mode=0700"), "");
        put(entry(64), cache_dir_);
        ASSERT_EQ(::mount("none", cache_dir_.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr), 0);
        for (const char* kind : {"--arch", "--max-bytes"}) {
          const std::vector<std::string> command{"gc", kind, std::string(kind) == "--arch" ? "sm_90a" : "0", "--json"};
          const ProgramOutput output = cache(command);
          EXPECT_EQ(output.exit_code, 6) << output.err;
          const json done = document(output);
          EXPECT_EQ(done["removed"], json::array());
          EXPECT_EQ(done["kept"], 1);
          ASSERT_EQ(done["failed"].size(), 1u);
          EXPECT_TRUE(contains(done["failed"][0], entry_path(cache_dir_, entry(64).id))) << done;
        }
      },
      why_not);
  if (!ran) GTEST_SKIP() << why_not;
}

// A signal that reaches gemvjit-cache alone, as from a supervisor, ends the disassembler too.
TEST_F(AnswersCli, AnInterruptedDisassemblyDoesNotWaitForItsChild) {
  put(entry(64), cache_dir_);
  const std::string started = folder_.path("started");
  const std::string tool = folder_.write("nvdisasm", "#!/bin/sh\ntouch '" + started + "'\nexec sleep 60\n");
  ASSERT_EQ(::chmod(tool.c_str(), 0755), 0);
  environment_["GEMVJIT_NVDISASM"] = tool;
  const auto begin = std::chrono::steady_clock::now();
  Program program({GEMVJIT_CACHE_BINARY, "disasm", name}, environment_);
  while (!std::filesystem::exists(started) && std::chrono::steady_clock::now() - begin < std::chrono::seconds(30)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  program.send(SIGINT);
  EXPECT_EQ(program.wait().exit_code, 130);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(50)) << "it waited for the program's end";
}

class SignedAnswersCli : public AnswersCli {
 protected:
  void SetUp() override {
    const auto opened = Ed25519::open();
    if (!opened) GTEST_SKIP() << opened.status().message();
    files_ = std::make_unique<SigningFiles>(folder_, **opened);
    environment_["GEMVJIT_CACHE_TRUST_DIR"] = files_->trust;
  }
  std::string key(int seed) const { return folder_.path(std::to_string(seed) + ".key"); }
  static Entry wrongly_signed(std::int64_t n) {
    Entry made = entry(n);
    made.signature = SignatureBlock{};
    made.signature->public_key[0] = 1;
    return made;
  }
  std::unique_ptr<SigningFiles> files_;
};

TEST_F(SignedAnswersCli, AWrongSignatureIsSaidWithoutAnyPolicy) {
  const Entry made = entry(64);
  SignatureBlock wrong;
  wrong.public_key[0] = 1;
  ASSERT_TRUE(write_bundle(file_, {&made}, [&](const Bytes&) { return Result<SignatureBlock>(wrong); }));
  environment_["GEMVJIT_CACHE_RO"] = file_;
  const ProgramOutput verified = cache({"verify", "--deep"});
  EXPECT_EQ(verified.exit_code, 10);
  EXPECT_TRUE(contains(verified.out, "NOT TRUSTED " + file_ + ": its signature")) << verified.out;
  json report = document(cache({"verify", "--deep", "--json"}));
  EXPECT_EQ(report["layers"][0]["signature"]["state"], "bad");
  const ProgramOutput imported = cache({"import", file_});
  EXPECT_EQ(imported.exit_code, 10);
  EXPECT_TRUE(contains(imported.err, "is wrong; nothing was imported")) << imported.err;
  EXPECT_FALSE(std::filesystem::exists(cache_dir_));
}

TEST_F(SignedAnswersCli, WronglySignedEntriesAreNeitherImportedNorPassedOn) {
  const Entry good = entry(64), wrong = wrongly_signed(128);
  ASSERT_TRUE(write_bundle(file_, {&good, &wrong}));
  EXPECT_EQ(cache({"import", file_}).exit_code, 10);
  EXPECT_FALSE(std::filesystem::exists(cache_dir_));

  put(good, cache_dir_);
  put(wrong, cache_dir_);
  const std::string out = folder_.path("passed.gjb");
  const ProgramOutput exported = cache({"export", out, "--sign-key", key(1), "--json"});
  EXPECT_EQ(exported.exit_code, 10) << exported.err;
  EXPECT_EQ(document(exported)["entries"], 1);
  EXPECT_EQ(document(exported)["left_out"].size(), 1u);
  EXPECT_EQ(cache({"export", folder_.path("b.gjb"), wrong.id.key.text()}).exit_code, 10);
  EXPECT_EQ(cache({"export", folder_.path("c.gjb"), good.id.key.text()}).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder_.path("b.gjb")));
}

TEST_F(SignedAnswersCli, WhereAllIsLeftOutTheExitCodeSaysWhy) {
  const Entry made = entry(64);
  put(made, cache_dir_);
  environment_["GEMVJIT_CACHE_SIGNATURES"] = "all";
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"export", file_}, {"export", file_, "--arch", "sm_90a"}, {"export", file_, name}}) {
    const ProgramOutput output = cache(command);
    EXPECT_EQ(output.exit_code, 10) << output.err;
    EXPECT_TRUE(contains(output.err, entry_path(cache_dir_, made.id))) << output.err;
  }
  EXPECT_EQ(cache({"export", file_, "--arch", "sm_120a"}).exit_code, 4) << "of that target there is nothing";
  damage(entry_path(cache_dir_, made.id));
  EXPECT_EQ(cache({"export", file_}).exit_code, 7);
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(SignedAnswersCli, ATrustDirectoryThatIsNamedHasToBeThere) {
  environment_["GEMVJIT_CACHE_TRUST_DIR"] = folder_.path("typo");
  const json problems = document(cache({"doctor", "--json"}))["signatures"]["problems"];
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_TRUE(contains(problems[0], folder_.path("typo"))) << problems;
  environment_["GEMVJIT_CACHE_TRUST_DIR"] = "";
  environment_["XDG_CONFIG_HOME"] = folder_.path("none");
  EXPECT_EQ(document(cache({"doctor", "--json"}))["signatures"]["problems"], json::array()) << "a default one has not";
}

TEST_F(SignedAnswersCli, AnEntryThatIsNamedTwiceIsSignedOnce) {
  put(entry(64), cache_dir_);
  EXPECT_EQ(document(cache({"sign", name, name, "--sign-key", key(1), "--json"}))["signed"].size(), 1u);
}

}  // namespace
}  // namespace gemvjit::test
