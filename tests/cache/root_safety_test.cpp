// Which cache folders are trusted (scenarios B41, B43, B46, B47). What needs files of another user is skipped without
// root.
#include "cache/root_safety.h"

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

constexpr uid_t kStranger = 61234;

class RootSafety : public testing::Test {
 protected:
  std::string make(const std::string& name, mode_t mode) {
    const std::string path = dir_.path(name);
    std::filesystem::create_directories(path);
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  static void expect_refused(const std::string& root, CacheTrust trust, const std::string& reason) {
    const Status status = check_cache_root(root, trust);
    EXPECT_EQ(status.code(), StatusCode::cache_not_writable) << root;
    EXPECT_THAT(status.message(), HasSubstr(reason));
    EXPECT_THAT(status.message(), HasSubstr("is not used"));
  }

  test::TempDir dir_;
};

TEST_F(RootSafety, OwnAndPrivateOrNotThereYet) {
  EXPECT_TRUE(check_cache_root(make("a", 0700), CacheTrust::owner));
  EXPECT_TRUE(check_cache_root(make("b", 0755), CacheTrust::owner));
  EXPECT_TRUE(check_cache_root(dir_.path("missing/deeper/still"), CacheTrust::owner));
  EXPECT_TRUE(check_cache_root(make("c", 0700) + "///", CacheTrust::owner));
}

TEST_F(RootSafety, WhatOthersMayWriteInIsRefusedWithTheRemedy) {
  expect_refused(make("world", 0777), CacheTrust::owner, "chmod o-w");
  expect_refused(make("world", 0777), CacheTrust::shared, "all users may write");
  expect_refused(make("group", 0770), CacheTrust::owner, "chmod g-w");
  EXPECT_TRUE(check_cache_root(make("group", 0770), CacheTrust::shared));
  make("mine", 0700);
  make("mine/v1", 0777);
  expect_refused(dir_.path("mine"), CacheTrust::owner, "/v1");
}

TEST_F(RootSafety, AFolderAboveThatAllMayWriteInIsRefusedUnlessSticky) {
  make("loose", 0777);
  expect_refused(make("loose/cache", 0700), CacheTrust::owner, "loose");
  expect_refused(dir_.path("loose/missing"), CacheTrust::owner, "loose");
  make("sticky", 01777);
  EXPECT_TRUE(check_cache_root(make("sticky/cache", 0700), CacheTrust::owner)) << "as below /tmp";
}

TEST_F(RootSafety, OwnLinksAreFollowedAndWhatTheyLeadToIsExamined) {
  std::filesystem::create_directory_symlink(make("real", 0700), dir_.path("link"));
  EXPECT_TRUE(check_cache_root(dir_.path("link"), CacheTrust::owner));
  EXPECT_TRUE(check_cache_root(dir_.path("link/below"), CacheTrust::owner));
  std::filesystem::create_directory_symlink(make("open", 0777), dir_.path("bad"));
  expect_refused(dir_.path("bad"), CacheTrust::owner, "all users may write");
  expect_refused(dir_.path("bad/below"), CacheTrust::owner, "all users may write");
  std::filesystem::create_directory_symlink(dir_.path("gone"), dir_.path("dangling"));
  expect_refused(dir_.path("dangling"), CacheTrust::owner, "leads nowhere");
  std::filesystem::create_directory_symlink(dir_.path("loop"), dir_.path("loop"));
  EXPECT_FALSE(check_cache_root(dir_.path("loop"), CacheTrust::owner));
}

TEST_F(RootSafety, AFileInItsPlaceIsNoDanger) {
  EXPECT_TRUE(check_cache_root(dir_.write("file", "x"), CacheTrust::owner)) << "the store will say what is wrong";
}

TEST_F(RootSafety, AnotherUsersFolderOrLinkIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make files of another user";
  const std::string theirs = make("theirs", 0700);
  ASSERT_EQ(::chown(theirs.c_str(), kStranger, kStranger), 0);
  expect_refused(theirs, CacheTrust::owner, "belongs to user 61234");
  expect_refused(theirs, CacheTrust::shared, "belongs to user 61234 and group 61234");
  ASSERT_EQ(::chown(theirs.c_str(), kStranger, ::getegid()), 0);
  EXPECT_TRUE(check_cache_root(theirs, CacheTrust::shared)) << "of a group that this process is in";
  expect_refused(theirs + "/below", CacheTrust::owner, "belongs to user 61234");
  const std::string link = dir_.path("link");
  std::filesystem::create_directory_symlink(make("ours", 0700), link);
  ASSERT_EQ(::lchown(link.c_str(), kStranger, kStranger), 0);
  expect_refused(link, CacheTrust::owner, "is a link of user 61234");
}

// B41, B44: what is only read is trusted too, so it must be ours or root's, and nobody else may write it.
TEST_F(RootSafety, AReadOnlyLayerMayBeRootsButNobodyElses) {
  EXPECT_TRUE(check_read_only_layer(make("layer", 0755)));
  EXPECT_TRUE(check_read_only_layer(dir_.write("layer.gjb", "x")));
  EXPECT_TRUE(check_read_only_layer(dir_.path("missing")));
  EXPECT_FALSE(check_read_only_layer(make("open", 0777)));
  EXPECT_FALSE(check_read_only_layer(make("sticky", 01777))) << "others may add entries";
  const std::string bundle = dir_.write("open.gjb", "x");
  ASSERT_EQ(::chmod(bundle.c_str(), 0666), 0);
  EXPECT_FALSE(check_read_only_layer(bundle));
  make("loose", 0777);
  EXPECT_FALSE(check_read_only_layer(dir_.write("loose/a.gjb", "x"))) << "it could be exchanged";
  if (::geteuid() != 0) return;
  EXPECT_TRUE(check_read_only_layer(dir_.path("layer"), kStranger)) << "root's";
  ASSERT_EQ(::chown(dir_.path("layer").c_str(), kStranger, kStranger), 0);
  EXPECT_FALSE(check_read_only_layer(dir_.path("layer")));
}

// The group of a folder is private by its number, not by being the primary group of whoever looks: on clusters that is
// often one group of all users. `kStranger` stands for that user, 100 for the group.
TEST_F(RootSafety, AGroupThatManyAreInMayWriteNoLayerNorOnTheWayToOne) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make files of a group of its choice";
  const auto give = [](const std::string& path, gid_t group) { ASSERT_EQ(::chown(path.c_str(), kStranger, group), 0); };
  const std::string way = make("way", 0755), layer = make("way/layer", 0775), bundle = dir_.write("way/k.gjb", "x");
  ASSERT_EQ(::chmod(bundle.c_str(), 0664), 0);
  make("way/cache", 0700);
  for (const gid_t group : {kStranger, gid_t{100}}) {
    const bool is_private = group == kStranger;
    for (const std::string& path : {way, layer, bundle, dir_.path("way/cache")}) give(path, group);
    for (const std::string& path : {layer, bundle}) {
      EXPECT_EQ(check_read_only_layer(path, kStranger).is_ok(), is_private) << path << " " << group;
      EXPECT_FALSE(check_trust_path(path, kStranger)) << "for keys not even a private group";
    }
    ASSERT_EQ(::chmod(way.c_str(), 0775), 0);
    ASSERT_EQ(::chmod(layer.c_str(), 0755), 0);
    for (const std::string name : {"way/layer", "way/cache"}) {
      const std::string path = dir_.path(name);
      EXPECT_EQ(check_read_only_layer(path, kStranger).is_ok(), is_private) << path << " " << group;
      EXPECT_EQ(check_trust_path(path, kStranger).is_ok(), is_private) << path << " " << group;
      EXPECT_EQ(check_cache_root(path, CacheTrust::owner, kStranger).is_ok(), is_private) << path;
    }
    ASSERT_EQ(::chmod(way.c_str(), 0755), 0);
    ASSERT_EQ(::chmod(layer.c_str(), 0775), 0);
  }
  ASSERT_EQ(::chmod(layer.c_str(), 01775), 0);
  EXPECT_FALSE(check_read_only_layer(layer, kStranger)) << "others may add entries";
}

