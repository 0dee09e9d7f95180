#include "src/remote/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace gemvjit {
namespace {

// Of protocol buffers' wire format: a field is a number (field << 3 | type), then its value.
constexpr std::uint64_t type_varint = 0, type_fixed64 = 1, type_bytes = 2, type_fixed32 = 5;
constexpr std::uint64_t tag(std::uint64_t field, std::uint64_t type) { return field << 3 | type; }

void put_varint(Bytes& bytes, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<std::uint8_t>(value | 0x80));
  bytes.push_back(static_cast<std::uint8_t>(value));
}

template <typename Text>
void put_bytes(Bytes& bytes, std::uint64_t field, const Text& value) {
  put_varint(bytes, tag(field, type_bytes));
  put_varint(bytes, value.size());
  bytes.insert(bytes.end(), value.begin(), value.end());
}

// One message's fields, in the order that they come.
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : rest_(bytes) {}
  bool at_end() const { return rest_.empty(); }
  bool failed() const { return failed_; }

  // The next field; false at the end and after a failure.
  bool next() {
    if (failed_ || rest_.empty()) return false;
    std::uint64_t size = 0;
    failed_ = !varint(tag_);
    if (failed_) return false;
    switch (tag_ & 7) {
      case type_varint:
        failed_ = !varint(number_);
        break;
      case type_fixed64:
        failed_ = !take(8);
        break;
      case type_bytes:
        failed_ = !varint(size) || !take(size);
        break;
      case type_fixed32:
        failed_ = !take(4);
        break;
      default:
        failed_ = true;
    }
    return !failed_;
  }
  bool is(std::uint64_t field, std::uint64_t type) const { return tag_ == tag(field, type); }
  std::string_view bytes() const { return value_; }
  std::uint64_t number() const { return number_; }

 private:
  bool varint(std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return false;
      const auto byte = static_cast<std::uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool take(std::uint64_t size) {
    if (size > rest_.size()) return false;
    value_ = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }
  std::string_view rest_, value_;
  std::uint64_t tag_ = 0, number_ = 0;
  bool failed_ = false;
};

Status damaged(const char* what) {
  return {StatusCode::entry_damaged, fmt::format("a manifest of a remote cache: {}", what)};
}

bool parse_digest(std::string_view bytes, ManifestFile& file) {
  FieldReader reader(bytes);
  bool has_hash = false;
  while (reader.next()) {
    if (reader.is(1, type_bytes)) has_hash = from_hex(reader.bytes(), file.sha256);
    if (reader.is(2, type_varint)) file.size = reader.number();
  }
  return !reader.failed() && has_hash;
}

bool parse_file(std::string_view bytes, ManifestFile& file) {
  FieldReader reader(bytes);
  bool has_digest = false;
  while (reader.next()) {
    if (reader.is(1, type_bytes)) file.path = reader.bytes();
    if (reader.is(2, type_bytes)) has_digest = parse_digest(reader.bytes(), file);
  }
  return !reader.failed() && has_digest;
}

// The output_files of an ActionResult, after those that are there; `list`: its stdout_raw, if it has one.
Status read_files(std::string_view bytes, std::vector<ManifestFile>& files, std::string_view& list) {
  FieldReader reader(bytes);
  while (reader.next()) {
    if (reader.is(5, type_bytes)) list = reader.bytes();
    if (!reader.is(2, type_bytes)) continue;
    ManifestFile file;
    if (!parse_file(reader.bytes(), file)) return damaged("a file without a digest");
    if (file.size == 0 || file.size > remote_payload_limit) return damaged("a file that no kernel can be");
    if (files.size() == manifest_file_limit) return damaged("too many files");
    files.push_back(std::move(file));
  }
  return reader.failed() ? damaged("not an ActionResult") : Status::ok();
}

std::string name_of(std::string_view kind, std::string_view what) {
  Sha256 hash;
  hash.update_tagged("gemvjit remote", kind);
  hash.update_tagged("entry format", std::to_string(entry_format_version));
  hash.update_tagged("name", what);
  return to_hex(hash.finish());
}

}  // namespace

Bytes encode_manifest(Manifest manifest) {
  std::sort(manifest.files.begin(), manifest.files.end(),
            [](const ManifestFile& a, const ManifestFile& b) { return a.path < b.path; });
  Bytes bytes;
  for (const ManifestFile& file : manifest.files) {
    Bytes digest, output_file;
    put_bytes(digest, 1, to_hex(file.sha256));
    put_varint(digest, tag(2, type_varint));
    put_varint(digest, file.size);
    put_bytes(output_file, 1, file.path);
    put_bytes(output_file, 2, digest);
    put_bytes(bytes, 2, output_file);
  }
  return bytes;
}

Bytes encode_list(Manifest manifest) {
  Bytes bytes;
  put_bytes(bytes, 5, encode_manifest(std::move(manifest)));
  return bytes;
}

Result<Manifest> decode_manifest(const Bytes& bytes) {
  if (bytes.size() > manifest_size_limit) return damaged("too long");
  Manifest manifest;
  std::string_view list, none;
  GEMVJIT_TRY(read_files({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, manifest.files, list));
  if (manifest.files.empty()) GEMVJIT_TRY(read_files(list, manifest.files, none));
  if (manifest.files.empty()) return damaged("no files");
  return manifest;
}

std::string manifest_path(const EntryId& id) { return id.key.text() + "/" + to_hex(id.digest); }

Result<EntryId> parse_manifest_path(const std::string& path) {
  const std::size_t slash = path.find('/');
  EntryId id;
  if (slash == std::string::npos || !from_hex(std::string_view(path).substr(slash + 1), id.digest)) {
    return Status(StatusCode::invalid_argument, "not the path of an entry in a manifest");
  }
  GEMVJIT_TRY_ASSIGN(id.key, KernelKey::parse(std::string_view(path).substr(0, slash)));
  return id;
}

std::string kernel_name(const EntryId& id) { return name_of("kernel", manifest_path(id)); }

std::string plan_name(const std::vector<EntryId>& ids) {
  std::vector<std::string> paths;
  for (const EntryId& id : ids) paths.push_back(manifest_path(id));
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  std::string all;
  for (const std::string& path : paths) all += path + "\n";
  return name_of("plan", all);
}

std::string set_name(const std::string& name) { return name_of("set", name); }

std::string list_name(const std::string& name) { return name_of("list", name); }

}  // namespace gemvjit
