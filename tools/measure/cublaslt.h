// CublasLt: BF16 GEMMs of NVIDIA's cuBLASLt, opened with dlopen: the other way to compute what our GEMVs compute.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "tools/measure/cublaslt_abi.h"
#include "tools/verification/device_memory.h"
#include "tools/verification/gpu_harness.h"

namespace gemvjit::tools {

// Threads: that in which the device is current. A file that was opened stays open. Ends before the device.
class CublasLt {
 public:
  // The first of `files` that opens and has every function. not_found names what was tried, with the reasons.
  static Result<std::unique_ptr<CublasLt>> open(const GpuHarness& gpu, const std::vector<std::string>& files);
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  std::string version() const;  // "cublasLt 13.1.0"
  const std::string& path() const { return path_; }

  // One product out[m, n] = x[m, k] * weight[n, k]^T, all BF16 row-major without gaps, FP32 sums.
  class Product {
   public:
    ~Product();
    Product(const Product&) = delete;
    Product& operator=(const Product&) = delete;
    // Those that its heuristic names, the one it thinks best first; at most 8.
    int algorithms() const { return static_cast<int>(found_.size()); }
    Status launch(int algorithm, CUdeviceptr x, CUdeviceptr weight, CUdeviceptr out, CUstream stream) const;

   private:
    friend class CublasLt;
    explicit Product(const CublasLt& library) : library_(library) {}
    Status find(std::int64_t n, std::int64_t k, std::int64_t m);
    const CublasLt& library_;
    cublaslt::Descriptor descriptor_ = nullptr;
    cublaslt::Layout weight_ = nullptr, x_ = nullptr, out_ = nullptr;
    std::vector<cublaslt::HeuristicResult> found_;
  };
  // unsupported if cuBLASLt has no algorithm for it.
  Result<std::unique_ptr<Product>> product(std::int64_t n, std::int64_t k, std::int64_t m) const;

 private:
  explicit CublasLt(DeviceBuffer workspace) : workspace_(std::move(workspace)) {}
  Status check(int status, const char* doing) const;
  cublaslt::Api api_;
  cublaslt::Handle handle_ = nullptr;
  std::string path_;
  DeviceBuffer workspace_;
};

}  // namespace gemvjit::tools
