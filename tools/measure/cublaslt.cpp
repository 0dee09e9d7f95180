#include "tools/measure/cublaslt.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace gemvjit::tools {
namespace {

constexpr std::size_t kWorkspaceBytes = 32u << 20;
constexpr int kAlgorithms = 8;

// The first exported name that the library lacks, or null.
const char* fill_table(void* library, cublaslt::Api& api) {
  const char* missing = nullptr;
  const auto get = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr && missing == nullptr) missing = name;
  };
  get(api.create, "cublasLtCreate");
  get(api.destroy, "cublasLtDestroy");
  get(api.get_version, "cublasLtGetVersion");
  get(api.desc_create, "cublasLtMatmulDescCreate");
  get(api.desc_destroy, "cublasLtMatmulDescDestroy");
  get(api.desc_set, "cublasLtMatmulDescSetAttribute");
  get(api.layout_create, "cublasLtMatrixLayoutCreate");
  get(api.layout_destroy, "cublasLtMatrixLayoutDestroy");
  get(api.preference_create, "cublasLtMatmulPreferenceCreate");
  get(api.preference_destroy, "cublasLtMatmulPreferenceDestroy");
  get(api.preference_set, "cublasLtMatmulPreferenceSetAttribute");
  get(api.heuristics, "cublasLtMatmulAlgoGetHeuristic");
  get(api.matmul, "cublasLtMatmul");
  return missing;
}

}  // namespace

Result<std::unique_ptr<CublasLt>> CublasLt::open(const GpuHarness& gpu, const std::vector<std::string>& files) {
  std::string tried;
  for (const std::string& file : files) {
    if (!tried.empty()) tried += "; ";
    // Never closed: like the driver, it keeps handlers of its own.
    void* opened = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) {
      const char* reason = dlerror();
      tried += reason != nullptr ? reason : file;
      continue;
    }
    cublaslt::Api api;
    if (const char* missing = fill_table(opened, api); missing != nullptr) {
      tried += fmt::format("{} lacks {}", file, missing);
      continue;
    }
    GEMVJIT_TRY_ASSIGN(DeviceBuffer workspace, DeviceBuffer::create(gpu, kWorkspaceBytes, 0, false));
    std::unique_ptr<CublasLt> library(new CublasLt(std::move(workspace)));
    library->api_ = api;
    Dl_info info{};
    const bool known = dladdr(reinterpret_cast<void*>(api.matmul), &info) != 0 && info.dli_fname != nullptr;
    library->path_ = known ? info.dli_fname : file;
    GEMVJIT_TRY(library->check(api.create(&library->handle_), "cublasLtCreate"));
    return library;
  }
  return Status(StatusCode::not_found, fmt::format("no libcublasLt: {}", tried));
}

CublasLt::~CublasLt() {
  if (handle_ != nullptr) (void)api_.destroy(handle_);
}

std::string CublasLt::version() const {
  const std::size_t number = api_.get_version();  // 130100 for 13.1.0, 120806 for 12.8.6
  return fmt::format("cublasLt {}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

Status CublasLt::check(int status, const char* doing) const {
  if (status == cublaslt::kSuccess) return Status::ok();
  return {StatusCode::cuda_error, fmt::format("{} of {}: cublasStatus_t {}", doing, path_, status)};
}

Result<std::unique_ptr<CublasLt::Product>> CublasLt::product(std::int64_t n, std::int64_t k, std::int64_t m) const {
  std::unique_ptr<Product> made(new Product(*this));
  GEMVJIT_TRY(made->find(n, k, m));
  return made;
}

// cuBLASLt's matrices are column-major: a row-major weight [n, k] is one [k, n], which is transposed, and a row-major
// out [m, n] is one [n, m].
Status CublasLt::Product::find(std::int64_t n, std::int64_t k, std::int64_t m) {
  using namespace cublaslt;
  const Api& api = library_.api_;
  const auto un = static_cast<std::uint64_t>(n), uk = static_cast<std::uint64_t>(k), um = static_cast<std::uint64_t>(m);
  GEMVJIT_TRY(library_.check(api.desc_create(&descriptor_, kComputeFloat, kTypeFloat), "cublasLtMatmulDescCreate"));
  GEMVJIT_TRY(library_.check(api.desc_set(descriptor_, kDescTransA, &kTransposed, sizeof kTransposed),
                             "cublasLtMatmulDescSetAttribute"));
  GEMVJIT_TRY(library_.check(api.layout_create(&weight_, kTypeBf16, uk, un, k), "cublasLtMatrixLayoutCreate"));
  GEMVJIT_TRY(library_.check(api.layout_create(&x_, kTypeBf16, uk, um, k), "cublasLtMatrixLayoutCreate"));
  GEMVJIT_TRY(library_.check(api.layout_create(&out_, kTypeBf16, un, um, n), "cublasLtMatrixLayoutCreate"));
  Preference preference = nullptr;
  GEMVJIT_TRY(library_.check(api.preference_create(&preference), "cublasLtMatmulPreferenceCreate"));
  const std::uint64_t workspace = kWorkspaceBytes;
  int status = api.preference_set(preference, kPrefMaxWorkspace, &workspace, sizeof workspace);
  found_.resize(kAlgorithms);
  int count = 0;
  if (status == kSuccess) {
    status = api.heuristics(library_.handle_, descriptor_, weight_, x_, out_, out_, preference, kAlgorithms,
                            found_.data(), &count);
  }
  (void)api.preference_destroy(preference);
  found_.resize(static_cast<std::size_t>(status == kSuccess ? count : 0));
  std::erase_if(found_, [](const HeuristicResult& one) { return one.state != kSuccess; });
  if (!found_.empty()) return Status::ok();
  return {StatusCode::unsupported,
          fmt::format("{} names no algorithm for m={} n={} k={} (cublasStatus_t {})", library_.path_, m, n, k, status)};
}

CublasLt::Product::~Product() {
  const cublaslt::Api& api = library_.api_;
  for (cublaslt::Layout layout : {weight_, x_, out_}) {
    if (layout != nullptr) (void)api.layout_destroy(layout);
  }
  if (descriptor_ != nullptr) (void)api.desc_destroy(descriptor_);
}

Status CublasLt::Product::launch(int algorithm, CUdeviceptr x, CUdeviceptr weight, CUdeviceptr out,
                                 CUstream stream) const {
  const float one = 1, zero = 0;
  const auto pointer = [](CUdeviceptr address) { return reinterpret_cast<void*>(address); };
  const cublaslt::HeuristicResult& found = found_[static_cast<std::size_t>(algorithm)];
  return library_.check(library_.api_.matmul(library_.handle_, descriptor_, &one, pointer(weight), weight_, pointer(x),
                                             x_, &zero, pointer(out), out_, pointer(out), out_, &found.algorithm,
                                             pointer(library_.workspace_.address()), kWorkspaceBytes, stream),
                        "cublasLtMatmul");
}

}  // namespace gemvjit::tools
