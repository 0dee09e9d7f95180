// The flags word of a KernelKey: every field once. Tuning tables parse by `name`, specialize() writes `constant` into
// the generated kernel_config.h, tools print by `name`. A field's value is stored as it is.
//
// X(name, constant, shift, width, default, text). Bits that no field names are zero; make_key() refuses others.
#pragma once

#include <cstdint>
#include <span>

namespace gemvjit {

// clang-format off
#define GEMVJIT_KERNEL_FLAGS(X)                                                                            \
  X(family,    kFamily,    0,  4, 0, "kernel family: 1 nvfp4_gemv, 2 bf16_gemv, 3 dequantize_rows, 4 swizzle_blockscale") \
  X(silu_mul,  kSiluMul,   4,  1, 0, "1: out = silu(gate) * up over the two halves of N")                   \
  X(pdl,       kUsePdl,    5,  1, 0, "1: waits for its predecessor and releases its dependents early")      \
  X(variant,   kVariant,   8,  4, 0, "weights go 0 to registers, 1 by copies to shared memory; 2 as 1, wgmma")\
  X(warps_k,   kWarpsK,   12,  6, 8, "warps of a CTA that split K, 1..16")                                  \
  X(warps_n,   kWarpsN,   18,  5, 1, "groups of warps of a CTA over N, 1..16")                              \
  X(cluster_k, kClusterK, 23,  4, 1, "CTAs of a cluster that split K, 1, 2, 4 or 8")                        \
  X(row_tiles, kRowTiles, 27,  4, 1, "16-row MMA tiles of a warp over N: 1, 2 or 4")                        \
  X(stages,    kStages,   31,  4, 4, "steps of weights a warp keeps in flight, 1..8 (variant 1, 2: 15)")    \
  X(x_path,    kXPath,    35,  3, 0, "x: 0 to registers; 1..4 staged, 8 KiB << x_path a time; 5 ring; 6 dealt") \
  X(release,   kRelease,  38,  2, 0, "dependents released: 0 first, 1 last, 2 once whole staged x is there") \
  X(rounds,    kRounds,   40,  6, 1, "row groups a CTA works through, one after another, 1..63")            \
  X(min_ctas,  kMinCtas,  46,  4, 1, "CTAs that an SM's registers must have room for, 1..8")            \
  X(segments,  kScaleSegments, 50, 1, 0, "1: up to 8 ranges of rows, each with its own global scale")
// clang-format on

struct FlagField {
  const char* name;      // in JSON, in tools
  const char* constant;  // in kernel_config.h
  int shift;
  int width;
  unsigned default_value;
  const char* text;
};

std::span<const FlagField> flag_fields();
// All bits that belong to some field.
std::uint64_t named_flag_bits();

// One constant a field, for code that names it: flag_field::warps_k.
namespace flag_field {
#define X(name, constant, shift, width, default_value, text) \
  inline constexpr FlagField name{#name, #constant, shift, width, default_value, text};
GEMVJIT_KERNEL_FLAGS(X)
#undef X
}  // namespace flag_field

constexpr unsigned get_flag(std::uint64_t flags, const FlagField& field) {
  return static_cast<unsigned>(flags >> field.shift) & ((1u << field.width) - 1);
}
// Requires value < 2^width.
constexpr std::uint64_t set_flag(std::uint64_t flags, const FlagField& field, unsigned value) {
  const std::uint64_t mask = ((std::uint64_t{1} << field.width) - 1) << field.shift;
  return (flags & ~mask) | (std::uint64_t{value} << field.shift & mask);
}

}  // namespace gemvjit
