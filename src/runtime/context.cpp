#include "src/runtime/context.h"

#include <fmt/format.h>

#include "cache/guarded_store.h"
#include "cache/layered_store.h"
#include "cache/signed_store.h"
#include "cache/size_limit.h"
#include "src/base/process_end.h"
#include "src/catalog/arch.h"
#include "src/remote/curl_transport.h"

namespace gemvjit {
namespace {

constexpr int no_device = -1;

// Memory only where there is no folder, or one that another user could have put kernels into.
std::unique_ptr<CubinStore> open_store(const ContextOptions& options, const Log& log) {
  if (options.cache_dir.empty()) return make_memory_store();
  DirStoreOptions of_folder;
  of_folder.guard = EntryGuard::of_cache(options.cache_trust);
  of_folder.trust = options.cache_trust;
  SizeLimit limit;
  limit.trust = options.cache_trust;
  limit.guard = of_folder.guard;
  limit.max_bytes = options.cache_max_bytes;
  return make_guarded_store(make_size_limited_store(make_dir_store(options.cache_dir, log, of_folder), limit, log),
                            options.cache_dir, options.cache_trust, log);
}

// Signatures, trust and layers, each with its length in front, so that no two sets of options read alike.
std::string what_is_served(const ContextOptions& options) {
  std::string text = fmt::format("{} {}", signature_policy_name(options.signatures.policy),
                                 options.cache_trust == CacheTrust::shared ? "shared" : "owner");
  const auto add = [&](const std::string& part) { text += fmt::format(" {}:{}", part.size(), part); };
  add(options.signatures.signing_key);
  add(options.signatures.libcrypto);
  text += fmt::format(" {}", options.signatures.trust_dirs.size());
  for (const std::string& directory : options.signatures.trust_dirs) add(directory);
  for (const std::string& layer : options.cache_ro) add(layer);
  return text;
}

std::unique_ptr<RemoteTier> open_remote(const RemoteOptions& options, const Dependencies& dependencies,
                                        CubinStore& local, const std::shared_ptr<const Signatures>& signatures,
                                        const Log& log) {
  if (!options.is_set() || !dependencies.remote) return nullptr;
  auto store = std::make_unique<RemoteStore>(options, dependencies.remote(options), signatures, log);
  return std::make_unique<RemoteTier>(std::move(store), local, log);
}

}  // namespace

Dependencies default_dependencies() {
  Dependencies dependencies;
  dependencies.driver = [](const std::string& purpose) { return cuda::load_driver(purpose); };
  dependencies.compiler = [search = cuda::nvrtc_search_from_environment()](
                              int sm, const std::string& purpose) -> Result<std::unique_ptr<Compiler>> {
    GEMVJIT_TRY_ASSIGN(auto nvrtc, cuda::load_nvrtc(search, sm, purpose));
    return make_nvrtc_compiler(std::move(nvrtc));
  };
  dependencies.store = open_store;
  dependencies.remote = make_curl_transport;
  return dependencies;
}

Result<std::unique_ptr<Context>> Context::create(ContextOptions options, Dependencies dependencies) {
  watch_process_end();
  Result<TuningTables> tables = TuningTables::load(options.tuning_dir);
  if (!tables) {
    return Status(tables.status().code(), fmt::format("option tuning_dir (GEMVJIT_TUNING_DIR) \"{}\": {}",
                                                      options.tuning_dir, tables.status().message()));
  }
  Log log = Log::create(options.log_level, options.log_sink);
  std::unique_ptr<Context> context(
      new Context(std::move(options), std::move(dependencies), std::move(log), std::move(tables).value()));
  GEMVJIT_TRY(context->open_device());
  // Here, since gemvjit_pick_nt may be asked beside requests.
  if (context->device_ != nullptr) GEMVJIT_TRY(context->tables_.prepare(context->device_->targets.front()));
  ResolverParts parts;
  parts.store = context->store_.get();
  parts.compilers = &context->compilers_;
  parts.locks = &context->build_locks_;
  parts.registry = &context->registry_;
  parts.counters = &context->counters_;
  parts.device = context->device_.get();
  parts.sealed = &context->sealed_;
  parts.on_target = [raw = context.get()](const Arch& arch) { raw->note_target(arch); };
  parts.dump_dir = context->options_.dump_dir;
  parts.trust = context->options_.cache_trust;
  parts.serves = what_is_served(context->options_);
  parts.log = context->log_;
  context->resolver_ = std::make_unique<Resolver>(std::move(parts));
  return context;
}

Context::Context(ContextOptions options, Dependencies dependencies, Log log, TuningTables tables)
    : options_(std::move(options)),
      dependencies_(std::move(dependencies)),
      log_(std::move(log)),
      tables_(std::move(tables)),
      signatures_(std::make_shared<const Signatures>(options_.signatures, log_)),
      store_(make_layered_store(make_signed_store(dependencies_.store(options_, log_), signatures_, log_),
                                options_.cache_ro, log_, signatures_)),
      remote_(open_remote(options_.remote, dependencies_, *store_, signatures_, log_)),
      build_locks_(options_.runtime_dir, store_->root(), options_.cache_trust, dependencies_.lock_timing, log_),
      compilers_(dependencies_.compiler) {}

Context::~Context() {
  if (is_parents()) {         // locks may be held for ever, and there is no driver
    (void)remote_.release();  // nor its thread
    return;
  }
  // While the process ends the driver may refuse all of this; what it holds goes with the process.
  registry_.unload_all();
  if (device_ != nullptr) (void)device_->driver->cuDevicePrimaryCtxRelease(device_->device);
}

// The ordinal to use; no_device if the current one was asked for and there is none.
Result<int> Context::choose_ordinal(const cuda::DriverApi& driver) const {
  int count = 0;
  if (const CUresult result = driver.cuDeviceGetCount(&count); result != CUDA_SUCCESS) {
    const Status failure = cuda::cuda_status(driver, result, "cuDeviceGetCount");
    if (result != CUDA_ERROR_NOT_INITIALIZED) return failure;
    return Status(StatusCode::no_driver, fmt::format("{}; {}", failure.message(), cuda::fork_hint));
  }
  if (options_.device >= 0) {
    if (options_.device < count) return options_.device;
    return Status(StatusCode::no_driver, fmt::format("device {} was asked for, and the driver ({}) shows {}",
                                                     options_.device, driver.path, count));
  }
  if (count == 0) return no_device;
  CUcontext current = nullptr;
  CUdevice device = 0;
  if (driver.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current != nullptr &&
      driver.cuCtxGetDevice(&device) == CUDA_SUCCESS) {
    return static_cast<int>(device);  // the driver's handle of a device is its ordinal
  }
  return 0;
}

Status Context::open_device() {
  if (options_.device == device_none) return Status::ok();
  auto driver = dependencies_.driver("find the device of a context");
  if (!driver) {
    if (options_.device >= 0) return driver.status();
    log_.info("no device: {}", driver.status().message());
    return Status::ok();
  }
  GEMVJIT_TRY_ASSIGN(const int ordinal, choose_ordinal(**driver));
  if (ordinal == no_device) {
    log_.info("no device: the driver ({}) shows none", (*driver)->path);
    return Status::ok();
  }
  auto opened = std::make_unique<Device>();
  opened->driver = *driver;
  const cuda::DriverApi& api = *opened->driver;
  const auto call = [&](CUresult result, const char* doing) {
    return result == CUDA_SUCCESS ? Status::ok()
                                  : cuda::cuda_status(api, result, fmt::format("{} of device {}", doing, ordinal));
  };
  int major = 0;
  int minor = 0;
  GEMVJIT_TRY(call(api.cuDeviceGet(&opened->device, ordinal), "cuDeviceGet"));
  GEMVJIT_TRY(call(api.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, opened->device),
                   "cuDeviceGetAttribute (compute capability)"));
  GEMVJIT_TRY(call(api.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, opened->device),
                   "cuDeviceGetAttribute (compute capability)"));
  char name[256] = {};
  if (api.cuDeviceGetName(name, sizeof name, opened->device) == CUDA_SUCCESS) opened->name = name;
  opened->targets = possible_targets(major, minor);
  if (opened->targets.empty()) {
    if (options_.device < 0) {
      log_.warning("no device: {} (compute capability {}.{}) is older than 8.0", opened->name, major, minor);
      return Status::ok();
    }
    return {StatusCode::unsupported,
            fmt::format("device {} ({}) has compute capability {}.{}; 8.0 and newer are served", ordinal, opened->name,
                        major, minor)};
  }
  GEMVJIT_TRY(call(api.cuDevicePrimaryCtxRetain(&opened->primary, opened->device), "cuDevicePrimaryCtxRetain"));
  if (const CUresult result = api.cuCtxGetId(opened->primary, &opened->primary_id); result != CUDA_SUCCESS) {
    (void)api.cuDevicePrimaryCtxRelease(opened->device);
    return call(result, "cuCtxGetId");
  }
  for (const Arch& arch : opened->targets) target_texts_.push_back(arch.text());
  device_ = std::move(opened);
  log_.debug("device {}: {}, {}", ordinal, device_->name, target_texts_.front());
  return Status::ok();
}

const char* Context::device_target_text() const {
  if (device_ == nullptr) return nullptr;
  return target_texts_[target_index_.load(std::memory_order_relaxed)].c_str();
}

bool Context::is_native(const Arch& arch) const {
  if (device_ == nullptr) return false;
  for (const Arch& target : device_->targets) {
    if (target == arch) return true;
  }
  return false;
}

void Context::note_target(const Arch& arch) {
  if (device_ == nullptr) return;
  for (std::size_t i = 0; i < device_->targets.size(); ++i) {
    if (device_->targets[i] == arch) target_index_.store(i, std::memory_order_relaxed);
  }
}

}  // namespace gemvjit