TEST_F(RootSafety, OnTheWayToASharedRootItsOwnGroupMayWriteAndNoOther) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make files of a group of its choice";
  const std::string way = make("way", 02775), root = make("way/cache", 02770);
  ASSERT_EQ(::chown(way.c_str(), kStranger, 100), 0);
  ASSERT_EQ(::chown(root.c_str(), kStranger, 100), 0);
  EXPECT_TRUE(check_cache_root(root, CacheTrust::shared, kStranger));
  EXPECT_TRUE(check_cache_root(way + "/new/cache", CacheTrust::shared, kStranger))
      << "made with the group of what is above";
  ASSERT_EQ(::chown(way.c_str(), kStranger, 101), 0);
  EXPECT_THAT(check_cache_root(root, CacheTrust::shared, kStranger).message(), HasSubstr("group 101 may write"));
}

TEST_F(RootSafety, AnAclThatLetsOthersWriteCountsEverywhere) {
  const std::string way = make("way", 0755), file = dir_.write("way/one.pub", "x");
  const int error = test::set_acl(way, {}, 5, 5);
  if (error == ENOTSUP) GTEST_SKIP() << "the file system of " << way << " has no ACLs";
  const std::string folder = make("way/folder", 0755), inner = make("way/cache/v1", 0700);
  const auto answers = [&] {
    return std::vector<bool>{check_read_only_layer(file).is_ok(),
                             check_read_only_layer(folder).is_ok(),
                             check_trust_path(file).is_ok(),
                             check_trust_path(folder).is_ok(),
                             check_cache_root(dir_.path("way/cache"), CacheTrust::owner).is_ok(),
                             check_cache_root(dir_.path("way/cache"), CacheTrust::shared).is_ok()};
  };
  EXPECT_THAT(answers(), testing::Each(true));
  const auto let_write = [](const std::string& path, unsigned mask) {
    ASSERT_EQ(test::set_acl(path, {{false, kStranger, 7}}, 5, mask), 0);
  };
  let_write(way, 7);
  EXPECT_THAT(answers(), testing::Each(false));
  EXPECT_THAT(check_read_only_layer(file).message(), HasSubstr("its ACL lets user 61234 write it"));
  let_write(way, 5);
  EXPECT_THAT(answers(), testing::Each(true)) << "the mask forbids it";
  let_write(file, 6);
  let_write(folder, 7);
  let_write(inner, 7);
  EXPECT_THAT(answers(), testing::Each(false));
}

