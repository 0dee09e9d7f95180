#include "cache/kernel_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "cache/layout.h"

namespace gemvjit {
namespace {

using testing::HasSubstr;

const KernelKey example{4096, 14336, 1, 0x2022, {90, 'a'}};

TEST(Arch, TextAndBack) {
  for (const Arch& arch : {Arch{90, 'a'}, Arch{80, 0}, Arch{120, 'f'}, Arch{1, 0}, Arch{9999, 'a'}}) {
    const auto parsed = Arch::parse(arch.text());
    ASSERT_TRUE(parsed) << arch.text();
    EXPECT_EQ(*parsed, arch);
  }
  EXPECT_EQ((Arch{90, 'a'}).text(), "sm_90a");
  EXPECT_EQ((Arch{80, 0}).text(), "sm_80");
}

TEST(Arch, RefusesOtherSpellings) {
  for (const char* text :
       {"", "sm_", "sm_a", "sm90", "SM_90", "sm_90A", "sm_90b", "sm_90aa", "sm_090", "sm_+90", "sm_-90", " sm_90",
        "sm_90 ", "sm_9.0", "sm_0", "sm_10000", "sm_99999999999999999999", "compute_90"}) {
    const auto parsed = Arch::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.status().code(), StatusCode::invalid_argument);
    EXPECT_THAT(parsed.status().message(), HasSubstr("sm_<number>"));
    EXPECT_THAT(parsed.status().message(), HasSubstr(std::string("\"") + text + "\""));
  }
  EXPECT_FALSE(Arch::parse(std::string_view("sm_90\0", 6)));
}

TEST(KernelKey, TextAndBack) {
  EXPECT_EQ(example.text(), "n4096-k14336-nt1-f0000000000002022-sm_90a");
  const KernelKey largest{std::numeric_limits<std::int64_t>::max(),
                          std::numeric_limits<std::int64_t>::max(),
                          std::numeric_limits<std::int32_t>::max(),
                          ~std::uint64_t{0},
                          {9999, 'f'}};
  for (const KernelKey& key : {example, largest, KernelKey{8, 16, 0, 0, {120, 0}}, KernelKey{0, 0, 0, 0, {90, 0}}}) {
    const auto parsed = KernelKey::parse(key.text());
    ASSERT_TRUE(parsed) << key.text();
    EXPECT_EQ(*parsed, key);
    EXPECT_EQ(parsed->text(), key.text());
  }
}

TEST(KernelKey, RefusesWhatTextWouldNotWrite) {
  for (const char* text : {
           "",
           "n4096",
           "n4096-k14336-nt1-f0000000000002022",
           "n4096-k14336-nt1-f0000000000002022-",
           "n4096-k14336-nt1-f0000000000002022-sm_90b",
           "n4096-k14336-nt1-f0000000000002022-sm_90a ",
           " n4096-k14336-nt1-f0000000000002022-sm_90a",
           "n04096-k14336-nt1-f0000000000002022-sm_90a",
           "n+4096-k14336-nt1-f0000000000002022-sm_90a",
           "n-4096-k14336-nt1-f0000000000002022-sm_90a",
           "n4096-k14336-nt1-f2022-sm_90a",
           "n4096-k14336-nt1-f000000000000002022-sm_90a",
           "n4096-k14336-nt1-f000000000000202G-sm_90a",
           "n4096-k14336-nt1-f00000000000020AB-sm_90a",
           "n4096-k14336-nt1-f0x00000000002022-sm_90a",
           "N4096-k14336-nt1-f0000000000002022-sm_90a",
           "n4096-k14336-t1-f0000000000002022-sm_90a",
           "n4096_k14336_nt1_f0000000000002022_sm_90a",
           "k14336-n4096-nt1-f0000000000002022-sm_90a",
           "n-k14336-nt1-f0000000000002022-sm_90a",
           "n9223372036854775808-k14336-nt1-f0000000000002022-sm_90a",
           "n4096-k14336-nt2147483648-f0000000000002022-sm_90a",
           "n4096-k14336-nt-1-f0000000000002022-sm_90a",
       }) {
    const auto parsed = KernelKey::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.status().code(), StatusCode::invalid_argument);
    EXPECT_THAT(parsed.status().message(), HasSubstr("expected n<N>-k<K>-nt<NT>-f<16 hex digits>-<arch>"));
  }
}

