// Who may write besides a user and root: owner, mode, and POSIX ACLs as the kernel keeps them.
#include "src/base/write_access.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "src/base/descriptor.h"
#include "tests/support/acl.h"
#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

using test::AclName;
using testing::HasSubstr;

constexpr unsigned kStranger = 61234;
constexpr unsigned kUser = 61235;

class WriteAccess : public testing::Test {
 protected:
  // The same by path, by an open file and by a descriptor of O_PATH.
  std::string ask(const WriteRule& rule) const {
    struct stat info {};
    EXPECT_EQ(::stat(file_.c_str(), &info), 0);
    const std::string reason = who_else_may_write(file_, info, rule);
    for (const int flags : {O_RDONLY, O_PATH}) {
      const Descriptor fd(::open(file_.c_str(), flags | O_CLOEXEC));
      if (!fd.is_open()) continue;  // a mode that keeps its owner out
      EXPECT_EQ(who_else_may_write(fd.get(), info, rule), reason);
    }
    return reason;
  }
  std::string ask(GroupWrite group, bool any_owner = false) const { return ask({::geteuid(), group, any_owner}); }
  void set_mode(mode_t mode) const { ASSERT_EQ(::chmod(file_.c_str(), mode), 0); }
  // The owning group's number is not the owner's, so it is nobody's private one. As root only.
  void give_to(unsigned owner, unsigned group) const { ASSERT_EQ(::chown(file_.c_str(), owner, group), 0); }

  test::TempDir dir_;
  std::string file_ = dir_.write("file", "x");
};

TEST_F(WriteAccess, TheModeOfOthersAndOfAPrivateGroup) {
  set_mode(0644);
  EXPECT_EQ(ask(GroupWrite::never), "");
  set_mode(0646);
  for (const GroupWrite group : {GroupWrite::never, GroupWrite::if_private, GroupWrite::any}) {
    EXPECT_THAT(ask(group), HasSubstr("all users may write it (chmod o-w)"));
  }
  struct stat info {};
  ASSERT_EQ(::stat(file_.c_str(), &info), 0);
  set_mode(0664);
  EXPECT_THAT(ask(GroupWrite::never), HasSubstr("may write it (chmod g-w)"));
  EXPECT_EQ(ask(GroupWrite::any), "");
  EXPECT_EQ(ask(GroupWrite::if_private).empty(), info.st_gid == info.st_uid);
}

TEST_F(WriteAccess, AGroupIsPrivateByItsNumberAloneNotAsThisProcessOwn) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files to users of its choice";
  set_mode(0664);
  give_to(kUser, kUser);
  EXPECT_EQ(ask({kUser}), "");
  EXPECT_EQ(ask({0}), "it belongs to user 61235");
  give_to(kUser, ::getegid());
  EXPECT_THAT(ask({kUser}), HasSubstr("its group 0 may write it"));
  give_to(0, kUser);
  EXPECT_THAT(ask({kUser}), HasSubstr("its group 61235 may write it"))
      << "root's file: whose the group is, is not said";
  give_to(0, 0);
  EXPECT_EQ(ask({kUser}), "");
}

TEST_F(WriteAccess, AnOwnerWhoIsNeitherTheUserNorRootMayWrite) {
  const WriteRule of_another{kStranger};
  EXPECT_EQ(ask(of_another).empty(), ::geteuid() == 0);
  const WriteRule any_owner{kStranger, GroupWrite::any, true};
  set_mode(0660);
  EXPECT_EQ(ask(any_owner), "");
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  give_to(kStranger, kStranger);
  EXPECT_EQ(ask(GroupWrite::if_private), "it belongs to user 61234");
  EXPECT_EQ(ask(of_another), "");
}

TEST_F(WriteAccess, TheStickyBitKeepsWritersFromWhatIsNotTheirsOnTheWayOnly) {
  file_ = dir_.path("folder");
  ASSERT_EQ(::mkdir(file_.c_str(), 0700), 0);
  set_mode(01777);
  EXPECT_EQ(ask({::geteuid(), GroupWrite::if_private, false, true}), "");
  EXPECT_NE(ask({::geteuid(), GroupWrite::if_private, false, false}), "");
  set_mode(0777);
  EXPECT_NE(ask({::geteuid(), GroupWrite::if_private, false, true}), "");
  file_ = dir_.write("sticky", "x");
  set_mode(01666);
  EXPECT_NE(ask({::geteuid(), GroupWrite::if_private, false, true}), "") << "a file's says nothing";
}

