#include "tools/common/checkpoint_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "tools/common/printable.h"
#include "tools/common/regular_file.h"

namespace gemvjit::tools {
namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 20;

// A part of a tensor's data.
Status read_part(const RegularFile& file, const Tensor& tensor, std::uint64_t begin, void* out, std::size_t size) {
  const std::uint64_t offset = tensor.file_offset + begin;
  if (file.read_at(offset, out, size)) return {};
  return {StatusCode::io_error, fmt::format("cannot read {} bytes at {} of {}", size, offset, tensor.file)};
}

// Little-endian, as in the file.
Result<float> read_float(const Tensor& tensor) {
  if (tensor.dtype != "F32" || tensor.bytes != 4) {
    return Status(StatusCode::invalid_argument, fmt::format("{}: is {} {}, expected one F32", printable(tensor.name),
                                                            printable(tensor.dtype), tensor.shape_text()));
  }
  unsigned char bytes[4];
  GEMVJIT_TRY_ASSIGN(const RegularFile file, RegularFile::open(tensor.file));
  GEMVJIT_TRY(read_part(file, tensor, 0, bytes, sizeof bytes));
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i) word |= std::uint32_t{bytes[i]} << (8 * i);
  return std::bit_cast<float>(word);
}

bool is_nan_e4m3(unsigned char byte) { return (byte & 0x7f) == 0x7f; }

}  // namespace

Status check_claims(const std::vector<CheckpointModule>& modules, const QuantConfig& quantization) {
  for (const CheckpointModule& module : modules) {
    const Tensor& weight = *module.weight;
    if (!weight.dtype.starts_with("F8_") || weight.shape.size() != 2) continue;
    if (quantization.algorithm_for(module.name) != "NVFP4") continue;
    return {StatusCode::invalid_argument,
            fmt::format("{}: tensor '{}': {} says NVFP4: expected U8 [{}, {}/2] with weight_scale F8_E4M3 [{}, {}/16], "
                        "found {} {}: an FP8 export; export it anew, or correct the algorithm or the list of excluded "
                        "modules",
                        weight.file, printable(weight.name), quantization.source, weight.shape[0], weight.shape[1],
                        weight.shape[0], weight.shape[1], printable(weight.dtype), weight.shape_text())};
  }
  return {};
}

FormatCounts count_formats(const std::vector<const CheckpointModule*>& modules, const QuantConfig& quantization) {
  FormatCounts counts;
  for (const CheckpointModule* module : modules) {
    if (!module->why_not.empty()) {
      ++counts.other;
    } else if (module->type == WeightType::nvfp4) {
      ++counts.nvfp4;
      (module->reciprocal ? counts.reciprocal : counts.multiplier) = true;
      if (quantization.is_excluded(module->name)) counts.excluded_but_quantized.push_back(module->name);
    } else {
      ++counts.unquantized;
      if (quantization.algorithm_for(module->name) == "NVFP4") counts.claimed_but_not_quantized.push_back(module->name);
    }
  }
  return counts;
}

Result<GlobalScales> read_global_scales(const std::vector<const CheckpointModule*>& parts) {
  GlobalScales scales;
  for (const CheckpointModule* part : parts) {
    GEMVJIT_TRY_ASSIGN(const float value, read_float(*part->global_scale));
    scales.values.push_back(value);
  }
  const bool is_sound =
      std::all_of(scales.values.begin(), scales.values.end(), [](float v) { return std::isfinite(v) && v > 0; });
  if (!is_sound) {
    scales.is_equal = false;
    scales.ratio = 0;
    return scales;
  }
  const auto [least, most] = std::minmax_element(scales.values.begin(), scales.values.end());
  scales.is_equal = *least == *most;
  scales.ratio = static_cast<double>(*most) / static_cast<double>(*least);
  return scales;
}

Result<NanScan> scan_scales(const CheckpointModule& module) {
  const Tensor& tensor = *module.scale;
  const auto columns = static_cast<std::uint64_t>(tensor.shape[1]);
  GEMVJIT_TRY_ASSIGN(const RegularFile file, RegularFile::open(tensor.file));
  NanScan scan{.bytes = tensor.bytes};
  std::vector<unsigned char> piece(std::min<std::uint64_t>(piece_bytes, tensor.bytes));
  for (std::uint64_t done = 0; done < tensor.bytes; done += piece.size()) {
    piece.resize(std::min<std::uint64_t>(piece_bytes, tensor.bytes - done));
    GEMVJIT_TRY(read_part(file, tensor, done, piece.data(), piece.size()));
    for (std::size_t i = 0; i < piece.size(); ++i) {
      if (!is_nan_e4m3(piece[i])) continue;
      if (scan.nan++ == 0) {
        scan.first_row = (done + i) / columns;
        scan.first_column = (done + i) % columns;
      }
    }
  }
  return scan;
}

}  // namespace gemvjit::tools
