// Writing of OCI layouts: in a folder beside it, renamed at the end.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "cache/layout.h"
#include "src/base/files.h"
#include "src/base/folder.h"
#include "src/base/write_access.h"
#include "tools/gemvjit_cache/oci_layout.h"
#include "tools/gemvjit_cache/oci_names.h"

namespace gemvjit::tools {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view temporary_suffix = ".oci";
constexpr std::int64_t stale_after_seconds = 3600;  // since its last write: no live writer waits so long

Status io_failure(std::string_view doing, const std::string& path, int error) {
  return {StatusCode::io_error, fmt::format("cannot {} {}: {}", doing, path, std::generic_category().message(error))};
}

bool is_layout_temporary(std::string_view name) {
  if (!name.ends_with(temporary_suffix)) return false;
  name.remove_suffix(temporary_suffix.size());
  return is_temporary_file_name(name);
}

void remove_folder(const Folder& parent, const std::string& name) {
  (void)::unlinkat(parent.descriptor(), name.c_str(), AT_REMOVEDIR);  // an empty one; nothing else has to go
}

// A whole layout, or what was written of one. What has no name that a layout has stays, and with it its folder.
void remove_layout(const Folder& parent, const std::string& name) {
  const auto remove_files = [](const Folder& folder) {
    const auto names = folder.list();
    for (const std::string& file : names ? *names : std::vector<std::string>{}) {
      std::string_view stem = file;
      if (stem.ends_with(bundle_suffix)) stem.remove_suffix(bundle_suffix.size());
      Digest digest{};
      const bool ours = file == "index.json" || file == "oci-layout" || file == oci_layer_title ||
                        from_hex(file, digest) || is_temporary_file_name(stem);
      if (ours) (void)folder.remove(file);
    }
  };
  if (const auto top = parent.open_folder(name)) {
    if (const auto blobs = top->open_folder("blobs")) {
      if (const auto sha256 = blobs->open_folder("sha256")) remove_files(*sha256);
      remove_folder(*blobs, "sha256");
    }
    remove_folder(*top, "blobs");
    remove_files(*top);
  }
  remove_folder(parent, name);
}

// When something in it was last changed; the folders in it, down to `depth`, included.
std::int64_t last_change(const Folder& folder, int depth) {
  const auto own = folder.examine();
  std::int64_t last = own ? std::int64_t{own->st_mtime} : std::time(nullptr);
  const auto names = folder.list();
  for (const std::string& name : names ? *names : std::vector<std::string>{}) {
    const auto info = folder.examine(name);
    if (!info) continue;
    last = std::max(last, std::int64_t{info->st_mtime});
    if (!S_ISDIR(info->st_mode) || depth == 0) continue;
    if (const auto sub = folder.open_folder(name)) last = std::max(last, last_change(*sub, depth - 1));
  }
  return last;
}

// What writers left beside it that did not live to remove it. Another user's stays where that is not allowed.
void remove_stale_temporaries(const Folder& parent) {
  const auto names = parent.list();
  for (const std::string& name : names ? *names : std::vector<std::string>{}) {
    if (!is_layout_temporary(name)) continue;
    const auto folder = parent.open_folder(name);
    if (folder && std::time(nullptr) - last_change(*folder, 2) > stale_after_seconds) remove_layout(parent, name);
  }
}

// A new folder, with the mode that the umask leaves. io_error where it is another's by the time that it is opened.
Result<Folder> make_new_folder(const Folder& parent, const std::string& name) {
  if (::mkdirat(parent.descriptor(), name.c_str(), 0777) != 0) {
    return io_failure("create", parent.path_of(name), errno);
  }
  GEMVJIT_TRY_ASSIGN(Folder made, parent.open_folder(name));
  GEMVJIT_TRY_ASSIGN(const struct stat info, made.examine());
  if (info.st_uid == ::geteuid()) return made;
  return Status(StatusCode::io_error, fmt::format("{} was exchanged by user {}", made.path(), info.st_uid));
}

// The folder under its temporary name; what has that name in the end is removed: a half of a layout, or the one that
// was replaced. All in it is reached through descriptors: others may be allowed to write beside it.
class TemporaryFolder {
 public:
  static Result<std::unique_ptr<TemporaryFolder>> create(const std::string& final_path) {
    const SplitPath split = split_path(final_path);
    Result<Folder> opened = Folder::open(split.folder);
    if (!opened) return Status(StatusCode::io_error, opened.status().message());
    Folder parent = std::move(opened).value();
    // Where others may rename what is here, a temporary's name says nothing of whose the folder is.
    GEMVJIT_TRY_ASSIGN(const struct stat info, parent.examine());
    const WriteRule rule{.user = ::geteuid(), .leads_on = true};
    if (who_else_may_write(parent.descriptor(), info, rule).empty()) remove_stale_temporaries(parent);
    const std::string name = temporary_file_name(0) + std::string(temporary_suffix);
    GEMVJIT_TRY_ASSIGN(Folder top, make_new_folder(parent, name));
    GEMVJIT_TRY_ASSIGN(const struct stat made, top.examine());
    auto folder = std::unique_ptr<TemporaryFolder>(new TemporaryFolder(final_path, std::move(parent), std::move(top)));
    folder->name_ = name;
    folder->named_ = made;
    GEMVJIT_TRY_ASSIGN(folder->blobs_, make_new_folder(folder->top_, "blobs"));
    GEMVJIT_TRY_ASSIGN(folder->sha256_, make_new_folder(*folder->blobs_, "sha256"));
    return folder;
  }
  ~TemporaryFolder() {
    if (!name_.empty() && is_as_left()) remove_layout(parent_, name_);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const Folder& top() const { return top_; }
  const Folder& sha256() const { return *sha256_; }

  Status publish(bool replace) {
    GEMVJIT_TRY(blobs_->sync());
    if (!is_as_left()) return {StatusCode::io_error, fmt::format("{} was exchanged", top_.path())};
    // Over nothing, or an empty folder: the system refuses all else.
    const std::string final_name = split_path(final_path_).name;
    const int moved = ::renameat(parent_.descriptor(), name_.c_str(), parent_.descriptor(), final_name.c_str());
    const int error = moved == 0 ? 0 : errno;
    if (error == 0) {
      name_.clear();
    } else if (replace && (error == ENOTEMPTY || error == EEXIST)) {
      GEMVJIT_TRY(exchange(final_name));
    } else {
      return io_failure("rename a temporary folder to", final_path_, error);
    }
    return parent_.sync();
  }

 private:
  TemporaryFolder(std::string final_path, Folder parent, Folder top)
      : final_path_(std::move(final_path)), parent_(std::move(parent)), top_(std::move(top)) {}

  // Whether the temporary name still stands for what was left there: others may be allowed to rename.
  bool is_as_left() const {
    const auto info = parent_.examine(name_);
    return info && info->st_dev == named_.st_dev && info->st_ino == named_.st_ino;
  }

  // Looked at again: between the first look and the rename somebody may have put something there.
  Status exchange(const std::string& final_name) {
    GEMVJIT_TRY(check_only_ours(final_path_));
    GEMVJIT_TRY_ASSIGN(const struct stat old, parent_.examine(final_name));
    const int at = parent_.descriptor();
    if (::renameat2(at, name_.c_str(), at, final_name.c_str(), RENAME_EXCHANGE) == 0) {
      named_ = old;
      return Status::ok();
    }
    if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) {
      return io_failure("exchange a temporary folder with", final_path_, errno);
    }
    return {StatusCode::io_error,
            fmt::format("{} is not replaced: this file system cannot exchange folders; remove it first", final_path_)};
  }

