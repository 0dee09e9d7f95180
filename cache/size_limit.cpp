#include "cache/size_limit.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <functional>
#include <limits>
#include <mutex>
#include <set>

#include "cache/cache_folders.h"
#include "cache/entry_files.h"
#include "cache/layout.h"
#include "cache/usage_ledger.h"
#include "src/base/files.h"

namespace gemvjit {
namespace {

constexpr std::int64_t impatient_seconds = 60;
constexpr std::int64_t scan_is_old_after = std::int64_t{24} * 3600;  // files may come and go without the ledger
constexpr std::int64_t thrash_seconds = 600;
constexpr std::uint64_t entry_overhead = 1024;  // more than an entry's header takes

std::uint64_t digest_bits_of(const std::string& file_name) {
  const std::size_t dot = file_name.rfind('.'), dash = file_name.rfind('-');
  return std::stoull(file_name.substr(dash + 1, dot - dash - 1), nullptr, 16);  // is_entry_file_name has looked
}

std::uint64_t digest_bits_of(const EntryId& id) { return digest_bits_of(entry_file_name(id)); }

std::uint64_t bytes_of(const std::vector<CachedFile>& files) {
  std::uint64_t total = 0;
  for (const CachedFile& file : files) total += file.bytes;
  return total;
}

void sort_by_use(std::vector<CachedFile>& files) {
  std::sort(files.begin(), files.end(), [](const CachedFile& a, const CachedFile& b) {
    return a.last_used != b.last_used ? a.last_used < b.last_used : a.path < b.path;
  });
}

std::uint64_t free_bytes_of(const std::string& path) {
  std::string place = path;
  struct statvfs info {};
  while (::statvfs(place.c_str(), &info) != 0) {
    const std::size_t slash = place.rfind('/');
    if (place == "/" || place == ".") return std::numeric_limits<std::uint64_t>::max();
    place = slash == std::string::npos ? "." : slash == 0 ? "/" : place.substr(0, slash);
  }
  return std::uint64_t{info.f_bavail} * info.f_frsize;
}

class Limited final : public CubinStore {
 public:
  Limited(std::unique_ptr<CubinStore> inner, SizeLimit limit, Log log, SizeLimitHooks hooks)
      : inner_(std::move(inner)),
        limit_(limit),
        log_(std::move(log)),
        hooks_(std::move(hooks)),
        ledger_(inner_->root(), limit.trust, limit.guard) {
    if (!hooks_.now) hooks_.now = [] { return static_cast<std::int64_t>(std::time(nullptr)); };
    if (!hooks_.free_bytes) hooks_.free_bytes = free_bytes_of;
  }

  std::optional<Entry> get(const EntryId& id) override {
    std::optional<Entry> entry = inner_->get(id);
    if (entry && is_limited()) use(id);
    return entry;
  }
  Result<FoundEntry> look(const EntryId& id) override { return inner_->look(id); }  // no use, and not stamped as one
  Status put(const Entry& entry, Replace replace) override;
  Status remove(const EntryId& id) override { return inner_->remove(id); }  // the next scan sees it
  Result<std::vector<ListedEntry>> list() override { return inner_->list(); }
  std::string path_of(const EntryId& id) const override { return inner_->path_of(id); }
  std::string root() const override { return inner_->root(); }
  StoreStats stats() const override {
    StoreStats stats = inner_->stats();
    const std::lock_guard lock(mutex_);
    stats.evictions = evictions_;
    stats.thrashed = thrashed_;
    stats.refused = refused_;
    return stats;
  }

 private:
  bool is_limited() const { return !inner_->root().empty(); }
  const EntryGuard* guard() const { return limit_.guard ? &*limit_.guard : nullptr; }
  Result<std::vector<CachedFile>> scan_all() const { return scan_cache(inner_->root(), guard()); }
  void use(const EntryId& id);
  struct Reservation {
    Status status;
    std::uint64_t more = 0;   // bytes that it takes beyond what is there
    std::uint64_t scans = 0;  // the ledger's, when it was made
  };
  std::optional<std::vector<CachedFile>> scan(Usage& usage, const UsageLedger::KeepNow& keep_now) const;
  void with_usage(const UsageLedger::Change& change) const;
  Reservation reserve(const Entry& entry, std::uint64_t bytes, std::uint64_t present);
  void settle(const Entry& entry, const Reservation& reservation, bool written);
  void make_room(Usage& usage, const UsageLedger::KeepNow& keep_now, std::uint64_t bytes, std::uint64_t keep_digest);
  void warn_once(bool& warned, const std::string& message);

