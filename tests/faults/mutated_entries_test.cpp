// B22: 10,000 damaged entries through get(). None is served, whatever the damage.
#include <gtest/gtest.h>

#include "cache/layout.h"
#include "src/base/files.h"
#include "tests/faults/faults_support.h"
#include "tests/support/mutations.h"
#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

using test::fault_entry;
using test::TempDir;

TEST(MutatedEntries, NoneOfTenThousandIsServed) {
  const TempDir dir;
  const std::string root = dir.path("cache");
  const auto store = make_dir_store(root, Log::silent());
  const Entry entry = fault_entry(64, 7);
  const Entry neighbour = fault_entry(72, 9);
  ASSERT_TRUE(store->put(entry));
  ASSERT_TRUE(store->put(neighbour));
  const Bytes whole = encode_entry(entry);
  const Bytes other = encode_entry(neighbour);
  const std::string name = store->path_of(entry.id).substr(dir.path().size() + 1);

  std::mt19937 random(20260101);
  int tried = 0;
  while (tried < 10'000) {
    // Every 50th is a whole entry under the wrong name, as where two files were swapped.
    const Bytes bytes = tried % 50 == 0 ? other : test::mutate(whole, other, random);
    if (bytes == whole) continue;
    ++tried;
    dir.write(name, std::string(bytes.begin(), bytes.end()));
    ASSERT_FALSE(store->get(entry.id)) << "mutation " << tried;
  }
  EXPECT_EQ(store->stats().hits, 0u);
  EXPECT_EQ(store->stats().damaged, 10'000u);
  EXPECT_EQ(store->stats().quarantined, 10'000u);
  EXPECT_LE(list_directory(quarantine_directory(root))->size(), QuarantineLimits{}.files);
  ASSERT_TRUE(store->put(entry));
  EXPECT_EQ(store->get(entry.id)->cubin.bytes, entry.cubin.bytes);
}

}  // namespace
}  // namespace gemvjit
