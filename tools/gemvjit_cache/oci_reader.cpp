// Reading of OCI layouts: text and names from strangers.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "src/base/descriptor.h"
#include "src/base/json_depth.h"
#include "src/base/unique_keys.h"
#include "tools/common/printable.h"
#include "tools/gemvjit_cache/oci_layout.h"
#include "tools/gemvjit_cache/oci_names.h"

namespace gemvjit::tools {
namespace {

using nlohmann::json;

Status damaged(const std::string& path, std::string_view what) {
  return {StatusCode::entry_damaged, fmt::format("{}: {}", path, what)};
}

Status io_failure(std::string_view doing, const std::string& path, int error) {
  return {StatusCode::io_error, fmt::format("cannot {} {}: {}", doing, path, std::generic_category().message(error))};
}

// What of a layout is open: `path` is for messages.
struct File {
  std::string path;
  Descriptor descriptor;
  std::uint64_t bytes = 0;
};

// Of a folder that is open already, by a name without "/", which is no link.
Result<File> open_in(const File& folder, const std::string& name, int flags) {
  File file{folder.path + "/" + name, Descriptor(::openat(folder.descriptor.get(), name.c_str(),
                                                          flags | O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC))};
  if (!file.descriptor.is_open()) {
    if (errno == ENOENT) return damaged(file.path, "is not there");
    if (errno == ELOOP || errno == ENOTDIR) return damaged(file.path, "is a link or of another kind, not followed");
    return io_failure("open", file.path, errno);
  }
  struct stat info {};
  if (::fstat(file.descriptor.get(), &info) != 0) return io_failure("examine", file.path, errno);
  if ((flags & O_DIRECTORY) == 0 && !S_ISREG(info.st_mode)) return damaged(file.path, "is no regular file");
  file.bytes = static_cast<std::uint64_t>(info.st_size);
  return file;
}

using Piece = std::function<void(const std::uint8_t* data, std::size_t size)>;

// All of it, in pieces; of the size that it had when it was opened.
Status read_all(const File& file, const Piece& take) {
  Bytes buffer(static_cast<std::size_t>(std::min<std::uint64_t>(file.bytes, 1u << 20)));
  for (std::uint64_t at = 0; at < file.bytes;) {
    const std::size_t wanted = static_cast<std::size_t>(std::min<std::uint64_t>(file.bytes - at, buffer.size()));
    const ssize_t got = ::pread(file.descriptor.get(), buffer.data(), wanted, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_failure("read", file.path, errno);
    if (got == 0) return damaged(file.path, fmt::format("it ends at byte {}, while it was read", at));
    take(buffer.data(), static_cast<std::size_t>(got));
    at += static_cast<std::uint64_t>(got);
  }
  return Status::ok();
}

Result<json> parse_document(const std::string& path, std::string_view text) {
  if (json_nests_deeper_than(text, kMaxJsonLevels)) {
    return damaged(path, fmt::format("is nested more than {} levels deep", kMaxJsonLevels));
  }
  try {
    json document = parse_unique_keys(text, /*allow_exceptions=*/false);
    if (document.is_object()) return document;
    return damaged(path, "is no JSON object");
  } catch (const KeyTwice& twice) {
    return damaged(path, fmt::format("names \"{}\" twice", printable(twice.key)));
  }
}

// "" where there is no such string.
std::string text_of(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// As image-spec's descriptor.md has it. Digests of other algorithms would be legal and are not read here.
struct Blob {
  std::string media_type, artifact_type, ref;
  Digest digest{};
  std::uint64_t bytes = 0;
};

std::optional<Blob> parse_descriptor(const json& object) {
  if (!object.is_object()) return std::nullopt;
  Blob blob{text_of(object, "mediaType"), text_of(object, "artifactType"), "", {}, 0};
  const std::string digest = text_of(object, "digest");
  // One spelling: what is opened is made of the number, not of the text.
  if (!digest.starts_with("sha256:") || !from_hex(std::string_view(digest).substr(7), blob.digest) ||
      oci_digest(blob.digest) != digest) {
    return std::nullopt;
  }
  const auto size = object.find("size");
  if (size == object.end() || !size->is_number_unsigned()) return std::nullopt;
  blob.bytes = size->get<std::uint64_t>();
  if (const auto notes = object.find("annotations"); notes != object.end() && notes->is_object()) {
    blob.ref = text_of(*notes, oci_ref_annotation);
  }
  return blob;
}

Status check_document(const std::string& path, const json& document, std::string_view media_type) {
  const auto version = document.find("schemaVersion");
  if (version == document.end() || *version != 2) return damaged(path, "its schemaVersion is not 2");
  const auto type = document.find("mediaType");  // it may be left out
  if (type == document.end() || *type == media_type) return Status::ok();
  return damaged(path, fmt::format("its mediaType is not {}", media_type));
}

class Layout {
 public:
  static Result<Layout> open(const std::string& path) {
    File folder{path, Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC))};
    if (!folder.descriptor.is_open() && errno == ENOTDIR) {
      return Status(StatusCode::io_error, fmt::format("{} is a symbolic link or no folder, not followed", path));
    }
    if (!folder.descriptor.is_open()) return io_failure("open folder", path, errno);
    if (!has(folder, "oci-layout") && !has(folder, "index.json")) {
      return Status(StatusCode::io_error, fmt::format("{} is a folder, but no OCI image layout", path));
    }
    GEMVJIT_TRY_ASSIGN(const json version, read_document(folder, "oci-layout"));
    if (text_of(version, "imageLayoutVersion") != oci_layout_version) {
      return damaged(path + "/oci-layout", fmt::format("no OCI image layout of version {}", oci_layout_version));
    }
    GEMVJIT_TRY_ASSIGN(json index, read_document(folder, "index.json"));
    GEMVJIT_TRY_ASSIGN(const File blobs, open_in(folder, "blobs", O_DIRECTORY));
    GEMVJIT_TRY_ASSIGN(File digests, open_in(blobs, "sha256", O_DIRECTORY));
    Layout layout(std::move(folder), std::move(digests));
    GEMVJIT_TRY(layout.parse_index(index));
    return layout;
  }

  const std::vector<Blob>& descriptors() const { return descriptors_; }

  // The manifest of that descriptor if it is of our artifactType, null if it is another's.
  Result<json> read_if_ours(const Blob& blob) const {
    if (blob.media_type != oci_manifest_type) return json();
    if (!blob.artifact_type.empty() && blob.artifact_type != oci_artifact_type) return json();
    GEMVJIT_TRY_ASSIGN(const Bytes bytes, read_blob(blob));
    const std::string path = path_of(blob);
    GEMVJIT_TRY_ASSIGN(json manifest,
                       parse_document(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
    if (text_of(manifest, "artifactType") != oci_artifact_type) return json();
    GEMVJIT_TRY(check_document(path, manifest, oci_manifest_type));
    return manifest;
  }

  Result<std::unique_ptr<Bundle>> open_bundle(const std::string& path, const json& manifest) const {
    const auto config = manifest.find("config"), layers = manifest.find("layers");
    const auto empty = config == manifest.end() ? std::nullopt : parse_descriptor(*config);
    if (!empty) return damaged(path, "has no config with a SHA-256 digest and a size");
    GEMVJIT_TRY(read_blob(*empty).status());
    if (layers == manifest.end() || !layers->is_array() || layers->size() != 1) {
      return damaged(path, "has not exactly one layer");
    }
    const auto layer = parse_descriptor(layers->front());
    if (!layer) return damaged(path, "its layer has no SHA-256 digest and size");
    if (layer->media_type != oci_layer_type) {
      return damaged(path, fmt::format("its layer is \"{}\", not {}", printable(layer->media_type), oci_layer_type));
    }
    GEMVJIT_TRY_ASSIGN(File file, open_blob(*layer, bundle_size_limit));
    GEMVJIT_TRY(read_whole(*layer, file, [](const std::uint8_t*, std::size_t) {}));
    return Bundle::open(path_of(*layer), std::move(file.descriptor));
  }

  std::string path_of(const Blob& blob) const { return digests_.path + "/" + to_hex(blob.digest); }

 private:
  Layout(File folder, File digests) : folder_(std::move(folder)), digests_(std::move(digests)) {}

  static bool has(const File& folder, const char* name) {
    struct stat info {};
    return ::fstatat(folder.descriptor.get(), name, &info, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
  }

  static Result<json> read_document(const File& folder, const std::string& name) {
    GEMVJIT_TRY_ASSIGN(const File file, open_in(folder, name, 0));
    if (file.bytes > oci_document_limit) {
      return damaged(file.path, fmt::format("{} bytes, the limit is {}", file.bytes, oci_document_limit));
    }
    std::string text;
    GEMVJIT_TRY(read_all(file, [&](const std::uint8_t* data, std::size_t size) {
      text.append(reinterpret_cast<const char*>(data), size);
    }));
    return parse_document(file.path, text);
  }

  Status parse_index(const json& index) {
    const std::string path = folder_.path + "/index.json";
    GEMVJIT_TRY(check_document(path, index, oci_index_type));
    const auto manifests = index.find("manifests");
    if (manifests == index.end() || !manifests->is_array()) return damaged(path, "has no list of manifests");
    if (manifests->size() > oci_manifest_limit) {
      return damaged(path, fmt::format("names {} manifests, the limit is {}", manifests->size(), oci_manifest_limit));
    }
    for (const json& object : *manifests) {
      const auto blob = parse_descriptor(object);
      if (!blob) return damaged(path, "a manifest of it has no SHA-256 digest and size");
      descriptors_.push_back(*blob);
    }
    return Status::ok();
  }

  Result<File> open_blob(const Blob& blob, std::uint64_t limit) const {
    const std::string path = path_of(blob);
    if (blob.bytes > limit) {
      return damaged(path, fmt::format("is to have {} bytes, the limit is {}", blob.bytes, limit));
    }
    GEMVJIT_TRY_ASSIGN(File file, open_in(digests_, to_hex(blob.digest), 0));
    if (file.bytes == blob.bytes) return file;
    return damaged(path, fmt::format("has {} bytes, {} are named", file.bytes, blob.bytes));
  }

  Status read_whole(const Blob& blob, const File& file, const Piece& take) const {
    Sha256 sha;
    GEMVJIT_TRY(read_all(file, [&](const std::uint8_t* data, std::size_t size) {
      sha.update(data, size);
      take(data, size);
    }));
    return sha.finish() == blob.digest ? Status::ok() : damaged(file.path, "its bytes are not those of its digest");
  }

  Result<Bytes> read_blob(const Blob& blob) const {
    GEMVJIT_TRY_ASSIGN(const File file, open_blob(blob, oci_document_limit));
    Bytes bytes;
    const auto keep = [&](const std::uint8_t* data, std::size_t size) { bytes.insert(bytes.end(), data, data + size); };
    GEMVJIT_TRY(read_whole(blob, file, keep));
    return bytes;
  }

  File folder_, digests_;
  std::vector<Blob> descriptors_;
};

bool belongs_to_a_layout(std::string_view sub, const std::string& name) {
  if (sub.empty()) return name == "oci-layout" || name == "index.json" || name == "blobs";
  if (sub == "/blobs") return name == "sha256";
  Digest digest{};
  return from_hex(name, digest);
}

}  // namespace

Result<OpenedLayout> open_oci_layout(const std::string& folder, const std::string& ref) {
  GEMVJIT_TRY_ASSIGN(const Layout layout, Layout::open(without_last_slashes(folder)));
  std::optional<Blob> chosen;
  json manifest;
  std::vector<std::string> names;
  for (const Blob& blob : layout.descriptors()) {
    if (!ref.empty() && ref != blob.ref && ref != oci_digest(blob.digest)) continue;
    if (chosen && chosen->digest == blob.digest) continue;  // one with two names
    GEMVJIT_TRY_ASSIGN(json found, layout.read_if_ours(blob));
    if (found.is_null()) continue;
    names.push_back(blob.ref.empty() ? oci_digest(blob.digest) : printable(blob.ref));
    if (chosen) continue;
    chosen = blob;
    manifest = std::move(found);
  }
  if (!chosen) {
    return Status(StatusCode::not_found, fmt::format("{}: no manifest of {}{}", folder, oci_artifact_type,
                                                     ref.empty() ? "" : " that is called " + printable(ref)));
  }
  if (names.size() > 1) {
    return Status(
        StatusCode::invalid_argument,
        fmt::format(
            "{}: {} manifests fit, name one by --ref: {}", folder, names.size(),
            fmt::join(names.begin(),
                      names.begin() + std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(names.size()), 16), ", ")));
  }
  GEMVJIT_TRY_ASSIGN(std::unique_ptr<Bundle> bundle, layout.open_bundle(layout.path_of(*chosen), manifest));
  return OpenedLayout{std::move(bundle), chosen->digest};
}

bool is_folder(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

Status check_only_ours(const std::string& folder) {
  const auto other = [&](std::string_view what) {
    return Status(StatusCode::io_error,
                  fmt::format("{} is not replaced: {}; remove it yourself if it may go", folder, what));
  };
  const auto layout = Layout::open(folder);
  if (!layout) return other(layout.status().message());
  for (const Blob& blob : layout->descriptors()) {
    const auto manifest = layout->read_if_ours(blob);
    if (!manifest) return other(manifest.status().message());
    if (manifest->is_null()) return other("it has something else than sets of kernels: " + oci_digest(blob.digest));
  }
  for (const char* sub : {"", "/blobs", "/blobs/sha256"}) {
    const auto names = list_directory(folder + sub);
    if (!names) return other(names.status().message());
    for (const std::string& name : *names) {
      if (!belongs_to_a_layout(sub, name)) return other("there is more in it: " + folder + sub + "/" + name);
    }
  }
  return Status::ok();
}

}  // namespace gemvjit::tools
