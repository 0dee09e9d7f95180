#include "cache/signed_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <set>

#include "cache/entry_files.h"

namespace gemvjit {
namespace {

class SignedStore final : public CubinStore {
 public:
  SignedStore(std::unique_ptr<CubinStore> inner, std::shared_ptr<const Signatures> signatures, Log log)
      : inner_(std::move(inner)),
        signatures_(std::move(signatures)),
        log_(std::move(log)),
        memory_(make_memory_store()) {}

  std::optional<Entry> get(const EntryId& id) override;
  Result<FoundEntry> look(const EntryId& id) override;
  Status put(const Entry& entry, Replace replace) override;
  Status remove(const EntryId& id) override {
    (void)memory_->remove(id);
    return inner_->remove(id);
  }
  Result<std::vector<ListedEntry>> list() override { return inner_->list(); }
  std::string path_of(const EntryId& id) const override { return inner_->path_of(id); }
  std::string root() const override { return inner_->root(); }
  StoreStats stats() const override;

 private:
  bool first_time(const std::string& what);
  Status put_signed(const Entry& entry, Replace replace);
  Status keep_in_memory(const Entry& entry, const Status& reason);

  std::unique_ptr<CubinStore> inner_;
  std::shared_ptr<const Signatures> signatures_;
  Log log_;
  std::unique_ptr<CubinStore> memory_;  // what could not be signed, under the policy all
  mutable std::mutex mutex_;            // guards what follows; held for no file operation
  std::uint64_t untrusted_ = 0, from_memory_ = 0, not_kept_ = 0;
  std::set<std::string> warned_;
};

bool SignedStore::first_time(const std::string& what) {
  const std::lock_guard lock(mutex_);
  return warned_.insert(what).second;
}

std::optional<Entry> SignedStore::get(const EntryId& id) {
  std::optional<Entry> entry = inner_->get(id);
  if (!signatures_->asks_for_entries()) return entry;
  try {
    if (entry) {
      const Status trusted = signatures_->check(*entry);
      if (trusted) return entry;
      if (first_time(path_of(id))) {
        log_.warning("cache entry not used, its kernel is built again: {}: {}", path_of(id), trusted.message());
      }
      const std::lock_guard lock(mutex_);
      ++untrusted_;
    }
    std::optional<Entry> kept = memory_->get(id);
    const std::lock_guard lock(mutex_);
    if (kept) ++from_memory_;
    return kept;
  } catch (const std::bad_alloc&) {
    return std::nullopt;  // not known to be trusted
  }
}

Result<FoundEntry> SignedStore::look(const EntryId& id) {
  Result<FoundEntry> found = inner_->look(id);
  if (!signatures_->asks_for_entries()) return found;
  try {
    const Status trusted = found ? signatures_->check(found->entry) : Status::ok();
    if (found && trusted) return found;
    if (Result<FoundEntry> kept = memory_->look(id)) return kept;
    if (trusted) return found;
    return Status(StatusCode::not_found, trusted.message());
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, "no memory for a cache entry");
  }
}

Status SignedStore::keep_in_memory(const Entry& entry, const Status& reason) {
  (void)memory_->put(entry, Replace::any);
  Status status(StatusCode::cache_not_writable,
                fmt::format("kernels are kept in memory only: cache_signatures is all, and they cannot be signed: {}",
                            reason.message()));
  if (first_time("put")) log_.warning("{} (said once)", status.message());
  const std::lock_guard lock(mutex_);
  ++not_kept_;
  return status;
}

// Under the policy all what is on the disk without a trusted signature counts as not there.
Status SignedStore::put_signed(const Entry& entry, Replace replace) {
  if (signatures_->asks_for_entries() && !path_of(entry.id).empty()) {
    const Result<Entry> present = load_entry_file(root(), entry.id);
    if (present && present->id == entry.id && !signatures_->check(*present)) replace = Replace::any;
  }
  return inner_->put(entry, replace);
}

Status SignedStore::put(const Entry& entry, Replace replace) {
  try {
    const bool is_trusted = signatures_->asks_for_entries() && signatures_->check(entry).is_ok();
    if (is_trusted || (entry.signature && !signatures_->asks_for_entries())) return put_signed(entry, replace);
    const Result<Entry> made = signatures_->sign(entry);
    if (made) return put_signed(*made, replace);
    if (signatures_->asks_for_entries()) return keep_in_memory(entry, made.status());
    return inner_->put(entry, replace);  // loading the key has warned
  } catch (const std::bad_alloc&) {
    return {StatusCode::out_of_memory, "no memory to sign a cache entry"};
  }
}

StoreStats SignedStore::stats() const {
  StoreStats stats = inner_->stats();
  const std::lock_guard lock(mutex_);
  const std::uint64_t refused = std::min(stats.hits, untrusted_);
  stats.hits = stats.hits - refused + from_memory_;
  stats.misses = stats.misses + refused - std::min(stats.misses + refused, from_memory_);
  stats.untrusted += untrusted_;
  stats.put_failures += not_kept_;
  return stats;
}

}  // namespace

std::unique_ptr<CubinStore> make_signed_store(std::unique_ptr<CubinStore> inner,
                                              std::shared_ptr<const Signatures> signatures, Log log) {
  if (signatures == nullptr || inner->root().empty() ||
      (!signatures->asks_for_entries() && !signatures->has_signing_key()))
    return inner;
  return std::make_unique<SignedStore>(std::move(inner), std::move(signatures), std::move(log));
}

}  // namespace gemvjit
