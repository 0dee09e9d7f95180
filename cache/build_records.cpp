#include "cache/build_records.h"

#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <string_view>

#include "cache/layout.h"
#include "src/base/binary_fields.h"
#include "src/base/blocked_signal.h"
#include "src/base/descriptor.h"
#include "src/base/sha256.h"

namespace gemvjit {
namespace {

constexpr std::string_view magic = "GEMVBLD1";
constexpr char file_name[] = "builds";  // in the format version's folder
constexpr std::size_t digest_size = 8, check_size = 4;
constexpr std::size_t slot_size = digest_size + sizeof(std::int64_t) + sizeof(std::uint32_t) + check_size;
constexpr std::size_t slots_in_bucket = 8, buckets = 2048;
constexpr std::size_t bucket_size = slots_in_bucket * slot_size, file_size = magic.size() + buckets * bucket_size;

std::size_t bucket_of(const Digest& digest) {
  std::size_t number = 0;
  for (std::size_t i = 0; i < digest_size; ++i) number = number << 8 | digest[i];
  return number % buckets;
}

bool is_of(const Digest& digest, const std::uint8_t* slot) {
  return std::memcmp(slot, digest.data(), digest_size) == 0;
}

Bytes encode(const Digest& digest, const BuildRecord& record) {
  Bytes slot;
  FieldWriter out(slot);
  out.raw(digest.data(), digest_size);
  out.number(record.when);
  out.number(record.milliseconds);
  out.raw(Sha256::of(slot.data(), slot.size()).data(), check_size);
  return slot;
}

std::optional<BuildRecord> decode(const std::uint8_t* slot) {
  const Digest check = Sha256::of(slot, slot_size - check_size);
  if (std::memcmp(check.data(), slot + slot_size - check_size, check_size) != 0) return std::nullopt;
  BuildRecord record;
  FieldReader in(slot + digest_size, slot_size - digest_size);
  in.number(record.when);
  in.number(record.milliseconds);
  return record;
}

// Where in its bucket the digest has its slot, or may have one: an empty one, else the oldest.
std::size_t choose_slot(const Digest& digest, const std::array<std::uint8_t, bucket_size>& bucket) {
  std::size_t chosen = 0;
  std::int64_t oldest = INT64_MAX;
  for (std::size_t at = 0; at < bucket_size; at += slot_size) {
    const std::optional<BuildRecord> there = decode(&bucket[at]);
    if (there && is_of(digest, &bucket[at])) return at;
    const std::int64_t when = there ? there->when : INT64_MIN;
    if (when >= oldest) continue;
    oldest = when;
    chosen = at;
  }
  return chosen;
}

}  // namespace

std::string build_records_path(const std::string& root) { return version_directory(root) + "/" + file_name; }

BuildRecords BuildRecords::read(const std::string& root) {
  BuildRecords records;
  if (root.empty()) return records;
  const Result<Folder> folder = open_cache_folder(root, version_directory(root), nullptr);
  if (!folder) return records;
  if (Result<Bytes> bytes = folder->read_file(file_name, file_size)) records.slots_ = std::move(bytes).value();
  return records;
}

std::optional<BuildRecord> BuildRecords::find(const Digest& digest) const {
  const std::size_t begin = magic.size() + bucket_of(digest) * bucket_size;
  for (std::size_t at = begin; at < begin + bucket_size && at + slot_size <= slots_.size(); at += slot_size) {
    if (!is_of(digest, &slots_[at])) continue;
    if (const std::optional<BuildRecord> record = decode(&slots_[at])) return record;
  }
  return std::nullopt;
}

void note_build(const std::string& root, const Digest& digest, const BuildRecord& record, CacheTrust trust,
                const EntryGuard* guard) {
  if (root.empty()) return;
  const Result<Folder> folder = open_cache_folder(root, version_directory(root), guard);
  if (!folder) return;
  const Descriptor file = open_cache_record(*folder, file_name, magic, trust, guard, Missing::made);
  if (!file.is_open()) return;
  const BlockedSignal no_sigxfsz(SIGXFSZ);
  std::array<std::uint8_t, bucket_size> bucket{};
  const auto begin = static_cast<off_t>(magic.size() + bucket_of(digest) * bucket_size);
  if (::pread(file.get(), bucket.data(), bucket.size(), begin) < 0) return;
  const Bytes slot = encode(digest, record);
  const auto at = static_cast<off_t>(choose_slot(digest, bucket));
  // One that is written in part fails its check.
  [[maybe_unused]] const ssize_t written = ::pwrite(file.get(), slot.data(), slot.size(), begin + at);
}

}  // namespace gemvjit
