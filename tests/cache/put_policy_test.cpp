// What a put does where something has the name already, and where what is damaged goes.
#include "cache/put_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "cache/layout.h"
#include "src/base/files.h"
#include "tests/support/entries.h"
#include "tests/support/processes.h"
#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

using test::read_text;
using test::TempDir;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Entry make_entry(std::uint8_t content, const std::string& compiler = "NVRTC 13.0", std::int64_t n = 64) {
  return test::sample_entry({.n = n, .content = content, .compiler = compiler});
}

class PutPolicy : public testing::Test {
 protected:
  std::unique_ptr<CubinStore> open(const DirStoreOptions& options = {}) {
    return make_dir_store(
        root_,
        Log::create(LogLevel::warning, [this](LogLevel, std::string_view text) { warnings_.emplace_back(text); }),
        options);
  }
  std::size_t in_quarantine() {
    const auto names = list_directory(quarantine_directory(root_));
    return names ? names->size() : 0;
  }

  TempDir dir_;
  std::string root_ = dir_.path("cache");
  std::vector<std::string> warnings_;
};

// B14: the second publication of the same code is a no-op.
TEST_F(PutPolicy, TheSameCodeIsLeftAsItIs) {
  const auto store = open();
  Entry entry = make_entry(1);
  ASSERT_TRUE(store->put(entry));
  const std::string before = read_text(store->path_of(entry.id));
  entry.created_unix_seconds = 5;  // another build of the same code
  entry.cubin.compiler_version = "NVRTC 13.1";
  for (const Replace replace : {Replace::unusable_only, Replace::any}) ASSERT_TRUE(store->put(entry, replace));
  EXPECT_EQ(read_text(store->path_of(entry.id)), before);
  EXPECT_EQ(store->stats().puts, 3u);
  EXPECT_EQ(store->stats().puts_unchanged, 2u);
  EXPECT_THAT(warnings_, IsEmpty());
}

// B31: the same key with other bytes is reported, and nothing is overwritten.
TEST_F(PutPolicy, OtherCodeOfTheSameCompilerIsAnAlarm) {
  const auto store = open();
  ASSERT_TRUE(store->put(make_entry(1)));
  for (int round = 0; round < 3; ++round) ASSERT_TRUE(store->put(make_entry(2)));
  EXPECT_EQ(store->stats().determinism_alarms, 3u);
  ASSERT_THAT(warnings_, SizeIs(1)) << "said once";
  EXPECT_THAT(warnings_[0], HasSubstr(store->path_of(make_entry(1).id)));
  EXPECT_EQ(store->get(make_entry(1).id)->cubin.bytes[0], 1);
}

TEST_F(PutPolicy, OtherCodeOfAnotherCompilerStaysUnlessAsked) {
  const auto store = open();
  ASSERT_TRUE(store->put(make_entry(1, "NVRTC 12.9")));
  ASSERT_TRUE(store->put(make_entry(2)));
  EXPECT_EQ(store->get(make_entry(1).id)->cubin.bytes[0], 1);
  EXPECT_EQ(store->stats().puts_other_compiler, 1u);
  EXPECT_EQ(store->stats().determinism_alarms, 0u);
  EXPECT_THAT(warnings_, IsEmpty());
  ASSERT_TRUE(store->put(make_entry(2), Replace::any));
  EXPECT_EQ(store->get(make_entry(1).id)->cubin.bytes[0], 2);
  ASSERT_TRUE(store->put(make_entry(3), Replace::any)) << "also one of the same compiler's";
  EXPECT_EQ(store->get(make_entry(1).id)->cubin.bytes[0], 3);
}

TEST_F(PutPolicy, MemoryStoresKeepTheSameRule) {
  const auto store = make_memory_store();
  ASSERT_TRUE(store->put(make_entry(1)));
  ASSERT_TRUE(store->put(make_entry(1)));
  ASSERT_TRUE(store->put(make_entry(2)));
  ASSERT_TRUE(store->put(make_entry(2, "NVRTC 12.9")));
  EXPECT_EQ(store->get(make_entry(1).id)->cubin.bytes[0], 1);
  EXPECT_EQ(store->stats().puts_unchanged, 1u);
  EXPECT_EQ(store->stats().determinism_alarms, 1u);
  EXPECT_EQ(store->stats().puts_other_compiler, 1u);
  ASSERT_TRUE(store->put(make_entry(2), Replace::any));
  EXPECT_EQ(store->get(make_entry(1).id)->cubin.bytes[0], 2);
}

TEST_F(PutPolicy, APutSetsADamagedFileAsideByItself) {
  const auto store = open();
  ASSERT_TRUE(store->put(make_entry(1)));
  std::filesystem::resize_file(store->path_of(make_entry(1).id), 50);
  ASSERT_TRUE(open()->put(make_entry(2)));
  EXPECT_EQ(store->get(make_entry(1).id)->cubin.bytes[0], 2);
  EXPECT_EQ(in_quarantine(), 1u);
  EXPECT_THAT(warnings_, SizeIs(1));
}

