// Public keys that are none, and those that anybody can sign for.
#include "src/base/ed25519_point.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/ed25519_keys.h"

namespace gemvjit {
namespace {

using test::from_hex_text;
using testing::HasSubstr;

Ed25519PublicKey key_of(const Bytes& bytes) {
  Ed25519PublicKey key{};
  std::copy_n(bytes.begin(), std::min(bytes.size(), key.size()), key.begin());
  return key;
}

Ed25519PublicKey small(std::uint8_t y) { return key_of({y}); }

// 2^255 - 19 + more, of more < 19.
Ed25519PublicKey from_p(int more) {
  Ed25519PublicKey key;
  key.fill(0xFF);
  key.front() = static_cast<std::uint8_t>(0xED + more);
  key.back() = 0x7F;
  return key;
}

Ed25519PublicKey with_sign(Ed25519PublicKey key) {
  key.back() |= 0x80;
  return key;
}

void expect_refused(const Ed25519PublicKey& key, const char* reason) {
  for (const Ed25519PublicKey& each : {key, with_sign(key)}) {
    const Status status = check_ed25519_point(each);
    EXPECT_EQ(status.code(), StatusCode::invalid_argument) << int{each[0]};
    EXPECT_THAT(status.message(), HasSubstr(reason));
  }
}

// All the encodings: of y = 0 and y = 1 there are second ones, p and p + 1.
TEST(Ed25519Point, SmallOrderIsRefusedInEveryEncoding) {
  for (const char* y : {"0000000000000000000000000000000000000000000000000000000000000000",
                        "0100000000000000000000000000000000000000000000000000000000000000",
                        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
                        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
                        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"}) {
    expect_refused(key_of(from_hex_text(y)), "small order");
  }
  for (int more = 0; more < 19; ++more) expect_refused(from_p(more), "not below 2^255 - 19");
}

TEST(Ed25519Point, WhatIsNotOnTheCurveIsRefused) {
  const std::uint64_t on_curve =
      0xbdf6476adfeb719e;  // bit i: whether y = 2 + i is that of a point, by Python's integers
  for (int i = 0; i < 64; ++i) {
    const Ed25519PublicKey key = small(static_cast<std::uint8_t>(2 + i));
    if ((on_curve >> i & 1) != 0) {
      EXPECT_TRUE(check_ed25519_point(key)) << i;
      EXPECT_TRUE(check_ed25519_point(with_sign(key))) << i;
    } else {
      expect_refused(key, "no such point");
    }
  }
  // p - 3 and p - 7; and of random numbers.
  EXPECT_TRUE(check_ed25519_point(from_p(-3)));
  expect_refused(from_p(-7), "no such point");
  for (const char* y : {"264aad6cb6dd210faf94acd3cf92c190237cb11f5d108cf2593026399c59b850",
                        "8b15442ee2db611a91bfe39469733a9247d58fa3c55018300372555fe99a780c",
                        "29fb388c22e44cb637f01210c3707a90b405420fb169779edfb5b93492828a3f"}) {
    EXPECT_TRUE(check_ed25519_point(key_of(from_hex_text(y)))) << y;
  }
  for (const char* y : {"38b4e652e44da7f2370d9e260e27136550a4a3a6d07f5c0c332f8b1212841f69",
                        "2b902f8911e81818f8c99d5d5d9831957504d90e945de2e8f54ee781e63a7b1b",
                        "d85099095aa300165a67036f9b540d6b8f0be21124179c3dd9f7381767b78846"}) {
    expect_refused(key_of(from_hex_text(y)), "no such point");
  }
}

using Ed25519PointTest = test::WithLibcrypto;

TEST_F(Ed25519PointTest, EveryKeyThatLibcryptoMakesIsGood) {
  for (int seed = 0; seed < 256; ++seed) {
    const auto signer = ed25519_->read_private_key(test::private_pem(Bytes(32, static_cast<std::uint8_t>(seed))));
    ASSERT_TRUE(signer) << signer.status().message();
    EXPECT_TRUE(check_ed25519_point((*signer)->public_key())) << seed;
  }
}

// Why: with the neutral element as key, its own encoding and 0 make a signature of every message.
TEST_F(Ed25519PointTest, AnybodyCanSignForASmallOrderKeySoItIsNotRead) {
  const Ed25519PublicKey neutral = small(1);
  Ed25519Signature forged{};
  std::copy(neutral.begin(), neutral.end(), forged.begin());
  for (const char* message : {"", "00", "c0ffee"}) {
    ASSERT_TRUE(ed25519_->verify(neutral, from_hex_text(message), forged)) << "libcrypto began to refuse such keys";
  }
  const auto read = ed25519_->read_public_key(test::public_pem(Bytes(neutral.begin(), neutral.end())));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.status().code(), StatusCode::invalid_argument);
  EXPECT_THAT(read.status().message(), HasSubstr("small order"));
}

TEST_F(Ed25519PointTest, AFileWithMoreThanOneKeyIsNotRead) {
  const Bytes first = from_hex_text("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
  const Bytes second = from_hex_text("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
  const auto joined = [](Bytes a, const Bytes& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  const Bytes comment = {'#', ' ', 'm', 'i', 'n', 'e', '\n'};
  EXPECT_TRUE(ed25519_->read_public_key(test::public_pem(first)));
  EXPECT_TRUE(ed25519_->read_public_key(joined(joined(comment, test::public_pem(first)), comment)));
  for (const Bytes& pem : {joined(test::public_pem(first), test::public_pem(second)),
                           joined(test::public_pem(first), test::public_pem(first)),
                           joined(joined(test::public_pem(first), comment), test::pem("CERTIFICATE", second)),
                           test::pem("PUBLIC KEY", joined(test::public_der(first), test::public_der(second)))}) {
    const auto key = ed25519_->read_public_key(pem);
    ASSERT_FALSE(key);
    EXPECT_THAT(key.status().message(), HasSubstr("more than one key"));
  }
  EXPECT_TRUE(ed25519_->read_private_key(test::private_pem(first)));
  EXPECT_FALSE(ed25519_->read_private_key(joined(test::private_pem(first), test::private_pem(second))));
}

}  // namespace
}  // namespace gemvjit
