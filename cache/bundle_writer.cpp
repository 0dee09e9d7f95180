// write_bundle: one pass over the entries, so that no copy of them all is in memory.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <new>
#include <optional>
#include <system_error>

#include "cache/bundle.h"
#include "cache/bundle_layout.h"
#include "cache/layout.h"
#include "src/base/binary_fields.h"
#include "src/base/blocked_signal.h"
#include "src/base/folder.h"

namespace gemvjit {
namespace {

using namespace bundle_layout;

Status io_failure(const char* doing, const std::string& path, int error) {
  return {StatusCode::io_error, fmt::format("cannot {} {}: {}", doing, path, std::generic_category().message(error))};
}

constexpr std::int64_t stale_after_seconds = 3600;  // since its last write: no live writer waits so long

// How a bundle is called that is being written: as any temporary, and with its own suffix.
bool is_bundle_temporary(std::string_view name) {
  if (!name.ends_with(bundle_suffix)) return false;
  name.remove_suffix(bundle_suffix.size());
  return is_temporary_file_name(name);
}

// What writers left in the folder that did not live to remove it. Another user's stays where that is not allowed.
void remove_stale_temporaries(const Folder& folder) {
  const auto names = folder.list();
  const std::int64_t now = std::time(nullptr);
  for (const std::string& name : names ? *names : std::vector<std::string>{}) {
    if (!is_bundle_temporary(name)) continue;
    const auto info = folder.examine(name);
    if (!info || !S_ISREG(info->st_mode)) continue;
    if (now - std::int64_t{info->st_mtime} > stale_after_seconds) (void)folder.remove(name);
  }
}

// The file under its temporary name; removed again unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string final_path) : final_path_(std::move(final_path)) {}
  ~TemporaryFile() {
    if (!temporary_.empty()) (void)folder_->remove(temporary_);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  Status create() {
    Result<Folder> folder = Folder::open(split_path(final_path_).folder);
    if (!folder) return {StatusCode::io_error, folder.status().message()};
    folder_ = std::move(folder).value();
    remove_stale_temporaries(*folder_);
    int error = 0;
    for (unsigned attempt = 0; attempt < 16; ++attempt) {
      std::string name = fmt::format("{}{}", temporary_file_name(attempt), bundle_suffix);
      file_ = folder_->open_file(name, O_WRONLY | O_CREAT | O_EXCL, 0644);
      error = errno;
      if (file_.is_open()) {
        temporary_ = std::move(name);
        return Status::ok();
      }
      if (error != EEXIST && error != EINTR) break;
    }
    return io_failure("create a file beside", final_path_, error);
  }

  Status append(const Bytes& bytes) {
    const BlockedSignal no_sigxfsz(SIGXFSZ);
    std::size_t written = 0;
    while (written < bytes.size()) {
      const ssize_t got = ::write(file_.get(), bytes.data() + written, bytes.size() - written);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return io_failure("write", folder_->path_of(temporary_), errno);
      written += static_cast<std::size_t>(got);
    }
    sha_.update(bytes.data(), bytes.size());
    size_ += bytes.size();
    return Status::ok();
  }

  Status publish() {
    const std::string path = folder_->path_of(temporary_);
    if (::fsync(file_.get()) != 0) return io_failure("fsync", path, errno);
    // Some network file systems report a failed write only here.
    if (const int error = file_.close(); error != 0) return io_failure("close", path, error);
    if (const Status moved = folder_->move(temporary_, *folder_, split_path(final_path_).name); !moved) {
      return {StatusCode::io_error, moved.message()};
    }
    temporary_.clear();
    return folder_->sync();
  }

  std::uint64_t size() const { return size_; }
  Digest digest() { return sha_.finish(); }

 private:
  std::string final_path_, temporary_;  // a path, a name
  std::optional<Folder> folder_;
  Descriptor file_{-1};
  std::uint64_t size_ = 0;
  Sha256 sha_;
};

Bytes header() {
  Bytes bytes;
  FieldWriter out(bytes);
  out.raw(magic.data(), magic.size());
  out.number(bundle_format_version);
  out.number(std::uint32_t{0});
  return bytes;
}

// An entry's bytes, which a reader will accept.
Result<Bytes> checked_bytes(const Entry& entry) {
  Bytes bytes = encode_entry(entry);
  const std::string name = entry.id.key.text();
  if (bytes.size() > entry_size_limit) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("the entry of {} has {} bytes, the limit is {}", name, bytes.size(), entry_size_limit));
  }
  if (const auto decoded = decode_entry(bytes); !decoded) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("the entry of {} could not be read back: {}", name, decoded.status().message()));
  }
  return bytes;
}

