#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <new>
#include <set>

#include "cache/cache_folders.h"
#include "cache/entry_files.h"
#include "cache/layout.h"
#include "cache/put_policy.h"
#include "cache/quarantine.h"
#include "cache/store.h"
#include "src/base/files.h"

namespace gemvjit {
namespace {

constexpr int put_attempts = 4;  // others may remove, damage or publish what a put has just looked at

bool is_searchable_directory(const std::string& path) { return ::access((path + "/").c_str(), X_OK) == 0; }

void remove_stale_temporaries(const Folder& folder, std::int64_t stale_after_seconds) {
  const auto names = folder.list();
  if (!names) return;
  const std::int64_t now = std::time(nullptr);
  for (const std::string& name : *names) {
    if (!is_temporary_file_name(name)) continue;
    const auto info = folder.examine(name);
    if (!info || !S_ISREG(info->st_mode)) continue;
    // Of the future is as wrong as long ago: clocks are set, and servers have their own.
    const std::int64_t age = std::abs(now - std::int64_t{info->st_mtime});
    if (stale_after_seconds < 0 || age > stale_after_seconds) (void)folder.remove(name);
  }
}

class DirStore final : public CubinStore {
 public:
  DirStore(std::string root, Log log, const DirStoreOptions& options)
      : root_(without_end_slashes(std::move(root))), log_(std::move(log)), options_(options) {}

