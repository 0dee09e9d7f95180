#include "cache/guarded_store.h"

#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <mutex>

#include "cache/cache_folders.h"

namespace gemvjit {
namespace {

class GuardedStore final : public CubinStore {
 public:
  GuardedStore(std::unique_ptr<CubinStore> inner, std::string root, RootCheck check, Log log, CacheTrust trust)
      : inner_(std::move(inner)),
        root_(std::move(root)),
        check_(std::move(check)),
        log_(std::move(log)),
        trust_(trust),
        memory_(make_memory_store()) {
    const std::lock_guard lock(mutex_);
    examine();
  }

  std::optional<Entry> get(const EntryId& id) override {
    switch (state()) {
      case State::safe:
        return inner_->get(id);
      case State::refused:
        return memory_->get(id);
      case State::not_there:
        misses_.fetch_add(1, std::memory_order_relaxed);
        return std::nullopt;
    }
    return std::nullopt;
  }

  Result<FoundEntry> look(const EntryId& id) override {
    switch (state()) {
      case State::safe:
        return inner_->look(id);
      case State::refused:
        return memory_->look(id);
      case State::not_there:
        break;
    }
    return Status(StatusCode::not_found, "there is no cache folder yet");
  }

  Status put(const Entry& entry, Replace replace) override {
    State now = state();
    if (now == State::not_there) {
      // Made here, so that it can be examined before anything goes into it. Why it cannot be made says the put.
      (void)make_cache_folder(root_, root_, trust_, nullptr);
      now = state();
    }
    if (now != State::refused) return inner_->put(entry, replace);
    (void)memory_->put(entry, replace);
    const std::lock_guard lock(mutex_);
    return reason_;
  }

  Status remove(const EntryId& id) override { return active().remove(id); }
  Result<std::vector<ListedEntry>> list() override { return active().list(); }
  std::string path_of(const EntryId& id) const override { return is_refused() ? "" : inner_->path_of(id); }
  std::string root() const override { return is_refused() ? "" : inner_->root(); }
  StoreStats stats() const override {
    StoreStats stats = is_refused() ? memory_->stats() : inner_->stats();
    stats.misses += misses_.load(std::memory_order_relaxed);
    return stats;
  }

 private:
  enum class State { not_there, safe, refused };

  // As it is now: looks again as long as there is no folder.
  State state() {
    const State known = state_.load(std::memory_order_acquire);
    if (known != State::not_there) return known;
    const std::lock_guard lock(mutex_);
    if (state_.load(std::memory_order_relaxed) == State::not_there) examine();
    return state_.load(std::memory_order_relaxed);
  }

  // Under the mutex. The way to a folder that is not there yet is examined once, at the beginning.
  void examine() {
    struct stat info {};
    const bool there = ::stat(root_.c_str(), &info) == 0 || errno != ENOENT;
    if (!there && way_examined_) return;
    way_examined_ = true;
    if (const Status safe = check_(root_); !safe) {
      log_.warning("{}; kernels are kept in memory only", safe.message());
      reason_ = safe;
      state_.store(State::refused, std::memory_order_release);
    } else if (there) {
      state_.store(State::safe, std::memory_order_release);
    }
  }

  bool is_refused() const { return state_.load(std::memory_order_acquire) == State::refused; }
  CubinStore& active() { return state() == State::refused ? *memory_ : *inner_; }

  std::unique_ptr<CubinStore> inner_;
  const std::string root_;
  const RootCheck check_;
  Log log_;
  const CacheTrust trust_;              // with which modes the root is made
  std::unique_ptr<CubinStore> memory_;  // what is built after a refusal
  std::atomic<State> state_{State::not_there};
  std::atomic<std::uint64_t> misses_{0};  // while there was no folder
  std::mutex mutex_;                      // of the examination and what follows
  bool way_examined_ = false;
  Status reason_;
};

}  // namespace

std::unique_ptr<CubinStore> make_guarded_store(std::unique_ptr<CubinStore> inner, std::string root, RootCheck check,
                                               Log log, CacheTrust trust) {
  return std::make_unique<GuardedStore>(std::move(inner), std::move(root), std::move(check), std::move(log), trust);
}

std::unique_ptr<CubinStore> make_guarded_store(std::unique_ptr<CubinStore> inner, std::string root, CacheTrust trust,
                                               Log log) {
  return make_guarded_store(
      std::move(inner), std::move(root), [trust](const std::string& path) { return check_cache_root(path, trust); },
      std::move(log), trust);
}

}  // namespace gemvjit
