// KernelRegistry: the kernels that a context has ready, found on the launch path without a lock.
//
// A hash table of slots, one for each (family, N, K, silu_mul, pdl allowed, scale segments); a slot holds for each
// token class (M <= 8, 16, 32) the kernel to launch: the smallest warmed nt that covers it. What a launch gets:
//   - a launch that allows PDL gets a PDL kernel, or one warmed without it where that is all there is for the nt;
//   - a launch that forbids PDL never gets a PDL kernel.
//
// Threads. find() from any number of threads: no lock, no allocation, no write. All others lock. Slots are
// only ever added and kernels only ever replaced by better ones, both through atomic stores; when the table is full a
// larger one is published through an atomic pointer and the old one is kept until the end, since a reader may be in it.
// Ownership. The registry owns the kernels until unload_all(); pointers stay valid that long.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cache/entry.h"
#include "src/catalog/catalog.h"
#include "src/cuda/library.h"
#include "src/runtime/device.h"
#include "src/runtime/launch_shape.h"

namespace gemvjit {

// A kernel on the device, with what a launch needs of it and what tools ask of it.
struct LoadedKernel {
  KernelSpec spec;
  cuda::Library library;
  CUkernel kernel = nullptr;
  LaunchConfig config;  // pdl: the key's bit, and the compiled code waits for its predecessor
  Digest digest{};
  KernelResources resources;
  std::uint64_t cubin_bytes = 0;
  std::uint32_t compile_ms = 0;
};

class KernelRegistry {
 public:
  KernelRegistry();
  ~KernelRegistry();  // frees host memory only; see unload_all()
  KernelRegistry(const KernelRegistry&) = delete;
  KernelRegistry& operator=(const KernelRegistry&) = delete;

  struct Found {
    const LoadedKernel* kernel = nullptr;
    bool shape_known = false;  // some nt of the shape is warmed, though perhaps none that covers M
  };
  // 1 <= m <= 32 for a family with tokens; any m for one without.
  Found find(const LaunchShape& shape, std::int64_t m) const;

  // The kernel with just this key; nullptr if it is not loaded.
  const LoadedKernel* find_key(const KernelKey& key) const;

  // Takes the kernel, unless one with its key is there already; the one that is there. No launch gets it yet.
  const LoadedKernel* add(std::unique_ptr<LoadedKernel> kernel);
  // From now on launches get the kernel, which is there and resolved.
  void serve(const LoadedKernel& kernel);

  // Takes a kernel that was never served and is of no use back, until unload_all(): it counts nowhere.
  void withdraw(const LoadedKernel& kernel);
  // As withdraw() for a kernel that is of no use in some CUDA context, and that may be served: the one that is served
  // next for its shape and nt takes its place, and its key stays barred.
  void bar(const LoadedKernel& kernel);
  bool is_barred(const KernelKey& key) const;

  // In which CUDA contexts a kernel's function is resolved, so that its first launch there loads nothing.
  void note_resolved(const LoadedKernel& kernel, CudaContextId context);
  bool is_resolved(const LoadedKernel& kernel, CudaContextId context) const;

  std::size_t size() const;  // without the withdrawn
  // Unload everything. No find() may run or follow.
  void unload_all();

 private:
  struct Slot;
  struct Table;

  Slot& slot_for(const LaunchShape& shape);  // these four: the lock is held
  bool is_better(const LoadedKernel& candidate, const LoadedKernel* present) const;
  void grow();
  void offer(const LaunchShape& shape, const LoadedKernel& kernel);

  std::atomic<const Table*> table_{nullptr};
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Table>> tables_;  // the last one is published; each is twice as large as the one before
  std::unordered_map<KernelKey, std::unique_ptr<LoadedKernel>, KernelKeyHash> kernels_;
  std::vector<std::unique_ptr<LoadedKernel>> withdrawn_;
  std::set<std::pair<const LoadedKernel*, CudaContextId>> resolved_;
  std::unordered_set<KernelKey, KernelKeyHash> barred_;
};

}  // namespace gemvjit
