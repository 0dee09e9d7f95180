#include "src/base/sha256.h"

#include <gtest/gtest.h>

#include <cctype>
#include <string>

namespace gemvjit {
namespace {

std::string hash(std::string_view text) { return to_hex(Sha256::of(text.data(), text.size())); }

// NIST's examples for FIPS 180-4.
TEST(Sha256, StandardVectors) {
  EXPECT_EQ(hash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hash(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesOfAnyLengthGiveTheSame) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 31);
  for (std::size_t size = 0; size <= text.size(); ++size) {
    const std::string_view all = std::string_view(text).substr(0, size);
    for (std::size_t piece : {std::size_t{1}, std::size_t{55}, std::size_t{63}, std::size_t{64}, std::size_t{65}}) {
      Sha256 pieces;
      for (std::size_t at = 0; at < size; at += piece) pieces.update(all.substr(at, piece));
      ASSERT_EQ(to_hex(pieces.finish()), hash(all)) << size << " bytes in pieces of " << piece;
    }
  }
}

TEST(Sha256, LengthsAroundTheBlockDiffer) {
  // From an independent implementation (Python's hashlib), for the padding's edges.
  EXPECT_EQ(hash(std::string(55, 'x')), "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072");
  EXPECT_EQ(hash(std::string(56, 'x')), "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e");
  EXPECT_EQ(hash(std::string(64, 'x')), "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c");
}

TEST(Sha256, TaggedPiecesCannotRunTogether) {
  const auto tagged = [](std::string_view tag, std::string_view bytes) {
    Sha256 result;
    result.update_tagged(tag, bytes);
    return to_hex(result.finish());
  };
  EXPECT_NE(tagged("ab", "c"), tagged("a", "bc"));
  EXPECT_NE(tagged("", "abc"), tagged("abc", ""));
  EXPECT_EQ(tagged("ab", "c"), tagged("ab", "c"));
}

TEST(Hex, RoundTripAndRefusals) {
  const Digest digest = Sha256::of("abc", 3);
  Digest back{};
  EXPECT_TRUE(from_hex(to_hex(digest), back));
  EXPECT_EQ(back, digest);
  std::string upper = to_hex(digest);
  for (char& c : upper) c = static_cast<char>(std::toupper(c));
  back = {};
  EXPECT_TRUE(from_hex(upper, back));
  EXPECT_EQ(back, digest);

  const std::string good = to_hex(digest);
  for (const std::string& bad :
       {std::string(), good.substr(1), good + "0", good.substr(1) + "g", " " + good.substr(1), "0x" + good.substr(2)}) {
    EXPECT_FALSE(from_hex(bad, back)) << bad;
    EXPECT_EQ(back, digest) << "a refused text must leave the digest alone";
  }
}

}  // namespace
}  // namespace gemvjit
