// Entries that a fault test can tell from anything else, and the scenarios that the faults are tried on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "cache/store.h"

namespace gemvjit::test {

// An entry whose payload is `content` many times over; its size depends on the content, so that no mixture passes.
inline Entry fault_entry(std::int64_t n, std::uint8_t content, const std::string& compiler = "NVRTC 13.0") {
  Entry entry;
  entry.id.key = {n, 4096, 1, 0x2022, {90, 'a'}};
  entry.id.digest.fill(static_cast<std::uint8_t>(n));
  entry.created_unix_seconds = 1700000000;
  entry.cubin.bytes.assign(300u + 10u * content, content);
  entry.cubin.entry_name = "bf16_gemv";
  entry.cubin.compiler_version = compiler;
  return entry;
}

// Whether it is what fault_entry made of some content.
inline bool is_fault_entry(const Entry& entry) {
  const Bytes& bytes = entry.cubin.bytes;
  return !bytes.empty() && bytes == fault_entry(entry.id.key.n, bytes[0]).cubin.bytes &&
         entry.cubin.entry_name == "bf16_gemv";
}

}  // namespace gemvjit::test
