#include "tools/measure/alternative.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/cuda/nvrtc_api.h"
#include "tools/measure/chain.h"
#include "tools/measure/cublaslt_search.h"
#include "tools/measure/number_check.h"

namespace gemvjit::tools {
namespace {

constexpr int kFirstReplays = 3, kFinalists = 2;
constexpr int kWarmOps = 64;
// Algorithms that add partial sums up in BF16 are what engines get by default, so they take part, although they are a
// few times less exact than the contract lets our kernels be.
constexpr double kWorst = 8;

struct Timed {
  Chain chain;
  std::vector<double> samples;
};

}  // namespace

Result<std::unique_ptr<Alternative>> Alternative::open(const GpuHarness& gpu, const std::string& path) {
  std::unique_ptr<Alternative> made(new Alternative(gpu));
  GEMVJIT_TRY_ASSIGN(made->cublaslt_,
                     CublasLt::open(gpu, cublaslt_candidates(path, cuda::nvrtc_search_from_environment())));
  GEMVJIT_TRY_ASSIGN(made->silu_, HelperKernel::compile(gpu, "silu_mul.cu", ""));
  return made;
}

Result<AlternativeTime> Alternative::time(const GpuStream& stream, ColdArena& arena, const HostBlocks& blocks,
                                          Problem problem, std::int64_t m, int replays, bool warm) const {
  problem.family = Family::bf16_gemv;
  GEMVJIT_TRY_ASSIGN(const ColdBuffers b, arena.prepare(problem, static_cast<int>(m), warm ? 1 : 0));
  GEMVJIT_TRY_ASSIGN(const auto product, cublaslt_->product(problem.n, problem.k, m));
  const auto op = [&](int algorithm, int copy) -> Status {
    const CUdeviceptr target = problem.silu_mul ? b.hidden : b.out_of(copy);
    GEMVJIT_TRY(product->launch(algorithm, b.x, b.weight_of(copy), target, stream.get()));
    if (!problem.silu_mul) return Status::ok();
    CUdeviceptr hidden = b.hidden, out = b.out_of(copy);
    auto rows = static_cast<unsigned>(m), vectors = static_cast<unsigned>(b.out_columns / 8);
    void* arguments[] = {&hidden, &out, &rows, &vectors};
    return silu_->launch(stream.get(), (rows * vectors + 255) / 256, 256, false, arguments);
  };
  const SampledReference reference = make_reference(blocks, problem, m);
  AlternativeTime result;
  std::vector<Timed> timed;
  for (int algorithm = 0; algorithm < product->algorithms(); ++algorithm) {
    // Outside of a capture first: cuBLASLt loads its kernels when they are first used. One that cannot run is left out.
    GEMVJIT_TRY(poison_out(gpu_, b, m));
    if (!op(algorithm, 0)) continue;
    GEMVJIT_TRY(stream.synchronize());
    GEMVJIT_TRY_ASSIGN(const NumberCheck check, check_numbers(gpu_, b, reference));
    const bool only_less_exact = check.worst > 1 && check.worst <= kWorst;
    if (!check.problem.empty() && !only_less_exact) {
      result.problem = check.problem;
      continue;
    }
    GEMVJIT_TRY_ASSIGN(Chain chain, Chain::capture(gpu_, stream, warm ? kWarmOps : b.copies,
                                                   [&](int i) { return op(algorithm, i % b.copies); }));
    GEMVJIT_TRY(chain.run_once(stream));
    timed.push_back({std::move(chain), {}});
    GEMVJIT_TRY(timed.back().chain.sample(stream, kFirstReplays, timed.back().samples));
  }
  result.algorithms = static_cast<int>(timed.size());
  if (timed.empty()) {
    if (result.problem.empty()) return Status(StatusCode::unsupported, "no algorithm of cuBLASLt's could run");
    return result;
  }
  result.problem.clear();  // of an algorithm that does not take part
  const auto median = [](const Timed& one) { return summarize(one.samples).median; };
  std::stable_sort(timed.begin(), timed.end(), [&](const Timed& a, const Timed& z) { return median(a) < median(z); });
  if (timed.size() > kFinalists) timed.erase(timed.begin() + kFinalists, timed.end());
  for (Timed& one : timed) {
    one.samples.clear();
    GEMVJIT_TRY(one.chain.sample(stream, replays, one.samples));
    const Spread us = summarize(one.samples);
    if (result.us.median == 0 || us.median < result.us.median) result.us = us;
  }
  return result;
}

}  // namespace gemvjit::tools
