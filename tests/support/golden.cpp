#include "tests/support/golden.h"

#include <fmt/format.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace gemvjit {
namespace {

static_assert(std::endian::native == std::endian::little, "the golden files are little-endian");

// The source tree this was built from; on another machine, a checkout that is the current folder.
std::string golden_path(const std::string& relative) {
  static const std::string folder = std::filesystem::exists(GEMVJIT_SOURCE_DIR "/tests/golden/cases.json")
                                        ? GEMVJIT_SOURCE_DIR "/tests/golden/"
                                        : "tests/golden/";
  return folder + relative;
}

template <typename T>
std::vector<T> read(const std::string& relative, std::int64_t count) {
  std::ifstream file(golden_path(relative), std::ios::binary | std::ios::ate);
  if (!file) throw std::runtime_error("cannot read " + golden_path(relative));
  const auto bytes = static_cast<std::int64_t>(file.tellg());
  if (bytes != count * static_cast<std::int64_t>(sizeof(T))) {
    throw std::runtime_error(
        fmt::format("{} has {} bytes, expected {} of {}", golden_path(relative), bytes, count, sizeof(T)));
  }
  std::vector<T> out(static_cast<std::size_t>(count));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(out.data()), bytes);
  if (!file) throw std::runtime_error("cannot read " + golden_path(relative));
  return out;
}

const nlohmann::json& all_cases() {
  static const nlohmann::json cases = [] {
    std::ifstream file(golden_path("cases.json"));
    if (!file) throw std::runtime_error("cannot read " + golden_path("cases.json"));
    return nlohmann::json::parse(file).at("cases");
  }();
  return cases;
}

}  // namespace

reference::Expected GoldenCase::recompute() const {
  return nvfp4 ? reference::nvfp4_gemv(nvfp4_weight(), activations(), silu_mul)
               : reference::bf16_gemv(bf16_weight(), activations(), silu_mul);
}

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& item : all_cases()) names.push_back(item.at("name"));
  return names;
}

GoldenCase load_golden(const std::string& name) {
  for (const auto& item : all_cases()) {
    if (item.at("name") != name) continue;
    GoldenCase c;
    c.name = name;
    c.nvfp4 = item.at("kind") == "nvfp4";
    c.m = item.at("m");
    c.n = item.at("n");
    c.k = item.at("k");
    c.x_stride = item.at("x_stride");
    c.silu_mul = item.at("silu_mul");
    c.global_scale = item.at("global_scale");
    c.x = read<std::uint16_t>(name + "/x.bf16", c.m * c.x_stride);
    if (c.nvfp4) {
      c.codes = read<std::uint8_t>(name + "/weight.u8", c.n * c.k / 2);
      c.scales = read<std::uint8_t>(name + "/weight_scale.u8", (c.n + 127) / 128 * 128 * ((c.k / 16 + 3) / 4 * 4));
      c.row_scales = read<std::uint8_t>(name + "/weight_scale_rowmajor.u8", c.n * (c.k / 16));
      c.dequantized = read<std::uint16_t>(name + "/dequantized.bf16", c.n * c.k);
    } else {
      c.weight = read<std::uint16_t>(name + "/weight.bf16", c.n * c.k);
    }
    c.expected.m = c.m;
    c.expected.columns = c.columns();
    c.expected.value = read<double>(name + "/reference.f64", c.m * c.columns());
    c.expected.bound = read<double>(name + "/bound.f64", c.m * c.columns());
    return c;
  }
  throw std::runtime_error("no golden case " + name);
}

std::vector<std::uint16_t> golden_products() { return read<std::uint16_t>("products.bf16", 256 * 16); }

}  // namespace gemvjit
