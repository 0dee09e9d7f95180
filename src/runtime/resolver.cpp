#include "src/runtime/resolver.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>

#include "cache/build_records.h"
#include "cache/cache_folders.h"
#include "src/base/process_end.h"
#include "src/base/process_fork.h"
#include "src/launch/launcher.h"
#include "src/runtime/single_flight.h"
#include "src/runtime/source_dump.h"

namespace gemvjit {
namespace {

using Flights = SingleFlight<Result<Delivered>>;

// Builds under way in this process. Never destroyed: threads may run while the process ends. A child of fork() begins
// with none of its own: those of its parent never land there.
Flights& builds_under_way() {
  struct OfProcess {
    std::uint32_t generation;
    Flights flights;
  };
  static std::atomic<OfProcess*> current{nullptr};
  const std::uint32_t generation = watch_forks();
  OfProcess* seen = current.load(std::memory_order_acquire);
  while (seen == nullptr || seen->generation != generation) {
    auto made = std::make_unique<OfProcess>();
    made->generation = generation;
    if (current.compare_exchange_strong(seen, made.get(), std::memory_order_acq_rel)) seen = made.release();
  }
  return seen->flights;
}

// Kernels that land in one place may share a build: stores of one directory, or one store in memory. But not what the
// one may serve and the other may not: the leader may find it rather than build it.
std::string flight_name(const CubinStore& store, const EntryId& id, bool rebuild, const std::string& serves) {
  const std::string place = store.root().empty() ? fmt::format("{}", static_cast<const void*>(&store)) : store.root();
  return fmt::format("{}{} {}\n{}", rebuild ? "rebuild " : "", to_hex(id.digest), place, serves);
}

// Whether the current context can run a cluster of the kernel's at all: fewer than the architecture has under MIG or
// MPS.
Status check_cluster(const Device& device, const LoadedKernel& kernel) {
  if (kernel.config.cluster_x <= 1) return Status::ok();
  LaunchAttributes attributes;
  marshal_attributes(kernel.config, attributes);
  CUlaunchConfig config{};
  config.gridDimX = kernel.config.grid_x;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = kernel.config.block_x;
  config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = kernel.config.smem_bytes;
  config.attrs = attributes.attributes.data();
  config.numAttrs = attributes.count;
  int clusters = 0;
  const CUresult result =
      device.driver->cuOccupancyMaxActiveClusters(&clusters, reinterpret_cast<CUfunction>(kernel.kernel), &config);
  if (result != CUDA_SUCCESS || clusters > 0) return Status::ok();  // a launch tells where the query does not
  return {StatusCode::unsupported,
          fmt::format("{}: {} cannot run a cluster of {} CTAs of {} threads and {} bytes of shared memory (is it a "
                      "partition of a GPU?)",
                      kernel.spec.key.text(), device.name, kernel.config.cluster_x, kernel.config.block_x,
                      kernel.config.smem_bytes)};
}

}  // namespace

Result<Delivered> Resolver::ensure_cached(std::span<const KernelKey> candidates) {
  return deliver(candidates, nullptr);
}

Result<Delivered> Resolver::deliver(std::span<const KernelKey> candidates, const Entry* refused) {
  if (candidates.empty()) return Status(StatusCode::internal_error, "a kernel without a key");
  GEMVJIT_TRY_ASSIGN(const Recipe recipe, specialize(candidates.front()));
  const std::string name = flight_name(*parts_.store, recipe.id(), refused != nullptr, parts_.serves);
  for (;;) {
    auto landed = builds_under_way().run(name, [&] { return find_or_build(candidates, recipe, refused); });
    if (landed.led) return std::move(landed.value);
    if (landed.value) {
      // The leader may have taken another of its names, which are more than this caller's.
      const KernelKey& key = landed.value->entry->id.key;
      if (std::find(candidates.begin(), candidates.end(), key) == candidates.end()) {
        return find_or_build(candidates, recipe, refused);
      }
      Delivered shared = std::move(landed.value).value();
      shared.compiled = false;
      parts_.counters->cache_hits.fetch_add(1, std::memory_order_relaxed);
      return shared;
    }
    // The leader was another context, and what stopped it (its seal, its compiler) need not stop this one.
    const StatusCode code = landed.value.status().code();
    if (code != StatusCode::sealed && code != StatusCode::no_compiler) return landed.value.status();
    if (code == StatusCode::sealed && parts_.sealed->load()) return landed.value.status();
    if (code == StatusCode::no_compiler) return find_or_build(candidates, recipe, refused);
  }
}

// `first` is the recipe of the first candidate.
Result<Delivered> Resolver::find_or_build(std::span<const KernelKey> candidates, const Recipe& first,
                                          const Entry* refused) {
  std::vector<FileStamp> seen;
  if (refused == nullptr) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      EntryId id = first.id();
      if (i > 0) {
        GEMVJIT_TRY_ASSIGN(const Recipe recipe, specialize(candidates[i]));
        id = recipe.id();
      }
      seen.push_back(stamp_of(parts_.store->path_of(id)));
      std::optional<Entry> entry = parts_.store->get(id);
      if (!entry) continue;
      parts_.counters->cache_hits.fetch_add(1, std::memory_order_relaxed);
      return Delivered{std::make_shared<const Entry>(std::move(*entry)), false, Status::ok(),
                       parts_.store->path_of(id)};
    }
    parts_.counters->cache_misses.fetch_add(1, std::memory_order_relaxed);
  }
  return build(candidates, first, refused, seen);
}

