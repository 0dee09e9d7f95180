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
#include <system_error>

#include "cache/bundle.h"
#include "cache/bundle_layout.h"
#include "cache/layout.h"
#include "src/base/binary_fields.h"
#include "src/base/blocked_signal.h"

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
void remove_stale_temporaries(const std::string& folder) {
  const auto names = list_directory(folder);
  const std::int64_t now = std::time(nullptr);
  for (const std::string& name : names ? *names : std::vector<std::string>{}) {
    const std::string path = folder + "/" + name;
    struct stat info {};
    if (!is_bundle_temporary(name) || ::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (now - std::int64_t{info.st_mtime} > stale_after_seconds) (void)remove_file(path);
  }
}

// The file under its temporary name; removed again unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string final_path) : final_path_(std::move(final_path)) {}
  ~TemporaryFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  Status create() {
    const std::string folder = split_path(final_path_).folder;
    remove_stale_temporaries(folder);
    int error = 0;
    for (unsigned attempt = 0; attempt < 16; ++attempt) {
      std::string name = fmt::format("{}/{}{}", folder, temporary_file_name(attempt), bundle_suffix);
      fd_ = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
      error = errno;
      if (fd_ >= 0) {
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
      const ssize_t got = ::write(fd_, bytes.data() + written, bytes.size() - written);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return io_failure("write", temporary_, errno);
      written += static_cast<std::size_t>(got);
    }
    sha_.update(bytes.data(), bytes.size());
    size_ += bytes.size();
    return Status::ok();
  }

  Status publish() {
    if (::fsync(fd_) != 0) return io_failure("fsync", temporary_, errno);
    const int fd = fd_;
    fd_ = -1;
    // Some network file systems report a failed write only here.
    if (::close(fd) != 0 && errno != EINTR) return io_failure("close", temporary_, errno);
    if (std::rename(temporary_.c_str(), final_path_.c_str()) != 0) {
      return io_failure("rename a temporary file to", final_path_, errno);
    }
    temporary_.clear();
    const std::string folder = split_path(final_path_).folder;
    const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return io_failure("open directory", folder, errno);
    const int error = ::fsync(directory) != 0 ? errno : 0;
    ::close(directory);
    // Some file systems cannot sync a directory and say so; there is nothing more to be had from them.
    if (error != 0 && error != EINVAL && error != ENOTSUP) {
      return io_failure("fsync directory", folder, error);
    }
    return Status::ok();
  }

  std::uint64_t size() const { return size_; }
  Digest digest() { return sha_.finish(); }

 private:
  std::string final_path_, temporary_;
  int fd_ = -1;
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
