#include "cache/read_only_layer.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "cache/bundle.h"
#include "cache/entry_files.h"
#include "cache/layout.h"
#include "cache/root_safety.h"
#include "src/base/files.h"

namespace gemvjit {
namespace {

class DirectoryLayer final : public ReadOnlyLayer {
 public:
  explicit DirectoryLayer(std::string path) : ReadOnlyLayer(std::move(path)) {}

  Result<Entry> read(const EntryId& id) const override {
    const std::string file = entry_path(path(), id);
    Result<Entry> entry = load_entry_file(path(), id, &guard_);
    if (entry && !(entry->id == id)) return with_path(file, foreign_entry(entry->id));
    if (entry || entry.status().code() == StatusCode::not_found) return entry;
    const bool is_damaged = entry_state(file, entry.status()) == EntryState::damaged;
    return Status(is_damaged ? StatusCode::entry_damaged : entry.status().code(),
                  with_path(file, entry.status()).message());
  }

  std::string find(const EntryId& id) const override {
    std::string file = entry_path(path(), id);
    struct stat info {};
    return ::lstat(file.c_str(), &info) == 0 ? file : "";
  }

  Result<std::vector<ListedEntry>> list() const override { return list_entry_files(path(), &guard_); }

  bool is_bundle() const override { return false; }

 private:
  const EntryGuard guard_ = EntryGuard::of_layer();
};

class BundleLayer final : public ReadOnlyLayer {
 public:
  explicit BundleLayer(std::unique_ptr<Bundle> bundle) : ReadOnlyLayer(bundle->path()), bundle_(std::move(bundle)) {}

  Result<Entry> read(const EntryId& id) const override {
    const Bundle::Item* item = bundle_->find(id);
    if (item == nullptr) return Status(StatusCode::not_found, "not in the bundle");
    return bundle_->read(*item);
  }
  std::string find(const EntryId& id) const override {
    return bundle_->find(id) != nullptr ? bundle_->path_of(id) : "";
  }
  Result<std::vector<ListedEntry>> list() const override {
    std::vector<ListedEntry> listed;
    for (const Bundle::Item& item : bundle_->items()) {
      ListedEntry found{bundle_->path_of(item.id), item.size, {}, Status::ok()};
      Result<Entry> entry = bundle_->read(item);
      if (entry) {
        found.entry = std::move(entry).value();
      } else {
        found.problem = entry.status();
      }
      listed.push_back(std::move(found));
    }
    std::sort(listed.begin(), listed.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
    return listed;
  }
  bool is_bundle() const override { return true; }

 private:
  std::unique_ptr<Bundle> bundle_;
};

}  // namespace

Result<std::unique_ptr<ReadOnlyLayer>> open_read_only_layer(const std::string& path, const Signatures* signatures) {
  GEMVJIT_TRY(check_read_only_layer(path));
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
    if (::access(path.c_str(), X_OK) != 0) {
      return Status(StatusCode::io_error,
                    fmt::format("{} cannot be searched: {}", path, std::generic_category().message(errno)));
    }
    return std::unique_ptr<ReadOnlyLayer>(std::make_unique<DirectoryLayer>(without_end_slashes(path)));
  }
  GEMVJIT_TRY_ASSIGN(std::unique_ptr<Bundle> bundle, Bundle::open(path));
  if (signatures != nullptr) GEMVJIT_TRY(signatures->check(*bundle));
  return std::unique_ptr<ReadOnlyLayer>(std::make_unique<BundleLayer>(std::move(bundle)));
}

std::vector<std::string> split_layer_paths(const std::string& text) {
  std::vector<std::string> paths;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    if (end > begin) paths.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return paths;
}

}  // namespace gemvjit
