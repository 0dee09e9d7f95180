#include "cache/entry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>

#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

using testing::HasSubstr;

// What tests/golden/entry_v1.py writes.
Entry golden_entry() {
  Entry entry;
  entry.id.key = {28672, 4096, 2, 0x0123456789ABCDEF, {90, 'a'}};
  for (int i = 0; i < 32; ++i) entry.id.digest[i] = static_cast<std::uint8_t>(0xA0 + i);
  entry.created_unix_seconds = 1700000000;
  Cubin& cubin = entry.cubin;
  cubin.bytes = {0x7f, 'E', 'L', 'F', 2, 1, 1};
  for (int i = 0; i < 93; ++i) cubin.bytes.push_back(static_cast<std::uint8_t>(i * 7));
  cubin.entry_name = "nvfp4_gemv";
  cubin.compiler_version = "NVRTC 13.0 (13.0.88)";
  cubin.compile_ms = 251;
  cubin.resources = {168, 1040, 16, 24, 48};
  cubin.waits_for_predecessor = true;
  return entry;
}

// Offsets in an entry, from the grammar: prefix 16, then n k nt flags sm suffix digest created six-numbers waits.
constexpr std::size_t header_at = 16;
constexpr std::size_t sm_at = header_at + 8 + 8 + 4 + 8;
constexpr std::size_t suffix_at = sm_at + 4;
constexpr std::size_t waits_at = suffix_at + 1 + 32 + 8 + 6 * 4;
constexpr std::size_t name_length_at = waits_at + 1;

void expect_same(const Entry& a, const Entry& b) {
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.created_unix_seconds, b.created_unix_seconds);
  EXPECT_EQ(a.cubin.bytes, b.cubin.bytes);
  EXPECT_EQ(a.cubin.entry_name, b.cubin.entry_name);
  EXPECT_EQ(a.cubin.compiler_version, b.cubin.compiler_version);
  EXPECT_EQ(a.cubin.resources, b.cubin.resources);
  EXPECT_EQ(a.cubin.waits_for_predecessor, b.cubin.waits_for_predecessor);
  EXPECT_EQ(a.cubin.compile_ms, b.cubin.compile_ms);
}

void expect_damaged(const Bytes& bytes, const std::string& why = "") {
  const auto result = decode_entry(bytes);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.status().code(), StatusCode::entry_damaged);
  EXPECT_THAT(result.status().message(), HasSubstr(why));
  EXPECT_FALSE(result.status().message().empty());
}

// Put the right checksum at the end, so that only the rules of the format stand between the bytes and an entry.
Bytes with_checksum(Bytes bytes) {
  const Digest checksum = Sha256::of(bytes.data(), bytes.size() - 32);
  std::memcpy(bytes.data() + bytes.size() - 32, checksum.data(), 32);
  return bytes;
}

TEST(Entry, RoundTrip) {
  Entry entry = golden_entry();
  expect_same(*decode_entry(encode_entry(entry)), entry);

  entry.id.key = {std::numeric_limits<std::int64_t>::max(), 0, 0, ~std::uint64_t{0}, {120, 0}};
  entry.created_unix_seconds = -1;
  entry.cubin = {};
  expect_same(*decode_entry(encode_entry(entry)), entry);

  entry.cubin.bytes.assign(300'000, 0xA5);
  entry.cubin.entry_name = std::string(entry_string_limit, 'e');
  entry.cubin.compiler_version = std::string("a\0b", 3);
  entry.cubin.resources = {~0u, ~0u, ~0u, ~0u, ~0u};
  entry.cubin.compile_ms = ~0u;
  expect_same(*decode_entry(encode_entry(entry)), entry);
}

TEST(Entry, GoldenFileOfVersion1) {
  const std::string text = test::read_text(GEMVJIT_SOURCE_DIR "/tests/golden/entry_v1.entry");
  const Bytes bytes(text.begin(), text.end());
  ASSERT_EQ(bytes.size(), 292u);
  const auto decoded = decode_entry(bytes);
  ASSERT_TRUE(decoded) << decoded.status().text();
  expect_same(*decoded, golden_entry());
  EXPECT_EQ(encode_entry(golden_entry()), bytes);
}

TEST(Entry, EveryTruncationIsDamaged) {
  const Bytes whole = encode_entry(golden_entry());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    SCOPED_TRACE(size);
    const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    expect_damaged(part);
    if (size >= 32) expect_damaged(with_checksum(part));
  }
}

