#include "cache/bundle.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

#include "cache/bundle_layout.h"
#include "cache/layout.h"
#include "src/base/binary_fields.h"

namespace gemvjit {
namespace {

using namespace bundle_layout;

// The shortest index item: an empty key text would not parse, but its length is there.
constexpr std::uint64_t smallest_item = 4 + sizeof(Digest) + 8 + 8 + sizeof(Digest);

Status damaged(const std::string& path, const std::string& what) {
  return {StatusCode::entry_damaged, fmt::format("{}: {}", path, what)};
}

Status io_failure(const char* doing, const std::string& path, int error) {
  return {StatusCode::io_error, fmt::format("cannot {} {}: {}", doing, path, std::generic_category().message(error))};
}

}  // namespace

Result<std::unique_ptr<Bundle>> Bundle::open(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.is_open()) {
    if (errno == ENOENT) return Status(StatusCode::not_found, fmt::format("there is no file {}", path));
    if (errno == ELOOP) return Status(StatusCode::io_error, fmt::format("{} is a symbolic link, not followed", path));
    return io_failure("open", path, errno);
  }
  return open(path, std::move(file));
}

Result<std::unique_ptr<Bundle>> Bundle::open(const std::string& path, Descriptor file) {
  std::unique_ptr<Bundle> bundle(new (std::nothrow) Bundle(path, file.get()));
  if (bundle == nullptr) return Status(StatusCode::out_of_memory, fmt::format("no memory for {}", path));
  file.release();  // the bundle closes it
  try {
    GEMVJIT_TRY(bundle->read_index());
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, fmt::format("no memory for the index of {}", path));
  }
  return bundle;
}

Bundle::~Bundle() { ::close(fd_); }

