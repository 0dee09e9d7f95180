#include "tools/gemvjit_verify/launch_overhead.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/entry.h"
#include "cache/kernel_key.h"
#include "src/base/files.h"
#include "src/catalog/catalog.h"
#include "tools/common/library_status.h"
#include "tools/verification/device_memory.h"

namespace gemvjit::tools {
namespace {

constexpr int kBatches = 401, kLaunches = 200;
constexpr std::int64_t kN = 256, kK = 256, kM = 1;

struct WarmKernel {
  std::string key, path;
};

Result<WarmKernel> warm_kernel(gemvjit_context* context, bool pdl) {
  gemvjit_problem problem;
  GEMVJIT_TRY(from_library(gemvjit_problem_init(&problem, GEMVJIT_BF16_GEMV, kN, kK), "describing a problem"));
  problem.nt = 1;
  problem.pdl = pdl ? 1 : 0;
  problem.allow_untuned = 1;
  WarmKernel kernel;
  gemvjit_warmup_options options{};
  options.struct_size = sizeof(options);
  options.user = &kernel;
  options.on_kernel = [](void* user, const gemvjit_kernel_info* info) {
    auto& seen = *static_cast<WarmKernel*>(user);
    seen.key = info->key;
    seen.path = info->path;
    return 0;
  };
  GEMVJIT_TRY(from_library(gemvjit_warmup(context, &problem, 1, &options), "warming a kernel"));
  if (kernel.path.empty()) {
    return Status(StatusCode::invalid_argument, "the launch overhead needs a cache directory: use --cache-dir");
  }
  return kernel;
}

// The kernel, loaded a second time, and what the library would launch it with.
class BareKernel {
 public:
  static Result<std::unique_ptr<BareKernel>> load(const GpuHarness& gpu, const WarmKernel& warm) {
    GEMVJIT_TRY_ASSIGN(const Bytes bytes, read_file(warm.path, entry_size_limit));
    GEMVJIT_TRY_ASSIGN(const Entry entry, decode_entry(bytes));
    GEMVJIT_TRY_ASSIGN(const KernelSpec spec, describe_key(entry.id.key));
    std::unique_ptr<BareKernel> bare(new BareKernel(gpu));
    const GpuApi& api = gpu.api();
    GEMVJIT_TRY(gpu.check(
        api.cuLibraryLoadData(&bare->library_, entry.cubin.bytes.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
        "loading " + warm.path));
    GEMVJIT_TRY(gpu.check(api.cuLibraryGetKernel(&bare->kernel_, bare->library_, entry.cubin.entry_name.c_str()),
                          "finding " + entry.cubin.entry_name));
    CUfunction function = nullptr;  // resolves the kernel in this context, as the library does at warmup
    GEMVJIT_TRY(gpu.check(api.cuKernelGetFunction(&function, bare->kernel_), "resolving the kernel"));
    LaunchConfig launch = launch_config(spec);
    launch.pdl = launch.pdl && entry.cubin.waits_for_predecessor;
    if (launch.smem_bytes > 48 * 1024) {
      GEMVJIT_TRY(gpu.check(api.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                     static_cast<int>(launch.smem_bytes), bare->kernel_, gpu.device()),
                            "setting the shared-memory limit"));
    }
    bare->configure(launch);
    return bare;
  }
  ~BareKernel() {
    if (library_ != nullptr) (void)gpu_.api().cuLibraryUnload(library_);
  }
  BareKernel(const BareKernel&) = delete;
  BareKernel& operator=(const BareKernel&) = delete;

  CUresult launch(CUstream stream, void** arguments) {
    config_.hStream = stream;
    return gpu_.api().cuLaunchKernelEx(&config_, reinterpret_cast<CUfunction>(kernel_), arguments, nullptr);
  }