// A link of ours may lead to one of somebody else's, who can turn it to anything once it was examined.
TEST_F(RootSafety, EachHopOfLinksIsExamined) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make links of another user";
  make("sticky", 01777);
  const std::string real = make("real", 0755), hop = dir_.path("sticky/hop"), ours = dir_.path("ours");
  std::filesystem::create_directory_symlink(real, hop);
  std::filesystem::create_directory_symlink("sticky/../sticky/hop", ours);
  EXPECT_TRUE(check_read_only_layer(ours));
  EXPECT_TRUE(check_cache_root(ours, CacheTrust::owner));
  ASSERT_EQ(::lchown(hop.c_str(), kStranger, kStranger), 0);
  EXPECT_THAT(check_read_only_layer(ours).message(), HasSubstr("is a link of user 61234"));
  expect_refused(ours, CacheTrust::owner, "is a link of user 61234");
}

// Seen as another user: root's folders on the way are good, and its cache folder is not.
TEST_F(RootSafety, RootsFoldersLeadOnButAreNotOnesOwn) {
  if (::geteuid() != 0) GTEST_SKIP() << "the files of this test are root's only where it runs as root";
  const std::string root = make("roots", 0755);
  EXPECT_FALSE(check_cache_root(root, CacheTrust::owner, kStranger));
  EXPECT_TRUE(check_cache_root(root, CacheTrust::shared, kStranger));
  EXPECT_TRUE(check_cache_root(root + "/mine", CacheTrust::owner, kStranger));
}

}  // namespace
}  // namespace gemvjit