Status Resolver::refuse_if_sealed(const KernelKey& key) const {
  if (!parts_.sealed->load()) return Status::ok();
  return {StatusCode::sealed,
          fmt::format("{} is not in the cache, and the context is sealed: warm it before gemvjit_seal", key.text())};
}

Result<Delivered> Resolver::build(std::span<const KernelKey> candidates, const Recipe& first, const Entry* refused,
                                  std::span<const FileStamp> seen) {
  GEMVJIT_TRY(refuse_if_sealed(candidates.front()));
  GEMVJIT_TRY_ASSIGN(const CompilerPool::Choice choice, parts_.compilers->choose(candidates));
  const KernelKey& key = candidates[choice.index];
  if (parts_.on_target && candidates.size() > 1) parts_.on_target(key.arch);  // else the caller named the target
  Recipe recipe = first;
  if (choice.index != 0) {
    GEMVJIT_TRY_ASSIGN(recipe, specialize(key));
  }

  Turn turn;
  if (parts_.locks != nullptr)
    turn = parts_.locks->acquire(recipe.id(), [this] { return parts_.sealed->load() || process_is_ending(); });
  if (turn.waited) parts_.counters->build_waits.fetch_add(1, std::memory_order_relaxed);
  if (turn.kind == Turn::Kind::stale) parts_.counters->build_stale_waits.fetch_add(1, std::memory_order_relaxed);
  // Another compiler may do what that one could not.
  if (turn.kind == Turn::Kind::failed && turn.maker == choice.compiler->version()) {
    parts_.counters->build_shared_failures.fetch_add(1, std::memory_order_relaxed);
    return turn.failure;
  }
  std::optional<Delivered> found =
      find_meanwhile(recipe.id(), refused, seen.empty() ? FileStamp{} : seen[choice.index]);
  if (found) {
    if (turn.lock) turn.lock->finish();
    return std::move(*found);
  }
  if (turn.waited) GEMVJIT_TRY(refuse_if_sealed(key));
  // What the driver has refused gives way; nothing else that is whole does.
  const Replace replace = refused != nullptr ? Replace::any : Replace::unusable_only;
  Result<Delivered> built = compile(recipe, *choice.compiler, replace);
  if (turn.lock) {
    if (built) turn.lock->finish();
    // Other failures, as of memory, are this process's own: the next in line tries.
    if (built.status().code() == StatusCode::compile_failed) {
      turn.lock->fail(built.status(), choice.compiler->version());
    }
  }
  return built;
}

