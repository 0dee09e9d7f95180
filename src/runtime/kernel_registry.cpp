#include "src/runtime/kernel_registry.h"

namespace gemvjit {
namespace {

constexpr std::size_t first_table_slots = 64;

// Index into a slot's kernels: a place in kNtWithTokens; 0 for a family without tokens.
std::size_t kernel_index(Family family, std::int64_t m) { return family_row(family).has_tokens ? token_class(m) : 0; }

std::size_t hash_of(const LaunchShape& shape) {
  const std::uint64_t tag = static_cast<std::uint64_t>(shape.family) << 3 | (shape.scale_segments ? 4u : 0u) |
                            (shape.silu_mul ? 2u : 0u) | (shape.pdl_allowed ? 1u : 0u);
  std::uint64_t h = static_cast<std::uint64_t>(shape.n) * 0x9E3779B97F4A7C15u;
  h = (h ^ (h >> 29) ^ static_cast<std::uint64_t>(shape.k)) * 0xBF58476D1CE4E5B9u;
  h = (h ^ (h >> 32) ^ tag) * 0x94D049BB133111EBu;
  return static_cast<std::size_t>(h ^ (h >> 31));
}

}  // namespace

// One cache line. `used` is set last when a slot is claimed, so that a reader who sees it sees the shape.
struct alignas(64) KernelRegistry::Slot {
  LaunchShape shape;
  std::array<std::atomic<const LoadedKernel*>, kNtWithTokens.size()> kernels{};
  std::atomic<bool> used{false};
};

struct KernelRegistry::Table {
  static_assert(sizeof(Slot) == 64, "a slot is one cache line");
  explicit Table(std::size_t count) : slots(std::make_unique<Slot[]>(count)), mask(count - 1) {}
  std::unique_ptr<Slot[]> slots;
  std::size_t mask;
  std::size_t used = 0;  // only under the lock
};

KernelRegistry::KernelRegistry() {
  tables_.push_back(std::make_unique<Table>(first_table_slots));
  table_.store(tables_.back().get(), std::memory_order_release);
}

KernelRegistry::~KernelRegistry() = default;

KernelRegistry::Found KernelRegistry::find(const LaunchShape& shape, std::int64_t m) const {
  const Table& table = *table_.load(std::memory_order_acquire);
  for (std::size_t i = hash_of(shape);; ++i) {  // a table is at most half full, so that an unused slot ends the search
    const Slot& slot = table.slots[i & table.mask];
    if (!slot.used.load(std::memory_order_acquire)) return {};
    if (slot.shape == shape) {
      return {slot.kernels[kernel_index(shape.family, m)].load(std::memory_order_acquire), true};
    }
  }
}

const LoadedKernel* KernelRegistry::find_key(const KernelKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = kernels_.find(key);
  return found == kernels_.end() ? nullptr : found->second.get();
}

const LoadedKernel* KernelRegistry::add(std::unique_ptr<LoadedKernel> kernel) {
  const std::lock_guard lock(mutex_);
  const auto [place, inserted] = kernels_.try_emplace(kernel->spec.key, nullptr);
  if (inserted) place->second = std::move(kernel);
  return place->second.get();
}

void KernelRegistry::serve(const LoadedKernel& kernel) {
  const std::lock_guard lock(mutex_);
  const KernelSpec& spec = kernel.spec;
  if (barred_.contains(spec.key)) return;
  LaunchShape shape{spec.key.n, spec.key.k, spec.family, spec.silu_mul, true, spec.scale_segments};
  offer(shape, kernel);
  shape.pdl_allowed = false;
  if (!spec.pdl) offer(shape, kernel);
}

void KernelRegistry::withdraw(const LoadedKernel& kernel) {
  const std::lock_guard lock(mutex_);
  const auto place = kernels_.find(kernel.spec.key);
  if (place == kernels_.end() || place->second.get() != &kernel) return;
  withdrawn_.push_back(std::move(place->second));
  kernels_.erase(place);
}

void KernelRegistry::bar(const LoadedKernel& kernel) {
  const KernelKey key = kernel.spec.key;
  withdraw(kernel);
  const std::lock_guard lock(mutex_);
  barred_.insert(key);
}

bool KernelRegistry::is_barred(const KernelKey& key) const {
  const std::lock_guard lock(mutex_);
  return barred_.contains(key);
}

void KernelRegistry::note_resolved(const LoadedKernel& kernel, CudaContextId context) {
  const std::lock_guard lock(mutex_);
  resolved_.emplace(&kernel, context);
}

bool KernelRegistry::is_resolved(const LoadedKernel& kernel, CudaContextId context) const {
  const std::lock_guard lock(mutex_);
  return resolved_.contains({&kernel, context});
}

// Whether `candidate` serves a token class better than what the slot has: a smaller nt does less work; of one nt the
// kernel that uses what the launch allows; of two alike that with the larger cluster, since the other may be there as
// its substitute; else the first stays. What is barred gives way to its nt's next.
bool KernelRegistry::is_better(const LoadedKernel& candidate, const LoadedKernel* present) const {
  if (present == nullptr) return true;
  const std::int32_t nt = candidate.spec.key.nt;
  if (nt != present->spec.key.nt) return nt < present->spec.key.nt;
  if (barred_.contains(present->spec.key)) return true;
  if (candidate.spec.pdl != present->spec.pdl) return candidate.spec.pdl;
  return candidate.config.cluster_x > present->config.cluster_x;
}

void KernelRegistry::offer(const LaunchShape& shape, const LoadedKernel& kernel) {
  Slot& slot = slot_for(shape);
  const bool has_tokens = family_row(shape.family).has_tokens;
  for (std::size_t i = 0; i < kNtWithTokens.size(); ++i) {
    const bool covers = has_tokens ? kernel.spec.key.nt >= kNtWithTokens[i] : i == 0;
    if (covers && is_better(kernel, slot.kernels[i].load(std::memory_order_relaxed))) {
      slot.kernels[i].store(&kernel, std::memory_order_release);
    }
  }
  slot.used.store(true, std::memory_order_release);
}

KernelRegistry::Slot& KernelRegistry::slot_for(const LaunchShape& shape) {
  if (2 * (tables_.back()->used + 1) > tables_.back()->mask + 1) grow();
  Table& table = *tables_.back();
  for (std::size_t i = hash_of(shape);; ++i) {
    Slot& slot = table.slots[i & table.mask];
    if (slot.used.load(std::memory_order_relaxed)) {
      if (slot.shape == shape) return slot;
      continue;
    }
    slot.shape = shape;
    ++table.used;
    return slot;
  }
}

void KernelRegistry::grow() {
  const Table& old = *tables_.back();
  auto larger = std::make_unique<Table>(2 * (old.mask + 1));
  for (std::size_t i = 0; i <= old.mask; ++i) {
    const Slot& from = old.slots[i];
    if (!from.used.load(std::memory_order_relaxed)) continue;
    std::size_t at = hash_of(from.shape);
    while (larger->slots[at & larger->mask].used.load(std::memory_order_relaxed)) ++at;
    Slot& to = larger->slots[at & larger->mask];
    to.shape = from.shape;
    for (std::size_t c = 0; c < to.kernels.size(); ++c) {
      to.kernels[c].store(from.kernels[c].load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
    to.used.store(true, std::memory_order_relaxed);
    ++larger->used;
  }
  tables_.push_back(std::move(larger));
  table_.store(tables_.back().get(), std::memory_order_release);
}

std::size_t KernelRegistry::size() const {
  const std::lock_guard lock(mutex_);
  return kernels_.size();
}

void KernelRegistry::unload_all() {
  const std::lock_guard lock(mutex_);
  for (auto& [key, kernel] : kernels_) kernel->library.unload();
  for (auto& kernel : withdrawn_) kernel->library.unload();
  kernels_.clear();
  withdrawn_.clear();
  resolved_.clear();
}

}  // namespace gemvjit
