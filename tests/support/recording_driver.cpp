#include "tests/support/recording_driver.h"

#include <algorithm>
#include <cstring>

namespace gemvjit::test {

namespace {

std::atomic<RecordingState*> current_state{nullptr};

// The thread's stack of contexts, for one state: that of an earlier test is of no account.
struct ThreadContexts {
  std::uint64_t state_id = 0;
  std::vector<CUcontext> stack;
};

std::vector<CUcontext>& thread_contexts(std::uint64_t state_id) {
  thread_local ThreadContexts contexts;
  if (contexts.state_id != state_id) contexts = ThreadContexts{state_id, {}};
  return contexts.stack;
}

constexpr std::uintptr_t first_context = 0xC0000;

}  // namespace

// As a class, so that it can be a friend; each function has the signature that cuda.h declares.
struct RecordingFunctions {
  // Notes the call; the error that the test asked for, if any.
  static CUresult enter(RecordingState*& state, const char* function) {
    state = current_state.load();
    if (state == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
    const std::lock_guard lock(state->mutex_);
    state->calls_.emplace_back(function);
    const auto error = state->errors.find(function);
    return error == state->errors.end() ? CUDA_SUCCESS : error->second;
  }

  static bool known_device(const RecordingState& state, CUdevice device) {
    return device >= 0 && static_cast<std::size_t>(device) < state.devices.size();
  }

  static CUresult init(unsigned) {
    RecordingState* state;
    return enter(state, "cuInit");
  }

  static CUresult driver_get_version(int* version) {
    RecordingState* state;
    if (const CUresult error = enter(state, "cuDriverGetVersion"); error != CUDA_SUCCESS) return error;
    *version = state->driver_version;
    return CUDA_SUCCESS;
  }

  // The two texts are not recorded: they are asked for where a call failed, and are no call of interest.
  static CUresult get_error_name(CUresult error, const char** text) {
    switch (error) {
      case CUDA_SUCCESS:
        *text = "CUDA_SUCCESS";
        break;
      case CUDA_ERROR_INVALID_VALUE:
        *text = "CUDA_ERROR_INVALID_VALUE";
        break;
      case CUDA_ERROR_OUT_OF_MEMORY:
        *text = "CUDA_ERROR_OUT_OF_MEMORY";
        break;
      case CUDA_ERROR_NO_DEVICE:
        *text = "CUDA_ERROR_NO_DEVICE";
        break;
      case CUDA_ERROR_NO_BINARY_FOR_GPU:
        *text = "CUDA_ERROR_NO_BINARY_FOR_GPU";
        break;
      case CUDA_ERROR_INVALID_IMAGE:
        *text = "CUDA_ERROR_INVALID_IMAGE";
        break;
      case CUDA_ERROR_NOT_FOUND:
        *text = "CUDA_ERROR_NOT_FOUND";
        break;
      case CUDA_ERROR_LAUNCH_FAILED:
        *text = "CUDA_ERROR_LAUNCH_FAILED";
        break;
      default:
        *text = nullptr;
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  }

  static CUresult get_error_string(CUresult error, const char** text) {
    const CUresult known = get_error_name(error, text);
    if (known == CUDA_SUCCESS) *text = "as the test asked for";
    return known;
  }

  static CUresult device_get_count(int* count) {
    RecordingState* state;
    if (const CUresult error = enter(state, "cuDeviceGetCount"); error != CUDA_SUCCESS) return error;
    *count = static_cast<int>(state->devices.size());
    return CUDA_SUCCESS;
  }

  static CUresult device_get(CUdevice* device, int ordinal) {
    RecordingState* state;
    if (const CUresult error = enter(state, "cuDeviceGet"); error != CUDA_SUCCESS) return error;
    if (!known_device(*state, ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
  }

  static CUresult device_get_name(char* name, int length, CUdevice device) {
    RecordingState* state;
    if (const CUresult error = enter(state, "cuDeviceGetName"); error != CUDA_SUCCESS) return error;
    if (!known_device(*state, device) || length < 1) return CUDA_ERROR_INVALID_VALUE;
    const std::string& text = state->devices[static_cast<std::size_t>(device)].name;
    const std::size_t size = std::min(text.size(), static_cast<std::size_t>(length) - 1);
    std::memcpy(name, text.data(), size);
    name[size] = '\0';
    return CUDA_SUCCESS;
  }

  static CUresult device_get_attribute(int* value, CUdevice_attribute attribute, CUdevice device) {
    RecordingState* state;
    if (const CUresult error = enter(state, "cuDeviceGetAttribute"); error != CUDA_SUCCESS) return error;
    if (!known_device(*state, device)) return CUDA_ERROR_INVALID_DEVICE;
    const FakeDevice& fake = state->devices[static_cast<std::size_t>(device)];
    if (const auto given = fake.attributes.find(attribute); given != fake.attributes.end()) {
      *value = given->second;
      return CUDA_SUCCESS;
    }
    switch (attribute) {
      case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = fake.major;
        break;
      case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = fake.minor;
        break;
      case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = fake.multiprocessors;
        break;
      case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = fake.max_smem_per_block;
        break;
      default:
        *value = 0;
        break;
    }
    return CUDA_SUCCESS;
  }

  static CUresult primary_ctx_retain(CUcontext* context, CUdevice device) {
    RecordingState* state;
    if (const CUresult error = enter(state, "cuDevicePrimaryCtxRetain"); error != CUDA_SUCCESS) return error;
    if (!known_device(*state, device)) return CUDA_ERROR_INVALID_DEVICE;
    const std::lock_guard lock(state->mutex_);
    ++state->retained_[device];
    *context = state->primary_context(device);
    return CUDA_SUCCESS;
  }

  static CUresult primary_ctx_release(CUdevice device) {
    RecordingState* state;
    if (const CUresult error = enter(state, "cuDevicePrimaryCtxRelease"); error != CUDA_SUCCESS) return error;
    const std::lock_guard lock(state->mutex_);
    if (!known_device(*state, device) || state->retained_[device] < 1) return CUDA_ERROR_INVALID_CONTEXT;
    --state->retained_[device];
    return CUDA_SUCCESS;
  }

  static CUresult ctx_get_current(CUcontext* context) {
    RecordingState* state;
    if (const CUresult error = enter(state, "cuCtxGetCurrent"); error != CUDA_SUCCESS) return error;
    *context = state->current_context();
    return CUDA_SUCCESS;
  }

  static CUresult ctx_get_device(CUdevice* device) {
    RecordingState* state;
    if (const CUresult error = enter(state, "cuCtxGetDevice"); error != CUDA_SUCCESS) return error;
    const std::uintptr_t current = reinterpret_cast<std::uintptr_t>(state->current_context());
    if (current < first_context || current >= first_context + state->devices.size()) return CUDA_ERROR_INVALID_CONTEXT;
    *device = static_cast<CUdevice>(current - first_context);
    return CUDA_SUCCESS;
  }

  static CUresult ctx_push_current(CUcontext context) {
    RecordingState* state;
    if (const CUresult error = enter(state, "cuCtxPushCurrent"); error != CUDA_SUCCESS) return error;
    thread_contexts(state->id_).push_back(context);
    return CUDA_SUCCESS;
  }

  static CUresult ctx_pop_current(CUcontext* context) {
    RecordingState* state;
    if (const CUresult error = enter(state, "cuCtxPopCurrent"); error != CUDA_SUCCESS) return error;
    std::vector<CUcontext>& stack = thread_contexts(state->id_);
    if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (context != nullptr) *context = stack.back();
    stack.pop_back();
    return CUDA_SUCCESS;
  }

  template <typename Handle>
  static Handle new_handle(RecordingState& state) {  // the lock is held
    state.next_handle_ += 0x10;
    return reinterpret_cast<Handle>(state.next_handle_);
  }

  static CUresult library_load_data(CUlibrary* library, const void* image, CUjit_option*, void**, unsigned,
                                    CUlibraryOption*, void**, unsigned) {
    RecordingState* state;
    if (const CUresult error = enter(state, "cuLibraryLoadData"); error != CUDA_SUCCESS) return error;
    if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (state->on_load) {
      if (const CUresult error = state->on_load(image); error != CUDA_SUCCESS) return error;
    }
    const std::lock_guard lock(state->mutex_);
    *library = new_handle<CUlibrary>(*state);
    ++state->libraries_loaded_;
    return CUDA_SUCCESS;
  }

  static CUresult library_unload(CUlibrary) {
    RecordingState* state;
    if (const CUresult error = enter(state, "cuLibraryUnload"); error != CUDA_SUCCESS) return error;
    if (state->on_unload) state->on_unload();
    const std::lock_guard lock(state->mutex_);
    if (state->libraries_loaded_ == 0) return CUDA_ERROR_INVALID_VALUE;
    --state->libraries_loaded_;
    return CUDA_SUCCESS;
  }

  static CUresult library_get_kernel(CUkernel* kernel, CUlibrary, const char* name) {
    RecordingState* state;
    const CUresult error = enter(state, "cuLibraryGetKernel");
    if (state == nullptr) return error;
    {
      const std::lock_guard lock(state->mutex_);
      state->kernel_names_.emplace_back(name);
    }
    if (error != CUDA_SUCCESS) return error;
    if (state->on_get_kernel) {
      if (const CUresult refusal = state->on_get_kernel(name); refusal != CUDA_SUCCESS) return refusal;
    }
    const std::lock_guard lock(state->mutex_);
    *kernel = new_handle<CUkernel>(*state);
    return CUDA_SUCCESS;
  }

  static CUresult kernel_get_function(CUfunction* function, CUkernel kernel) {
    RecordingState* state;
    if (const CUresult error = enter(state, "cuKernelGetFunction"); error != CUDA_SUCCESS) return error;
    const CUcontext context = state->current_context();
    if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    if (state->on_function) {
      if (const CUresult refusal = state->on_function(); refusal != CUDA_SUCCESS) return refusal;
    }
    const std::lock_guard lock(state->mutex_);
    state->functions_.push_back({kernel, context});
    *function = new_handle<CUfunction>(*state);
    return CUDA_SUCCESS;
  }

  static CUresult kernel_set_attribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device) {
    RecordingState* state;
    if (const CUresult error = enter(state, "cuKernelSetAttribute"); error != CUDA_SUCCESS) return error;
    if (!known_device(*state, device)) return CUDA_ERROR_INVALID_DEVICE;
    const FakeDevice& fake = state->devices[static_cast<std::size_t>(device)];
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && value > fake.max_smem_per_block) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const std::lock_guard lock(state->mutex_);
    state->kernel_attributes_.push_back({kernel, attribute, value, device});
    return CUDA_SUCCESS;
  }

  static CUresult kernel_get_attribute(int* value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device) {
    RecordingState* state;
    if (const CUresult error = enter(state, "cuKernelGetAttribute"); error != CUDA_SUCCESS) return error;
    const std::lock_guard lock(state->mutex_);
    *value = 0;
    for (const RecordedKernelAttribute& set : state->kernel_attributes_) {
      if (set.kernel == kernel && set.attribute == attribute && set.device == device) *value = set.value;
    }
    return CUDA_SUCCESS;
  }

  static CUresult launch_kernel_ex(const CUlaunchConfig* config, CUfunction function, void** arguments, void**) {
    RecordingState* state;
    const CUresult error = enter(state, "cuLaunchKernelEx");
    if (state == nullptr) return error;
    RecordedLaunch launch;
    launch.function = function;
    const unsigned grid[3] = {config->gridDimX, config->gridDimY, config->gridDimZ};
    const unsigned block[3] = {config->blockDimX, config->blockDimY, config->blockDimZ};
    std::memcpy(launch.grid, grid, sizeof grid);
    std::memcpy(launch.block, block, sizeof block);
    launch.smem_bytes = config->sharedMemBytes;
    launch.stream = config->hStream;
    launch.context = state->current_context();
    if (config->numAttrs > 0) launch.attributes.assign(config->attrs, config->attrs + config->numAttrs);
    launch.argument_pointers = arguments;
    for (std::size_t i = 0; i < state->argument_sizes.size(); ++i) {
      const auto* bytes = static_cast<const std::uint8_t*>(arguments[i]);
      launch.arguments.emplace_back(bytes, bytes + state->argument_sizes[i]);
    }
    {
      const std::lock_guard lock(state->mutex_);
      state->launches_.push_back(launch);
    }
    if (state->on_launch) state->on_launch(launch);
    return error;
  }

  static CUresult stream_is_capturing(CUstream, CUstreamCaptureStatus* status) {
    RecordingState* state;
    if (const CUresult error = enter(state, "cuStreamIsCapturing"); error != CUDA_SUCCESS) return error;
    *status = state->capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  }

  static CUresult exchange_capture_mode(CUstreamCaptureMode* mode) {
    RecordingState* state;
    if (const CUresult error = enter(state, "cuThreadExchangeStreamCaptureMode"); error != CUDA_SUCCESS) return error;
    thread_local CUstreamCaptureMode of_thread = CU_STREAM_CAPTURE_MODE_GLOBAL;
    std::swap(*mode, of_thread);
    state->capture_mode_relaxed = of_thread == CU_STREAM_CAPTURE_MODE_RELAXED;
    return CUDA_SUCCESS;
  }

  static CUresult ctx_get_id(CUcontext context, unsigned long long* id) {
    RecordingState* state;
    if (const CUresult error = enter(state, "cuCtxGetId"); error != CUDA_SUCCESS) return error;
    const CUcontext asked = context != nullptr ? context : state->current_context();
    if (asked == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    *id = reinterpret_cast<std::uintptr_t>(asked);
    return CUDA_SUCCESS;
  }

  static CUresult max_active_clusters(int* count, CUfunction, const CUlaunchConfig*) {
    RecordingState* state;
    if (const CUresult error = enter(state, "cuOccupancyMaxActiveClusters"); error != CUDA_SUCCESS) return error;
    *count = state->on_occupancy ? state->on_occupancy() : state->max_active_clusters;
    return CUDA_SUCCESS;
  }
};

unsigned RecordedLaunch::cluster_x() const {
  for (const CUlaunchAttribute& attribute : attributes) {
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) return attribute.value.clusterDim.x;
  }
  return 1;
}

bool RecordedLaunch::has(CUlaunchAttributeID id) const {
  for (const CUlaunchAttribute& attribute : attributes) {
    if (attribute.id == id) return true;
  }
  return false;
}

bool RecordedLaunch::pdl() const {
  for (const CUlaunchAttribute& attribute : attributes) {
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION) {
      return attribute.value.programmaticStreamSerializationAllowed != 0;
    }
  }
  return false;
}

RecordingState::RecordingState() {
  static std::atomic<std::uint64_t> last_id{0};
  id_ = ++last_id;
}

RecordingState::~RecordingState() {
  RecordingState* self = this;
  current_state.compare_exchange_strong(self, nullptr);
}

std::vector<std::string> RecordingState::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

std::size_t RecordingState::count(const std::string& function) const {
  const std::lock_guard lock(mutex_);
  std::size_t found = 0;
  for (const std::string& call : calls_) found += call == function ? 1 : 0;
  return found;
}

std::vector<RecordedLaunch> RecordingState::launches() const {
  const std::lock_guard lock(mutex_);
  return launches_;
}

std::vector<RecordedKernelAttribute> RecordingState::kernel_attributes() const {
  const std::lock_guard lock(mutex_);
  return kernel_attributes_;
}

std::vector<RecordedFunction> RecordingState::functions() const {
  const std::lock_guard lock(mutex_);
  return functions_;
}

std::vector<std::string> RecordingState::kernel_names() const {
  const std::lock_guard lock(mutex_);
  return kernel_names_;
}

std::size_t RecordingState::libraries_loaded() const {
  const std::lock_guard lock(mutex_);
  return libraries_loaded_;
}

void RecordingState::forget_calls() {
  const std::lock_guard lock(mutex_);
  calls_.clear();
  launches_.clear();
  kernel_attributes_.clear();
  functions_.clear();
  kernel_names_.clear();
}

CUcontext RecordingState::primary_context(int device) const {
  return reinterpret_cast<CUcontext>(first_context + static_cast<std::uintptr_t>(device));
}

void RecordingState::set_current_context(CUcontext context) {
  std::vector<CUcontext>& stack = thread_contexts(id_);
  stack.clear();
  if (context != nullptr) stack.push_back(context);
}

CUcontext RecordingState::current_context() const {
  const std::vector<CUcontext>& stack = thread_contexts(id_);
  return stack.empty() ? nullptr : stack.back();
}

int RecordingState::primary_contexts_retained(int device) const {
  const std::lock_guard lock(mutex_);
  const auto found = retained_.find(device);
  return found == retained_.end() ? 0 : found->second;
}

std::shared_ptr<cuda::DriverApi> make_recording_driver(RecordingState& state) {
  using F = RecordingFunctions;
  current_state.store(&state);
  auto api = std::make_shared<cuda::DriverApi>();
  api->path = "recording";
  api->cuInit = F::init;
  api->cuDriverGetVersion = F::driver_get_version;
  api->cuGetErrorName = F::get_error_name;
  api->cuGetErrorString = F::get_error_string;
  api->cuDeviceGetCount = F::device_get_count;
  api->cuDeviceGet = F::device_get;
  api->cuDeviceGetName = F::device_get_name;
  api->cuDeviceGetAttribute = F::device_get_attribute;
  api->cuDevicePrimaryCtxRetain = F::primary_ctx_retain;
  api->cuDevicePrimaryCtxRelease = F::primary_ctx_release;
  api->cuCtxGetCurrent = F::ctx_get_current;
  api->cuCtxGetDevice = F::ctx_get_device;
  api->cuCtxPushCurrent = F::ctx_push_current;
  api->cuCtxPopCurrent = F::ctx_pop_current;
  api->cuLibraryLoadData = F::library_load_data;
  api->cuLibraryUnload = F::library_unload;
  api->cuLibraryGetKernel = F::library_get_kernel;
  api->cuKernelGetFunction = F::kernel_get_function;
  api->cuKernelSetAttribute = F::kernel_set_attribute;
  api->cuKernelGetAttribute = F::kernel_get_attribute;
  api->cuLaunchKernelEx = F::launch_kernel_ex;
  api->cuStreamIsCapturing = F::stream_is_capturing;
  api->cuThreadExchangeStreamCaptureMode = F::exchange_capture_mode;
  api->cuCtxGetId = F::ctx_get_id;
  api->cuOccupancyMaxActiveClusters = F::max_active_clusters;
  return api;
}

}  // namespace gemvjit::test