Resolver::FileStamp Resolver::stamp_of(const std::string& path) {
  struct stat info {};
  if (path.empty() || ::stat(path.c_str(), &info) != 0) return {};
  return {static_cast<std::uint64_t>(info.st_dev), static_cast<std::uint64_t>(info.st_ino), info.st_size,
          info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

// What another process published since the cache was looked into. A file that is as it was is not read again: it was
// of no use then, and would be counted twice.
std::optional<Delivered> Resolver::find_meanwhile(const EntryId& id, const Entry* refused, const FileStamp& seen) {
  const std::string path = parts_.store->path_of(id);
  const FileStamp now = stamp_of(path);
  if (now == FileStamp{} || now == seen) return std::nullopt;
  std::optional<Entry> entry = parts_.store->get(id);
  if (!entry || (refused != nullptr && entry->cubin.bytes == refused->cubin.bytes)) return std::nullopt;
  parts_.counters->cache_hits.fetch_add(1, std::memory_order_relaxed);
  return Delivered{std::make_shared<const Entry>(std::move(*entry)), false, Status::ok(), path};
}

Result<Delivered> Resolver::compile(const Recipe& recipe, Compiler& compiler, Replace replace) {
  Result<Cubin> cubin = compiler.compile(recipe);
  if (!cubin) {
    parts_.counters->compile_failures.fetch_add(1, std::memory_order_relaxed);
    const std::string folder = dump(recipe);
    if (folder.empty()) return cubin.status();
    return Status(cubin.status().code(), fmt::format("{}\nThe sources are in {}", cubin.status().message(), folder));
  }
  parts_.counters->compiles.fetch_add(1, std::memory_order_relaxed);
  parts_.counters->compile_milliseconds.fetch_add(cubin->compile_ms, std::memory_order_relaxed);
  parts_.log.debug("compiled {} in {} ms with {}", recipe.key.text(), cubin->compile_ms, cubin->compiler_version);
  if (parts_.log.enabled(LogLevel::debug)) dump(recipe);

  Delivered delivered;
  auto entry = std::make_shared<Entry>();
  entry->id = recipe.id();
  entry->cubin = std::move(cubin).value();
  delivered.compiled = true;
  delivered.path = parts_.store->path_of(entry->id);
  // Without the time that it took, so that whoever compiles it has the same bytes; the caller still gets it.
  Entry kept = *entry;
  kept.cubin.compile_ms = 0;
  delivered.kept = parts_.store->put(kept, replace);
  if (delivered.kept) {
    const BuildRecord record{static_cast<std::int64_t>(std::time(nullptr)), entry->cubin.compile_ms};
    const EntryGuard guard = EntryGuard::of_cache(parts_.trust);
    note_build(parts_.store->root(), entry->id.digest, record, parts_.trust, &guard);
  }
  auto& written = delivered.kept ? parts_.counters->cache_writes : parts_.counters->cache_write_failures;
  written.fetch_add(1, std::memory_order_relaxed);
  delivered.entry = std::move(entry);
  return delivered;
}

Result<Ready> Resolver::resolve(std::span<const KernelKey> candidates, CUcontext caller_context, Readiness readiness) {
  if (parts_.device == nullptr) {
    return Status(StatusCode::no_driver, "this context has no device to load a kernel on");
  }
  const Goal goal{caller_context, readiness};
  Trouble trouble;
  KernelKey key;
  const Result<const LoadedKernel*> found = find_loaded(candidates, goal, trouble, key);
  if (trouble.no_cluster) return substitute(key, found.status(), goal);
  if (!found) return found.status();
  if (*found != nullptr) return Ready{*found, false, true, Status::ok()};
  GEMVJIT_TRY_ASSIGN(const Delivered delivered, deliver(candidates, nullptr));
  key = delivered.entry->id.key;
  const Result<const LoadedKernel*> loaded = load(*delivered.entry, goal, trouble);
  if (loaded) return Ready{*loaded, delivered.compiled, false, delivered.kept};
  if (trouble.no_cluster) return substitute(key, loaded.status(), goal);
  if (!delivered.compiled && cuda::blames_image(trouble.result)) return replace(delivered, loaded.status(), goal);
  return cannot_load(key, delivered.path, loaded.status());
}

Result<const LoadedKernel*> Resolver::find_loaded(std::span<const KernelKey> candidates, const Goal& goal,
                                                  Trouble& trouble, KernelKey& found) {
  const std::lock_guard lock(load_mutex_);
  for (const KernelKey& key : candidates) {
    if (parts_.registry->is_barred(key)) {  // without a word: that was said when it was barred
      trouble.no_cluster = true;
      found = key;
      return Status(StatusCode::unsupported, key.text() + ": its cluster does not fit here");
    }
    const LoadedKernel* const loaded = parts_.registry->find_key(key);
    if (loaded == nullptr) continue;
    found = key;
    if (const Status ready = make_ready(*loaded, false, goal, trouble); !ready) {
      return trouble.no_cluster ? ready : cannot_load(key, parts_.store->path_of({key, loaded->digest}), ready);
    }
    return loaded;
  }
  return nullptr;
}

// The refused entry is not removed: what is built takes its place, and what cannot be built must not cost what is
// there.
Result<Ready> Resolver::replace(const Delivered& refused, const Status& refusal, const Goal& goal) {
  const Status original = cannot_load(refused.entry->id.key, refused.path, refusal);
  if (parts_.sealed->load()) return original;
  const KernelKey key = refused.entry->id.key;
  parts_.log.warning("{}: the driver refuses the cached kernel {} ({}); it is built again", key.text(), refused.path,
                     refusal.message());
  const Result<Delivered> built = deliver({&key, 1}, refused.entry.get());
  if (!built) {
    return Status(original.code(),
                  fmt::format("{}; and it cannot be built again: {}", original.message(), built.status().message()));
  }
  Trouble trouble;
  const Result<const LoadedKernel*> loaded = load(*built->entry, goal, trouble);
  if (trouble.no_cluster) return substitute(key, loaded.status(), goal);
  if (!loaded) return cannot_load(key, built->path, loaded.status());
  return Ready{*loaded, built->compiled, false, built->kept};
}

// Slower, and right: the kernel that splits K over the warps of one CTA only. It serves all CUDA contexts from now on,
// since a launch does not ask in which one it runs.
Result<Ready> Resolver::substitute(const KernelKey& key, const Status& refusal, const Goal& goal) {
  const std::optional<KernelKey> alone = without_cluster(key);
  if (!alone) return refusal;
  Result<Ready> ready = resolve({&*alone, 1}, goal.caller_context, goal.readiness);
  if (!ready) {
    return Status(ready.status().code(),
                  fmt::format("{}; and there is no substitute: {}", refusal.message(), ready.status().message()));
  }
  parts_.counters->cluster_fallbacks.fetch_add(1, std::memory_order_relaxed);
  if (!ready->was_loaded) parts_.log.warning("{}; {} takes its place", refusal.message(), alone->text());
  return ready;
}

// The driver's failures with key and file; others say for themselves what they are about.
Status Resolver::cannot_load(const KernelKey& key, const std::string& path, const Status& failure) const {
  if (failure.code() != StatusCode::cuda_error) return failure;
  return {StatusCode::cuda_error, fmt::format("{} cannot be loaded on {}: {} (cache file: {})", key.text(),
                                              parts_.device->name, failure.message(), path.empty() ? "none" : path)};
}

Result<const LoadedKernel*> Resolver::load(const Entry& entry, const Goal& goal, Trouble& trouble) {
  auto kernel = std::make_unique<LoadedKernel>();
  GEMVJIT_TRY_ASSIGN(kernel->spec, describe_key(entry.id.key));
  kernel->config = launch_config(kernel->spec);
  // The attribute comes from the compiled code: a kernel that does not wait must not overlap with its predecessor.
  kernel->config.pdl = kernel->spec.pdl && entry.cubin.waits_for_predecessor;
  kernel->digest = entry.id.digest;
  kernel->resources = entry.cubin.resources;
  kernel->cubin_bytes = entry.cubin.bytes.size();
  kernel->compile_ms = entry.cubin.compile_ms;

  const std::lock_guard lock(load_mutex_);
  const LoadedKernel* loaded = parts_.registry->find_key(entry.id.key);
  const bool is_new = loaded == nullptr;
  if (is_new) {
    const cuda::ContextGuard guard(*parts_.device->driver, parts_.device->primary);
    GEMVJIT_TRY(guard.status());
    GEMVJIT_TRY_ASSIGN(kernel->library, cuda::Library::load(parts_.device->driver, entry.cubin.bytes,
                                                            entry.cubin.entry_name, &trouble.result));
    kernel->kernel = kernel->library.kernel();
    loaded = parts_.registry->add(std::move(kernel));
  }
  GEMVJIT_TRY(make_ready(*loaded, is_new, goal, trouble));
  return loaded;
}

// Under the lock. `is_new`: loaded by this call.
Status Resolver::make_ready(const LoadedKernel& kernel, bool is_new, const Goal& goal, Trouble& trouble) {
  if (goal.readiness == Readiness::loaded) return Status::ok();
  Status ready = resolve_in(kernel, parts_.device->primary, trouble);
  if (ready && goal.caller_context != nullptr) ready = resolve_in(kernel, goal.caller_context, trouble);
  if (ready) {
    parts_.registry->serve(kernel);
  } else if (trouble.no_cluster) {
    parts_.registry->bar(kernel);
  } else if (is_new) {
    parts_.registry->withdraw(kernel);
  }
  return ready;
}

Status Resolver::resolve_in(const LoadedKernel& kernel, CUcontext context, Trouble& trouble) {
  const Device& device = *parts_.device;
  CudaContextId id = device.primary_id;
  if (context != device.primary) {
    GEMVJIT_TRY_ASSIGN(id, device.context_id(context));
  }
  if (parts_.registry->is_resolved(kernel, id)) return Status::ok();
  const bool nonportable_cluster = kernel.config.cluster_x > 8;
  const cuda::ContextGuard guard(*device.driver, context);
  GEMVJIT_TRY(guard.status());
  GEMVJIT_TRY(kernel.library.prepare(device.device, kernel.config.smem_bytes, nonportable_cluster, &trouble.result));
  if (Status fits = check_cluster(device, kernel); !fits) {
    trouble.no_cluster = true;
    return fits;
  }
  parts_.registry->note_resolved(kernel, id);
  return Status::ok();
}

// The folder that the sources were written to; "" if none was asked for or it cannot be written, which is said once.
std::string Resolver::dump(const Recipe& recipe) {
  if (parts_.dump_dir.empty()) return "";
  Result<std::string> folder = dump_sources(parts_.dump_dir, recipe);
  if (folder) return *folder;
  const std::string message =
      fmt::format("sources of {} cannot be written: {}", recipe.key.text(), folder.status().message());
  if (dump_failed_.exchange(true)) {
    parts_.log.debug("{}", message);
  } else {
    parts_.log.warning("{}", message);
  }
  return "";
}

}  // namespace gemvjit
