// What stands in the file of a ProcessLock, little-endian:
//
//   magic "GEMVLCK1"   pid:i64   nonce:u64   beat:u64      the header: who works, and signs of life
//   size:u32 payload checksum                              how the work ended; absent while it goes on
//   payload := kind:u8 ('D' done, 'F' failed) code:i32 maker:string message:string;  string := u32 length, bytes
//   checksum := SHA-256 over nonce and payload
//
// A reader may meet a file that is being written, or nonsense: neither is taken for an end.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "src/base/files.h"
#include "src/base/status.h"

namespace gemvjit {

inline constexpr std::size_t lock_header_size = 32;
inline constexpr std::size_t lock_beat_offset = 24;
using LockHeader = std::array<std::uint8_t, lock_header_size>;

struct LockOutcome {
  char kind;  // 'D' or 'F'
  Status failure;
  std::string maker;
};

// Of this process, with a nonce that tells this holding from its others. beat is 0.
LockHeader make_lock_header();
std::array<std::uint8_t, 8> lock_beat(std::uint64_t beat);  // the bytes at lock_beat_offset
std::int64_t lock_holder_pid(const Bytes& file);            // 0: none

// What follows the header. Of a long message the first 16 KiB go in, of `maker` 256 bytes.
Bytes encode_lock_outcome(const LockHeader& header, const LockOutcome& outcome);
// How the work ended, if the file (header included) says so and is whole.
std::optional<LockOutcome> decode_lock_outcome(const Bytes& file);

}  // namespace gemvjit
