// Resolver: from a key to a compiled kernel in the cache, and on to a loaded one.
//
// A kernel for the context's device may have several names, one for each target that the device takes ("sm_90a",
// "sm_90"), best first: the candidates. The first that has a cache entry is used; if none has, the first that the
// compiler supports is built. So a node without NVRTC finds what another one built.
// Threads and processes that need one kernel at one time share one build: threads of this process always, also through
// different contexts; processes as far as they can lock each other out (build_locks.h). A failed compile is shared,
// too.
//
// A cache problem is never the caller's problem: a kernel that could not be kept is delivered from memory, and says so.
// Threads: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "cache/store.h"
#include "src/base/log.h"
#include "src/runtime/build_locks.h"
#include "src/runtime/compiler_pool.h"
#include "src/runtime/counters.h"
#include "src/runtime/device.h"
#include "src/runtime/kernel_registry.h"

namespace gemvjit {

// A compiled kernel, wherever it came from.
struct Delivered {
  std::shared_ptr<const Entry> entry;
  bool compiled = false;  // now, by this call; else it was in the cache or somebody else built it
  Status kept;            // why the cache does not have it, although it was built
  std::string path;       // of the cache file; "" without a directory
};

// How far a kernel is brought on the device. Loaded: the driver has it, and launches do not get it yet. Resolved: its
// function too, so that a launch loads nothing and waits for nobody.
enum class Readiness { loaded, resolved };

// A kernel that is on the device.
struct Ready {
  const LoadedKernel* kernel = nullptr;
  bool compiled = false;
  bool was_loaded = false;  // before this call: nothing is known of the cache
  Status kept;
};

struct ResolverParts {  // all outlive the resolver
  CubinStore* store = nullptr;
  CompilerPool* compilers = nullptr;
  BuildLocks* locks = nullptr;
  KernelRegistry* registry = nullptr;
  Counters* counters = nullptr;
  const Device* device = nullptr;  // nullptr: ensure_cached() only
  const std::atomic<bool>* sealed = nullptr;
  std::function<void(const Arch&)> on_target;  // which target a compile chose; may be empty
  std::string dump_dir;                        // "": none
  CacheTrust trust = CacheTrust::owner;        // the store's
  // What decides which entries may be served: contexts share a delivery only where it is the same.
  std::string serves;
  Log log = Log::silent();
};

class Resolver {
 public:
  explicit Resolver(ResolverParts parts) : parts_(std::move(parts)) {}

  // In the cache, or built and put there. sealed if it would have to be built after the seal; no_compiler,
  // compile_failed.
  Result<Delivered> ensure_cached(std::span<const KernelKey> candidates);

  // Loaded, and for `resolved` its function resolved in the device's primary context and in `caller_context` (null:
  // none), and served to launches. Where one of the two cannot run the kernel's cluster, the same kernel without a
  // cluster takes its place (without_cluster()), from the cache or built. A cached kernel whose bytes the driver
  // refuses is built once more and takes the refused one's place in the cache. If that cannot be done the entry stays
  // and the failure is the driver's. Any other failure of the driver's (no memory, a broken context) leaves the cache
  // alone. A failure names key and file.
  Result<Ready> resolve(std::span<const KernelKey> candidates, CUcontext caller_context,
                        Readiness goal = Readiness::resolved);

 private:
  // What a cache file was when it was looked into, so that one that was replaced meanwhile is told from it.
  struct FileStamp {
    std::uint64_t device = 0, inode = 0;  // 0: there was none
    std::int64_t size = 0, seconds = 0, nanoseconds = 0;
    bool operator==(const FileStamp&) const = default;
  };
  static FileStamp stamp_of(const std::string& path);

  // `refused`: the entry in the cache that the driver does not take, which is no answer; nullptr: any is.
  Result<Delivered> deliver(std::span<const KernelKey> candidates, const Entry* refused);
  Result<Delivered> find_or_build(std::span<const KernelKey> candidates, const Recipe& first, const Entry* refused);
  Status refuse_if_sealed(const KernelKey& key) const;
  // `seen`: the candidates' files; empty: not looked at.
  Result<Delivered> build(std::span<const KernelKey> candidates, const Recipe& first, const Entry* refused,
                          std::span<const FileStamp> seen);
  std::optional<Delivered> find_meanwhile(const EntryId& id, const Entry* refused, const FileStamp& seen);
  Result<Delivered> compile(const Recipe& recipe, Compiler& compiler, Replace replace);
  // What loading or resolving met with, beside its Status.
  struct Trouble {
    CUresult result = CUDA_SUCCESS;  // the driver's answer, where it was asked
    bool no_cluster = false;         // the kernel's cluster does not fit here
  };
  struct Goal {
    CUcontext caller_context;
    Readiness readiness;
  };
  Result<Ready> replace(const Delivered& refused, const Status& refusal, const Goal& goal);
  Result<Ready> substitute(const KernelKey& key, const Status& refusal, const Goal& goal);
  Status cannot_load(const KernelKey& key, const std::string& path, const Status& failure) const;
  Result<const LoadedKernel*> load(const Entry& entry, const Goal& goal, Trouble& trouble);
  // What is loaded of the candidates, ready; nullptr if none is.
  Result<const LoadedKernel*> find_loaded(std::span<const KernelKey> candidates, const Goal& goal, Trouble& trouble,
                                          KernelKey& found);
  Status make_ready(const LoadedKernel& kernel, bool is_new, const Goal& goal, Trouble& trouble);
  Status resolve_in(const LoadedKernel& kernel, CUcontext context, Trouble& trouble);
  std::string dump(const Recipe& recipe);

  ResolverParts parts_;
  // One kernel at a time is looked up, loaded and made ready, so that it is loaded once, and what is of no use is taken
  // back before somebody else finds it.
  std::mutex load_mutex_;
  std::atomic<bool> dump_failed_{false};
};

}  // namespace gemvjit
