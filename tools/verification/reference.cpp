#include "tools/verification/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "tools/verification/number_formats.h"

namespace gemvjit::reference {
namespace {

constexpr double kRounding = 1.0 / 256;         // 2^-8 of the value
constexpr double kAccumulation = 1.0 / 524288;  // 2^-19 of the sum of magnitudes
constexpr double kSiluFactor = 1.2;             // see the header

struct Sums {
  double value = 0, magnitude = 0;
};

// Dot product and sum of magnitudes. Four partial sums: only so that the processor can overlap them.
Sums dot(const double* a, const double* b, std::int64_t k) {
  double value[4] = {}, magnitude[4] = {};
  std::int64_t i = 0;
  for (; i + 4 <= k; i += 4) {
    for (int j = 0; j < 4; ++j) {
      const double product = a[i + j] * b[i + j];
      value[j] += product;
      magnitude[j] += std::fabs(product);
    }
  }
  for (; i < k; ++i) {
    const double product = a[i] * b[i];
    value[0] += product;
    magnitude[0] += std::fabs(product);
  }
  return {value[0] + value[1] + value[2] + value[3], magnitude[0] + magnitude[1] + magnitude[2] + magnitude[3]};
}

double gemv_error(double value, double magnitude) { return kRounding * std::fabs(value) + kAccumulation * magnitude; }

void silu_mul_element(Sums gate_sums, Sums up_sums, double& value, double& bound) {
  const double gate = round_to_bf16(gate_sums.value);
  const double up = round_to_bf16(up_sums.value);
  const double silu = gate / (1 + std::exp(-gate));
  const double gate_error = gemv_error(gate, gate_sums.magnitude);
  const double up_error = gemv_error(up, up_sums.magnitude);
  value = silu * up;
  bound = kSiluFactor * (gate_error * (std::fabs(up) + up_error) + std::fabs(silu) * up_error) +
          kRounding * std::fabs(value);
}

// decode_row(row, out): the weights of a row as float64, without the global scale.
template <typename DecodeRow>
Expected gemv(std::int64_t n, std::int64_t k, double global_scale, const Activations& x, bool silu_mul,
              const DecodeRow& decode_row) {
  const auto m = x.m;
  std::vector<double> tokens(static_cast<std::size_t>(m * k));
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < k; ++j) tokens[i * k + j] = bf16_to_float(x.values[i * x.row_stride + j]);
  }
  std::vector<Sums> sums(static_cast<std::size_t>(m * n));
  parallel_for(n, (m + 2) * k, [&](std::int64_t row) {
    thread_local std::vector<double> weights;
    weights.resize(static_cast<std::size_t>(k));
    decode_row(row, weights.data());
    for (std::int64_t i = 0; i < m; ++i) {
      const Sums s = dot(tokens.data() + i * k, weights.data(), k);
      sums[i * n + row] = {s.value * global_scale, s.magnitude * std::fabs(global_scale)};
    }
  });

  Expected expected;
  expected.m = m;
  expected.columns = silu_mul ? n / 2 : n;
  expected.value.resize(static_cast<std::size_t>(m * expected.columns));
  expected.bound.resize(expected.value.size());
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < expected.columns; ++j) {
      double& value = expected.value[i * expected.columns + j];
      double& bound = expected.bound[i * expected.columns + j];
      const Sums& first = sums[i * n + j];
      if (silu_mul) {
        silu_mul_element(first, sums[i * n + j + expected.columns], value, bound);
      } else {
        value = first.value;
        bound = gemv_error(first.value, first.magnitude);
      }
    }
  }
  return expected;
}

double block_scale(const Nvfp4Weight& weight, std::int64_t row, std::int64_t block) {
  const std::int64_t at =
      weight.layout == ScaleLayout::swizzled ? scale_offset(row, block, weight.k) : row * (weight.k / 16) + block;
  return e4m3_value(weight.scales[at]);
}

