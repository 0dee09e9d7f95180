#include "tools/verification/gpu_harness.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

namespace gemvjit {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

Status load_symbols(GpuApi& api) {
  // Never closed: the driver keeps threads and exit handlers of its own.
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return {StatusCode::no_driver, fmt::format("no NVIDIA driver: {}", reason != nullptr ? reason : kLibrary)};
  }
#define X(name, exported)                                                                             \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(library, #exported));                         \
  if (api.name == nullptr) {                                                                          \
    return {StatusCode::no_driver,                                                                    \
            fmt::format("{} has no {}: it needs a driver of CUDA 12 or newer", kLibrary, #exported)}; \
  }
#include "tools/verification/gpu_symbols.inc"
#undef X
  return Status::ok();
}

}  // namespace

Result<std::unique_ptr<GpuHarness>> GpuHarness::open(int ordinal) {
  std::unique_ptr<GpuHarness> gpu(new GpuHarness);
  GpuApi& api = gpu->api_;
  GEMVJIT_TRY(load_symbols(api));
  if (const CUresult result = api.cuInit(0); result != CUDA_SUCCESS) {
    return Status(StatusCode::no_driver, gpu->check(result, "cuInit").message());
  }
  int count = 0;
  GEMVJIT_TRY(gpu->check(api.cuDeviceGetCount(&count), "cuDeviceGetCount"));
  if (ordinal >= count) {
    return Status(StatusCode::no_driver, fmt::format("no CUDA device {}: the driver shows {}", ordinal, count));
  }
  GEMVJIT_TRY(gpu->check(api.cuDeviceGet(&gpu->device_, ordinal), "cuDeviceGet"));
  std::array<char, 256> name{};
  GEMVJIT_TRY(
      gpu->check(api.cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, gpu->device_), "cuDeviceGetName"));
  gpu->device_name_ = name.data();
  int major = 0, minor = 0;
  GEMVJIT_TRY(gpu->check(api.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, gpu->device_),
                         "capability"));
  GEMVJIT_TRY(gpu->check(api.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, gpu->device_),
                         "capability"));
  gpu->sm_ = 10 * major + minor;
  GEMVJIT_TRY(gpu->check(api.cuDriverGetVersion(&gpu->driver_version_), "cuDriverGetVersion"));
  GEMVJIT_TRY(gpu->check(api.cuDevicePrimaryCtxRetain(&gpu->context_, gpu->device_),
                         fmt::format("making a context on {}", gpu->device_name_)));
  GEMVJIT_TRY(gpu->make_current());
  return gpu;
}

GpuHarness::~GpuHarness() {
  if (context_ == nullptr) return;
  (void)api_.cuCtxSetCurrent(nullptr);
  (void)api_.cuDevicePrimaryCtxRelease(device_);
}

std::size_t GpuHarness::free_bytes() const {
  std::size_t free = 0, total = 0;
  return api_.cuMemGetInfo(&free, &total) == CUDA_SUCCESS ? free : 0;
}

Status GpuHarness::make_current() const { return check(api_.cuCtxSetCurrent(context_), "cuCtxSetCurrent"); }

Status GpuHarness::synchronize() const { return check(api_.cuCtxSynchronize(), "waiting for the device"); }

Status GpuHarness::check(CUresult result, const std::string& doing) const {
  if (result == CUDA_SUCCESS) return Status::ok();
  const char* name = nullptr;
  const char* text = nullptr;
  (void)api_.cuGetErrorName(result, &name);
  (void)api_.cuGetErrorString(result, &text);
  return {StatusCode::cuda_error, fmt::format("{}: {} ({}), {}", doing, name != nullptr ? name : "unknown error",
                                              static_cast<int>(result), text != nullptr ? text : "no text")};
}

