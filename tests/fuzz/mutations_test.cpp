// The fuzz functions over mutations of good files, with any compiler; libFuzzer itself needs clang.
#include "tests/support/mutations.h"

#include <gtest/gtest.h>

#include "cache/bundle.h"
#include "tests/fuzz/fuzz_targets.h"
#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

void feed(int (*function)(const std::uint8_t*, std::size_t), const Bytes& whole, int rounds) {
  ASSERT_FALSE(whole.empty());
  Bytes other = whole;
  std::mt19937 random(1);
  function(nullptr, 0);
  function(whole.data(), whole.size());
  for (int round = 0; round < rounds; ++round) {
    const Bytes bytes = test::mutate(whole, other, random);
    function(bytes.data(), bytes.size());
    if (!bytes.empty() && round % 3 == 0) other = bytes;
  }
}

Bytes golden(const std::string& name) {
  const std::string text = test::read_text(GEMVJIT_SOURCE_DIR "/tests/golden/" + name);
  return {text.begin(), text.end()};
}

TEST(FuzzFunctions, MutationsOfTheGoldenEntry) {
  ASSERT_TRUE(decode_entry(golden("entry_v1.entry")));
  feed(fuzz_entry, golden("entry_v1.entry"), 20'000);
}

TEST(FuzzFunctions, MutationsOfASignedEntry) {
  Bytes whole = golden("entry_v1.entry");
  append_signature_block(whole, SignatureBlock{});
  ASSERT_TRUE(decode_entry(whole));
  ASSERT_TRUE(decode_entry(whole)->signature);
  feed(fuzz_entry, whole, 20'000);
}

TEST(FuzzFunctions, MutationsOfTheGoldenBundle) {
  ASSERT_TRUE(Bundle::open(GEMVJIT_SOURCE_DIR "/tests/golden/bundle_v1.gjb"));
  feed(fuzz_bundle, golden("bundle_v1.gjb"), 5'000);
}

}  // namespace
}  // namespace gemvjit
