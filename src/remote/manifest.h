// Manifest: which payloads a name stands for. What lies under "/ac/<name>" of a remote cache: one file for a kernel,
// many for a plan or a set.
//
// On the wire an ActionResult of the Remote Execution API (build.bazel.remote.execution.v2,
// remote_execution.proto), of which only this is written:
//   ActionResult { repeated OutputFile output_files = 2; }
//   OutputFile   { string path = 1; Digest digest = 2; }
//   Digest       { string hash = 1; int64 size_bytes = 2; }      hash: SHA-256, 64 lower-case hex digits
// so that servers that look into it, as bazel-remote does, find what they expect and that its payloads are there. Other
// fields are passed over.
//
// Such a server gives no manifest of which it lacks a single payload. So that the others are found all the same, the
// manifest of several kernels is there once more, under another name and as a list:
//   ActionResult { bytes stdout_raw = 5; }                       the encoded manifest
// which no server takes for the names of payloads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cache/entry.h"
#include "src/base/files.h"
#include "src/base/sha256.h"
#include "src/base/status.h"

namespace gemvjit {

inline constexpr std::size_t manifest_size_limit = 4u << 20;
inline constexpr std::size_t manifest_file_limit = 16384;
// Bytes of a payload: kernels have some ten or a hundred thousand, and RemoteOptions::connections of them are in memory
// at once, whatever a server says.
inline constexpr std::size_t remote_payload_limit = 8u << 20;

struct ManifestFile {
  std::string path;  // "<key>/<digest>" of an entry
  Digest sha256{};   // of the payload
  std::uint64_t size = 0;
  bool operator==(const ManifestFile&) const = default;
};

struct Manifest {
  std::vector<ManifestFile> files;
};

// Sorted by path, so that the same files give the same bytes.
Bytes encode_manifest(Manifest manifest);
Bytes encode_list(Manifest manifest);
// Of a manifest or a list. entry_damaged for bytes that are none, or name a payload beyond its limit, or are beyond a
// limit.
Result<Manifest> decode_manifest(const Bytes& bytes);

// "n4096-k4096-nt1-f0000000000002022-sm_90a/<64 hex digits>", and back; invalid_argument for all else.
std::string manifest_path(const EntryId& id);
Result<EntryId> parse_manifest_path(const std::string& path);

// The names under "/ac/", 64 lower-case hex digits: of one kernel; of kernels together, in any order; of a set that
// somebody gave a name. Another format of entries (entry_format_version) has other names.
std::string kernel_name(const EntryId& id);
std::string plan_name(const std::vector<EntryId>& ids);
std::string set_name(const std::string& name);
std::string list_name(const std::string& name);  // of the list beside the manifest that has this name

}  // namespace gemvjit
