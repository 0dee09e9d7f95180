// Which shapes are served, and the scale layout of those that models have. B115, B127, B128, B137.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "tests/api/api_fixture.h"
#include "tools/verification/number_formats.h"

namespace gemvjit::test {
namespace {

using Shape = std::pair<std::int64_t, std::int64_t>;  // N, K

// Every matrix of tests/tools/fixtures/model_shapes.json, at every tensor parallelism.
std::set<Shape> model_shapes() {
  std::ifstream file(std::string(GEMVJIT_SOURCE_DIR) + "/tests/tools/fixtures/model_shapes.json");
  const nlohmann::json document = nlohmann::json::parse(file);
  std::set<Shape> shapes;
  for (const auto& model : document["models"]) {
    for (const auto& [tp, layers] : model["layers_by_tp"].items()) {
      for (const auto& layer : layers) shapes.emplace(layer["N"], layer["K"]);
    }
  }
  return shapes;
}

// Scales there and back by the reference's own formula; the rest of the swizzled buffer is zero. `swizzled` may be
// spoilt before it is read back.
bool comes_back(std::int64_t n, std::int64_t k, const std::function<void(std::vector<unsigned char>&)>& spoil = {}) {
  const std::int64_t columns = k / 16;
  std::vector<unsigned char> rows(static_cast<std::size_t>(n * columns));
  std::uint32_t state = 1;
  for (unsigned char& scale : rows)
    scale = static_cast<unsigned char>(1 + ((state = state * 1664525 + 1013904223) >> 24) % 255);
  std::vector<unsigned char> swizzled(gemvjit_swizzled_scale_bytes(n, k), 0xEE);
  if (gemvjit_swizzle_blockscale(rows.data(), n, k, swizzled.data(), swizzled.size()) != GEMVJIT_OK) return false;
  if (spoil) spoil(swizzled);
  for (std::int64_t row = 0; row < n; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      unsigned char& scale = swizzled[static_cast<std::size_t>(reference::scale_offset(row, column, k))];
      if (scale != rows[static_cast<std::size_t>(row * columns + column)]) return false;
      scale = 0;
    }
  }
  return std::count(swizzled.begin(), swizzled.end(), 0) == static_cast<std::ptrdiff_t>(swizzled.size());
}

TEST(ModelShapes, ScalesHaveThePaddedSizeAndComeBack) {
  const std::set<Shape> shapes = model_shapes();
  ASSERT_GT(shapes.size(), 200u);
  int padded_rows = 0, padded_columns = 0;
  for (const auto& [n, k] : shapes) {
    const std::int64_t columns = k / 16;
    const std::int64_t size = (n + 127) / 128 * 128 * ((columns + 3) / 4 * 4);
    EXPECT_EQ(gemvjit_swizzled_scale_bytes(n, k), static_cast<std::size_t>(size)) << n << "x" << k;
    padded_rows += n % 128 != 0;
    padded_columns += columns % 4 != 0;
    // Whole bands of 128 rows are like each other: of very many rows two and the rest are enough.
    const std::int64_t rows = n * columns <= (1 << 18) ? n : n % 128 + 256;
    EXPECT_TRUE(comes_back(rows, k)) << rows << " of " << n << "x" << k;
  }
  EXPECT_GT(padded_rows, 30);
  EXPECT_GT(padded_columns, 0);
}

// Negative control, and what lies around a size of 2^31 bytes.
TEST(ModelShapes, AWrongPlaceOrSizeWouldBeSeen) {
  EXPECT_TRUE(comes_back(1960, 2880));
  EXPECT_FALSE(comes_back(1960, 2880, [](auto& bytes) { std::swap(bytes[0], bytes[16]); }));
  EXPECT_FALSE(comes_back(1960, 2880, [](auto& bytes) { bytes.back() = 1; })) << "padding";
  const std::int64_t wrap = std::int64_t{1} << 31;
  for (const std::int64_t n : {(1 << 27) - 128, 1 << 27, (1 << 27) + 128}) {  // K = 256: 16 bytes a row
    EXPECT_EQ(gemvjit_swizzled_scale_bytes(n, 256), static_cast<std::size_t>(wrap + (n - (1 << 27)) * 16));
  }
  EXPECT_EQ(gemvjit_swizzled_scale_bytes((1 << 27) - 1, 256), static_cast<std::size_t>(wrap));
  EXPECT_EQ(gemvjit_swizzled_scale_bytes((1 << 27) + 1, 256), static_cast<std::size_t>(wrap + 128 * 16));
}

class ShapeRules : public ApiTest {};

TEST_F(ShapeRules, EveryModelShapeIsServed) {
  gemvjit_context* context = open();
  for (const auto& [n, k] : model_shapes()) {
    const gemvjit_problem wanted = problem(GEMVJIT_NVFP4_GEMV, n, k);
    char reason[256] = "";
    EXPECT_EQ(gemvjit_supported(context, &wanted, reason, sizeof reason), GEMVJIT_OK)
        << n << "x" << k << ": " << reason;
  }
}

// All that K can be modulo 64, and N modulo 128, at small and at odd sizes, for every nt; with the built-in tables,
// too.
TEST_F(ShapeRules, EveryKInMultiplesOf16AndNInMultiplesOf8HasItsKernels) {
  for (const bool built_in : {false, true}) {
    if (built_in) options.tuning_dir.clear();
    gemvjit_context* context = open();
    for (const std::int64_t k0 : {0, 448, 4096}) {
      for (std::int64_t k = k0 + 16; k <= k0 + 64; k += 16) {
        for (const std::int64_t n0 : {0, 1920}) {
          for (std::int64_t n = n0 + 8; n <= n0 + 128; n += 8) {
            for (const gemvjit_family family : {GEMVJIT_NVFP4_GEMV, GEMVJIT_BF16_GEMV}) {
              gemvjit_problem wanted = problem(family, n, k);
              wanted.silu_mul = n % 32 == 16 ? 1 : 0;
              for (const int nt : {1, 2, 4}) {
                wanted.nt = nt;
                ASSERT_EQ(gemvjit_supported(context, &wanted, nullptr, 0), GEMVJIT_OK)
                    << n << "x" << k << ": " << gemvjit_last_error();
              }
            }
          }
        }
      }
    }
  }
  EXPECT_TRUE(compilers.compiled().empty());
}

// At the time of planning, with the rule; nothing else of the list suffers.
TEST_F(ShapeRules, AnyOtherKIsRefusedWithTheRuleWhenItIsPlanned) {
  gemvjit_context* context = open();
  for (std::int64_t k = 465; k < 480; ++k) {
    const gemvjit_problem bad = problem(GEMVJIT_NVFP4_GEMV, 64, k);
    EXPECT_EQ(gemvjit_supported(context, &bad, nullptr, 0), GEMVJIT_INVALID_SHAPE) << k;
    EXPECT_EQ(gemvjit_plan(context, &bad, 1, nullptr, nullptr), GEMVJIT_INVALID_SHAPE) << k;
    EXPECT_TRUE(last_error_has("K must be a multiple of 16")) << k;
    EXPECT_EQ(gemvjit_check(context, &bad, 1, nullptr, nullptr), GEMVJIT_INVALID_SHAPE) << k;
    EXPECT_EQ(warm(context, {bad}), GEMVJIT_INVALID_SHAPE) << k;
    const auto args = nvfp4_args(1, 64, k);
    EXPECT_EQ(gemvjit_nvfp4_gemv(context, &args, nullptr), GEMVJIT_INVALID_SHAPE) << k;
  }
  EXPECT_TRUE(compilers.compiled().empty());
  EXPECT_TRUE(recording.launches().empty());
}

}  // namespace
}  // namespace gemvjit::test
