// The part of cuBLASLt's C interface that is called here, so that building needs no cuBLAS header and running no
// cuBLAS. Names, types and values are those of NVIDIA's cuBLAS documentation (docs.nvidia.com/cuda/cublas, "Using the
// cuBLASLt API" and, for the data types, "cudaDataType_t"); they have been the same in CUDA 12 and 13. tests/measure
// compares them with cublasLt.h where that is installed.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace gemvjit::tools::cublaslt {

using Handle = void*;      // cublasLtHandle_t
using Descriptor = void*;  // cublasLtMatmulDesc_t
using Layout = void*;      // cublasLtMatrixLayout_t
using Preference = void*;  // cublasLtMatmulPreference_t

inline constexpr int kSuccess = 0;              // CUBLAS_STATUS_SUCCESS
inline constexpr int kTypeFloat = 0;            // CUDA_R_32F
inline constexpr int kTypeBf16 = 14;            // CUDA_R_16BF
inline constexpr int kComputeFloat = 68;        // CUBLAS_COMPUTE_32F
inline constexpr std::int32_t kTransposed = 1;  // CUBLAS_OP_T
inline constexpr int kDescTransA = 3;           // CUBLASLT_MATMUL_DESC_TRANSA, int32
inline constexpr int kPrefMaxWorkspace = 1;     // CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64

struct Algorithm {  // cublasLtMatmulAlgo_t
  std::uint64_t data[8];
};
struct HeuristicResult {  // cublasLtMatmulHeuristicResult_t
  Algorithm algorithm;
  std::size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};

struct Api {
  int (*create)(Handle*) = nullptr;
  int (*destroy)(Handle) = nullptr;
  std::size_t (*get_version)() = nullptr;
  int (*desc_create)(Descriptor*, int compute_type, int scale_type) = nullptr;
  int (*desc_destroy)(Descriptor) = nullptr;
  int (*desc_set)(Descriptor, int attribute, const void* value, std::size_t size) = nullptr;
  int (*layout_create)(Layout*, int type, std::uint64_t rows, std::uint64_t columns, std::int64_t ld) = nullptr;
  int (*layout_destroy)(Layout) = nullptr;
  int (*preference_create)(Preference*) = nullptr;
  int (*preference_destroy)(Preference) = nullptr;
  int (*preference_set)(Preference, int attribute, const void* value, std::size_t size) = nullptr;
  int (*heuristics)(Handle, Descriptor, Layout a, Layout b, Layout c, Layout d, Preference, int asked,
                    HeuristicResult* results, int* found) = nullptr;
  int (*matmul)(Handle, Descriptor, const void* alpha, const void* a, Layout a_layout, const void* b, Layout b_layout,
                const void* beta, const void* c, Layout c_layout, void* d, Layout d_layout, const Algorithm*,
                void* workspace, std::size_t workspace_bytes, CUstream) = nullptr;
};

}  // namespace gemvjit::tools::cublaslt