class WriteAccessByAcl : public WriteAccess {
 protected:
  void SetUp() override {
    const int error = test::set_acl(file_, {}, 4, 4);
    if (error == ENOTSUP) GTEST_SKIP() << "the file system of " << file_ << " has no ACLs";
    ASSERT_EQ(error, 0);
  }
  void set(const std::vector<AclName>& names, unsigned group_rights = 4, unsigned mask = 6) const {
    ASSERT_EQ(test::set_acl(file_, names, group_rights, mask), 0);
  }
};

TEST_F(WriteAccessByAcl, ANamedUserWhoMayWriteIsAnother) {
  set({{false, kStranger, 6}});
  for (const GroupWrite group : {GroupWrite::never, GroupWrite::if_private, GroupWrite::any}) {
    EXPECT_EQ(ask(group), "its ACL lets user 61234 write it (chmod g-w)");
    EXPECT_EQ(ask(group, true), "its ACL lets user 61234 write it (chmod g-w)");
  }
  EXPECT_EQ(ask({kStranger, GroupWrite::never, true}), "") << "who is the user";
  set({{false, kStranger, 4}});
  EXPECT_EQ(ask(GroupWrite::never), "") << "who may read only";
  set({{false, 0, 6}});
  EXPECT_EQ(ask(GroupWrite::never), "") << "root";
}

TEST_F(WriteAccessByAcl, ANamedGroupThatMayWriteIsOthersUnlessTheOwnersPrivateOne) {
  set({{true, kStranger, 6}});
  for (const GroupWrite group : {GroupWrite::never, GroupWrite::if_private, GroupWrite::any}) {
    EXPECT_EQ(ask(group), "its ACL lets group 61234 write it (chmod g-w)");
  }
  set({{true, ::geteuid(), 6}});
  EXPECT_EQ(ask(GroupWrite::if_private), "");
  EXPECT_NE(ask(GroupWrite::never), "");
}

TEST_F(WriteAccessByAcl, OfAFileWithAnAclTheModesGroupBitsAreTheMask) {
  set({{false, kStranger, 6}}, 6, 4);
  EXPECT_EQ(ask(GroupWrite::never), "") << "the mask takes it away";
  set({{false, kStranger, 4}}, 4, 6);
  EXPECT_EQ(ask(GroupWrite::never), "") << "the mode has g+w, and yet nobody has it";
  set({}, 6, 6);
  EXPECT_THAT(ask(GroupWrite::never), HasSubstr("its group"));
  EXPECT_EQ(ask(GroupWrite::any), "") << "the owning group alone";
  set({{false, kStranger, 6}}, 4, 6);
  EXPECT_NE(ask(GroupWrite::any), "");
  struct stat info {};
  ASSERT_EQ(::stat(file_.c_str(), &info), 0);
  set_mode(info.st_mode & 07757u);
  EXPECT_EQ(ask(GroupWrite::never), "") << "the remedy that the message names";
}

TEST_F(WriteAccessByAcl, ADefaultAclCountsInWhatIsMadeBelow) {
  const std::string folder = dir_.path("folder");
  ASSERT_EQ(::mkdir(folder.c_str(), 0700), 0);
  ASSERT_EQ(test::set_default_acl(folder, {{false, kStranger, 7}}, 5, 7), 0);
  file_ = folder;
  EXPECT_EQ(ask(GroupWrite::never), "");
  file_ = folder + "/private";
  ASSERT_EQ(::mkdir(file_.c_str(), 0700), 0);
  EXPECT_EQ(ask(GroupWrite::never), "") << "the mode that it is made with is the mask";
  file_ = folder + "/shared";
  ASSERT_EQ(::mkdir(file_.c_str(), 0770), 0);
  EXPECT_EQ(ask(GroupWrite::any), "its ACL lets user 61234 write it (chmod g-w)");
}

// What a file that is not there (any more) has for an ACL cannot be known.
TEST_F(WriteAccess, AnAclThatCannotBeReadIsTakenForTheWorst) {
  set_mode(0664);
  struct stat info {};
  ASSERT_EQ(::stat(file_.c_str(), &info), 0);
  ASSERT_EQ(::unlink(file_.c_str()), 0);
  EXPECT_THAT(who_else_may_write(file_, info, {::geteuid(), GroupWrite::any}), HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace gemvjit
