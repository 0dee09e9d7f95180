// BuildRecords: when the kernels of a cache folder were compiled, and how long that took. Their entries do not say it,
// so that a kernel that is compiled again has the same bytes.
//
//   <root>/v1/builds := "GEMVBLD1" bucket[2048]; bucket := slot[8]
//   slot := digest:8 bytes when:i64 milliseconds:u32 check:4 bytes      little-endian, no padding
//
// The digest is the beginning of the entry's, and its number modulo 2048 the bucket; `check` is the beginning of the
// SHA-256 of the rest. A slot that fails it is empty; of a full bucket the oldest goes. Sparse, and little more than
// 384 KiB at most.
//
// It is advice: what is lost, torn or overwritten is not known, and nothing more. Threads and processes: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cache/cache_folders.h"
#include "cache/entry.h"
#include "src/base/files.h"

namespace gemvjit {

struct BuildRecord {
  std::int64_t when = 0;  // unix seconds
  std::uint32_t milliseconds = 0;
};

std::string build_records_path(const std::string& root);  // <root>/v1/builds

class BuildRecords {
 public:
  // What is known of the folder by now; nothing where nothing can be read.
  static BuildRecords read(const std::string& root);
  std::optional<BuildRecord> find(const Digest& digest) const;

 private:
  Bytes slots_;
};

// Keeps the record, in a folder that has <root>/v1, with the modes of the trust. Where that cannot be done it is not
// kept.
void note_build(const std::string& root, const Digest& digest, const BuildRecord& record,
                CacheTrust trust = CacheTrust::owner, const EntryGuard* guard = nullptr);

}  // namespace gemvjit