  const std::string final_path_;
  std::string name_;      // in the parent; "": it has its final one
  struct stat named_ {};  // what was left under that name
  const Folder parent_, top_;
  std::optional<Folder> blobs_, sha256_;
};

// The bundle goes to a path, and this one leads to the open folder, whatever is renamed on the way to it.
Result<WrittenBundle> write_layer_in(const Folder& folder, const std::string& name, const WriteLayer& write_layer) {
  const std::string by_descriptor = fmt::format("/proc/self/fd/{}", folder.descriptor());
  Result<WrittenBundle> written = write_layer(by_descriptor + "/" + name);
  if (written) return written;
  std::string message = written.status().message();
  for (std::size_t at = message.find(by_descriptor); at != std::string::npos; at = message.find(by_descriptor, at)) {
    message.replace(at, by_descriptor.size(), folder.path());
    at += folder.path().size();
  }
  return Status(written.status().code(), message);
}

ordered_json descriptor(std::string_view media_type, const Digest& digest, std::uint64_t bytes) {
  return {{"mediaType", media_type}, {"digest", oci_digest(digest)}, {"size", bytes}};
}

Status publish_text(const Folder& folder, const std::string& name, std::string_view text) {
  return folder.publish(name, text.data(), text.size(), {}).status();
}

Result<Digest> publish_blob(const Folder& blobs, std::string_view text) {
  const Digest digest = Sha256::of(text.data(), text.size());
  GEMVJIT_TRY(publish_text(blobs, to_hex(digest), text));
  return digest;
}

// All that it says follows from the bundle's bytes.
ordered_json manifest_of(const Bundle& bundle, const WrittenBundle& written, const Digest& config) {
  std::set<std::string> targets;
  for (const Bundle::Item& item : bundle.items()) targets.insert(item.id.key.arch.text());
  ordered_json empty = descriptor(oci_empty_type, config, oci_empty_json.size());
  empty["data"] = oci_empty_base64;
  ordered_json layer = descriptor(oci_layer_type, written.sha256, written.bytes);
  layer["annotations"] = ordered_json::object({{oci_title_annotation, oci_layer_title}});
  return {{"schemaVersion", 2},
          {"mediaType", oci_manifest_type},
          {"artifactType", oci_artifact_type},
          {"config", empty},
          {"layers", ordered_json::array({layer})},
          {"annotations",
           {{oci_title_annotation, "gemvjit kernels"},
            {"vnd.gemvjit.cache.entries", std::to_string(written.entries)},
            {"vnd.gemvjit.cache.targets", fmt::format("{}", fmt::join(targets, ","))}}}};
}

ordered_json index_of(const std::string& ref, const Digest& manifest, std::uint64_t bytes) {
  ordered_json entry = descriptor(oci_manifest_type, manifest, bytes);
  entry["artifactType"] = oci_artifact_type;
  if (!ref.empty()) entry["annotations"] = ordered_json::object({{oci_ref_annotation, ref}});
  return {{"schemaVersion", 2}, {"mediaType", oci_index_type}, {"manifests", ordered_json::array({entry})}};
}

}  // namespace

