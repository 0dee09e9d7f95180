// The rows of the catalog: a row per kernel family.
#include <array>

#include "kernels/shared/gemv_geometry.h"
#include "src/catalog/catalog.h"

namespace gemvjit {
namespace {

using namespace std::string_view_literals;

// What NVRTC is given; the compiler reads nothing else, so a list that lacks a file cannot compile.
constexpr std::array kNvfp4Sources = {
    "kernels/nvfp4_gemv.cu"sv,           "kernels/device/nvfp4_weights.cuh"sv, "kernels/device/nvfp4_decode.cuh"sv,
    "kernels/shared/nvfp4_layout.h"sv,   "kernels/shared/gemv_geometry.h"sv,   "kernels/device/types.cuh"sv,
    "kernels/device/ptx_memory.cuh"sv,   "kernels/device/ptx_mma.cuh"sv,       "kernels/device/ptx_cluster.cuh"sv,
    "kernels/device/ptx_pdl.cuh"sv,      "kernels/device/row_map.cuh"sv,       "kernels/device/x_path.cuh"sv,
    "kernels/device/reduce_store.cuh"sv, "kernels/device/gemv_body.cuh"sv,     "kernels/device/gemv_direct.cuh"sv,
    "kernels/device/gemv_async.cuh"sv,   "kernels/device/gemv.cuh"sv,          "kernels/device/x_wgmma.cuh"sv,
    "kernels/device/x_dealt.cuh"sv,      "kernels/device/ptx_warp.cuh"sv,      "kernels/device/ptx_wgmma.cuh"sv,
    "kernels/shared/scale_segments.h"sv,
};
constexpr std::array kBf16Sources = {
    "kernels/bf16_gemv.cu"sv,           "kernels/device/bf16_weights.cuh"sv, "kernels/shared/gemv_geometry.h"sv,
    "kernels/device/types.cuh"sv,       "kernels/device/ptx_memory.cuh"sv,   "kernels/device/ptx_mma.cuh"sv,
    "kernels/device/ptx_cluster.cuh"sv, "kernels/device/ptx_pdl.cuh"sv,      "kernels/device/row_map.cuh"sv,
    "kernels/device/x_path.cuh"sv,      "kernels/device/reduce_store.cuh"sv, "kernels/device/gemv_body.cuh"sv,
    "kernels/device/gemv_direct.cuh"sv, "kernels/device/gemv_async.cuh"sv,   "kernels/device/gemv.cuh"sv,
    "kernels/device/x_wgmma.cuh"sv,     "kernels/device/x_dealt.cuh"sv,      "kernels/device/ptx_warp.cuh"sv,
    "kernels/device/ptx_wgmma.cuh"sv,
};
constexpr std::array kDequantizeSources = {
    "kernels/dequantize_rows.cu"sv,      "kernels/shared/gemv_geometry.h"sv, "kernels/shared/nvfp4_layout.h"sv,
    "kernels/device/types.cuh"sv,        "kernels/device/ptx_memory.cuh"sv,  "kernels/device/ptx_pdl.cuh"sv,
    "kernels/device/nvfp4_decode.cuh"sv,
};

constexpr std::array kSwizzleSources = {
    "kernels/swizzle_blockscale.cu"sv,
    "kernels/shared/gemv_geometry.h"sv,
    "kernels/shared/nvfp4_layout.h"sv,
    "kernels/device/types.cuh"sv,
};

// family, name, short name, entry name, sources, K multiple, N multiple, tokens?, silu_mul?, scale segments?, PDL?
const FamilyRow kFamilies[] = {
    {Family::nvfp4_gemv, "nvfp4_gemv", "nvfp4", "nvfp4_gemv", kNvfp4Sources, kScaleBlockK, kRowsPerHalf, true, true,
     true, true},
    {Family::bf16_gemv, "bf16_gemv", "bf16", "bf16_gemv", kBf16Sources, 8, kRowsPerHalf, true, true, false, true},
    {Family::dequantize_rows, "dequantize_rows", "dequant", "dequantize_rows", kDequantizeSources, kScaleBlockK, 1,
     false, false, false, true},
    {Family::swizzle_blockscale, "swizzle_blockscale", "swizzle", "swizzle_blockscale", kSwizzleSources, kScaleBlockK,
     1, false, false, false, false},
};

constexpr int kNtWithoutTokens[] = {0};

}  // namespace

std::span<const FamilyRow> families() { return kFamilies; }

const FamilyRow& family_row(Family family) { return kFamilies[static_cast<unsigned>(family) - 1]; }

const FamilyRow* find_family(std::string_view name) {
  for (const FamilyRow& row : kFamilies) {
    if (row.name == name || row.short_name == name) return &row;
  }
  return nullptr;
}

std::span<const int> nt_values(Family family) {
  if (family_row(family).has_tokens) return kNtWithTokens;
  return kNtWithoutTokens;
}

}  // namespace gemvjit
