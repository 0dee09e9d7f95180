// The signature that may follow an entry or a bundle, and the message that it signs. docs/cache_format.md has both.
//
//   block := public_key:32 bytes signature:64 bytes magic:8 bytes "GJSIGN\r\n"
//
// The signature is Ed25519 over a message that begins with what it is about, so that one for an entry is none for a
// bundle, and that names the whole content, so that it holds for nothing else:
//
//   of an entry  := "gemvjit entry signature 1\n" version:u32 key:string digest:32 bytes sha256:32 bytes
//   of a bundle  := "gemvjit bundle signature 1\n" version:u32 index_offset:u64 index_size:u64 entry_count:u64
//                   index_sha256:32 bytes
//
// with the format's version, the key's text, and the SHA-256 of the entry's bytes without the block.
#pragma once

#include <optional>
#include <string>

#include "src/base/ed25519.h"

namespace gemvjit {

struct Entry;

struct SignatureBlock {
  Ed25519PublicKey public_key{};
  Ed25519Signature signature{};
  bool operator==(const SignatureBlock&) const = default;
};

inline constexpr std::size_t signature_block_bytes = 32 + 64 + 8;

void append_signature_block(Bytes& bytes, const SignatureBlock& block);
// Nothing if the signature_block_bytes bytes there do not end with the magic.
std::optional<SignatureBlock> parse_signature_block(const std::uint8_t* data);

// What a signature of the entry signs; a block that it has already plays no part.
Bytes entry_signing_message(const Entry& entry);

// How people call a key: the first 16 hex digits of the SHA-256 of its 32 bytes.
std::string key_id(const Ed25519PublicKey& key);

}  // namespace gemvjit