std::vector<KernelKey> neighbours() {
  std::vector<KernelKey> keys(9, example);
  keys[1].n = 4104;
  keys[2].k = 4096;
  keys[3].nt = 2;
  keys[4].flags = 0x2023;
  keys[5].flags |= std::uint64_t{1} << 63;
  keys[6].arch.suffix = 'f';
  keys[7].arch.sm = 100;
  std::swap(keys[8].n, keys[8].k);
  return keys;
}

TEST(KernelKey, EveryFieldCountsInOrderTextAndHash) {
  std::set<KernelKey> ordered;
  std::set<std::string> texts;
  std::set<std::size_t> hashes;
  for (const KernelKey& key : neighbours()) {
    ordered.insert(key);
    texts.insert(key.text());
    hashes.insert(KernelKeyHash()(key));
  }
  EXPECT_EQ(ordered.size(), 9u);
  EXPECT_EQ(texts.size(), 9u);
  EXPECT_EQ(hashes.size(), 9u) << "no two of these may collide, or the hash leaves a field out";
}

TEST(Layout, PathsOfAnEntry) {
  EntryId id{example, {}};
  for (int i = 0; i < 32; ++i) id.digest[i] = static_cast<std::uint8_t>(0xE0 + i);
  EXPECT_EQ(version_directory("/c"), "/c/v1");
  EXPECT_EQ(arch_directory("/c", id.key.arch), "/c/v1/sm_90a");
  EXPECT_EQ(entry_directory("/c", id), "/c/v1/sm_90a/e0");
  EXPECT_EQ(entry_file_name(id), "n4096-k14336-nt1-f0000000000002022-e0e1e2e3e4e5e6e7.entry");
  EXPECT_EQ(entry_path("/c", id), "/c/v1/sm_90a/e0/n4096-k14336-nt1-f0000000000002022-e0e1e2e3e4e5e6e7.entry");
}

TEST(Layout, TellsFanOutFoldersFromOtherNames) {
  for (const char* name : {"00", "e0", "ff", "9a"}) EXPECT_TRUE(is_fan_out_name(name)) << name;
  for (const char* name : {"", "0", "000", "E0", "g0", "..", "0/"}) EXPECT_FALSE(is_fan_out_name(name)) << name;
}

TEST(Layout, TellsEntriesFromOtherNames) {
  for (const KernelKey& key : neighbours()) EXPECT_TRUE(is_entry_file_name(entry_file_name({key, {}})));
  for (const char* name :
       {"", ".entry", "e0e1e2e3e4e5e6e7.entry", "-e0e1e2e3e4e5e6e7.entry",
        "n4096-k14336-nt1-f0000000000002022-e0e1e2e3e4e5e6e7.entr",
        "n4096-k14336-nt1-f0000000000002022-e0e1e2e3e4e5e6e7.entry~",
        "n4096-k14336-nt1-f0000000000002022-e0e1e2e3e4e5e6e.entry",
        "n4096-k14336-nt1-f0000000000002022-E0E1E2E3E4E5E6E7.entry", "n4096-k14336-nt1-f0000000000002022.entry",
        "n4096-k14336-nt1-f0000000000002022-sm_90a-e0e1e2e3e4e5e6e7.entry",
        "m4096-k14336-nt1-f0000000000002022-e0e1e2e3e4e5e6e7.entry", ".tmp-12-0123456789abcdef"}) {
    EXPECT_FALSE(is_entry_file_name(name)) << name;
  }
}

TEST(Layout, TellsTemporariesFromOtherNames) {
  EXPECT_TRUE(is_temporary_file_name(".tmp-12-0123456789abcdef"));
  for (const char* name :
       {"", ".tmp-", ".tmp-12", ".tmp--0123456789abcdef", ".tmp-12-0123456789abcde", ".tmp-x-0123456789abcdef",
        "tmp-12-0123456789abcdef", ".tmp-12-0123456789ABCDEF", ".tmp-12-0123456789abcdef.entry"}) {
    EXPECT_FALSE(is_temporary_file_name(name)) << name;
  }
}

}  // namespace
}  // namespace gemvjit