  std::unique_ptr<CubinStore> inner_;
  SizeLimit limit_;
  Log log_;
  SizeLimitHooks hooks_;
  UsageLedger ledger_;
  mutable std::mutex mutex_;  // guards what follows; held for no file operation
  std::uint64_t evictions_ = 0, thrashed_ = 0, refused_ = 0;
  std::set<std::uint64_t> in_use_;
  mutable std::atomic<std::int64_t> impatient_until_{0};  // after the ledger's lock was waited for in vain
  bool thrash_warned_ = false, full_warned_ = false;
};

// The first use by this process is stamped: often enough to know what is used, seldom enough to cost nothing.
void Limited::use(const EntryId& id) {
  {
    const std::lock_guard lock(mutex_);
    if (!in_use_.insert(digest_bits_of(id)).second) return;
  }
  const timespec times[2] = {{static_cast<std::time_t>(hooks_.now()), 0}, {0, UTIME_OMIT}};
  const Result<Folder> folder = open_cache_folder(root(), entry_directory(root(), id), guard());
  if (!folder) return;
  const Descriptor file = folder->open_file(entry_file_name(id), O_RDONLY | O_NONBLOCK);
  struct stat info {};
  // A second name may be that of somebody's own file elsewhere.
  if (!file.is_open() || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_nlink != 1) return;
  if (::futimens(file.get(), times) == 0 || errno != EPERM) return;
  // Another user's, in a shared cache: who may write a file may set both of its times, and to now only.
  (void)::futimens(file.get(), nullptr);
}

void Limited::warn_once(bool& warned, const std::string& message) {
  {
    const std::lock_guard lock(mutex_);
    if (warned) return;
    warned = true;
  }
  log_.warning("{}", message);
}

// The ledger's; where it cannot be locked, one of a scan for this time alone.
void Limited::with_usage(const UsageLedger::Change& change) const {
  // Who holds it may be stopped: that is waited for once in a while only.
  const std::int64_t now = hooks_.now();
  if (now >= impatient_until_.load() || now < impatient_until_.load() - impatient_seconds) {
    if (ledger_.update(hooks_.lock_patience_ms, change)) return;
    impatient_until_ = now + impatient_seconds;
  } else if (ledger_.update(0, change)) {
    return;
  }
  Usage alone;
  change(alone, [] {});
}

// What is there now, as the ledger then has it; nothing where it cannot be read. Told before the first file is looked
// at: who has written and is not told of a scan yet is seen by it.
std::optional<std::vector<CachedFile>> Limited::scan(Usage& usage, const UsageLedger::KeepNow& keep_now) const {
  ++usage.scans;
  keep_now();
  auto files = scan_all();
  if (!files) return std::nullopt;
  usage.total_bytes = bytes_of(*files);
  usage.scanned_at = hooks_.now();
  return std::move(files).value();
}

// Evicts until `bytes` more leave a tenth of the cap free, as far as what is not in use allows.
void Limited::make_room(Usage& usage, const UsageLedger::KeepNow& keep_now, std::uint64_t bytes,
                        std::uint64_t keep_digest) {
  auto files = scan(usage, keep_now);
  if (!files) return;
  if (usage.total_bytes + bytes <= limit_.max_bytes) return;  // the ledger was behind
  const std::uint64_t room = limit_.max_bytes / 10 * 9;
  sort_by_use(*files);
  for (const CachedFile& file : *files) {
    if (usage.total_bytes + bytes <= room) break;
    {
      const std::lock_guard lock(mutex_);
      if (file.digest_bits == keep_digest || in_use_.count(file.digest_bits) != 0) continue;
    }
    if (!remove_cache_file(root(), file.path, guard())) continue;
    usage.total_bytes -= std::min(usage.total_bytes, file.bytes);
    usage.note_eviction(file.digest_bits, usage.scanned_at);
    const std::lock_guard lock(mutex_);
    ++evictions_;
  }
}

Limited::Reservation Limited::reserve(const Entry& entry, std::uint64_t bytes, std::uint64_t present) {
  const std::uint64_t digest = digest_bits_of(entry.id);
  bool full = false, thrashed = false;
  Reservation made;
  made.more = bytes - std::min(bytes, present);
  with_usage([&](Usage& usage, const UsageLedger::KeepNow& keep_now) {
    const std::int64_t now = hooks_.now();
    if (usage.scanned_at == 0 || now - usage.scanned_at > scan_is_old_after || usage.scanned_at > now) {
      (void)scan(usage, keep_now);
    }
    thrashed = usage.was_evicted_since(digest, now - thrash_seconds);
    if (usage.total_bytes + made.more > limit_.max_bytes) make_room(usage, keep_now, made.more, digest);
    full = usage.total_bytes + made.more > limit_.max_bytes;
    if (!full) usage.total_bytes += made.more;
    made.scans = usage.scans;
  });
  if (thrashed) {
    {
      const std::lock_guard lock(mutex_);
      ++thrashed_;
    }
    warn_once(thrash_warned_,
              fmt::format("{} was evicted from the cache {} minutes ago or less and is needed again: its "
                          "cap of {} bytes is too small for what is used (said once)",
                          entry.id.key.text(), thrash_seconds / 60, limit_.max_bytes));
  }
  if (full) {
    made.status = {StatusCode::cache_not_writable,
                   fmt::format("the cache {} is at its cap of {} bytes and all of it is "
                               "in use",
                               root(), limit_.max_bytes)};
  }
  return made;
}

// After the write. What was not written is given back. A scan since the reservation did not know of it, and may have
// let others write in its place: then it is counted now, perhaps for the second time, and whoever is over the cap scans
// again.
void Limited::settle(const Entry& entry, const Reservation& reservation, bool written) {
  if (written && ledger_.read().scans == reservation.scans) return;
  with_usage([&](Usage& usage, const UsageLedger::KeepNow& keep_now) {
    const bool forgotten = usage.scans != reservation.scans;
    if (!written) {
      if (!forgotten) usage.total_bytes -= std::min(usage.total_bytes, reservation.more);
      return;
    }
    if (!forgotten) return;
    usage.total_bytes += reservation.more;
    if (usage.total_bytes > limit_.max_bytes) make_room(usage, keep_now, 0, digest_bits_of(entry.id));
  });
}

Status Limited::put(const Entry& entry, Replace replace) {
  if (!is_limited()) return inner_->put(entry, replace);
  const std::uint64_t bytes = entry.cubin.bytes.size() + entry_overhead;
  Reservation reservation;
  Status& status = reservation.status;
  if (hooks_.free_bytes(root()) < limit_.keep_free_bytes + bytes) {
    status = {StatusCode::cache_not_writable, fmt::format("writing to the cache {} would leave less than {} bytes free",
                                                          root(), limit_.keep_free_bytes)};
  } else if (limit_.max_bytes != 0) {
    // The ledger lives in a folder that the first put makes.
    (void)make_cache_folder(root(), version_directory(root()), limit_.trust, guard());
    struct stat info {};
    const bool there = ::lstat(path_of(entry.id).c_str(), &info) == 0;
    reservation = reserve(entry, bytes, there ? static_cast<std::uint64_t>(info.st_size) : 0);
  }
  if (!status) {
    {
      const std::lock_guard lock(mutex_);
      ++refused_;
    }
    warn_once(full_warned_, fmt::format("kernels are compiled but not kept (said once): {}", status.message()));
    return status;
  }
  status = inner_->put(entry, replace);
  if (limit_.max_bytes != 0) settle(entry, reservation, status.is_ok());
  return status;
}

}  // namespace

std::unique_ptr<CubinStore> make_size_limited_store(std::unique_ptr<CubinStore> inner, SizeLimit limit, Log log,
                                                    SizeLimitHooks hooks) {
  return std::make_unique<Limited>(std::move(inner), limit, std::move(log), std::move(hooks));
}

Result<std::vector<CachedFile>> scan_cache(const std::string& root, const EntryGuard* guard) {
  std::vector<CachedFile> files;
  const auto on_file = [&](const Folder& folder, const std::string& name, const std::string& arch) {
    const auto info = folder.examine(name);
    if (!info || !S_ISREG(info->st_mode)) return;
    files.push_back({folder.path_of(name), arch, static_cast<std::uint64_t>(info->st_size),
                     std::int64_t{info->st_atime}, digest_bits_of(name)});
  };
  GEMVJIT_TRY(visit_entry_files(
      root, on_file, [](const std::string&, const Status&) {}, guard));
  return files;
}

namespace {

// Symbolic links are not followed. `files` gets what is an entry by its name's end.
void scan_foreign(const Result<Folder>& folder, const std::string& arch, int depth, const EntryGuard& guard,
                  std::vector<CachedFile>& files) {
  const auto names = folder ? folder->list() : folder.status();
  if (!names) return;
  for (const std::string& name : *names) {
    const auto info = folder->examine(name);
    if (!info) continue;
    if (S_ISDIR(info->st_mode) && depth < 3) {
      scan_foreign(open_cache_subfolder(*folder, name, guard), arch.empty() ? name : arch, depth + 1, guard, files);
    }
    if (S_ISREG(info->st_mode) && name.ends_with(".entry")) {
      files.push_back(
          {folder->path_of(name), arch, static_cast<std::uint64_t>(info->st_size), std::int64_t{info->st_atime}, 0});
    }
  }
}

bool is_version_name(std::string_view name) {
  return name.size() >= 2 && name.front() == 'v' && name.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

// Other versions' entries have no part in the total of this one's.
void collect_other_versions(const std::string& root, const CollectRequest& request, Collected& result) {
  const EntryGuard* guard = request.guard ? &*request.guard : nullptr;
  for (const CachedFile& file : scan_other_versions(root, guard)) {
    const bool is_asked_for = request.archs.empty() || request.archs.contains(file.arch);
    const bool is_due = request.max_age_seconds ? request.now - file.last_used > *request.max_age_seconds
                                                : !request.max_bytes.has_value();
    if (!is_asked_for || !is_due) continue;
    if (!request.dry_run) {
      if (Status status = remove_cache_file(root, file.path, guard); !status) {
        result.failed.push_back(std::move(status));
        continue;
      }
    }
    result.removed_bytes += file.bytes;
    result.removed.push_back(file);
  }
}

}  // namespace

std::vector<CachedFile> scan_other_versions(const std::string& root, const EntryGuard* guard) {
  std::vector<CachedFile> files;
  const EntryGuard used = guard != nullptr ? *guard : EntryGuard::of_anyone();
  const Result<Folder> all = open_cache_folder(root, root, guard);
  const auto names = all ? all->list() : all.status();
  if (!names) return files;
  for (const std::string& name : *names) {
    const bool is_other = is_version_name(name) && all->path_of(name) != version_directory(all->path());
    if (is_other) scan_foreign(open_cache_subfolder(*all, name, used), "", 0, used, files);
  }
  return files;
}

Result<Collected> collect_garbage(const std::string& root, const CollectRequest& request) {
  const EntryGuard* guard = request.guard ? &*request.guard : nullptr;
  GEMVJIT_TRY_ASSIGN(std::vector<CachedFile> files, scan_cache(root, guard));
  sort_by_use(files);
  std::uint64_t total = bytes_of(files);
  Collected result;
  for (const CachedFile& file : files) {
    const bool is_asked_for = request.archs.empty() || request.archs.contains(file.arch);
    const bool is_old = request.max_age_seconds && request.now - file.last_used > *request.max_age_seconds;
    const bool is_too_much = request.max_bytes && total > *request.max_bytes;
    const bool only_arch = !request.archs.empty() && !request.max_age_seconds && !request.max_bytes &&
                           !request.other_versions && !request.is_unwanted;
    const bool is_unwanted = request.is_unwanted && request.is_unwanted(file);
    bool removed = is_asked_for && (is_old || is_too_much || only_arch || is_unwanted);
    if (removed && !request.dry_run) {
      if (Status status = remove_cache_file(root, file.path, guard); !status) {
        result.failed.push_back(std::move(status));
        removed = false;
      }
    }
    if (removed) {
      total -= file.bytes;
      result.removed_bytes += file.bytes;
      result.removed.push_back(file);
    } else {
      ++result.kept;
    }
  }
  result.kept_bytes = total;
  if (!request.dry_run && !result.removed.empty()) {
    const UsageLedger ledger(root, CacheTrust::owner, request.guard);
    // Others may have written since the scan, so what is there now is not known from it.
    (void)ledger.update(
        SizeLimitHooks{}.lock_patience_ms,
        [&](Usage& usage, const auto&) { usage.total_bytes -= std::min(usage.total_bytes, result.removed_bytes); },
        Missing::left);
  }
  if (request.other_versions) collect_other_versions(root, request, result);
  return result;
}

}  // namespace gemvjit
