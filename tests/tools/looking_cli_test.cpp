// What only looks changes nothing and hides nothing; all commands have one word for a place that has no whole entry;
// nothing below a cache folder is reached through a link.
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "cache/bundle.h"
#include "cache/layout.h"
#include "cache/store.h"
#include "cache/usage_ledger.h"
#include "tests/tools/cli_entries.h"
#include "tests/tools/cli_fixture.h"

namespace gemvjit::test {
namespace {

using nlohmann::json;

class LookingCli : public CliTest {
 protected:
  // An entry of the kernel that one_kernel() names, made up; its file.
  std::string put_entry() {
    made_.id = specialize(*KernelKey::parse(key()))->id();
    EXPECT_TRUE(make_dir_store(cache_dir_, Log::silent())->put(made_));
    return entry_path(cache_dir_, made_.id);
  }
  std::string key() { return document(warm_one_kernel({"--dry-run", "--json"}))["results"][0]["key"]; }
  std::size_t quarantined() const {
    const std::string folder = cache_dir_ + "/v1/quarantine";
    if (!std::filesystem::exists(folder)) return 0;
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
  }

  Entry made_ = cli_entry(64);
  std::string file_ = folder_.path("k.gjb");
};

TEST_F(LookingCli, ALookMovesNothingAndThePreviewHidesNothing) {
  const std::string path = put_entry();
  ASSERT_TRUE(write_bundle(file_, {&made_}));
  damage(path);
  environment_["GEMVJIT_CACHE_RO"] = file_;
  for (const char* mode : {"--dry-run", "--check"}) {
    const ProgramOutput looked = warm_one_kernel({mode, "--json"});
    EXPECT_EQ(looked.exit_code, 0) << looked.err;
    EXPECT_FALSE(contains(looked.err, "built again")) << looked.err;
    EXPECT_TRUE(std::filesystem::exists(path)) << mode;
    EXPECT_EQ(quarantined(), 0u) << mode;
  }
  EXPECT_EQ(document(warm_one_kernel({"--dry-run", "--json"}))["results"][0]["from"], "layer");
  const ProgramOutput ran = warm_one_kernel({"--progress=plain", "--json"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  const json summary = document(ran)["summary"];
  EXPECT_EQ(summary["cache_damaged"], 1) << summary;
  EXPECT_EQ(summary["cache_quarantined"], 1) << summary;
  EXPECT_TRUE(contains(ran.err, "cache entry not used")) << ran.err;
  EXPECT_EQ(quarantined(), 1u);
}

// The table of docs/tools.md, "Entries that are not whole".
TEST_F(LookingCli, OneWordForWhatIsInAnEntrysPlace) {
  const std::string path = put_entry(), name = key();
  const auto expect = [&](const std::string& what, const std::string& word, int check, int explain, int verify) {
    SCOPED_TRACE(what);
    EXPECT_EQ(warm_one_kernel({"--check"}).exit_code, check);
    const ProgramOutput explained = cache({"explain", name, "--json"});
    EXPECT_EQ(explained.exit_code, explain) << explained.out;
    EXPECT_EQ(document(explained)["result"], word);
    const ProgramOutput verified = cache({"verify"});
    EXPECT_EQ(verified.exit_code, verify) << verified.out;
    EXPECT_TRUE(contains(verified.out, word == "damaged" ? "DAMAGED " : "UNREADABLE ")) << verified.out;
    EXPECT_TRUE(contains(cache({"ls"}).out, word == "damaged" ? "DAMAGED " : "UNREADABLE "));
  };
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  expect("another may write it", "untrusted", 9, 9, 5);
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  std::filesystem::rename(path, folder_.path("moved"));
  std::filesystem::create_symlink(folder_.path("moved"), path);
  expect("a link", "damaged", 7, 7, 7);
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  expect("a folder", "damaged", 7, 7, 7);
}

TEST_F(LookingCli, WhatTheSystemDoesNotLetBeReadIsUnreadable) {
  if (::geteuid() == 0) GTEST_SKIP() << "root reads whatever the mode";
  const std::string path = put_entry(), name = key();
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  EXPECT_EQ(warm_one_kernel({"--check"}).exit_code, 9);
  EXPECT_EQ(document(cache({"explain", name, "--json"}))["result"], "unreadable");
  EXPECT_EQ(cache({"explain", name}).exit_code, 9);
  EXPECT_EQ(cache({"verify"}).exit_code, 5);
}

// B44.
TEST_F(LookingCli, ALinkedTargetFolderIsToldOfAndNeverFollowed) {
  const std::string path = put_entry(), name = key(), target = cache_dir_ + "/v1/sm_90a";
  const std::string outside = folder_.path("outside");
  std::filesystem::rename(target, outside);
  std::filesystem::create_directory_symlink(outside, target);
  for (const std::vector<std::string>& command : {std::vector<std::string>{"verify"}, {"ls"}, {"doctor"}}) {
    const ProgramOutput output = cache(command);
    EXPECT_TRUE(contains(output.out, target + " is not trusted: it is a link")) << command[0] << "\n" << output.out;
    EXPECT_EQ(output.exit_code, command[0] == "ls" ? 0 : 5) << command[0];
  }
  EXPECT_EQ(document(cache({"doctor", "--json"}))["cache"]["usable"], false);
  EXPECT_EQ(document(cache({"explain", name, "--json"}))["result"], "untrusted");
  EXPECT_EQ(warm_one_kernel({"--check"}).exit_code, 9);
  const ProgramOutput removed = cache({"rm", name});
  EXPECT_EQ(removed.exit_code, 4);
  EXPECT_TRUE(contains(removed.err, "not looked into: " + target)) << removed.err;
  EXPECT_EQ(cache({"rm", "--damaged"}).exit_code, 0);
  EXPECT_EQ(cache({"rm", "--all"}).exit_code, 6) << "the link is its maker's";
  EXPECT_EQ(document(cache({"gc", "--max-bytes", "0", "--json"}))["removed"], json::array());
  Entry other = cli_entry(128);
  ASSERT_TRUE(write_bundle(file_, {&other}));
  EXPECT_EQ(cache({"import", file_}).exit_code, 6);
  EXPECT_EQ(entry_files(outside).size(), 1u) << "nothing came or went";
  EXPECT_TRUE(std::filesystem::exists(path));
  environment_["GEMVJIT_NVRTC"] = folder_.path("none");  // so that a compile would be another failure
  const ProgramOutput warmed = warm_one_kernel({"-q"});
  EXPECT_EQ(warmed.exit_code, 6);
  EXPECT_TRUE(contains(warmed.err, "cache folder ") && contains(warmed.err, "it is a link")) << warmed.err;
}

TEST_F(LookingCli, GcLeavesASharedCacheToItsGroup) {
  put_entry();
  ASSERT_EQ(::chmod(cache_dir_.c_str(), 0770), 0);
  const std::string ledger = usage_ledger_path(cache_dir_);
  ASSERT_TRUE(UsageLedger(cache_dir_, CacheTrust::shared).update(0, [](Usage&, const auto&) {}));
  const ProgramOutput collected = cache({"gc", "--max-bytes", "0"});
  EXPECT_EQ(collected.exit_code, 0) << collected.err;
  EXPECT_TRUE(contains(collected.err, "the library here does not use this folder")) << collected.err;
  EXPECT_TRUE(entry_files(cache_dir_).empty());
  struct stat info {};
  ASSERT_EQ(::stat(ledger.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0660u);
  Entry other = cli_entry(128);
  ASSERT_TRUE(write_bundle(file_, {&other}));
  ASSERT_EQ(cache({"import", file_}).exit_code, 0);
  ASSERT_EQ(::stat(entry_path(cache_dir_, other.id).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0660u) << "for the group, as all of the cache";
}

TEST_F(LookingCli, ASigningKeyThatCannotBeReadIsFive) {
  const std::string none = folder_.path("none.key");
  EXPECT_EQ(cache({"sign", "--sign-key", none}).exit_code, 5) << "also of an empty cache";
  put_entry();
  EXPECT_EQ(cache({"sign", "--sign-key", none}).exit_code, 5);
  const ProgramOutput exported = cache({"export", file_, "--sign-key", none});
  EXPECT_EQ(exported.exit_code, 5);
  EXPECT_TRUE(contains(exported.err, none)) << exported.err;
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(LookingCli, AnInterruptedExportLeavesNoHalf) {
  const auto store = make_dir_store(cache_dir_, Log::silent());
  for (int n = 1; n <= 150; ++n) {
    Entry one = cli_entry(64 * n);
    one.cubin.bytes.assign(50000, static_cast<std::uint8_t>(n));
    ASSERT_TRUE(store->put(one));
  }
  const std::string out = folder_.path("out");
  std::filesystem::create_directory(out);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Program program({GEMVJIT_CACHE_BINARY, "export", out + "/k.gjb"}, environment_);
    for (int i = 0; i < 20000 && std::filesystem::is_empty(out); ++i) ::usleep(1000);
    program.send(signal);
    EXPECT_EQ(program.wait().exit_code, 130);
    EXPECT_TRUE(std::filesystem::is_empty(out)) << signal;
  }
}

}  // namespace
}  // namespace gemvjit::test
