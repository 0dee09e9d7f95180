#include "tools/gemvjit_tune/device_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <string>

#include "src/launch/launcher.h"
#include "tools/measure/samples.h"

namespace gemvjit::tools {
namespace {

// The one place that launches a kernel under test.
CUresult launch_kernel(const cuda::DriverApi& driver, CUkernel kernel, const LaunchConfig& config,
                       GemvArguments& arguments, CUstream stream) {
  auto pointers = argument_pointers(arguments);
  return launch(driver, kernel, config, static_cast<unsigned>(arguments.m), pointers.data(), stream);
}

// "580.159.03 (CUDA 13.0)": the driver API tells the CUDA version only, the kernel module the other.
std::string driver_text(int cuda_version) {
  const std::string cuda = fmt::format("CUDA {}.{}", cuda_version / 1000, cuda_version % 1000 / 10);
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;) {
    const bool number =
        std::count(word.begin(), word.end(), '.') >= 1 &&
        std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) || c == '.'; });
    if (number) return fmt::format("{} ({})", word, cuda);
  }
  return cuda;
}

}  // namespace

Result<std::unique_ptr<DeviceBench>> DeviceBench::open(int ordinal, const HostBlocks& blocks, double kernel_seconds) {
  GEMVJIT_TRY_ASSIGN(auto gpu, GpuHarness::open(ordinal));
  GEMVJIT_TRY_ASSIGN(GpuStream stream, GpuStream::create(*gpu));
  std::unique_ptr<DeviceBench> made(new DeviceBench(std::move(gpu), std::move(stream), blocks));
  GEMVJIT_TRY_ASSIGN(made->driver_, cuda::load_driver("time kernels"));
  const auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    return made->gpu_->api().cuDeviceGetAttribute(&value, which, made->gpu_->device()) == CUDA_SUCCESS ? value : 0;
  };
  made->kernel_seconds_ = kernel_seconds;
  made->sm_count_ = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  made->sm_clock_mhz_ = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE) / 1000;
  made->memory_clock_mhz_ = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) / 1000;
  return made;
}

Provenance DeviceBench::provenance() const {
  Provenance made;
  made.gpu = gpu_->device_name();
  made.driver = driver_text(gpu_->driver_version());
  made.sm_count = sm_count_;
  made.sm_clock_mhz = sm_clock_mhz_;
  made.memory_clock_mhz = memory_clock_mhz_;
  return made;
}

Status DeviceBench::begin_case(const TuneCase& c) {
  case_ = c;
  GEMVJIT_TRY_ASSIGN(buffers_, arena_.prepare(c.problem(), static_cast<int>(c.tokens().back())));
  return Status::ok();
}

Result<std::unique_ptr<ReadyKernel>> DeviceBench::make_ready(const Prepared& prepared,
                                                             std::vector<SampledReference>& references) {
  auto ready = std::make_unique<ReadyKernel>();
  LaunchConfig config = launch_config(prepared.spec);
  // As the library does: a kernel whose code does not wait must not overlap with its predecessor.
  config.pdl = prepared.spec.pdl && prepared.cubin->waits_for_predecessor;
  GEMVJIT_TRY_ASSIGN(ready->library, cuda::Library::load(driver_, prepared.cubin->bytes, prepared.cubin->entry_name));
  GEMVJIT_TRY(ready->library.prepare(gpu_->device(), config.smem_bytes, config.cluster_x > 8));
  const auto pointer = [](CUdeviceptr address) { return reinterpret_cast<void*>(address); };
  for (const SampledReference& reference : references) {
    GEMVJIT_TRY(poison_out(*gpu_, buffers_, reference.m));
    const auto op = [&](int copy) {
      GemvArguments arguments{pointer(buffers_.x),
                              case_.k,
                              pointer(buffers_.weight_of(copy)),
                              buffers_.scales == 0 ? nullptr : pointer(buffers_.scale_of(copy)),
                              reinterpret_cast<const float*>(buffers_.global_scale),
                              pointer(buffers_.out_of(copy)),
                              static_cast<std::int32_t>(reference.m)};
      return gpu_->check(launch_kernel(*driver_, ready->library.kernel(), config, arguments, stream_.get()),
                         "launching the kernel");
    };
    GEMVJIT_TRY_ASSIGN(Chain chain, Chain::capture(*gpu_, stream_, buffers_.copies, op));
    GEMVJIT_TRY_ASSIGN(const bool done, chain.run_once_within(stream_, kernel_seconds_));
    if (!done) {
      hangs_ = true;
      (void)ready.release();  // unloading would wait for the kernel
      return Status(StatusCode::internal_error, fmt::format("does not end within {} s", kernel_seconds_));
    }
    GEMVJIT_TRY_ASSIGN(const NumberCheck check, check_numbers(*gpu_, buffers_, reference));
    if (!check.problem.empty()) {
      return Status(StatusCode::internal_error, fmt::format("wrong numbers at M = {}: {}", reference.m, check.problem));
    }
    ready->chains.push_back(std::move(chain));
  }
  return ready;
}

Status DeviceBench::sample(const ReadyKernel& kernel, int replays, std::vector<std::vector<double>>& samples_us) {
  samples_us.resize(kernel.chains.size());
  for (std::size_t i = 0; i < kernel.chains.size(); ++i) {
    GEMVJIT_TRY(kernel.chains[i].sample(stream_, replays, samples_us[i]));
  }
  return Status::ok();
}

Status DeviceBench::open_alternative(const std::string& cublaslt_path) {
  GEMVJIT_TRY_ASSIGN(alternative_, Alternative::open(*gpu_, cublaslt_path));
  return Status::ok();
}

AlternativeSample DeviceBench::time_alternative(const TuneCase& c, int replays) {
  AlternativeSample sample;
  sample.tune_case = c;
  sample.gpu = gpu_->device_name();
  sample.compiler = alternative_->cublaslt().version();
  std::vector<double> medians;
  double noise = 0;
  for (const std::int64_t m : c.tokens()) {
    const auto timed = alternative_->time(stream_, arena_, blocks_, c.problem(), m, replays, false);
    sample.failure = !timed ? timed.status().message() : timed->problem;
    if (!sample.failure.empty()) return sample;
    medians.push_back(timed->us.median);
    noise += timed->us.half_iqr / timed->us.median;
  }
  sample.us = geometric_mean(medians);
  sample.spread_us = sample.us * noise / static_cast<double>(medians.size());
  return sample;
}

}  // namespace gemvjit::tools