void decode_nvfp4_row(const Nvfp4Weight& weight, std::int64_t row, double* out) {
  const std::uint8_t* codes = weight.codes + row * (weight.k / 2);
  for (std::int64_t block = 0; block < weight.k / 16; ++block) {
    const double scale = block_scale(weight, row, block);
    for (std::int64_t k = block * 16; k < block * 16 + 16; ++k) {
      const unsigned byte = codes[k / 2];
      out[k] = e2m1_value(k % 2 == 0 ? byte & 15 : byte >> 4) * scale;
    }
  }
}

}  // namespace

void parallel_for(std::int64_t count, std::int64_t cost, const std::function<void(std::int64_t)>& body) {
  constexpr std::int64_t kWorthAThread = 1 << 20;
  const auto cores = static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  const std::int64_t threads = std::clamp<std::int64_t>(count * cost / kWorthAThread, 1, std::min(cores, count));
  if (threads <= 1) {
    for (std::int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  std::atomic<std::int64_t> next{0};
  const std::int64_t chunk = std::max<std::int64_t>(1, count / (threads * 8));
  auto work = [&] {
    for (std::int64_t begin = next.fetch_add(chunk); begin < count; begin = next.fetch_add(chunk)) {
      for (std::int64_t i = begin; i < std::min(count, begin + chunk); ++i) body(i);
    }
  };
  std::vector<std::thread> workers;
  for (std::int64_t t = 1; t < threads; ++t) workers.emplace_back(work);
  work();
  for (auto& worker : workers) worker.join();
}

Expected nvfp4_gemv(const Nvfp4Weight& weight, const Activations& x, bool silu_mul) {
  return gemv(weight.n, weight.k, weight.global_scale, x, silu_mul,
              [&](std::int64_t row, double* out) { decode_nvfp4_row(weight, row, out); });
}

Expected bf16_gemv(const Bf16Weight& weight, const Activations& x, bool silu_mul) {
  return gemv(weight.n, weight.k, 1.0, x, silu_mul, [&](std::int64_t row, double* out) {
    for (std::int64_t k = 0; k < weight.k; ++k) out[k] = bf16_to_float(weight.values[row * weight.k + k]);
  });
}

std::vector<std::uint16_t> dequantize(const Nvfp4Weight& weight) {
  std::vector<std::uint16_t> out(static_cast<std::size_t>(weight.n * weight.k));
  parallel_for(weight.n, weight.k * 8, [&](std::int64_t row) {
    std::vector<double> values(static_cast<std::size_t>(weight.k));
    decode_nvfp4_row(weight, row, values.data());
    for (std::int64_t k = 0; k < weight.k; ++k) out[row * weight.k + k] = bf16_bits(values[k]);
  });
  return out;
}

std::vector<std::uint8_t> swizzle_scales(std::span<const std::uint8_t> row_major, std::int64_t n, std::int64_t k,
                                         std::uint8_t padding) {
  std::vector<std::uint8_t> out(static_cast<std::size_t>(scale_bytes(n, k)), padding);
  const std::int64_t columns = k / 16;
  for (std::int64_t row = 0; row < n; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      out[scale_offset(row, column, k)] = row_major[row * columns + column];
    }
  }
  return out;
}

Comparison compare(const Expected& expected, std::span<const std::uint16_t> got) {
  Comparison result;
  if (got.size() != expected.value.size()) {
    result.within_bounds = false;
    result.first_bad = fmt::format("got {} elements, expected {}", got.size(), expected.value.size());
    return result;
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double value = bf16_to_float(got[i]);
    const double want = expected.value[i];
    bool good = true;
    if (std::isnan(want) || std::isnan(value)) {
      good = std::isnan(want) && std::isnan(value);
    } else if (std::isinf(want)) {  // of an Inf in x; its bound says nothing
      good = value == want;
    } else {
      const double error = std::fabs(value - want);
      good = error <= expected.bound[i];
      if (error > 0) result.worst = std::max(result.worst, error / expected.bound[i]);
    }
    if (good) continue;
    if (result.bad++ == 0) {
      const auto columns = static_cast<std::size_t>(expected.columns);
      result.first_bad = fmt::format("[m {}, n {}]: got {} (0x{:04X}), expected {} +- {}", i / columns, i % columns,
                                     value, got[i], want, expected.bound[i]);
    }
  }
  result.within_bounds = result.bad == 0;
  return result;
}

}  // namespace gemvjit::reference
