// write_bundle: one pass over the entries, so that no copy of them all is in memory.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <new>
#include <system_error>

#include "cache/bundle.h"
#include "cache/bundle_layout.h"
#include "src/base/binary_fields.h"

namespace gemvjit {
namespace {

using namespace bundle_layout;

Status io_failure(const char* doing, const std::string& path, int error) {
  return {StatusCode::io_error, fmt::format("cannot {} {}: {}", doing, path, std::generic_category().message(error))};
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
    std::uint64_t random = 0;
    int error = 0;
    for (int attempt = 0; attempt < 16; ++attempt) {
      if (::getrandom(&random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) ++random;
      std::string name =
          fmt::format("{}/{}{}-{:016x}", split_path(final_path_).folder, temporary_file_prefix, ::getpid(), random);
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
    const int folder = ::open(split_path(final_path_).folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return io_failure("open directory", split_path(final_path_).folder, errno);
    const int error = ::fsync(folder) != 0 ? errno : 0;
    ::close(folder);
    // Some file systems cannot sync a directory and say so; there is nothing more to be had from them.
    if (error != 0 && error != EINVAL && error != ENOTSUP) {
      return io_failure("fsync directory", split_path(final_path_).folder, error);
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
  for (std::size_t i = 0; i < ids.size(); ++i) {
    GEMVJIT_TRY_ASSIGN(const Bytes bytes, encoded(ids[i], i));
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
  Bytes footer;
  FieldWriter out(footer);
  const Digest index_sha = Sha256::of(index.data(), index.size());
  const std::uint64_t index_offset = file.size();
  out.number(index_offset);
  out.number(static_cast<std::uint64_t>(index.size()));
  out.number(static_cast<std::uint64_t>(ids.size()));
  out.raw(index_sha.data(), index_sha.size());
  out.raw(end_magic.data(), end_magic.size());
  GEMVJIT_TRY(file.append(index));
  GEMVJIT_TRY(file.append(footer));
  if (sign) {
    Bytes block;
    GEMVJIT_TRY_ASSIGN(const SignatureBlock signature,
                       sign(signing_message(index_offset, index.size(), ids.size(), index_sha)));
    append_signature_block(block, signature);
    GEMVJIT_TRY(file.append(block));
  }
  GEMVJIT_TRY(file.publish());
  return WrittenBundle{.entries = ids.size(), .bytes = file.size(), .sha256 = file.digest()};
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
