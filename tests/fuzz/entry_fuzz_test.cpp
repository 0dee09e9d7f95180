// The fuzz function over mutations of real entries, with any compiler; entry_fuzz itself needs clang.
#include <gtest/gtest.h>

#include "cache/entry.h"
#include "tests/support/mutations.h"
#include "tests/support/temp_dir.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace gemvjit {
namespace {

TEST(EntryFuzz, MutationsOfTheGoldenEntry) {
  const std::string text = test::read_text(GEMVJIT_SOURCE_DIR "/tests/golden/entry_v1.entry");
  const Bytes whole(text.begin(), text.end());
  ASSERT_TRUE(decode_entry(whole));
  Bytes other = whole;
  std::mt19937 random(1);
  LLVMFuzzerTestOneInput(nullptr, 0);
  LLVMFuzzerTestOneInput(whole.data(), whole.size());
  for (int round = 0; round < 20'000; ++round) {
    const Bytes bytes = test::mutate(whole, other, random);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    if (!bytes.empty() && round % 3 == 0) other = bytes;
  }
}

TEST(EntryFuzz, MutationsOfASignedEntry) {
  const std::string text = test::read_text(GEMVJIT_SOURCE_DIR "/tests/golden/entry_v1.entry");
  const Bytes plain(text.begin(), text.end());
  Bytes whole = plain;
  append_signature_block(whole, SignatureBlock{});
  ASSERT_TRUE(decode_entry(whole));
  ASSERT_TRUE(decode_entry(whole)->signature);
  std::mt19937 random(2);
  for (int round = 0; round < 20'000; ++round) {
    const Bytes bytes = test::mutate(whole, round % 2 == 0 ? plain : whole, random);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
}

}  // namespace
}  // namespace gemvjit
