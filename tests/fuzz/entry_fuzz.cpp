// The fuzz function of the entry reader: any bytes give an answer, and what decodes has one encoding. The bytes are
// tried as they are, and with the right checksum at their end, without which nothing behind the checksum is reached.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "cache/entry.h"
#include "tests/fuzz/fuzz_targets.h"

namespace gemvjit {
namespace {

void check(const Bytes& bytes) {
  const auto decoded = decode_entry(bytes);
  if (!decoded) {
    if (decoded.status().code() != StatusCode::entry_damaged || decoded.status().message().empty()) std::abort();
    return;
  }
  if (encode_entry(*decoded) != bytes) std::abort();
}

}  // namespace

int fuzz_entry(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, data + size);
  check(bytes);
  constexpr std::size_t checksum_size = 32;
  if (size < checksum_size) return 0;
  const Digest checksum = Sha256::of(bytes.data(), size - checksum_size);
  std::memcpy(bytes.data() + size - checksum_size, checksum.data(), checksum_size);
  check(bytes);
  // And where a signature follows.
  if (size < checksum_size + signature_block_bytes) return 0;
  bytes.assign(data, data + size);
  const std::size_t at = size - signature_block_bytes - checksum_size;
  const Digest before = Sha256::of(bytes.data(), at);
  std::memcpy(bytes.data() + at, before.data(), checksum_size);
  check(bytes);
  return 0;
}

}  // namespace gemvjit