using EncodedEntry = std::function<Result<Bytes>(const EntryId& id, std::size_t index)>;

Result<WrittenBundle> write_sorted(const std::string& path, const std::vector<EntryId>& ids,
                                   const EncodedEntry& encoded, const SignMessage& sign) {
  TemporaryFile file(path);
  GEMVJIT_TRY(file.create());
  GEMVJIT_TRY(file.append(header()));
  Bytes index;
  FieldWriter items(index);
  std::uint64_t entries = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Result<Bytes> made = encoded(ids[i], i);
    if (!made && made.status().code() == StatusCode::not_found) continue;
    if (!made) return made.status();
    const Bytes& bytes = *made;
    ++entries;
    const Digest sha = Sha256::of(bytes.data(), bytes.size());
    items.string(ids[i].key.text());
    items.raw(ids[i].digest.data(), ids[i].digest.size());
    items.number(file.size());
    items.number(static_cast<std::uint64_t>(bytes.size()));
    items.raw(sha.data(), sha.size());
    GEMVJIT_TRY(file.append(bytes));
    if (file.size() + index.size() + footer_bytes > bundle_size_limit || index.size() > bundle_index_limit) {
      return Status(StatusCode::invalid_argument, fmt::format("{}: too large for one bundle", path));
    }
  }
  if (entries == 0 && !ids.empty()) return Status(StatusCode::not_found, fmt::format("{}: no entry is left", path));
  Bytes footer;
  FieldWriter out(footer);
  const Digest index_sha = Sha256::of(index.data(), index.size());
  const std::uint64_t index_offset = file.size();
  out.number(index_offset);
  out.number(static_cast<std::uint64_t>(index.size()));
  out.number(entries);
  out.raw(index_sha.data(), index_sha.size());
  out.raw(end_magic.data(), end_magic.size());
  GEMVJIT_TRY(file.append(index));
  GEMVJIT_TRY(file.append(footer));
  if (sign) {
    Bytes block;
    GEMVJIT_TRY_ASSIGN(const SignatureBlock signature,
                       sign(signing_message(index_offset, index.size(), entries, index_sha)));
    append_signature_block(block, signature);
    GEMVJIT_TRY(file.append(block));
  }
  GEMVJIT_TRY(file.publish());
  return WrittenBundle{.entries = entries, .bytes = file.size(), .sha256 = file.digest()};
}

// `ids` in the index's order.
Result<WrittenBundle> write_checked(const std::string& path, const std::vector<EntryId>& ids,
                                    const EncodedEntry& encoded, const SignMessage& sign) {
  try {
    GEMVJIT_TRY(check_replaceable(path));
    if (ids.size() > bundle_entry_limit) {
      return Status(StatusCode::invalid_argument,
                    fmt::format("{}: {} entries, a bundle holds {}", path, ids.size(), bundle_entry_limit));
    }
    const auto twin = std::adjacent_find(ids.begin(), ids.end());
    if (twin != ids.end()) {
      return Status(StatusCode::invalid_argument, fmt::format("{} is there twice", twin->key.text()));
    }
    return write_sorted(path, ids, encoded, sign);
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, fmt::format("no memory to write {}", path));
  }
}

}  // namespace

Result<WrittenBundle> write_bundle(const std::string& path, std::vector<const Entry*> entries,
                                   const SignMessage& sign) {
  std::sort(entries.begin(), entries.end(), [](const Entry* a, const Entry* b) { return comes_before(a->id, b->id); });
  std::vector<EntryId> ids;
  for (const Entry* entry : entries) ids.push_back(entry->id);
  return write_checked(
      path, ids, [&](const EntryId&, std::size_t index) { return checked_bytes(*entries[index]); }, sign);
}

Result<WrittenBundle> write_bundle(const std::string& path, std::vector<EntryId> ids, const LoadEntry& load,
                                   const SignMessage& sign) {
  std::sort(ids.begin(), ids.end(), comes_before);
  const auto encoded = [&](const EntryId& id, std::size_t) -> Result<Bytes> {
    GEMVJIT_TRY_ASSIGN(const Entry entry, load(id));
    if (entry.id == id) return checked_bytes(entry);
    return Status(StatusCode::invalid_argument,
                  fmt::format("{} was asked for and {} given", id.key.text(), entry.id.key.text()));
  };
  return write_checked(path, ids, encoded, sign);
}

}  // namespace gemvjit
