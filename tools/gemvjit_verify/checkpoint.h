// A checkpoint's linear layers with their bytes, as the GEMVs take them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gemvjit/gemvjit.h"
#include "src/base/status.h"
#include "tools/common/linear_layers.h"

namespace gemvjit::tools {

struct LayerWeights {
  LinearLayer layer;
  std::vector<std::uint8_t> weight;  // NVFP4: codes [n, k/2]; BF16: values [n, k], cast where the file has F16 or F32
  std::vector<std::uint8_t> row_scales;  // NVFP4: [n, k/16], as in the file
  float global_scale = 1;                // NVFP4: weight_scale_2
};

class Checkpoint {
 public:
  // The linear layers of a folder (or file) that the library serves; reads headers only. The failures of read_model,
  // and not_found for a model without such layers. `context` answers which shapes are served.
  static Result<Checkpoint> open(const std::string& path, const gemvjit_context* context);

  const std::vector<LinearLayer>& layers() const { return layers_; }
  // Reads one layer's tensors. io_error if the file changed since open().
  Result<LayerWeights> load(const LinearLayer& layer) const;

 private:
  const Tensor* find(const std::string& name) const;

  std::vector<Tensor> tensors_;  // sorted by name
  std::vector<LinearLayer> layers_;
};

// One layer for each distinct (type, n, k), the first by name.
std::vector<LinearLayer> one_of_each_shape(const std::vector<LinearLayer>& layers);

gemvjit_family family_of(const LinearLayer& layer);

}  // namespace gemvjit::tools