  std::optional<Entry> get(const EntryId& id) override;
  Result<FoundEntry> look(const EntryId& id) override;
  Status put(const Entry& entry, Replace replace) override;
  Status remove(const EntryId& id) override;
  Result<std::vector<ListedEntry>> list() override;
  std::string path_of(const EntryId& id) const override { return entry_path(root_, id); }
  std::string root() const override { return root_; }
  StoreStats stats() const override {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

 private:
  const EntryGuard* guard() const { return options_.guard ? &*options_.guard : nullptr; }
  enum class Present { nothing, replaceable, stays };
  Status keep(const Entry& entry, Replace replace);
  Result<Present> look_at_present(const Entry& entry, Replace replace);
  Status judge(const std::string& path, const Status& problem) const;
  bool set_aside(const EntryId& id);
  void count(std::uint64_t StoreStats::*counter);
  bool first_time(std::set<std::string>& seen, const std::string& what);
  void warn_of_unusable(const EntryId& id, const Status& problem);

  std::string root_;
  Log log_;
  const DirStoreOptions options_;
  mutable std::mutex mutex_;  // guards what follows; held for no file operation
  StoreStats stats_;
  std::set<std::string> warned_;  // paths of files, or of a directory that cannot be used at all
  std::set<std::string> swept_;   // directories whose stale temporaries were removed
  bool put_warned_ = false;
};

void DirStore::count(std::uint64_t StoreStats::*counter) {
  const std::lock_guard lock(mutex_);
  ++(stats_.*counter);
}

bool DirStore::first_time(std::set<std::string>& seen, const std::string& what) {
  const std::lock_guard lock(mutex_);
  return seen.insert(what).second;
}

void DirStore::warn_of_unusable(const EntryId& id, const Status& problem) {
  // Where the directory itself is at fault, one warning stands for all its files.
  const std::string directory = entry_directory(root_, id);
  const std::string subject = is_searchable_directory(directory) ? path_of(id) : directory;
  if (first_time(warned_, subject)) {
    log_.warning("cache entry not used, its kernel is built again: {}", problem.message());
  }
}

// What load_entry_file says of a path of no use: not_found as it is, entry_damaged for what is damaged (EntryState),
// else io_error. Nothing is damaged that a folder leads to which the guard refuses: it is not this cache's.
Status DirStore::judge(const std::string& path, const Status& problem) const {
  if (problem.code() == StatusCode::not_found) return problem;
  const bool is_damaged = entry_state(path, problem) == EntryState::damaged;
  if (is_damaged) GEMVJIT_TRY(open_cache_folder_of(root_, path, guard()).status());
  return {is_damaged ? StatusCode::entry_damaged : StatusCode::io_error, with_path(path, problem).message()};
}

Result<FoundEntry> DirStore::look(const EntryId& id) {
  try {
    const std::string path = path_of(id);
    Result<Entry> entry = load_entry_file(root_, id, guard());
    if (entry && entry->id == id) return FoundEntry{std::move(entry).value(), path};
    return judge(path, entry ? foreign_entry(entry->id) : entry.status());
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, "no memory for a cache entry");
  }
}

std::optional<Entry> DirStore::get(const EntryId& id) {
  try {
    Result<FoundEntry> found = look(id);
    if (found) {
      count(&StoreStats::hits);
      return std::move(found->entry);
    }
    count(&StoreStats::misses);
    const Status problem = found.status();
    if (problem.code() == StatusCode::not_found || problem.code() == StatusCode::out_of_memory) return std::nullopt;
    const bool damaged = problem.code() == StatusCode::entry_damaged;
    count(&StoreStats::damaged);
    if (!damaged) count(&StoreStats::unreadable);
    warn_of_unusable(id, problem);
    if (damaged) set_aside(id);
  } catch (const std::bad_alloc&) {
    // No memory for an entry is no reason to fail: without the cache the caller may still get on.
  }
  return std::nullopt;
}

// Move the file to the quarantine. False if it is still there. Somebody may have published a whole entry since it was
// found damaged, and that was moved then: it goes back, or is built once more where that fails.
bool DirStore::set_aside(const EntryId& id) {
  const Result<Quarantined> moved = quarantine_file(root_, path_of(id), options_.trust, guard());
  if (!moved) return moved.status().code() == StatusCode::not_found;
  const Result<Entry> entry = load_entry_file(moved->to, moved->name);
  if (entry && entry->id == id) {
    (void)::linkat(moved->to.descriptor(), moved->name.c_str(), moved->from.descriptor(), entry_file_name(id).c_str(),
                   0);
    (void)moved->to.remove(moved->name);
    return true;
  }
  count(&StoreStats::quarantined);
  prune_quarantine(moved->to, options_.quarantine);
  return true;
}

// What is under the entry's name, made ready for a put: damaged files are set aside. Fails where a file is there that
// cannot be read: it may hold what others, or this process a moment later, can use.
Result<DirStore::Present> DirStore::look_at_present(const Entry& entry, Replace replace) {
  const std::string path = path_of(entry.id);
  const Result<Entry> present = load_entry_file(root_, entry.id, guard());
  if (present && present->id == entry.id) {
    switch (judge_put(*present, entry, replace)) {
      case PutVerdict::replace:
        return Present::replaceable;
      case PutVerdict::unchanged:
        count(&StoreStats::puts_unchanged);
        break;
      case PutVerdict::other_compiler:
        count(&StoreStats::puts_other_compiler);
        break;
      case PutVerdict::nondeterminism:
        count(&StoreStats::determinism_alarms);
        if (first_time(warned_, "determinism " + path)) {
          log_.warning("{} made other code of {} than what {} holds, from the same sources: the entry stays",
                       entry.cubin.compiler_version, entry.id.key.text(), path);
        }
        break;
    }
    return Present::stays;
  }
  const Status problem = judge(path, present ? foreign_entry(present->id) : present.status());
  if (problem.code() == StatusCode::not_found) return Present::nothing;
  if (problem.code() != StatusCode::entry_damaged) {
    return Status(problem.code(), problem.message() + "; what cannot be read is not replaced");
  }
  warn_of_unusable(entry.id, problem);
  if (set_aside(entry.id)) return Present::nothing;
  if (is_folder(path)) return Status(StatusCode::io_error, fmt::format("{} is a folder: remove it by hand", path));
  // Damaged, and not to be moved: it is replaced, or a file that nobody can use would keep the kernel out for ever.
  return Present::replaceable;
}

Status DirStore::keep(const Entry& entry, Replace replace) {
  const Bytes bytes = encode_entry(entry);
  if (bytes.size() > entry_size_limit) {
    return {StatusCode::invalid_argument, fmt::format("the entry of {} has {} bytes, the limit is {}",
                                                      entry.id.key.text(), bytes.size(), entry_size_limit)};
  }
  // What get() would refuse must not be published, or it would be compiled again for ever.
  if (const auto decoded = decode_entry(bytes); !decoded) {
    return {StatusCode::invalid_argument,
            fmt::format("the entry of {} could not be read back: {}", entry.id.key.text(), decoded.status().message())};
  }
  const std::string directory = entry_directory(root_, entry.id);
  Status status;
  for (int attempt = 0; attempt < put_attempts; ++attempt) {
    const Result<Present> present = look_at_present(entry, replace);
    if (!present) return {StatusCode::cache_not_writable, present.status().message()};
    if (*present == Present::stays) return Status::ok();
    const Result<Folder> folder = make_cache_folder(root_, directory, options_.trust, guard());
    status = folder.status();
    if (!folder) continue;
    if (first_time(swept_, directory)) remove_stale_temporaries(*folder, options_.stale_after_seconds);
    const auto published =
        folder->publish(entry_file_name(entry.id), bytes.data(), bytes.size(),
                        {.replace = *present == Present::replaceable, .mode = file_modes(options_.trust).file});
    if (published && *published == Published::whole) return Status::ok();
    // Another writer was first: what it wrote is looked at. Or the folder went away: it is made again.
    status = published ? Status(StatusCode::io_error, fmt::format("{} changes all the time", path_of(entry.id)))
                       : published.status();
    if (!published && is_searchable_directory(directory)) break;
  }
  return {StatusCode::cache_not_writable, status.message()};
}

Status DirStore::put(const Entry& entry, Replace replace) {
  try {
    Status status = keep(entry, replace);
    const std::lock_guard lock(mutex_);
    if (status) {
      ++stats_.puts;
      warned_.erase(path_of(entry.id));  // it is whole now: should it be damaged once more, that is news
      return status;
    }
    ++stats_.put_failures;
    if (!put_warned_) {
      put_warned_ = true;
      log_.warning("kernels are compiled but not kept in the cache {} (said once; GEMVJIT_CACHE_DIR names another): {}",
                   root_, status.message());
    }
    return status;
  } catch (const std::bad_alloc&) {
    count(&StoreStats::put_failures);
    return {StatusCode::out_of_memory, "no memory to encode a cache entry"};
  }
}

Status DirStore::remove(const EntryId& id) {
  const std::string path = path_of(id);
  GEMVJIT_TRY(remove_cache_file(root_, path, guard()));
  const std::lock_guard lock(mutex_);
  warned_.erase(path);
  return Status::ok();
}

Result<std::vector<ListedEntry>> DirStore::list() {
  try {
    return list_entry_files(root_, guard());
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, fmt::format("no memory for all entries of the cache {}", root_));
  }
}

}  // namespace

std::unique_ptr<CubinStore> make_dir_store(std::string root, Log log, const DirStoreOptions& options) {
  if (root.empty()) return make_memory_store();
  return std::make_unique<DirStore>(std::move(root), std::move(log), options);
}

}  // namespace gemvjit
