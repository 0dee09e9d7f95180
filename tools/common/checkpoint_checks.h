// What is wrong with a checkpoint although its files are whole: claims that its tensors do not keep, global scales, bad
// scale bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "tools/common/checkpoint_modules.h"
#include "tools/common/quant_config.h"

namespace gemvjit::tools {

// invalid_argument for a weight that is FP8 although the checkpoint says that it is NVFP4: names the tensor, what was
// expected and what was found.
Status check_claims(const std::vector<CheckpointModule>& modules, const QuantConfig& quantization);

struct FormatCounts {
  std::size_t nvfp4 = 0, unquantized = 0, other = 0;
  bool multiplier = false, reciprocal = false;         // kinds of global scales seen
  std::vector<std::string> excluded_but_quantized;     // modules that the list excludes and that are NVFP4
  std::vector<std::string> claimed_but_not_quantized;  // BF16 although the checkpoint says NVFP4
};
FormatCounts count_formats(const std::vector<const CheckpointModule*>& modules, const QuantConfig& quantization);

// The global scales of the parts of one matrix that an engine merges. Reads 4 bytes each.
struct GlobalScales {
  std::vector<float> values;  // of the parts, as stored
  bool is_equal = true;
  double ratio = 1;  // largest / smallest; 0 where one is 0, negative or no number
};
Result<GlobalScales> read_global_scales(const std::vector<const CheckpointModule*>& parts);

// E4M3 bytes that are NaN (0x7f, 0xff) among the scales of a module. Reads its scales, in pieces of 1 MiB.
struct NanScan {
  std::uint64_t bytes = 0, nan = 0;
  std::uint64_t first_row = 0, first_column = 0;  // of the first NaN, in the scale tensor
};
Result<NanScan> scan_scales(const CheckpointModule& module);

}  // namespace gemvjit::tools
