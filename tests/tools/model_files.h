// Small model folders for tests: safetensors files made from a list of tensors, or from any header.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gemvjit::test {

struct ModelTensor {
  std::string name, dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t element_bytes = 0;
};

// A whole file: header size, header, data.
inline std::string safetensors_bytes(const std::string& header, std::uint64_t data_bytes) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(header.size() >> (8 * i) & 0xff));
  return bytes + header + std::string(data_bytes, '\0');
}

// The header that describes the tensors one after the other; `data_bytes` gets what they take.
inline nlohmann::json safetensors_header(const std::vector<ModelTensor>& tensors, std::uint64_t& data_bytes) {
  nlohmann::json header{{"__metadata__", {{"format", "pt"}}}};
  data_bytes = 0;
  for (const ModelTensor& tensor : tensors) {
    std::uint64_t bytes = tensor.element_bytes;
    for (const std::int64_t size : tensor.shape) bytes *= static_cast<std::uint64_t>(size);
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {data_bytes, data_bytes + bytes}}};
    data_bytes += bytes;
  }
  return header;
}

inline std::string safetensors_file(const std::vector<ModelTensor>& tensors) {
  std::uint64_t data_bytes = 0;
  const nlohmann::json header = safetensors_header(tensors, data_bytes);
  return safetensors_bytes(header.dump(), data_bytes);
}

// The tensors of an NVFP4 linear layer in ModelOpt's layout.
inline std::vector<ModelTensor> nvfp4_layer(const std::string& module, std::int64_t n, std::int64_t k) {
  return {{module + ".weight", "U8", {n, k / 2}, 1},
          {module + ".weight_scale", "F8_E4M3", {n, k / 16}, 1},
          {module + ".weight_scale_2", "F32", {}, 4}};
}

// What a small encoder holds: an NVFP4 layer, a BF16 layer, biases and norms, an embedding, a tied-free output head.
inline std::vector<ModelTensor> small_model() {
  std::vector<ModelTensor> tensors{{"embeddings.word_embeddings.weight", "BF16", {512, 64}, 2},
                                   {"embeddings.LayerNorm.weight", "BF16", {64}, 2},
                                   {"layer.0.up.bias", "BF16", {128}, 2},
                                   {"lm_head.weight", "BF16", {96, 64}, 2}};
  for (const ModelTensor& tensor : nvfp4_layer("layer.0.up", 128, 64)) tensors.push_back(tensor);
  return tensors;
}

}  // namespace gemvjit::test
