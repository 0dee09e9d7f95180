#include "tools/gemvjit_verify/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <set>
#include <tuple>

#include "tools/common/printable.h"
#include "tools/verification/number_formats.h"

namespace gemvjit::tools {
namespace {

Result<std::vector<std::uint8_t>> read_tensor(const Tensor& tensor) {
  std::ifstream file(tensor.file, std::ios::binary);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(tensor.bytes));
  file.seekg(static_cast<std::streamoff>(tensor.file_offset));
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file)
    return Status(StatusCode::io_error, fmt::format("{}: cannot read {}", tensor.file, printable(tensor.name)));
  return bytes;
}

template <typename T>
T element(const std::vector<std::uint8_t>& bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

double half_to_double(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const double magnitude = exponent == 31  ? (fraction != 0 ? std::nan("") : HUGE_VAL)
                           : exponent == 0 ? std::ldexp(fraction, -24)
                                           : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

double element_as_double(const Tensor& tensor, const std::vector<std::uint8_t>& bytes, std::size_t index) {
  if (tensor.dtype == "F32") return element<float>(bytes, index);
  if (tensor.dtype == "F16") return half_to_double(element<std::uint16_t>(bytes, index));
  return reference::bf16_to_float(element<std::uint16_t>(bytes, index));
}

std::vector<std::uint8_t> cast_to_bf16(const Tensor& tensor, std::vector<std::uint8_t> bytes) {
  if (tensor.dtype == "BF16") return bytes;
  const std::size_t count = bytes.size() / (tensor.dtype == "F32" ? 4 : 2);
  std::vector<std::uint8_t> cast(count * 2);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint16_t bits = reference::bf16_bits(element_as_double(tensor, bytes, i));
    std::memcpy(cast.data() + i * 2, &bits, 2);
  }
  return cast;
}

std::string served(const gemvjit_context* context, WeightType type, std::int64_t n, std::int64_t k) {
  gemvjit_problem problem;
  (void)gemvjit_problem_init(&problem, type == WeightType::nvfp4 ? GEMVJIT_NVFP4_GEMV : GEMVJIT_BF16_GEMV, n, k);
  if (gemvjit_device_arch(context) == nullptr) problem.arch = "sm_90a";  // rules of shape are every target's
  char reason[512] = "";
  return gemvjit_supported(context, &problem, reason, sizeof(reason)) == GEMVJIT_OK ? "" : reason;
}

}  // namespace

Result<Checkpoint> Checkpoint::open(const std::string& path, const gemvjit_context* context) {
  Checkpoint checkpoint;
  GEMVJIT_TRY_ASSIGN(checkpoint.tensors_, read_model(path));
  checkpoint.layers_ = find_linear_layers(checkpoint.tensors_, [&](WeightType type, std::int64_t n, std::int64_t k) {
                         return served(context, type, n, k);
                       }).layers;
  if (checkpoint.layers_.empty()) {
    return Status(StatusCode::not_found, fmt::format("{}: no linear layer that a GEMV serves", path));
  }
  return checkpoint;
}

const Tensor* Checkpoint::find(const std::string& name) const {
  const auto place = std::lower_bound(tensors_.begin(), tensors_.end(), name,
                                      [](const Tensor& tensor, const std::string& key) { return tensor.name < key; });
  return place != tensors_.end() && place->name == name ? &*place : nullptr;
}

Result<LayerWeights> Checkpoint::load(const LinearLayer& layer) const {
  LayerWeights weights;
  weights.layer = layer;
  const Tensor* weight = find(layer.name);
  if (weight == nullptr) return Status(StatusCode::not_found, fmt::format("no tensor {}", printable(layer.name)));
  GEMVJIT_TRY_ASSIGN(weights.weight, read_tensor(*weight));
  if (layer.type == WeightType::bf16) {
    weights.weight = cast_to_bf16(*weight, std::move(weights.weight));
    return weights;
  }
  const Tensor* scale = find(layer.name + "_scale");
  const Tensor* global = find(layer.name + "_scale_2");
  if (scale == nullptr || global == nullptr) {
    return Status(StatusCode::not_found, fmt::format("{} has no scales beside it", printable(layer.name)));
  }
  GEMVJIT_TRY_ASSIGN(weights.row_scales, read_tensor(*scale));
  if (global->dtype != "F32" && global->dtype != "BF16" && global->dtype != "F16") {
    return Status(StatusCode::unsupported, fmt::format("{} is {}: F32, BF16 and F16 are read", printable(global->name),
                                                       printable(global->dtype)));
  }
  GEMVJIT_TRY_ASSIGN(const std::vector<std::uint8_t> bytes, read_tensor(*global));
  weights.global_scale = static_cast<float>(element_as_double(*global, bytes, 0));
  return weights;
}

std::vector<LinearLayer> one_of_each_shape(const std::vector<LinearLayer>& layers) {
  std::set<std::tuple<WeightType, std::int64_t, std::int64_t>> seen;
  std::vector<LinearLayer> chosen;
  for (const LinearLayer& layer : layers) {
    if (seen.insert({layer.type, layer.n, layer.k}).second) chosen.push_back(layer);
  }
  return chosen;
}

gemvjit_family family_of(const LinearLayer& layer) {
  return layer.type == WeightType::nvfp4 ? GEMVJIT_NVFP4_GEMV : GEMVJIT_BF16_GEMV;
}

}  // namespace gemvjit::tools
