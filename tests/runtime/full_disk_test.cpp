// B32, B56: a small file system that fills up, for real: a tmpfs that the test mounts where only it sees it. Kernels
// come from memory, nothing half-made is left, and with room again the next put heals.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>

#include "cache/size_limit.h"
#include "src/base/files.h"
#include "tests/runtime/runtime_fixture.h"
#include "tests/support/private_mounts.h"

namespace gemvjit::test {
namespace {

class FullDisk : public RuntimeTest {
 protected:
  FullDisk() {
    options.device = device_none;
    options.cache_dir = disk() + "/cache";
    std::filesystem::create_directory(disk());
  }
  std::string disk() const { return dir.path("disk"); }
  std::string ballast() const { return disk() + "/ballast"; }

  // Writes until nothing more fits, then gives back `keep` bytes.
  void fill_disk(std::uint64_t keep = 0) const {
    const int fd = ::open(ballast().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_GE(fd, 0);
    const std::string block(4096, 'x');
    off_t size = 0;
    for (ssize_t got; (got = ::write(fd, block.data(), block.size())) > 0;) size += got;
    EXPECT_EQ(errno, ENOSPC);
    EXPECT_EQ(::ftruncate(fd, std::max<off_t>(0, size - static_cast<off_t>(keep))), 0);
    EXPECT_EQ(::close(fd), 0);
  }

  static std::vector<KernelKey> kernel(const Context& context, std::int64_t n) {
    return item(context, on(nvfp4(n, 1024, 1), "sm_90a")).candidates;
  }

  // Delivered from memory or from the cache: the right bytes, and whether they are kept.
  static bool deliver(Context& context, std::int64_t n) {
    const auto candidates = kernel(context, n);
    const auto delivered = context.resolver().ensure_cached(candidates);
    EXPECT_TRUE(delivered) << delivered.status().text();
    if (!delivered) return false;
    const std::string& bytes = expected_bytes(candidates.front());
    EXPECT_EQ(delivered->entry->cubin.bytes, Bytes(bytes.begin(), bytes.end()));
    return delivered->kept.is_ok();
  }
  static std::string expected_bytes(const KernelKey& key) { return payload() + key.text(); }
  static const std::string& payload() {
    static const std::string text(20'000, 'c');  // several pages, so that a write may end in the middle
    return text;
  }

  // Every file in the cache is a whole entry; how many there are.
  std::size_t whole_entries() const {
    const auto listed = make_dir_store(options.cache_dir, Log::silent())->list();
    EXPECT_TRUE(listed) << listed.status().text();
    if (!listed) return 0;
    for (const ListedEntry& entry : *listed) EXPECT_TRUE(entry.entry) << entry.path << ": " << entry.problem.text();
    return listed->size();
  }
  // Files of any kind, but for the ledger, the records of builds and what locks leave.
  std::size_t files_in_cache() const {
    std::size_t files = 0;
    if (!std::filesystem::exists(options.cache_dir)) return files;
    for (const auto& found : std::filesystem::recursive_directory_iterator(options.cache_dir)) {
      const std::string name = found.path().filename();
      const bool counts = found.is_regular_file() && name != "usage" && name != "builds";
      files += counts && found.path().string().find("/locks/") == std::string::npos ? 1 : 0;
    }
    return files;
  }
  void use_plain_store() {
    store_of = [](const ContextOptions& o, Log store_log) { return make_dir_store(o.cache_dir, store_log); };
    compilers.text = payload();
  }
  std::unique_ptr<Context> make_context() {
    Dependencies parts = dependencies();
    if (store_of) parts.store = store_of;
    auto context = Context::create(options, std::move(parts));
    EXPECT_TRUE(context) << context.status().text();
    return context ? std::move(context).value() : nullptr;
  }

  std::function<std::unique_ptr<CubinStore>(const ContextOptions&, Log)> store_of;
};

#define IN_PRIVATE_MOUNTS(...) \
  std::string why_not;         \
  if (!run_in_private_mounts([&] { __VA_ARGS__(); }, why_not)) GTEST_SKIP() << why_not

// However many pages or inodes are left, from none to enough: each step of a put runs out of room once.
TEST_F(FullDisk, EachWriteRunsOutOfRoomOnceAndHeals) {
  Entry entry;
  entry.id.key = {64, 1024, 1, 0, {90, 'a'}};
  entry.cubin.bytes.assign(payload().begin(), payload().end());
  entry.cubin.entry_name = "nvfp4_gemv";
  const Log to_test = Log::create(LogLevel::warning, options.log_sink);
  const auto body = [&] {
    int refused = 0, kept = 0;
    for (const bool count_inodes : {false, true}) {
      for (int room = 0; room <= 12; ++room) {
        SCOPED_TRACE(std::string(count_inodes ? "inodes " : "pages ") + std::to_string(room));
        const std::string limits =
            count_inodes ? "size=1m,nr_inodes=" + std::to_string(room + 2) : "size=256k,nr_inodes=1000";
        ASSERT_EQ(mount_tmpfs(disk(), limits + ",mode=0700"), "");
        if (!count_inodes) fill_disk(4096u * static_cast<unsigned>(room));
        log.clear();
        const auto store = make_dir_store(options.cache_dir, to_test);
        const Status first = store->put(entry);
        EXPECT_TRUE(first || first.code() == StatusCode::cache_not_writable) << first.text();
        EXPECT_EQ(store->stats().put_failures, first ? 0u : 1u);
        EXPECT_EQ(logged("warning: "), first ? 0u : 1u);
        EXPECT_EQ(whole_entries(), first ? 1u : 0u);
        EXPECT_EQ(files_in_cache(), first ? 1u : 0u);
        ++(first ? kept : refused);
        if (!first) {
          EXPECT_FALSE(store->put(entry)) << "still no room";
          EXPECT_EQ(logged("warning: "), 1u) << "said once";
          if (count_inodes) {
            EXPECT_EQ(::mount("none", disk().c_str(), nullptr, MS_REMOUNT, "nr_inodes=1000"), 0) << errno;
          } else {
            EXPECT_EQ(::unlink(ballast().c_str()), 0);
          }
          EXPECT_TRUE(store->put(entry)) << "there is room again";
          EXPECT_EQ(whole_entries(), 1u);
          EXPECT_EQ(files_in_cache(), 1u);
          EXPECT_TRUE(make_dir_store(options.cache_dir, to_test)->get(entry.id));
        }
        ASSERT_EQ(::umount2(disk().c_str(), MNT_DETACH), 0);
      }
    }
    EXPECT_GT(refused, 6) << "the test must have met a full disk";
    EXPECT_GT(kept, 2) << "and one with room";
  };
  IN_PRIVATE_MOUNTS(body);
}

// The kernel is delivered from memory all the same, with one warning and one counter, and kept once there is room.
TEST_F(FullDisk, KernelsComeFromMemory) {
  use_plain_store();
  const auto body = [&] {
    ASSERT_EQ(mount_tmpfs(disk(), "size=256k,mode=0700"), "");
    fill_disk(4096 * 3);
    const auto context = make_context();
    EXPECT_FALSE(deliver(*context, 64));
    EXPECT_EQ(context->counters().cache_write_failures, 1u);
    EXPECT_FALSE(deliver(*context, 128));
    EXPECT_EQ(context->counters().cache_write_failures, 2u);
    EXPECT_EQ(logged("warning: "), 1u);
    EXPECT_EQ(files_in_cache(), 0u);
    EXPECT_EQ(::unlink(ballast().c_str()), 0);
    EXPECT_TRUE(deliver(*context, 64));
    EXPECT_EQ(files_in_cache(), 1u);
  };
  IN_PRIVATE_MOUNTS(body);
}

// B56: the keep-free limit by the file system's own figures, without a hook.
TEST_F(FullDisk, BelowTheFreeSpaceToKeepNothingIsWritten) {
  constexpr std::uint64_t keep_free = 512u << 10;
  store_of = [](const ContextOptions& o, Log store_log) {
    SizeLimit limit;
    limit.keep_free_bytes = keep_free;
    return make_size_limited_store(make_dir_store(o.cache_dir, store_log), limit, store_log);
  };
  compilers.text = payload();
  const auto free_bytes = [&] {
    struct statvfs info {};
    EXPECT_EQ(::statvfs(disk().c_str(), &info), 0);
    return std::uint64_t{info.f_bavail} * info.f_frsize;
  };
  const auto body = [&] {
    ASSERT_EQ(mount_tmpfs(disk(), "size=1m,mode=0700"), "");
    const auto context = make_context();
    std::int64_t shape = 0;
    while (shape < 64 * 40 && deliver(*context, shape += 64)) {
    }
    EXPECT_EQ(logged("warning: "), 1u);
    EXPECT_GE(free_bytes(), keep_free - 64 * 1024) << "about what is to be kept is free";
    EXPECT_LE(free_bytes(), keep_free + 64 * 1024);
    const std::size_t kept = whole_entries();
    EXPECT_GT(kept, 5u);
    EXPECT_FALSE(deliver(*context, 64 * 100));
    EXPECT_EQ(logged("warning: "), 1u) << "said once";
    EXPECT_EQ(whole_entries(), kept);
    ASSERT_EQ(::mount("none", disk().c_str(), nullptr, MS_REMOUNT, "size=2m"), 0);
    EXPECT_TRUE(deliver(*context, 64 * 100)) << "there is room again";
  };
  IN_PRIVATE_MOUNTS(body);
}

// B37: a file system that is read-only from the start.
TEST_F(FullDisk, AReadOnlyFileSystemDelivers) {
  use_plain_store();
  const auto body = [&] {
    ASSERT_EQ(mount_tmpfs(disk(), "size=256k,mode=0700", MS_RDONLY), "");
    const auto context = make_context();
    for (const std::int64_t n : {64, 128, 64}) EXPECT_FALSE(deliver(*context, n));
    EXPECT_EQ(logged("warning: "), 1u);
    EXPECT_EQ(logged("GEMVJIT_CACHE_DIR"), 1u);
  };
  IN_PRIVATE_MOUNTS(body);
}

}  // namespace
}  // namespace gemvjit::test