Result<GpuStream> GpuStream::create(const GpuHarness& gpu) {
  CUstream stream = nullptr;
  GEMVJIT_TRY(gpu.check(gpu.api().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate"));
  return GpuStream(gpu, stream);
}

GpuStream::GpuStream(GpuStream&& other) noexcept : gpu_(other.gpu_), stream_(std::exchange(other.stream_, nullptr)) {}

GpuStream::~GpuStream() {
  if (stream_ != nullptr) (void)gpu_->api().cuStreamDestroy(stream_);
}

Status GpuStream::synchronize() const {
  return gpu_->check(gpu_->api().cuStreamSynchronize(stream_), "waiting for a stream");
}

Result<bool> GpuStream::done_within(double seconds) const {
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    const CUresult result = gpu_->api().cuStreamQuery(stream_);
    if (result == CUDA_SUCCESS) return true;
    if (result != CUDA_ERROR_NOT_READY) return gpu_->check(result, "waiting for a stream");
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > seconds) return false;
    std::this_thread::yield();
  }
}

Result<GpuGraph> GpuGraph::capture(const GpuHarness& gpu, const GpuStream& stream,
                                   const std::function<Status()>& record, CUstreamCaptureMode mode) {
  const GpuApi& api = gpu.api();
  GEMVJIT_TRY(gpu.check(api.cuStreamBeginCapture(stream.get(), mode), "begin of capture"));
  const Status recorded = record();
  CUgraph graph = nullptr;
  const Status ended = gpu.check(api.cuStreamEndCapture(stream.get(), &graph), "end of capture");
  Status failure = recorded ? ended : recorded;
  CUgraphExec exec = nullptr;
  std::size_t nodes = 0;
  if (failure) failure = gpu.check(api.cuGraphGetNodes(graph, nullptr, &nodes), "cuGraphGetNodes");
  if (failure) failure = gpu.check(api.cuGraphInstantiateWithFlags(&exec, graph, 0), "instantiating a graph");
  if (graph != nullptr) (void)api.cuGraphDestroy(graph);
  if (!failure) return failure;
  return GpuGraph(gpu, exec, nodes);
}

GpuGraph::GpuGraph(GpuGraph&& other) noexcept
    : gpu_(other.gpu_), exec_(std::exchange(other.exec_, nullptr)), nodes_(other.nodes_) {}

GpuGraph& GpuGraph::operator=(GpuGraph&& other) noexcept {
  std::swap(gpu_, other.gpu_);
  std::swap(exec_, other.exec_);
  std::swap(nodes_, other.nodes_);
  return *this;
}

GpuGraph::~GpuGraph() {
  if (exec_ != nullptr) (void)gpu_->api().cuGraphExecDestroy(exec_);
}

Status GpuGraph::launch(const GpuStream& stream) const {
  return gpu_->check(gpu_->api().cuGraphLaunch(exec_, stream.get()), "cuGraphLaunch");
}

Result<std::vector<double>> GpuGraph::times_us(const GpuStream& stream, int repeats) const {
  const GpuApi& api = gpu_->api();
  CUevent begin = nullptr, end = nullptr;
  GEMVJIT_TRY(gpu_->check(api.cuEventCreate(&begin, CU_EVENT_DEFAULT), "cuEventCreate"));
  Status status = gpu_->check(api.cuEventCreate(&end, CU_EVENT_DEFAULT), "cuEventCreate");
  std::vector<double> times;
  for (int i = 0; i < repeats && status; ++i) {
    status = gpu_->check(api.cuEventRecord(begin, stream.get()), "cuEventRecord");
    if (status) status = launch(stream);
    if (status) status = gpu_->check(api.cuEventRecord(end, stream.get()), "cuEventRecord");
    if (status) status = gpu_->check(api.cuEventSynchronize(end), "waiting for a graph");
    float milliseconds = 0;
    if (status) status = gpu_->check(api.cuEventElapsedTime(&milliseconds, begin, end), "cuEventElapsedTime");
    times.push_back(milliseconds * 1e3);
  }
  (void)api.cuEventDestroy(begin);
  if (end != nullptr) (void)api.cuEventDestroy(end);
  if (!status) return status;
  return times;
}

Result<double> GpuGraph::median_us(const GpuStream& stream, int repeats) const {
  GEMVJIT_TRY_ASSIGN(std::vector<double> times, times_us(stream, repeats + 1));
  times.erase(times.begin());
  std::sort(times.begin(), times.end());
  return times.empty() ? 0.0 : times[times.size() / 2];
}

}  // namespace gemvjit
