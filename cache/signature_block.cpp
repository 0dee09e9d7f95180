#include "cache/signature_block.h"

#include <cstring>
#include <string_view>

#include "cache/entry.h"
#include "src/base/binary_fields.h"

namespace gemvjit {
namespace {

constexpr std::string_view magic = "GJSIGN\r\n";
constexpr std::string_view entry_domain = "gemvjit entry signature 1\n";

static_assert(sizeof(SignatureBlock) + magic.size() == signature_block_bytes);

}  // namespace

void append_signature_block(Bytes& bytes, const SignatureBlock& block) {
  FieldWriter out(bytes);
  out.raw(block.public_key.data(), block.public_key.size());
  out.raw(block.signature.data(), block.signature.size());
  out.raw(magic.data(), magic.size());
}

std::optional<SignatureBlock> parse_signature_block(const std::uint8_t* data) {
  SignatureBlock block;
  char end[magic.size()] = {};
  FieldReader in(data, signature_block_bytes);
  in.raw(block.public_key.data(), block.public_key.size());
  in.raw(block.signature.data(), block.signature.size());
  in.raw(end, sizeof end);
  if (!in.ok() || std::string_view(end, sizeof end) != magic) return std::nullopt;
  return block;
}

Bytes entry_signing_message(const Entry& entry) {
  const Bytes content = encode_unsigned_entry(entry);
  const Digest sha = Sha256::of(content.data(), content.size());
  Bytes message;
  FieldWriter out(message);
  out.raw(entry_domain.data(), entry_domain.size());
  out.number(entry_format_version);
  out.string(entry.id.key.text());
  out.raw(entry.id.digest.data(), entry.id.digest.size());
  out.raw(sha.data(), sha.size());
  return message;
}

std::string key_id(const Ed25519PublicKey& key) { return to_hex(Sha256::of(key.data(), key.size())).substr(0, 16); }

}  // namespace gemvjit
