#include "src/base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <thread>

#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

using test::read_text;
using test::TempDir;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

std::string text_of(const Bytes& bytes) { return {bytes.begin(), bytes.end()}; }

Status publish(const std::string& directory, const std::string& name, std::string_view text) {
  return publish_file(directory, name, text.data(), text.size());
}

mode_t mode_of(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(lstat(path.c_str(), &info), 0) << path;
  return info.st_mode;
}

// Expect that reading fails as io_error with a message that names the path and says `why`.
void expect_unreadable(const std::string& path, const std::string& why, std::size_t limit = 100) {
  const auto result = read_file(path, limit);
  ASSERT_FALSE(result) << path;
  EXPECT_EQ(result.status().code(), StatusCode::io_error) << result.status().text();
  EXPECT_THAT(result.status().message(), HasSubstr(path));
  EXPECT_THAT(result.status().message(), HasSubstr(why));
}

TEST(ReadFile, GivesTheWholeContent) {
  const TempDir dir;
  std::string content(100'000, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 7);
  EXPECT_EQ(text_of(*read_file(dir.write("f", content), content.size())), content);
  EXPECT_THAT(*read_file(dir.write("empty", ""), 0), IsEmpty());
}

TEST(ReadFile, MissingIsNotFound) {
  const TempDir dir;
  const auto result = read_file(dir.path("none"), 100);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.status().code(), StatusCode::not_found);
  EXPECT_THAT(result.status().message(), HasSubstr(dir.path("none")));
}

TEST(ReadFile, LimitIsTheLargestSizeAllowed) {
  const TempDir dir;
  const std::string path = dir.write("f", "12345");
  EXPECT_EQ(text_of(*read_file(path, 5)), "12345");
  expect_unreadable(path, "limit of 4 bytes", 4);
}

TEST(ReadFile, WhatSaysItIsEmptyIsReadToItsEnd) {
  // Files of /proc have size 0 and content.
  const auto bytes = read_file("/proc/self/status", 1u << 20);
  ASSERT_TRUE(bytes) << bytes.status().text();
  EXPECT_THAT(text_of(*bytes), StartsWith("Name:"));
  expect_unreadable("/proc/self/status", "limit of 16 bytes", 16);
}

