// Entries for tests of the cache: whole, small, and different in what a test says.
#pragma once

#include <cstdint>
#include <string>

#include "cache/entry.h"

namespace gemvjit::test {

struct EntryParts {
  std::int64_t n = 64, k = 4096;
  std::uint8_t digest_byte = 1;  // all of the digest; a test that wants another sets it afterwards
  std::size_t payload = 1000;    // bytes of the cubin
  std::uint8_t content = 1;      // each of them
  std::string compiler = "NVRTC 13.0";
};

inline Entry sample_entry(const EntryParts& parts = {}) {
  Entry entry;
  entry.id.key = {parts.n, parts.k, 1, 0x2022, {90, 'a'}};
  entry.id.digest.fill(parts.digest_byte);
  entry.created_unix_seconds = 1700000000;
  entry.cubin.bytes.assign(parts.payload, parts.content);
  entry.cubin.entry_name = "bf16_gemv";
  entry.cubin.compiler_version = parts.compiler;
  entry.cubin.resources.registers = 96;
  return entry;
}

}  // namespace gemvjit::test
