#include "src/remote/manifest.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/support/entries.h"
#include "tests/support/mutations.h"

namespace gemvjit::test {
namespace {

ManifestFile file(const std::string& path, std::uint8_t digest_byte, std::uint64_t size) {
  ManifestFile made{path, {}, size};
  made.sha256.fill(digest_byte);
  return made;
}

std::string hex(const Bytes& bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) text += "0123456789abcdef"[byte >> 4], text += "0123456789abcdef"[byte & 15];
  return text;
}

TEST(Manifest, IsAnActionResultByteForByte) {
  // By hand from the protocol buffers' encoding: 12 (field 2, bytes) 49: 0a (1, bytes) 1 "k"; 12 (2, bytes) 45: 0a 40
  // the 64 digits; 10 (field 2, varint) ac 02 = 300.
  std::string digits;
  for (int i = 0; i < 32; ++i) digits += "6162";  // "ab"
  EXPECT_EQ(hex(encode_manifest({{file("k", 0xAB, 300)}})), "124a0a016b12450a40" + digits + "10ac02");
}

TEST(Manifest, ComesBackSortedByPath) {
  const Manifest manifest{{file("b", 2, 5), file("a", 1, remote_payload_limit), file("c", 3, 1)}};
  const auto decoded = decode_manifest(encode_manifest(manifest));
  ASSERT_TRUE(decoded) << decoded.status().message();
  EXPECT_EQ(decoded->files, (std::vector{manifest.files[1], manifest.files[0], manifest.files[2]}));
  EXPECT_EQ(encode_manifest(*decoded), encode_manifest(manifest));
}

TEST(Manifest, FieldsOfOthersArePassedOver) {
  Bytes bytes = encode_manifest({{file("k", 1, 7)}});
  // exit_code (4, varint) 1; stdout_raw (5, bytes) "x"; a fixed64 and a fixed32 of fields that there may once be.
  for (const int byte : {0x20, 1, 0x2a, 1, 0x78, 0x79, 1, 2, 3, 4, 5, 6, 7, 8, 0x7d, 1, 2, 3, 4}) {
    bytes.push_back(static_cast<std::uint8_t>(byte));
  }
  const auto decoded = decode_manifest(bytes);
  ASSERT_TRUE(decoded) << decoded.status().message();
  EXPECT_EQ(decoded->files, std::vector{file("k", 1, 7)});
}

TEST(Manifest, WhatIsNoneIsDamaged) {
  const auto refused = [](const Bytes& bytes) {
    return decode_manifest(bytes).status().code() == StatusCode::entry_damaged;
  };
  EXPECT_TRUE(refused({}));
  const std::string page = "<html>404</html>";
  EXPECT_TRUE(refused(Bytes(page.begin(), page.end())));
  EXPECT_TRUE(refused(encode_manifest({{file("k", 1, 0)}})));
  EXPECT_TRUE(refused(encode_manifest({{file("k", 1, remote_payload_limit + 1)}})));
  EXPECT_TRUE(refused(encode_manifest({{file("k", 1, ~std::uint64_t{0})}})));
  EXPECT_TRUE(refused(Bytes(manifest_size_limit + 1, 0)));
  const Bytes whole = encode_manifest({{file("k", 1, 7)}});
  for (std::size_t size = 1; size < whole.size(); ++size) {
    EXPECT_TRUE(refused(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)))) << size;
  }
  Manifest many;
  for (std::size_t i = 0; i <= manifest_file_limit; ++i) many.files.push_back(file("k" + std::to_string(i), 1, 7));
  EXPECT_TRUE(refused(encode_manifest(many)));
  many.files.pop_back();
  EXPECT_TRUE(decode_manifest(encode_manifest(many)));
}

TEST(Manifest, NoMutationIsMoreThanDamagedOrAnotherManifest) {
  std::mt19937 random(7);
  const Bytes one = encode_manifest({{file("a", 1, 7), file("bb", 2, 300), file("ccc", 3, 70000)}});
  const Bytes other = encode_manifest({{file("n1-k2/x", 9, 12345678)}});
  std::size_t damaged = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto decoded = decode_manifest(mutate(one, other, random));
    if (!decoded) {
      EXPECT_EQ(decoded.status().code(), StatusCode::entry_damaged);
      ++damaged;
      continue;
    }
    for (const ManifestFile& found : decoded->files) EXPECT_TRUE(found.size > 0 && found.size <= remote_payload_limit);
  }
  EXPECT_GT(damaged, 5'000u);
}

TEST(Manifest, AListHoldsTheSameAndNamesNoPayloadToAServer) {
  const Manifest manifest{{file("a", 1, 7)}};  // short enough for a length of one byte
  const Bytes list = encode_list(manifest);
  ASSERT_TRUE(decode_manifest(list));
  EXPECT_EQ(decode_manifest(list)->files, decode_manifest(encode_manifest(manifest))->files);
  EXPECT_EQ(list[0], 5 << 3 | 2);  // stdout_raw alone
  EXPECT_EQ(list.size(), encode_manifest(manifest).size() + 2);
  // A list within a list is none.
  Bytes nested{5 << 3 | 2, static_cast<std::uint8_t>(list.size())};
  nested.insert(nested.end(), list.begin(), list.end());
  EXPECT_FALSE(decode_manifest(nested));
}

TEST(ManifestPath, ComesBackAndNothingElseIsOne) {
  const EntryId id = sample_entry().id;
  const std::string path = manifest_path(id);
  ASSERT_TRUE(parse_manifest_path(path));
  EXPECT_EQ(*parse_manifest_path(path), id);
  for (const std::string& wrong : {std::string(), std::string("/"), id.key.text(), path + "0", path.substr(1),
                                   "../" + path, path.substr(0, path.size() - 1), path + "/"}) {
    EXPECT_FALSE(parse_manifest_path(wrong)) << wrong;
  }
}

TEST(ManifestNames, StayWhatTheyAre) {
  // Names are shared between versions: another name here would leave every remote cache unused.
  EntryId id;
  id.key = *KernelKey::parse("n4096-k4096-nt1-f0000000000002022-sm_90a");
  id.digest.fill(0x5A);
  EXPECT_EQ(kernel_name(id), "f80be502fd18a32c0b74719f5782f7f2e483914853e13a509022a7d5d97dcfb7");
  EXPECT_EQ(plan_name({id}), "a917d98bbb8070819bc67dc053f909d1cebb1f9788e4ad6612ba66e10f06605e");
  EXPECT_EQ(set_name("release"), "1e06475588b476ce1055e45410c58274fe357f13b3a0f51d22bfec40e70c2571");
}

TEST(ManifestNames, DifferForWhateverDiffersAndForNothingElse) {
  const EntryId one = sample_entry({.n = 64}).id, two = sample_entry({.n = 128}).id;
  const EntryId other_source = sample_entry({.n = 64, .digest_byte = 2}).id;
  const std::set<std::string> names = {kernel_name(one),        kernel_name(two),      kernel_name(other_source),
                                       plan_name({one}),        plan_name({one, two}), plan_name({two}),
                                       set_name("a"),           set_name("b"),         set_name(manifest_path(one)),
                                       list_name(set_name("a"))};
  EXPECT_EQ(names.size(), 10u);
  EXPECT_EQ(plan_name({one, two}), plan_name({two, one}));
  EXPECT_EQ(plan_name({one, two}), plan_name({two, one, two}));
}

}  // namespace
}  // namespace gemvjit::test