TEST(Entry, EveryFlippedBitIsDamaged) {
  Bytes bytes = encode_entry(golden_entry());
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    SCOPED_TRACE(bit);
    bytes[bit / 8] = static_cast<std::uint8_t>(bytes[bit / 8] ^ (1u << (bit % 8)));
    expect_damaged(bytes);
    bytes[bit / 8] = static_cast<std::uint8_t>(bytes[bit / 8] ^ (1u << (bit % 8)));
  }
  EXPECT_TRUE(decode_entry(bytes));
}

TEST(Entry, BytesBehindTheEndAreDamage) {
  Bytes bytes = encode_entry(golden_entry());
  bytes.push_back(0);
  expect_damaged(bytes, "cut off or too long");
  expect_damaged(with_checksum(bytes), "cut off or too long");
}

TEST(Entry, MessagesSayWhatIsWrong) {
  expect_damaged({}, "0 bytes are too few");
  expect_damaged(Bytes(200, 0), "does not begin");
  Bytes bytes = encode_entry(golden_entry());
  bytes[8] = 2;
  expect_damaged(with_checksum(bytes), "format version 2, this library reads version 1");
  bytes = encode_entry(golden_entry());
  bytes.back() ^= 1;
  expect_damaged(bytes, "checksum");
}

// A right checksum proves that nothing changed since writing, not that the writer kept to the format.
TEST(Entry, RulesHoldUnderARightChecksum) {
  const Bytes whole = encode_entry(golden_entry());
  const auto with_byte = [&](std::size_t at, std::uint8_t value) {
    Bytes bytes = whole;
    bytes[at] = value;
    return with_checksum(bytes);
  };
  expect_damaged(with_byte(header_at + 7, 0x80), "negative");       // n
  expect_damaged(with_byte(header_at + 15, 0x80), "negative");      // k
  expect_damaged(with_byte(header_at + 19, 0x80), "negative");      // nt
  expect_damaged(with_byte(sm_at + 3, 0x80), "architecture");       // negative
  expect_damaged(with_byte(sm_at, 0), "architecture");              // sm_0
  expect_damaged(with_byte(suffix_at, 'b'), "architecture");        // sm_90b
  expect_damaged(with_byte(waits_at, 2), "expected 0 or 1");        // neither
  expect_damaged(with_byte(name_length_at, 11), "ends within");     // eats into the next length
  expect_damaged(with_byte(name_length_at + 1, 2), "ends within");  // longer than is allowed
  expect_damaged(with_byte(name_length_at + 3, 0xff), "ends within");
  expect_damaged(with_byte(name_length_at, 9), "");     // the next string starts early
  expect_damaged(with_byte(15, 0xff), "does not fit");  // header_size
}

TEST(Entry, StringsAreBounded) {
  Entry entry = golden_entry();
  entry.cubin.entry_name = std::string(entry_string_limit + 1, 'e');
  expect_damaged(encode_entry(entry), "too long a string");
  entry = golden_entry();
  entry.cubin.compiler_version = std::string(entry_string_limit + 1, 'e');
  expect_damaged(encode_entry(entry), "too long a string");
}

// Any bytes give an answer, and what decodes has one encoding. Run under sanitizers this is also a test of the bounds.
TEST(Entry, DecodeIsTotalAndCanonical) {
  const Bytes whole = encode_entry(golden_entry());
  std::mt19937 random(20240229);
  int decoded_count = 0;
  for (int round = 0; round < 20'000; ++round) {
    Bytes bytes = whole;
    const std::size_t structure_end = name_length_at + 4 + 10 + 4 + 20 + 8;  // the payload's bytes are free
    for (std::uint32_t change = 0; change <= random() % 3; ++change) {
      bytes[random() % structure_end] = static_cast<std::uint8_t>(random() % 4 == 0 ? 0xff : random());
    }
    bytes = with_checksum(bytes);
    const auto decoded = decode_entry(bytes);
    if (!decoded) {
      EXPECT_EQ(decoded.status().code(), StatusCode::entry_damaged);
      continue;
    }
    ++decoded_count;
    ASSERT_EQ(encode_entry(*decoded), bytes);
    EXPECT_EQ(*KernelKey::parse(decoded->id.key.text()), decoded->id.key);
  }
  EXPECT_GT(decoded_count, 1000) << "the changes should often leave an entry";

  for (int round = 0; round < 2'000; ++round) {
    Bytes noise(random() % 400);
    for (std::uint8_t& byte : noise) byte = static_cast<std::uint8_t>(random());
    expect_damaged(noise);
  }
}

}  // namespace
}  // namespace gemvjit