TEST(ReadFile, NoRegularFileIsRefusedWithoutBlocking) {
  const TempDir dir;
  ASSERT_EQ(mkfifo(dir.path("fifo").c_str(), 0600), 0);
  expect_unreadable(dir.path("fifo"), "a FIFO");
  expect_unreadable(dir.path(), "a directory");
  expect_unreadable("/dev/null", "a device");

  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = dir.path("s");
  ASSERT_LT(path.size(), sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  expect_unreadable(path, "cannot open");
  close(fd);
}

TEST(ReadFile, FinalSymbolicLinkIsNotFollowed) {
  const TempDir dir;
  dir.write("real/f", "x");
  ASSERT_EQ(symlink("real/f", dir.path("link").c_str()), 0);
  expect_unreadable(dir.path("link"), "symbolic link");
  ASSERT_EQ(symlink("nowhere", dir.path("dangling").c_str()), 0);
  expect_unreadable(dir.path("dangling"), "symbolic link");
  // One on the way is the user's own arrangement.
  ASSERT_EQ(symlink("real", dir.path("folder").c_str()), 0);
  EXPECT_EQ(text_of(*read_file(dir.path("folder/f"), 10)), "x");
}

TEST(ReadFile, BelowAFileIsAnError) {
  const TempDir dir;
  expect_unreadable(dir.write("f", "x") + "/g", "cannot open");
}

TEST(MakeDirectories, MakesAllPartsPrivate) {
  const TempDir dir;
  EXPECT_TRUE(make_directories(dir.path("a//b/c/")));
  for (const char* part : {"a", "a/b", "a/b/c"}) {
    EXPECT_TRUE(S_ISDIR(mode_of(dir.path(part))));
    EXPECT_EQ(mode_of(dir.path(part)) & 0777u, 0700u) << part;
  }
  EXPECT_TRUE(make_directories(dir.path("a/b/c")));
  EXPECT_TRUE(make_directories("/"));
}

TEST(MakeDirectories, LeavesTheModeOfOthersAlone) {
  const TempDir dir;
  ASSERT_EQ(mkdir(dir.path("a").c_str(), 0755), 0);
  ASSERT_EQ(chmod(dir.path("a").c_str(), 0755), 0);
  EXPECT_TRUE(make_directories(dir.path("a/b")));
  EXPECT_EQ(mode_of(dir.path("a")) & 0777u, 0755u);
}

TEST(MakeDirectories, NamesThePartThatIsNoDirectory) {
  const TempDir dir;
  const std::string file = dir.write("f", "x");
  for (const std::string& target : {file, file + "/a/b"}) {
    const Status status = make_directories(target);
    EXPECT_EQ(status.code(), StatusCode::io_error) << target;
    EXPECT_THAT(status.message(), HasSubstr(file + " is there and is no directory")) << target;
  }
  EXPECT_EQ(make_directories("").code(), StatusCode::io_error);
  ASSERT_EQ(symlink("nowhere", dir.path("dangling").c_str()), 0);
  EXPECT_EQ(make_directories(dir.path("dangling/a")).code(), StatusCode::io_error);
}

TEST(MakeDirectories, ThreadsMayRaceForOne) {
  const TempDir dir;
  std::atomic<int> failures = 0;
  for (int round = 0; round < 20; ++round) {
    const std::string target = dir.path(std::to_string(round) + "/a/b/c");
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        if (!make_directories(target)) ++failures;
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(failures, 0);
}

TEST(PublishFile, WritesAndReplaces) {
  const TempDir dir;
  ASSERT_TRUE(publish(dir.path(), "f", "first, and the longer one"));
  EXPECT_EQ(read_text(dir.path("f")), "first, and the longer one");
  ASSERT_TRUE(publish(dir.path(), "f", "second"));
  EXPECT_EQ(read_text(dir.path("f")), "second");
  ASSERT_TRUE(publish(dir.path(), "empty", ""));
  EXPECT_EQ(read_text(dir.path("empty")), "");
  EXPECT_THAT(*list_directory(dir.path()), ElementsAre("empty", "f"));
}

TEST(PublishFile, OpenReadersKeepTheOldFile) {
  const TempDir dir;
  ASSERT_TRUE(publish(dir.path(), "f", "old"));
  FILE* reader = fopen(dir.path("f").c_str(), "rb");
  ASSERT_NE(reader, nullptr);
  ASSERT_TRUE(publish(dir.path(), "f", "new"));
  char text[8] = {};
  EXPECT_EQ(fread(text, 1, sizeof text - 1, reader), 3u);
  EXPECT_STREQ(text, "old");
  fclose(reader);
}

TEST(PublishFile, ReplacesALinkAndNotItsTarget) {
  const TempDir dir;
  dir.write("target", "untouched");
  ASSERT_EQ(symlink("target", dir.path("f").c_str()), 0);
  ASSERT_TRUE(publish(dir.path(), "f", "new"));
  EXPECT_TRUE(S_ISREG(mode_of(dir.path("f"))));
  EXPECT_EQ(read_text(dir.path("target")), "untouched");
}

TEST(PublishFile, FailureLeavesNothingBehind) {
  const TempDir dir;
  ASSERT_TRUE(make_directories(dir.path("d/taken/full")));
  const Status status = publish(dir.path("d"), "taken", "x");  // a directory that is not empty cannot be replaced
  EXPECT_EQ(status.code(), StatusCode::io_error);
  EXPECT_THAT(status.message(), HasSubstr(dir.path("d/taken")));
  EXPECT_THAT(*list_directory(dir.path("d")), ElementsAre("taken"));
}

TEST(PublishFile, RefusesWhatIsNoDirectoryOrNoName) {
  const TempDir dir;
  const std::string file = dir.write("f", "x");
  EXPECT_EQ(publish(file, "g", "x").code(), StatusCode::io_error);
  EXPECT_EQ(publish(file + "/below", "g", "x").code(), StatusCode::io_error);
  EXPECT_EQ(publish(dir.path("missing"), "g", "x").code(), StatusCode::io_error);
  for (const char* name : {"", ".", "..", "a/b", "/etc/x"}) {
    EXPECT_EQ(publish(dir.path(), name, "x").code(), StatusCode::io_error) << name;
  }
  EXPECT_THAT(*list_directory(dir.path()), ElementsAre("f"));
}

TEST(PublishFile, FullDiskIsAnErrorAndLeavesNothing) {
  const TempDir dir;
  const pid_t child = fork();
  if (child == 0) {
    // A limit on file size fails write() as a full disk does. In a child, since the limit is the process's.
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(10);
    const std::string big(100'000, 'x');
    _exit(publish(dir.path(), "f", big).code() == StatusCode::io_error ? 0 : 1);
  }
  int exit_status = -1;
  ASSERT_EQ(waitpid(child, &exit_status, 0), child);
  EXPECT_EQ(exit_status, 0);
  EXPECT_THAT(*list_directory(dir.path()), IsEmpty());
}

TEST(ListDirectory, SortedWithoutDots) {
  const TempDir dir;
  for (const char* name : {"b", "a", ".hidden", "c"}) dir.write(name, "");
  EXPECT_THAT(*list_directory(dir.path()), ElementsAre(".hidden", "a", "b", "c"));
  EXPECT_EQ(list_directory(dir.path("none")).status().code(), StatusCode::not_found);
  EXPECT_EQ(list_directory(dir.path("a")).status().code(), StatusCode::io_error);
}

TEST(RemoveFile, RemovesFilesAndOnlyThose) {
  const TempDir dir;
  const std::string file = dir.write("f", "x");
  EXPECT_TRUE(remove_file(file));
  EXPECT_TRUE(remove_file(file)) << "gone already";
  EXPECT_TRUE(remove_file(dir.write("g", "x") + "/below")) << "cannot be there";
  const Status status = remove_file(dir.path());
  EXPECT_EQ(status.code(), StatusCode::io_error);
  EXPECT_THAT(status.message(), HasSubstr(dir.path()));
}

}  // namespace
}  // namespace gemvjit
