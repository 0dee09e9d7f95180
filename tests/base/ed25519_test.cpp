// Ed25519 by libcrypto: the vectors of RFC 8032, section 7.1, through PEM files, and what must be refused.
#include "src/base/ed25519.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/ed25519_keys.h"

namespace gemvjit {
namespace {

using test::from_hex_text;
using test::private_pem;
using test::public_pem;
using testing::HasSubstr;

struct Vector {
  const char *secret, *key, *message, *signature;
};
// Tests 1, 2, 3 and "SHA(abc)".
constexpr Vector vectors[] = {
    {"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
     "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe246"
     "55141438e7a100b"},
    {"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
     "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb"
     "00d291612bb0c00"},
    {"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
     "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc"
     "027beceea1ec40a"},
    {"833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
     "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
     "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2"
     "a9ac94fa54ca49f",
     "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad"
     "9bef1177331a704"},
};

template <typename Array>
Array array_of(const Bytes& bytes) {
  Array array{};
  EXPECT_EQ(bytes.size(), array.size());
  std::copy_n(bytes.begin(), std::min(bytes.size(), array.size()), array.begin());
  return array;
}

using Ed25519Test = test::WithLibcrypto;

TEST_F(Ed25519Test, KnownAnswersOfRfc8032) {
  for (const Vector& vector : vectors) {
    const auto signer = ed25519_->read_private_key(private_pem(from_hex_text(vector.secret)));
    ASSERT_TRUE(signer) << signer.status().message();
    const auto key = array_of<Ed25519PublicKey>(from_hex_text(vector.key));
    const auto signature = array_of<Ed25519Signature>(from_hex_text(vector.signature));
    const Bytes message = from_hex_text(vector.message);
    EXPECT_EQ((*signer)->public_key(), key);
    const auto read = ed25519_->read_public_key(public_pem(from_hex_text(vector.key)));
    ASSERT_TRUE(read) << read.status().message();
    EXPECT_EQ(*read, key);
    const auto made = (*signer)->sign(message);
    ASSERT_TRUE(made) << made.status().message();
    EXPECT_EQ(*made, signature);
    EXPECT_TRUE(ed25519_->verify(key, message, signature));
  }
}

TEST_F(Ed25519Test, EveryFlippedBitOfKeyMessageOrSignatureIsWrong) {
  const Vector& vector = vectors[2];
  const auto key = array_of<Ed25519PublicKey>(from_hex_text(vector.key));
  const auto signature = array_of<Ed25519Signature>(from_hex_text(vector.signature));
  const Bytes message = from_hex_text(vector.message);
  ASSERT_TRUE(ed25519_->verify(key, message, signature));
  const auto flip = [](auto bytes, std::size_t bit) {
    bytes[bit / 8] = static_cast<std::uint8_t>(bytes[bit / 8] ^ (1u << (bit % 8)));
    return bytes;
  };
  for (std::size_t bit = 0; bit < 8 * signature.size(); ++bit) {
    EXPECT_FALSE(ed25519_->verify(key, message, flip(signature, bit))) << bit;
  }
  for (std::size_t bit = 0; bit < 8 * key.size(); ++bit) {
    EXPECT_FALSE(ed25519_->verify(flip(key, bit), message, signature)) << bit;
  }
  for (std::size_t bit = 0; bit < 8 * message.size(); ++bit) {
    EXPECT_FALSE(ed25519_->verify(key, flip(message, bit), signature)) << bit;
  }
  EXPECT_FALSE(ed25519_->verify(key, {}, signature));
  EXPECT_FALSE(ed25519_->verify({}, message, signature));
}

TEST_F(Ed25519Test, WhatIsNoKeyIsRefusedAndItsTextIsNotInTheMessage) {
  const std::string secret = "SECRETSECRETSECRET";
  const std::string garbage = "-----BEGIN PRIVATE KEY-----\n" + secret + "\n-----END PRIVATE KEY-----\n";
  for (const std::string& text : {garbage, std::string(), secret}) {
    const Bytes pem(text.begin(), text.end());
    const auto signer = ed25519_->read_private_key(pem);
    ASSERT_FALSE(signer);
    EXPECT_EQ(signer.status().code(), StatusCode::invalid_argument);
    EXPECT_EQ(signer.status().message().find(secret), std::string::npos);
    EXPECT_FALSE(ed25519_->read_public_key(pem));
  }
  // X25519 in the place of Ed25519: the last byte of the object identifier is another.
  Bytes other = test::public_der(from_hex_text(vectors[0].key));
  other[8] = 0x6e;
  const auto key = ed25519_->read_public_key(test::pem("PUBLIC KEY", other));
  ASSERT_FALSE(key);
  EXPECT_THAT(key.status().message(), HasSubstr("another kind"));
}

TEST(Ed25519Library, AMissingOrForeignLibraryIsAnErrorThatNamesIt) {
  const auto missing = Ed25519::open("libcrypto-that-is-not-there.so.3");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.status().code(), StatusCode::unsupported);
  EXPECT_THAT(missing.status().message(), HasSubstr("libcrypto-that-is-not-there.so.3"));
  const auto foreign = Ed25519::open("libc.so.6");
  ASSERT_FALSE(foreign);
  EXPECT_THAT(foreign.status().message(), HasSubstr("libc.so.6 has no function"));
}

}  // namespace
}  // namespace gemvjit