 private:
  explicit BareKernel(const GpuHarness& gpu) : gpu_(gpu) {}
  void configure(const LaunchConfig& launch) {
    config_.gridDimX = launch.grid_x;
    config_.gridDimY = config_.gridDimZ = 1;
    config_.blockDimX = launch.block_x;
    config_.blockDimY = config_.blockDimZ = 1;
    config_.sharedMemBytes = launch.smem_bytes;
    config_.attrs = attributes_;
    if (launch.cluster_x > 1) {
      CUlaunchAttribute& attribute = attributes_[config_.numAttrs++];
      attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
      attribute.value.clusterDim.x = launch.cluster_x;
      attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
    }
    if (launch.pdl) {
      CUlaunchAttribute& attribute = attributes_[config_.numAttrs++];
      attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
      attribute.value.programmaticStreamSerializationAllowed = 1;
    }
  }

  const GpuHarness& gpu_;
  CUlibrary library_ = nullptr;
  CUkernel kernel_ = nullptr;
  CUlaunchConfig config_{};
  CUlaunchAttribute attributes_[2]{};
};

double median(std::vector<double>& values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Nanoseconds a launch of one batch, the waiting left out.
template <typename Launch>
Result<double> time_batch(const GpuStream& stream, const Launch& launch) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kLaunches; ++i) {
    if (!launch()) return Status(StatusCode::cuda_error, fmt::format("a launch failed: {}", gemvjit_last_error()));
  }
  const auto end = std::chrono::steady_clock::now();
  GEMVJIT_TRY(stream.synchronize());
  return std::chrono::duration<double, std::nano>(end - begin).count() / kLaunches;
}

}  // namespace

Result<LaunchOverhead> measure_launch_overhead(const GpuHarness& gpu, const GpuStream& stream, gemvjit_context* context,
                                               bool pdl) {
  GEMVJIT_TRY_ASSIGN(const WarmKernel warm, warm_kernel(context, pdl));
  GEMVJIT_TRY_ASSIGN(const std::unique_ptr<BareKernel> bare, BareKernel::load(gpu, warm));
  GEMVJIT_TRY_ASSIGN(DeviceBuffer x, DeviceBuffer::create(gpu, kM * kK * 2));
  GEMVJIT_TRY_ASSIGN(DeviceBuffer weight, DeviceBuffer::create(gpu, kN * kK * 2));
  GEMVJIT_TRY_ASSIGN(DeviceBuffer out, DeviceBuffer::create(gpu, kM * kN * 2));

  gemvjit_bf16_gemv_args args{};
  args.struct_size = sizeof(args);
  args.m = kM;
  args.n = kN;
  args.k = kK;
  args.x_row_stride = kK;
  args.x = x.as<void>();
  args.weight = weight.as<void>();
  args.out = out.as<void>();
  args.pdl = pdl ? 1 : 0;
  // The kernels' parameters, in the order of kernels/bf16_gemv.cu.
  const void* x_pointer = x.as<void>();
  std::int64_t stride = kK;
  const void* weight_pointer = weight.as<void>();
  const void* no_scale = nullptr;
  const float* no_global = nullptr;
  void* out_pointer = out.as<void>();
  std::int32_t m = kM;
  void* arguments[] = {&x_pointer, &stride, &weight_pointer, &no_scale, &no_global, &out_pointer, &m};

  std::vector<double> library_times, bare_times;
  for (int batch = 0; batch <= kBatches; ++batch) {
    GEMVJIT_TRY_ASSIGN(const double library_ns, time_batch(stream, [&] {
                         return gemvjit_bf16_gemv(context, &args, stream.get()) == GEMVJIT_OK;
                       }));
    GEMVJIT_TRY_ASSIGN(const double bare_ns,
                       time_batch(stream, [&] { return bare->launch(stream.get(), arguments) == CUDA_SUCCESS; }));
    if (batch == 0) continue;  // warms up
    library_times.push_back(library_ns);
    bare_times.push_back(bare_ns);
  }
  LaunchOverhead result;
  result.key = warm.key;
  result.library_ns = median(library_times);
  result.bare_ns = median(bare_times);
  result.batches = kBatches;
  result.launches_per_batch = kLaunches;
  return result;
}

}  // namespace gemvjit::tools
