// Writing of OCI layouts: in a folder beside it, renamed at the end.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "cache/layout.h"
#include "src/base/descriptor.h"
#include "src/base/files.h"
#include "tools/gemvjit_cache/oci_layout.h"
#include "tools/gemvjit_cache/oci_names.h"

namespace gemvjit::tools {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::string_view temporary_suffix = ".oci";
constexpr auto stale_after = std::chrono::hours(1);  // since its last write: no live writer waits so long

Status io_failure(std::string_view doing, const std::string& path, int error) {
  return {StatusCode::io_error, fmt::format("cannot {} {}: {}", doing, path, std::generic_category().message(error))};
}

Status sync_folder(const std::string& path) {
  const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open()) return io_failure("open folder", path, errno);
  // Some file systems cannot sync a folder and say so; there is nothing more to be had from them.
  if (::fsync(folder.get()) == 0 || errno == EINVAL || errno == ENOTSUP) return Status::ok();
  return io_failure("fsync folder", path, errno);
}

bool is_layout_temporary(std::string_view name) {
  if (!name.ends_with(temporary_suffix)) return false;
  name.remove_suffix(temporary_suffix.size());
  return is_temporary_file_name(name);
}

// What writers left beside it that did not live to remove it. Another user's stays where that is not allowed. Links are
// not followed.
void remove_stale_temporaries(const std::string& parent) {
  const auto names = list_directory(parent);
  const auto limit = fs::file_time_type::clock::now() - stale_after;
  for (const std::string& name : names ? *names : std::vector<std::string>{}) {
    const fs::path path = fs::path(parent) / name;
    std::error_code error;
    if (!is_layout_temporary(name) || fs::symlink_status(path, error).type() != fs::file_type::directory) continue;
    fs::file_time_type last = fs::last_write_time(path, error);
    for (auto item = fs::recursive_directory_iterator(path, error);
         !error && item != fs::recursive_directory_iterator(); item.increment(error)) {
      if (!item->is_symlink(error)) last = std::max(last, item->last_write_time(error));
    }
    if (!error && last < limit) fs::remove_all(path, error);
  }
}

// The folder under its temporary name; what has that name in the end is removed: a half of a layout, or the one that
// was replaced.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& final_path) : final_path_(final_path) {}
  ~TemporaryFolder() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  Status create() {
    const std::string parent = split_path(final_path_).folder;
    remove_stale_temporaries(parent);
    int error = EEXIST;
    for (unsigned attempt = 0; attempt < 16 && error == EEXIST && path_.empty(); ++attempt) {
      const std::string name = fmt::format("{}/{}{}", parent, temporary_file_name(attempt), temporary_suffix);
      if (::mkdir(name.c_str(), 0777) == 0) {
        path_ = name;
      } else {
        error = errno;
      }
    }
    if (path_.empty()) return io_failure("create a folder in", parent, error);
    for (const char* sub : {"/blobs", "/blobs/sha256"}) {
      if (::mkdir((path_ + sub).c_str(), 0777) != 0) return io_failure("create", path_ + sub, errno);
    }
    return Status::ok();
  }

  const std::string& path() const { return path_; }
  std::string blobs() const { return path_ + "/blobs/sha256"; }

  Status publish(bool replace) {
    GEMVJIT_TRY(sync_folder(path_ + "/blobs"));
    // Over nothing, or an empty folder: the system refuses all else.
    const int error = std::rename(path_.c_str(), final_path_.c_str()) == 0 ? 0 : errno;
    if (error == 0) {
      path_.clear();
    } else if (replace && (error == ENOTEMPTY || error == EEXIST)) {
      GEMVJIT_TRY(exchange());
    } else {
      return io_failure("rename a temporary folder to", final_path_, error);
    }
    return sync_folder(split_path(final_path_).folder);
  }

 private:
  // Looked at again: between the first look and the rename somebody may have put something there.
  Status exchange() {
    GEMVJIT_TRY(check_only_ours(final_path_));
    if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, final_path_.c_str(), RENAME_EXCHANGE) == 0) return Status::ok();
    if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) {
      return io_failure("exchange a temporary folder with", final_path_, errno);
    }
    return {StatusCode::io_error,
            fmt::format("{} is not replaced: this file system cannot exchange folders; remove it first", final_path_)};
  }

  const std::string final_path_;
  std::string path_;
};

ordered_json descriptor(std::string_view media_type, const Digest& digest, std::uint64_t bytes) {
  return {{"mediaType", media_type}, {"digest", oci_digest(digest)}, {"size", bytes}};
}

Result<Digest> publish_blob(const std::string& blobs, std::string_view text) {
  const Digest digest = Sha256::of(text.data(), text.size());
  GEMVJIT_TRY(publish_file(blobs, to_hex(digest), text.data(), text.size()));
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
  TemporaryFolder folder(path);
  GEMVJIT_TRY(folder.create());
  WrittenLayout written;
  const std::string unnamed = folder.blobs() + "/" + std::string(oci_layer_title);
  GEMVJIT_TRY_ASSIGN(written.bundle, write_layer(unnamed));
  const std::string layer = to_hex(written.bundle.sha256);
  if (std::rename(unnamed.c_str(), (folder.blobs() + "/" + layer).c_str()) != 0) {
    return io_failure("rename", unnamed, errno);
  }
  GEMVJIT_TRY_ASSIGN(const std::unique_ptr<Bundle> bundle, Bundle::open(folder.blobs() + "/" + layer));
  GEMVJIT_TRY_ASSIGN(const Digest config, publish_blob(folder.blobs(), oci_empty_json));
  const std::string manifest = manifest_of(*bundle, written.bundle, config).dump();
  GEMVJIT_TRY_ASSIGN(written.manifest, publish_blob(folder.blobs(), manifest));
  const std::string index = index_of(target.ref, written.manifest, manifest.size()).dump();
  const std::string version = ordered_json::object({{"imageLayoutVersion", oci_layout_version}}).dump();
  GEMVJIT_TRY(publish_file(folder.path(), "index.json", index.data(), index.size()));
  GEMVJIT_TRY(publish_file(folder.path(), "oci-layout", version.data(), version.size()));
  GEMVJIT_TRY(folder.publish(target.replace));
  written.bundle_path = fmt::format("{}/blobs/sha256/{}", path, layer);
  return written;
}

}  // namespace gemvjit::tools
