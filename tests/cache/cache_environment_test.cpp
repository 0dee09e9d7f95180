#include <gtest/gtest.h>

#include "cache/store.h"

namespace gemvjit {
namespace {

TEST(ChooseCacheDir, FirstThatIsSetWins) {
  const CacheEnvironment all{"/env", "/xdg", "/home/u"};
  EXPECT_EQ(choose_cache_dir("/explicit", all), "/explicit");
  EXPECT_EQ(choose_cache_dir("", all), "/env");
  EXPECT_EQ(choose_cache_dir("", {"", "/xdg", "/home/u"}), "/xdg/gemvjit");
  EXPECT_EQ(choose_cache_dir("", {"", "", "/home/u"}), "/home/u/.cache/gemvjit");
  EXPECT_EQ(choose_cache_dir("", {"", "", ""}), "");
}

TEST(ChooseCacheDir, RelativePathsCountOnlyWhereSomebodyMeantUs) {
  EXPECT_EQ(choose_cache_dir("here", {"there", "/xdg", "/home/u"}), "here");
  EXPECT_EQ(choose_cache_dir("", {"there", "/xdg", "/home/u"}), "there");
  EXPECT_EQ(choose_cache_dir("", {"", "xdg", "/home/u"}), "/home/u/.cache/gemvjit");
  EXPECT_EQ(choose_cache_dir("", {"", "xdg", "home"}), "");
  EXPECT_EQ(choose_cache_dir("", {"", "", "~"}), "");
}

TEST(ChooseCacheDir, ASlashAtTheEndMakesNoDifference) {
  EXPECT_EQ(choose_cache_dir("", {"", "/xdg/", ""}), "/xdg/gemvjit");
  EXPECT_EQ(choose_cache_dir("", {"", "", "/"}), "/.cache/gemvjit");
}

}  // namespace
}  // namespace gemvjit
