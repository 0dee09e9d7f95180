// Context: one device (or none), one cache, one set of tuning tables, and the kernels that are ready.
//
// Threads: every function from any thread; the destructor after all of them.
// Errors: create() fails for options that mean nothing, for a device that was named and is not there, and for tuning
// tables that do not parse. It touches no cache directory and opens no NVRTC.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/base/process_fork.h"
#include "src/remote/http_transport.h"
#include "src/remote/remote_tier.h"
#include "src/runtime/build_locks.h"
#include "src/runtime/options.h"
#include "src/runtime/resolver.h"
#include "src/tuning/tuning_table.h"

namespace gemvjit {

// What a context takes from outside; tests give their own.
struct Dependencies {
  std::function<Result<std::shared_ptr<const cuda::DriverApi>>(const std::string& purpose)> driver;
  CompilerFactory compiler;
  std::function<std::unique_ptr<CubinStore>(const ContextOptions& options, Log log)> store;
  std::function<std::unique_ptr<HttpTransport>(const RemoteOptions& options)> remote;  // asked only where one is set
  LockTiming lock_timing;  // of builds that other processes may be at
};
// libcuda, NVRTC (where to look is read from the environment now) and the cache of the root.
Dependencies default_dependencies();

class Context {
 public:
  static Result<std::unique_ptr<Context>> create(ContextOptions options, Dependencies dependencies);
  // Unloads all kernels and releases the device, whatever the driver says; in a child of the process that made the
  // context frees memory alone.
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const ContextOptions& options() const { return options_; }
  const Log& log() const { return log_; }
  const TuningTables& tables() const { return tables_; }
  CubinStore& store() const { return *store_; }
  const Signatures& signatures() const { return *signatures_; }
  RemoteTier* remote() const { return remote_.get(); }  // nullptr: none
  BuildLocks& build_locks() { return build_locks_; }
  Resolver& resolver() { return *resolver_; }
  CompilerPool& compilers() { return compilers_; }
  const KernelRegistry& registry() const { return registry_; }
  Counters& counters() { return counters_; }
  const Counters& counters() const { return counters_; }

  const Device* device() const { return device_.get(); }  // nullptr: none
  // The target that kernels for the device are built for: the first of its targets, until a compile found that the
  // compiler has only a later one. Requires a device.
  const Arch& device_target() const { return device_->targets[target_index_.load(std::memory_order_relaxed)]; }
  // Its text, as long-lived as the context; nullptr without a device.
  const char* device_target_text() const;
  // Whether kernels for `arch` can be loaded here.
  bool is_native(const Arch& arch) const;

  // Whether this process is a child of the one that made the context, which is of no use then.
  bool is_parents() const { return forked_since(fork_generation_); }

  void seal() { sealed_.store(true); }
  bool sealed() const { return sealed_.load(); }

  // Compiles on a miss that failed, so that a serving loop pays for a failure once.
  std::mutex miss_mutex;
  std::map<KernelKey, Status> miss_failures;  // under miss_mutex

 private:
  Context(ContextOptions options, Dependencies dependencies, Log log, TuningTables tables);
  Status open_device();
  Result<int> choose_ordinal(const cuda::DriverApi& driver) const;
  void note_target(const Arch& arch);

  const std::uint32_t fork_generation_ = watch_forks();
  ContextOptions options_;
  Dependencies dependencies_;
  Log log_;
  TuningTables tables_;
  std::shared_ptr<const Signatures> signatures_;
  std::unique_ptr<CubinStore> store_;
  std::unique_ptr<RemoteTier> remote_;  // before the store it goes with
  BuildLocks build_locks_;
  CompilerPool compilers_;
  KernelRegistry registry_;
  Counters counters_;
  std::atomic<bool> sealed_{false};
  std::unique_ptr<Device> device_;
  std::vector<std::string> target_texts_;
  std::atomic<std::size_t> target_index_{0};
  std::unique_ptr<Resolver> resolver_;
};

}  // namespace gemvjit
