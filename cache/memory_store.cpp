#include <map>
#include <mutex>

#include "cache/put_policy.h"
#include "cache/store.h"

namespace gemvjit {
namespace {

struct IdOrder {
  bool operator()(const EntryId& a, const EntryId& b) const {
    if (a.key != b.key) return a.key < b.key;
    return a.digest < b.digest;
  }
};

class MemoryStore final : public CubinStore {
 public:
  std::optional<Entry> get(const EntryId& id) override {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) {
      ++stats_.misses;
      return std::nullopt;
    }
    ++stats_.hits;
    return found->second;
  }

  Result<FoundEntry> look(const EntryId& id) override {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) return Status(StatusCode::not_found, "not in memory, and there is no cache directory");
    return FoundEntry{found->second, ""};
  }

  Status put(const Entry& entry, Replace replace) override {
    const std::lock_guard lock(mutex_);
    ++stats_.puts;
    const auto [found, is_new] = entries_.try_emplace(entry.id, entry);
    if (is_new) return Status::ok();
    switch (judge_put(found->second, entry, replace)) {
      case PutVerdict::replace:
        found->second = entry;
        break;
      case PutVerdict::unchanged:
        ++stats_.puts_unchanged;
        break;
      case PutVerdict::other_compiler:
        ++stats_.puts_other_compiler;
        break;
      case PutVerdict::nondeterminism:
        ++stats_.determinism_alarms;
        break;
    }
    return Status::ok();
  }

  Status remove(const EntryId& id) override {
    const std::lock_guard lock(mutex_);
    entries_.erase(id);
    return Status::ok();
  }

  Result<std::vector<ListedEntry>> list() override {
    const std::lock_guard lock(mutex_);
    std::vector<ListedEntry> listed;
    for (const auto& [id, entry] : entries_) listed.push_back({"", 0, entry, Status::ok()});
    return listed;
  }

  std::string path_of(const EntryId&) const override { return ""; }
  std::string root() const override { return ""; }

  StoreStats stats() const override {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<EntryId, Entry, IdOrder> entries_;
  StoreStats stats_;
};

}  // namespace

std::unique_ptr<CubinStore> make_memory_store() { return std::make_unique<MemoryStore>(); }

}  // namespace gemvjit
