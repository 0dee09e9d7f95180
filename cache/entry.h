// A cache entry: one file that says which kernel it holds, where that came from, and proves that it is whole.
//
// File format, version 1. Little-endian, no padding between fields; `string` is u32 length then bytes.
//
//   file       := entry [signature]
//   entry      := magic version header_size header payload_size payload checksum
//   magic      := 8 bytes "GEMVJIT\n"
//   version    := u32, entry_format_version below
//   header_size:= u32, bytes of header
//   header     := n:i64 k:i64 nt:i32 flags:u64 sm:i32 suffix:u8 recipe_digest:32 bytes created_unix_seconds:i64
//                 compile_ms:u32 registers:u32 static_smem:u32 spill_store:u32 spill_load:u32 stack:u32 waits:u8
//                 entry_name:string compiler_version:string
//   payload_size := u64
//   payload    := the cubin
//   checksum   := SHA-256 over all bytes before it
//   signature  := a block as signature_block.h has it; there or not, by the file's size
//
// Every entry has one encoding: header_size is just the header's, suffix is 0, 'a' or 'f', waits is 0 or 1, n, k and nt
// are not negative, sm is 1 to 9999, the two strings are at most entry_string_limit bytes, and nothing but a
// signature follows the checksum. Whatever breaks one of these is damaged, even with a right checksum.
//
// History: 1, first version.
#pragma once

#include <cstdint>
#include <optional>

#include "cache/cubin.h"
#include "cache/kernel_key.h"
#include "cache/signature_block.h"
#include "src/base/sha256.h"
#include "src/base/status.h"

namespace gemvjit {

inline constexpr std::uint32_t entry_format_version = 1;
inline constexpr std::size_t entry_size_limit = 64u << 20;  // a file larger than this is not one of ours
inline constexpr std::size_t entry_string_limit = 256;      // bytes of entry_name and of compiler_version

// An entry's name: the key, and the digest of everything that decides the compiled bytes (see compile/specialize.h).
struct EntryId {
  KernelKey key;
  Digest digest{};
  bool operator==(const EntryId&) const = default;
};

// created_unix_seconds and compile_ms are 0 in what is compiled now, so that the same kernel has the same bytes whoever
// compiles it; entries of before say when and how long. Where that is known else see build_records.h.
struct Entry {
  EntryId id;
  std::int64_t created_unix_seconds = 0;
  Cubin cubin;
  std::optional<SignatureBlock> signature;  // parsed, not verified (signatures.h)
};

// Writes any entry; one that breaks the rules above gives bytes that decode_entry refuses (a store checks before put).
Bytes encode_entry(const Entry& entry);
Bytes encode_unsigned_entry(const Entry& entry);  // without the signature that it may have
// entry_damaged, with what is wrong, for bytes that are not exactly one whole entry of this version. Total: any bytes
// give an answer, and whatever decodes encodes to the same bytes again.
Result<Entry> decode_entry(const Bytes& bytes);

}  // namespace gemvjit