TEST_F(PutPolicy, ADamagedFileThatCannotBeMovedIsReplaced) {
  const auto store = open();
  ASSERT_TRUE(store->put(make_entry(1)));
  std::filesystem::resize_file(store->path_of(make_entry(1).id), 50);
  dir_.write("cache/v1/quarantine", "a file where the folder should be");
  EXPECT_FALSE(store->get(make_entry(1).id));
  EXPECT_EQ(std::filesystem::file_size(store->path_of(make_entry(1).id)), 50u) << "left where it is";
  ASSERT_TRUE(store->put(make_entry(2)));
  EXPECT_EQ(store->get(make_entry(1).id)->cubin.bytes[0], 2);
  EXPECT_EQ(store->stats().quarantined, 0u);
  EXPECT_THAT(warnings_, SizeIs(1));
}

// A file that its owner cannot read just now may be whole: a put leaves it, and says so.
TEST_F(PutPolicy, AFileThatCannotBeReadIsNeverReplaced) {
  const Entry entry = make_entry(1);
  ASSERT_TRUE(open()->put(entry));
  const std::string path = open()->path_of(entry.id);
  const std::string before = test::read_text(path);
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  const auto try_to_put = [&] {
    for (const Replace replace : {Replace::unusable_only, Replace::any}) {
      const auto store = open();
      const Status kept = store->put(make_entry(2), replace);
      if (kept.code() != StatusCode::cache_not_writable) return 1;
      if (kept.message().find(path) == std::string::npos) return 2;
      if (store->stats().put_failures != 1 || store->stats().quarantined != 0) return 3;
    }
    return 0;
  };
  if (::geteuid() != 0) {
    EXPECT_EQ(try_to_put(), 0);
  } else {  // whom no mode stops: the file stays root's, the folders are another user's
    for (std::string folder = path.substr(0, path.rfind('/')); folder.size() >= root_.size();
         folder.resize(folder.rfind('/'))) {
      ASSERT_EQ(::chown(folder.c_str(), 65534, 65534), 0);
    }
    ASSERT_EQ(::chmod(dir_.path().c_str(), 0755), 0);
    test::expect_exit(test::start_process([&] { return ::setuid(65534) != 0 ? 9 : try_to_put(); }));
  }
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  EXPECT_EQ(test::read_text(path), before);
  EXPECT_TRUE(open()->get(entry.id)) << "and it was whole";
}

TEST_F(PutPolicy, AFolderInAnEntrysPlaceStays) {
  const auto store = open();
  const std::string path = store->path_of(make_entry(1).id);
  std::filesystem::create_directories(path);
  EXPECT_EQ(store->put(make_entry(1)).code(), StatusCode::cache_not_writable);
  EXPECT_TRUE(std::filesystem::is_directory(path));
}

TEST_F(PutPolicy, TheQuarantineIsBoundedInFilesAndBytesAndLosesTheOldest) {
  for (const DirStoreOptions& options : {DirStoreOptions{.quarantine = {3, 1u << 20}, .guard = {}},
                                         DirStoreOptions{.quarantine = {100, 3 * 500 + 100}, .guard = {}}}) {
    std::filesystem::remove_all(root_);
    const auto store = open(options);
    for (std::int64_t n = 8; n <= 80; n += 8) {
      const Entry entry = make_entry(1, "", n);
      ASSERT_TRUE(store->put(entry));
      std::filesystem::resize_file(store->path_of(entry.id), 500);
      EXPECT_FALSE(store->get(entry.id));
    }
    EXPECT_EQ(store->stats().quarantined, 10u);
    const auto names = list_directory(quarantine_directory(root_));
    ASSERT_THAT(*names, SizeIs(3));
    EXPECT_THAT(names->at(0), HasSubstr("-n64-"));
    EXPECT_THAT(names->at(2), HasSubstr("-n80-"));
  }
}

TEST_F(PutPolicy, ModesArePrivateWhateverTheUmask) {
  for (const mode_t mask : {0000, 0022, 0277, 0777}) {
    std::filesystem::remove_all(root_);
    const mode_t old = umask(mask);
    const auto store = open();
    const Status put = store->put(make_entry(1));
    umask(old);
    ASSERT_TRUE(put) << put.text();
    struct stat info {};
    ASSERT_EQ(stat(store->path_of(make_entry(1).id).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777u, 0600u);
    for (const std::string& made : {root_, version_directory(root_), entry_directory(root_, make_entry(1).id)}) {
      ASSERT_EQ(stat(made.c_str(), &info), 0);
      EXPECT_EQ(info.st_mode & 0777u, 0700u) << made;
    }
  }
}

}  // namespace
}  // namespace gemvjit
