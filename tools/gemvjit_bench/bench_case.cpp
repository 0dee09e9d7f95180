#include "tools/gemvjit_bench/bench_case.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "tools/measure/chain.h"
#include "tools/measure/number_check.h"
#include "tools/measure/samples.h"

namespace gemvjit::tools {
namespace {

constexpr int kWarmOps = 64;  // a warm run repeats its one copy, so that there are enough nodes to time

Problem problem_of(const BenchCase& bench) {
  const Family family = bench.family == GEMVJIT_BF16_GEMV ? Family::bf16_gemv : Family::nvfp4_gemv;
  return {family, bench.n, bench.k, bench.silu_mul, bench.pdl};
}

template <typename Args>
void fill_common(Args& args, const BenchCase& bench, const ColdBuffers& b, int copy) {
  const auto pointer = [](CUdeviceptr address) { return reinterpret_cast<void*>(address); };
  args.struct_size = sizeof args;
  args.m = bench.m, args.n = bench.n, args.k = bench.k, args.x_row_stride = bench.k;
  args.x = pointer(bench.chain && copy > 0 ? b.out_of(copy - 1) : b.x);
  args.weight = pointer(b.weight_of(copy)), args.out = pointer(b.out_of(copy));
  args.silu_mul = bench.silu_mul, args.pdl = bench.pdl;
}

Status launch(gemvjit_context* context, const BenchCase& bench, const ColdBuffers& b, int copy, CUstream stream) {
  gemvjit_status status = GEMVJIT_OK;
  if (bench.family == GEMVJIT_BF16_GEMV) {
    gemvjit_bf16_gemv_args args{};
    fill_common(args, bench, b, copy);
    status = gemvjit_bf16_gemv(context, &args, stream);
  } else {
    gemvjit_nvfp4_gemv_args args{};
    fill_common(args, bench, b, copy);
    args.weight_scale = reinterpret_cast<void*>(b.scale_of(copy));
    args.global_scale = reinterpret_cast<float*>(b.global_scale);
    args.scale_layout = GEMVJIT_SCALE_128X4_SWIZZLED;
    args.global_scale_kind = GEMVJIT_GLOBAL_SCALE_MULTIPLIER;
    status = gemvjit_nvfp4_gemv(context, &args, stream);
  }
  if (status != GEMVJIT_OK) return {static_cast<StatusCode>(status), gemvjit_last_error()};
  return Status::ok();
}

Result<Spread> time_chain(const GpuHarness& gpu, const GpuStream& stream, int ops, int replays,
                          const std::function<Status(int)>& op) {
  GEMVJIT_TRY_ASSIGN(const Chain chain, Chain::capture(gpu, stream, ops, op));
  GEMVJIT_TRY(chain.run_once(stream));
  std::vector<double> samples;
  GEMVJIT_TRY(chain.sample(stream, replays, samples));
  return summarize(std::move(samples));
}

}  // namespace

Result<BenchResult> BenchRunner::run(const BenchCase& bench) {
  BenchResult result;
  result.bench = bench;
  const Problem problem = problem_of(bench);
  GEMVJIT_TRY_ASSIGN(const ColdBuffers buffers, arena_.prepare(problem, static_cast<int>(bench.m), bench.warm ? 1 : 0));
  result.bytes = buffers.bytes;
  result.copies = buffers.copies;
  GEMVJIT_TRY(poison_out(gpu_, buffers, bench.m));
  GEMVJIT_TRY_ASSIGN(const Spread us,
                     time_chain(gpu_, stream_, bench.warm ? kWarmOps : buffers.copies, replays_, [&](int i) {
                       return launch(context_, bench, buffers, i % buffers.copies, stream_.get());
                     }));
  result.us = us.median;
  result.spread_us = us.half_iqr;
  GEMVJIT_TRY_ASSIGN(const NumberCheck check, check_numbers(gpu_, buffers, make_reference(blocks_, problem, bench.m)));
  result.worst = check.worst;
  result.problem = check.problem;
  if (ceilings_ != nullptr) GEMVJIT_TRY(time_ceilings(bench, buffers, result));
  if (alternative_ != nullptr) {
    GEMVJIT_TRY_ASSIGN(result.cublaslt_us, time_alternative(bench));
  }
  return result;
}

Status BenchRunner::time_ceilings(const BenchCase& bench, const ColdBuffers& b, BenchResult& result) {
  const auto ceiling = [&](Ceiling which) -> Result<double> {
    // The weights' bytes stand for the scales' as well: as many bytes, from the same buffer, wrapping at its end.
    const std::uint64_t bytes = std::min<std::uint64_t>(result.bytes / 16 * 16, b.weights_size);
    const std::uint64_t last = b.weights_size - bytes;
    const std::uint64_t step = b.copies > 1 ? last / static_cast<std::uint64_t>(b.copies - 1) / 16 * 16 : 0;
    GEMVJIT_TRY_ASSIGN(
        const Spread us, time_chain(gpu_, stream_, bench.warm ? kWarmOps : b.copies, replays_, [&](int i) {
          const int copy = i % b.copies;
          return ceilings_->launch(which, stream_.get(), b.weights + static_cast<std::uint64_t>(copy) * step, bytes,
                                   b.x, static_cast<std::uint64_t>(bench.m * bench.k) * 2, b.out_of(copy),
                                   b.out_stride);
        }));
    return us.median;
  };
  GEMVJIT_TRY_ASSIGN(result.plain_us, ceiling(Ceiling::plain));
  GEMVJIT_TRY_ASSIGN(result.pdl_us, ceiling(Ceiling::pdl));
  GEMVJIT_TRY_ASSIGN(result.pdl_x_out_us, ceiling(Ceiling::pdl_x_out));
  return Status::ok();
}

// Once for a shape and M, whatever the families; 0 where cuBLASLt cannot.
Result<double> BenchRunner::time_alternative(const BenchCase& bench) {
  const auto [place, is_new] = alternative_us_.try_emplace({bench.n, bench.k, bench.m, bench.silu_mul}, 0.0);
  if (!is_new) return place->second;
  const auto timed = alternative_->time(stream_, arena_, blocks_, problem_of(bench), bench.m, replays_, bench.warm);
  if (!timed && timed.status().code() != StatusCode::unsupported) return timed.status();
  if (timed && timed->problem.empty()) place->second = timed->us.median;
  return place->second;
}

}  // namespace gemvjit::tools
