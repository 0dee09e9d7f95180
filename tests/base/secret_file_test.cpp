// Files that hold secrets: read only if nobody else may, by mode or ACL.
#include "src/base/secret_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "tests/support/acl.h"
#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

using testing::HasSubstr;

constexpr unsigned kStranger = 61234;

class SecretFileTest : public testing::Test {
 protected:
  void set_mode(mode_t mode) const { ASSERT_EQ(::chmod(file_.c_str(), mode), 0); }
  void expect_refused(const std::string& reason) const {
    const auto secret = SecretFile::read(file_, 100, "the token");
    ASSERT_FALSE(secret) << reason;
    EXPECT_EQ(secret.status().code(), StatusCode::invalid_argument);
    EXPECT_THAT(secret.status().message(), testing::StartsWith("the token " + file_ + " is not used: "));
    EXPECT_THAT(secret.status().message(), HasSubstr(reason));
    EXPECT_THAT(secret.status().message(), testing::Not(HasSubstr("hush")));
  }
  void expect_read(const std::string& path) const {
    const auto secret = SecretFile::read(path, 100, "the token");
    ASSERT_TRUE(secret) << secret.status().message();
    EXPECT_EQ(std::string(secret->bytes().begin(), secret->bytes().end()), "hush");
  }

  test::TempDir dir_;
  std::string file_ = dir_.write("secret", "hush");
};

TEST_F(SecretFileTest, IsReadIfItIsOursAlone) {
  for (const mode_t mode : {0600, 0400, 0700}) {
    set_mode(mode);
    expect_read(file_);
  }
  std::filesystem::create_symlink(file_, dir_.path("link"));
  expect_read(dir_.path("link"));  // as secrets are mounted
}

TEST_F(SecretFileTest, IsRefusedIfOthersHaveAnyRightToIt) {
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0610, 0644}) {
    set_mode(mode);
    expect_refused("chmod 600");
  }
  set_mode(0600);
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(::chown(file_.c_str(), kStranger, kStranger), 0);
  expect_refused("it belongs to another user");
}

TEST_F(SecretFileTest, IsRefusedIfAnAclLetsOthersReadIt) {
  const int error = test::set_acl(file_, {{false, kStranger, 4}}, 0, 4);
  if (error == ENOTSUP) GTEST_SKIP() << "the file system of " << file_ << " has no ACLs";
  ASSERT_EQ(error, 0);
  expect_refused("chmod 600");
  set_mode(0600);
  expect_read(file_);  // the mask forbids it now
}

TEST_F(SecretFileTest, WhatIsNoFileOrTooLarge) {
  set_mode(0600);
  EXPECT_TRUE(SecretFile::read(file_, 4, "the token"));
  const auto large = SecretFile::read(file_, 3, "the token");
  ASSERT_FALSE(large);
  EXPECT_THAT(large.status().message(), HasSubstr("larger than 3 bytes"));
  EXPECT_EQ(SecretFile::read(dir_.path("none"), 100, "the token").status().code(), StatusCode::io_error);
  EXPECT_FALSE(SecretFile::read(dir_.path(), 100, "the token"));
  ASSERT_EQ(::mkfifo(dir_.path("fifo").c_str(), 0600), 0);
  EXPECT_FALSE(SecretFile::read(dir_.path("fifo"), 100, "the token"));  // and nobody waits for a writer
}

}  // namespace
}  // namespace gemvjit