Result<Bytes> Bundle::read_bytes(std::uint64_t offset, std::uint64_t size) const {
  Bytes bytes(static_cast<std::size_t>(size));
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = ::pread(fd_, bytes.data() + filled, bytes.size() - filled, static_cast<off_t>(offset + filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_failure("read", path_, errno);
    if (got == 0) return damaged(path_, fmt::format("it ends at byte {}, before what its index says", offset + filled));
    filled += static_cast<std::size_t>(got);
  }
  return bytes;
}

Status Bundle::read_index() {
  struct stat info {};
  if (::fstat(fd_, &info) != 0) return io_failure("examine", path_, errno);
  if (!S_ISREG(info.st_mode)) return {StatusCode::io_error, fmt::format("{} is no regular file", path_)};
  file_bytes_ = static_cast<std::uint64_t>(info.st_size);
  if (file_bytes_ < header_bytes + footer_bytes) return damaged(path_, "too short for a bundle");
  if (file_bytes_ > bundle_size_limit) return damaged(path_, fmt::format("larger than {} bytes", bundle_size_limit));

  GEMVJIT_TRY_ASSIGN(const Bytes header, read_bytes(0, header_bytes));
  FieldReader head(header.data(), header.size());
  char begin[magic.size()] = {};
  std::uint32_t version = 0, reserved = 0;
  head.raw(begin, sizeof begin);
  head.number(version);
  head.number(reserved);
  if (std::string_view(begin, sizeof begin) != magic) return damaged(path_, "not a bundle of this library");
  if (version != bundle_format_version) {
    return damaged(path_, fmt::format("bundle version {}, this library reads {}", version, bundle_format_version));
  }
  if (reserved != 0) return damaged(path_, "the reserved field of its header is not 0");

  std::uint64_t end_of_footer = file_bytes_;
  if (file_bytes_ >= header_bytes + footer_bytes + signature_block_bytes) {
    GEMVJIT_TRY_ASSIGN(const Bytes last, read_bytes(file_bytes_ - signature_block_bytes, signature_block_bytes));
    signature_ = parse_signature_block(last.data());
    if (signature_) end_of_footer -= signature_block_bytes;
  }
  GEMVJIT_TRY_ASSIGN(const Bytes footer, read_bytes(end_of_footer - footer_bytes, footer_bytes));
  FieldReader foot(footer.data(), footer.size());
  std::uint64_t index_offset = 0, index_size = 0, count = 0;
  Digest index_sha{};
  char end[end_magic.size()] = {};
  foot.number(index_offset);
  foot.number(index_size);
  foot.number(count);
  foot.raw(index_sha.data(), index_sha.size());
  foot.raw(end, sizeof end);
  if (std::string_view(end, sizeof end) != end_magic) return damaged(path_, "it has no footer: cut, or not finished");
  const std::uint64_t room = end_of_footer - footer_bytes;
  if (index_offset < header_bytes || index_offset > room || index_size != room - index_offset) {
    return damaged(path_, "its footer does not fit its size");
  }
  if (index_size > bundle_index_limit || count > bundle_entry_limit || count > index_size / smallest_item) {
    return damaged(path_, "its index is beyond the limits");
  }
  GEMVJIT_TRY_ASSIGN(const Bytes index, read_bytes(index_offset, index_size));
  if (Sha256::of(index.data(), index.size()) != index_sha) return damaged(path_, "its index fails its checksum");
  signing_message_ = bundle_layout::signing_message(index_offset, index_size, count, index_sha);
  return parse_index(index, count, index_offset);
}

Status Bundle::parse_index(const Bytes& bytes, std::uint64_t count, std::uint64_t index_offset) {
  FieldReader in(bytes.data(), bytes.size());
  items_.reserve(static_cast<std::size_t>(count));
  std::uint64_t expected = header_bytes;
  for (std::uint64_t i = 0; i < count; ++i) {
    Item item;
    std::string key_text;
    in.string(key_text, bundle_key_limit);
    in.raw(item.id.digest.data(), item.id.digest.size());
    in.number(item.offset);
    in.number(item.size);
    in.raw(item.sha256.data(), item.sha256.size());
    if (!in.ok()) return damaged(path_, fmt::format("its index ends within item {}", i));
    Result<KernelKey> key = KernelKey::parse(key_text);
    if (!key) return damaged(path_, fmt::format("item {} of its index is no key", i));
    item.id.key = *key;
    if (item.offset != expected || item.size == 0 || item.size > entry_size_limit ||
        item.size > index_offset - expected) {
      return damaged(path_, fmt::format("item {} of its index lies outside the entries", i));
    }
    if (!items_.empty() && !comes_before(items_.back().id, item.id)) {
      return damaged(path_, fmt::format("item {} of its index is out of order", i));
    }
    expected += item.size;
    items_.push_back(item);
  }
  if (in.left() != 0 || expected != index_offset) return damaged(path_, "its index does not cover the whole file");
  return Status::ok();
}

const Bundle::Item* Bundle::find(const EntryId& id) const {
  const auto found = std::lower_bound(items_.begin(), items_.end(), id, [](const Item& item, const EntryId& wanted) {
    return comes_before(item.id, wanted);
  });
  return found != items_.end() && found->id == id ? &*found : nullptr;
}

Result<Entry> Bundle::read(const Item& item) const {
  GEMVJIT_TRY_ASSIGN(const Bytes bytes, read_bytes(item.offset, item.size));
  const std::string name = path_of(item.id);
  if (Sha256::of(bytes.data(), bytes.size()) != item.sha256)
    return damaged(name, "its bytes fail the index's checksum");
  Result<Entry> entry = decode_entry(bytes);
  if (!entry) return damaged(name, entry.status().message());
  if (!(entry->id == item.id)) {
    return damaged(name, fmt::format("it holds {} with digest {}, another kernel than the index says",
                                     entry->id.key.text(), to_hex(entry->id.digest)));
  }
  return entry;
}

std::string Bundle::path_of(const EntryId& id) const {
  return fmt::format("{}#{}/{}", path_, id.key.arch.text(), entry_file_name(id));
}

}  // namespace gemvjit
