#include "src/runtime/launch_kernels.h"

#include "src/runtime/capturing.h"
#include "src/runtime/work_plan.h"

namespace gemvjit {
namespace {

// Null for the primary one, which kernels are resolved in anyway.
CUcontext caller_context(const Device& device) {
  const CUcontext current = device.current_context();
  return current == device.primary ? nullptr : current;
}

// Makes the kernel for a launch that found none; nullptr in `kernel` with an ok status where that is not allowed.
Status compile_on_miss(Context& context, const LaunchShape& shape, std::int64_t m, CUstream stream,
                       const LoadedKernel*& kernel) {
  if (!context.options().compile_on_miss || context.sealed() || may_capture(*context.device(), stream)) {
    return Status::ok();
  }
  ProblemRequest request;
  request.problem = problem_of(shape);
  request.allow_untuned = true;  // a launch asks for the kernel, not for advice
  GEMVJIT_TRY_ASSIGN(const WorkItem item,
                     plan_kernel(context, request, family_row(shape.family).has_tokens ? nt_for_m(m) : 0));
  {
    const std::lock_guard lock(context.miss_mutex);
    const auto failed = context.miss_failures.find(item.key());
    if (failed != context.miss_failures.end()) return failed->second;
  }
  const Result<Ready> ready = context.resolver().resolve(item.candidates, caller_context(*context.device()));
  if (ready) {
    kernel = ready->kernel;
    return Status::ok();
  }
  if (ready.status().code() == StatusCode::sealed) return Status::ok();  // sealed meanwhile
  const std::lock_guard lock(context.miss_mutex);
  context.miss_failures.emplace(item.key(), ready.status());
  return ready.status();
}

LaunchOutcome find_or_compile(Context& context, const LaunchShape& shape, std::int64_t m, CUstream stream,
                              const LoadedKernel*& kernel) {
  const KernelRegistry::Found found = context.registry().find(shape, m);
  kernel = found.kernel;
  if (kernel != nullptr) [[likely]]
    return {};
  if (context.device() == nullptr) return {StatusCode::no_driver, {}};
  if (Status compiled = compile_on_miss(context, shape, m, stream, kernel); !compiled) {
    const StatusCode code = compiled.code();
    return {code, std::move(compiled)};
  }
  if (kernel != nullptr) return {};
  // A shape that no kernel can have is a wrong argument, which the caller says, and no miss.
  if (!check_problem(problem_of(shape))) return {StatusCode::not_ready, {}};
  const StatusCode code = found.shape_known ? StatusCode::m_not_covered : StatusCode::not_ready;
  if (code == StatusCode::not_ready) context.counters().launch_misses.fetch_add(1, std::memory_order_relaxed);
  if (const LaunchMissSink& sink = context.options().on_launch_miss) sink({shape, m, code, context.sealed()});
  return {code, {}};
}

template <typename Arguments>
LaunchOutcome launch_kernel(Context& context, const LaunchShape& shape, std::int64_t m, Arguments& arguments,
                            CUstream stream) {
  const LoadedKernel* kernel = nullptr;
  LaunchOutcome outcome = find_or_compile(context, shape, m, stream, kernel);
  if (kernel == nullptr) [[unlikely]]
    return outcome;
  auto pointers = argument_pointers(arguments);
  const cuda::DriverApi& driver = *context.device()->driver;
  const CUresult result =
      launch(driver, kernel->kernel, kernel->config, static_cast<unsigned>(m), pointers.data(), stream);
  if (result != CUDA_SUCCESS) [[unlikely]] {
    return {StatusCode::cuda_error, cuda::cuda_status(driver, result, "launching " + kernel->spec.key.text())};
  }
  context.counters().launches.add_one();
  return outcome;
}

}  // namespace

LaunchOutcome launch_gemv(Context& context, const LaunchShape& shape, GemvArguments& arguments, CUstream stream) {
  return launch_kernel(context, shape, arguments.m, arguments, stream);
}

LaunchOutcome launch_dequantize(Context& context, const LaunchShape& shape, DequantizeArguments& arguments,
                                CUstream stream) {
  return launch_kernel(context, shape, 0, arguments, stream);
}

LaunchOutcome launch_swizzle(Context& context, const LaunchShape& shape, SwizzleArguments& arguments, CUstream stream) {
  return launch_kernel(context, shape, 0, arguments, stream);
}

}  // namespace gemvjit