std::string oci_digest(const Digest& digest) { return "sha256:" + to_hex(digest); }

bool is_oci_ref(std::string_view name) {
  constexpr std::size_t longest = 255;
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  // component ("/" component)*, component := letters (separator letters)*, separator := one of -._:@+ or "--"
  if (name.empty() || name.size() > longest || !is_letter(name.front()) || !is_letter(name.back())) return false;
  for (std::size_t i = 1; i < name.size(); ++i) {
    if (is_letter(name[i])) continue;
    if (std::string_view("-._:@+/").find(name[i]) == std::string_view::npos) return false;
    const bool is_double_dash = name[i] == '-' && name[i - 1] == '-' && is_letter(name[i - 2]);
    if (!is_letter(name[i - 1]) && !is_double_dash) return false;
  }
  return true;
}

Status check_oci_target(const OciTarget& target) {
  const std::string path = without_last_slashes(target.folder);
  const std::string name = split_path(path).name;
  if (name.empty() || name == "." || name == "..") {
    return {StatusCode::io_error, fmt::format("{} cannot be made: give the folder a name", path)};
  }
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? Status::ok() : io_failure("examine", path, errno);
  }
  if (!S_ISDIR(info.st_mode)) return {StatusCode::io_error, fmt::format("{} is no folder, it is not replaced", path)};
  GEMVJIT_TRY_ASSIGN(const std::vector<std::string> names, list_directory(path));
  if (names.empty()) return Status::ok();
  if (target.replace) return check_only_ours(path);
  return {StatusCode::io_error, fmt::format("{} is not empty; --replace writes over an OCI layout of this tool", path)};
}

Result<WrittenLayout> write_oci_layout(const OciTarget& target, const WriteLayer& write_layer) {
  GEMVJIT_TRY(check_oci_target(target));
  const std::string path = without_last_slashes(target.folder);
  GEMVJIT_TRY_ASSIGN(const auto folder, TemporaryFolder::create(path));
  const Folder& blobs = folder->sha256();
  WrittenLayout written;
  const std::string unnamed(oci_layer_title);
  GEMVJIT_TRY_ASSIGN(written.bundle, write_layer_in(blobs, unnamed, write_layer));
  const std::string layer = to_hex(written.bundle.sha256);
  if (const Status moved = blobs.move(unnamed, blobs, layer); !moved)
    return Status(StatusCode::io_error, moved.message());
  GEMVJIT_TRY_ASSIGN(const std::unique_ptr<Bundle> bundle,
                     Bundle::open(blobs.path_of(layer), blobs.open_file(layer, O_RDONLY | O_NONBLOCK)));
  GEMVJIT_TRY_ASSIGN(const Digest config, publish_blob(blobs, oci_empty_json));
  const std::string manifest = manifest_of(*bundle, written.bundle, config).dump();
  GEMVJIT_TRY_ASSIGN(written.manifest, publish_blob(blobs, manifest));
  const std::string index = index_of(target.ref, written.manifest, manifest.size()).dump();
  const std::string version = ordered_json::object({{"imageLayoutVersion", oci_layout_version}}).dump();
  GEMVJIT_TRY(publish_text(folder->top(), "index.json", index));
  GEMVJIT_TRY(publish_text(folder->top(), "oci-layout", version));
  GEMVJIT_TRY(folder->publish(target.replace));
  written.bundle_path = fmt::format("{}/blobs/sha256/{}", path, layer);
  return written;
}

}  // namespace gemvjit::tools
