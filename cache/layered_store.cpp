#include "cache/layered_store.h"

#include <sys/stat.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <set>

#include "cache/read_only_layer.h"

namespace gemvjit {
namespace {

class LayeredStore final : public CubinStore {
 public:
  LayeredStore(std::unique_ptr<CubinStore> writable, std::vector<std::string> paths, Log log,
               std::shared_ptr<const Signatures> signatures)
      : writable_(std::move(writable)),
        paths_(std::move(paths)),
        log_(std::move(log)),
        signatures_(std::move(signatures)) {}

  std::optional<Entry> get(const EntryId& id) override;
  Result<FoundEntry> look(const EntryId& id) override;
  Status put(const Entry& entry, Replace replace) override;
  Status remove(const EntryId& id) override { return writable_->remove(id); }
  Result<std::vector<ListedEntry>> list() override;
  std::string path_of(const EntryId& id) const override;
  std::string root() const override { return writable_->root(); }
  StoreStats stats() const override;

 private:
  using Layers = std::vector<std::unique_ptr<ReadOnlyLayer>>;
  const Layers& layers() const;
  std::optional<Entry> get_from_layers(const EntryId& id);
  void compare_with_layers(const Entry& entry);
  bool first_time(const std::string& what);

  std::unique_ptr<CubinStore> writable_;
  std::vector<std::string> paths_;
  Log log_;
  std::shared_ptr<const Signatures> signatures_;  // may be null
  mutable std::once_flag opened_;
  mutable Layers layers_;     // after opened_
  mutable std::mutex mutex_;  // guards what follows; held for no file operation
  StoreStats from_layers_;    // hits there, unusable entries there, and other answers than a put's
  std::set<std::string> warned_;
};

const LayeredStore::Layers& LayeredStore::layers() const {
  std::call_once(opened_, [this] {
    for (const std::string& path : paths_) {
      auto layer = open_read_only_layer(path, signatures_.get());
      if (layer) {
        layers_.push_back(std::move(layer).value());
      } else {
        log_.warning("read-only cache layer not used: {}", layer.status().message());
      }
    }
  });
  return layers_;
}

bool LayeredStore::first_time(const std::string& what) {
  const std::lock_guard lock(mutex_);
  return warned_.insert(what).second;
}

std::optional<Entry> LayeredStore::get(const EntryId& id) {
  if (std::optional<Entry> entry = writable_->get(id)) return entry;
  try {
    return get_from_layers(id);
  } catch (const std::bad_alloc&) {
    return std::nullopt;  // without the layers the caller may still get on
  }
}

std::optional<Entry> LayeredStore::get_from_layers(const EntryId& id) {
  for (const auto& layer : layers()) {
    Result<Entry> entry = layer->read(id);
    const Status trusted = entry && signatures_ != nullptr ? signatures_->check(*entry) : Status::ok();
    const std::lock_guard lock(mutex_);
    if (!trusted) {
      ++from_layers_.untrusted;
      if (warned_.insert("untrusted " + layer->path() + " " + id.key.text() + to_hex(id.digest)).second) {
        log_.warning("entry of the read-only cache layer {} not used: {}", layer->path(), trusted.message());
      }
      continue;
    }
    if (entry) {
      ++from_layers_.hits;
      return std::move(entry).value();
    }
    if (entry.status().code() == StatusCode::not_found) continue;
    ++from_layers_.damaged;
    if (entry.status().code() == StatusCode::io_error) ++from_layers_.unreadable;
    // One line for each entry of a layer; where a whole layer fails, its messages are alike but for the name.
    if (warned_.insert(layer->path() + " " + id.key.text() + to_hex(id.digest)).second) {
      log_.warning("entry of a read-only cache layer not used: {}", entry.status().message());
    }
  }
  return std::nullopt;
}

// The first of the reasons that is more than "not there".
Result<FoundEntry> LayeredStore::look(const EntryId& id) {
  Result<FoundEntry> first = writable_->look(id);
  if (first) return first;
  try {
    for (const auto& layer : layers()) {
      Result<Entry> entry = layer->read(id);
      const Status trusted = entry && signatures_ != nullptr ? signatures_->check(*entry) : Status::ok();
      if (entry && trusted) return FoundEntry{std::move(entry).value(), layer->find(id)};
      if (first.status().code() != StatusCode::not_found || !trusted) continue;
      if (entry.status().code() != StatusCode::not_found) first = entry.status();
    }
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, "no memory for a layer's entry");
  }
  return first;
}

void LayeredStore::compare_with_layers(const Entry& entry) {
  for (const auto& layer : layers()) {
    const Result<Entry> other = layer->read(entry.id);
    if (!other || (signatures_ != nullptr && !signatures_->check(*other))) continue;
    if (other->cubin.compiler_version != entry.cubin.compiler_version || other->cubin.bytes == entry.cubin.bytes) {
      continue;
    }
    {
      const std::lock_guard lock(mutex_);
      ++from_layers_.determinism_alarms;
    }
    if (first_time("differs " + layer->find(entry.id))) {
      log_.warning("{} and the kernel just built are different answers of {} to one recipe; the local one is served",
                   layer->find(entry.id), entry.cubin.compiler_version);
    }
  }
}

Status LayeredStore::put(const Entry& entry, Replace replace) {
  try {
    compare_with_layers(entry);
  } catch (const std::bad_alloc&) {
    // the entry is worth more than the comparison
  }
  return writable_->put(entry, replace);
}

Result<std::vector<ListedEntry>> LayeredStore::list() {
  Result<std::vector<ListedEntry>> local = writable_->list();
  if (!local) return local;
  std::vector<ListedEntry> all = std::move(local).value();
  try {
    for (const auto& layer : layers()) {
      auto listed = layer->list();
      if (!listed) {
        all.push_back({layer->path(), 0, {}, listed.status()});
        continue;
      }
      std::move(listed->begin(), listed->end(), std::back_inserter(all));
    }
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, "no memory for all entries of the cache's layers");
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return all;
}

std::string LayeredStore::path_of(const EntryId& id) const {
  const std::string local = writable_->path_of(id);
  struct stat info {};
  if (!local.empty() && ::lstat(local.c_str(), &info) == 0) return local;
  for (const auto& layer : layers()) {
    if (std::string found = layer->find(id); !found.empty()) return found;
  }
  return local;
}

StoreStats LayeredStore::stats() const {
  StoreStats stats = writable_->stats();
  const std::lock_guard lock(mutex_);
  // Each hit in a layer was a miss of the writable store before.
  stats.hits += from_layers_.hits;
  stats.misses -= std::min(stats.misses, from_layers_.hits);
  stats.damaged += from_layers_.damaged;
  stats.unreadable += from_layers_.unreadable;
  stats.determinism_alarms += from_layers_.determinism_alarms;
  stats.untrusted += from_layers_.untrusted;
  return stats;
}

}  // namespace

std::unique_ptr<CubinStore> make_layered_store(std::unique_ptr<CubinStore> writable,
                                               std::vector<std::string> layer_paths, Log log,
                                               std::shared_ptr<const Signatures> signatures) {
  if (layer_paths.empty()) return writable;
  return std::make_unique<LayeredStore>(std::move(writable), std::move(layer_paths), std::move(log),
                                        std::move(signatures));
}

}  // namespace gemvjit
