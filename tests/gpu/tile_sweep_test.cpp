// Random problems over tile configurations: splits over warps and clusters, several rows and groups of rows, pipeline
// depths, several row groups a CTA, x in shared memory, all variants, all moments of releasing dependents;
// for each both families, silu_mul, every nt, PDL on and off.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "kernels/shared/gemv_geometry.h"
#include "tests/support/gpu_fixture.h"

namespace gemvjit {

// How a test's parameter is shown.
void PrintTo(const TileConfig& tile, std::ostream* out) {
  for (const TileField& field : tile_fields()) *out << field.name << "=" << tile.*field.member << " ";
}

}  // namespace gemvjit

namespace gemvjit::test {
namespace {

// In this order; the rest as given by name.
TileConfig tile(unsigned warps_k, unsigned warps_n, unsigned cluster_k, unsigned row_tiles, unsigned stages,
                unsigned release = 0) {
  TileConfig config;
  config.warps_k = warps_k;
  config.warps_n = warps_n;
  config.cluster_k = cluster_k;
  config.row_tiles = row_tiles;
  config.stages = stages;
  config.release = release;
  return config;
}

TileConfig in_rounds(TileConfig config, unsigned rounds) {
  config.rounds = rounds;
  return config;
}
// x in shared memory, at most 8 KiB << x_path at a time, or (kXRing) step by step beside the weights.
TileConfig staged(TileConfig config, unsigned x_path) {
  config.x_path = x_path;
  return config;
}
// The ring of weights in shared memory.
TileConfig async(TileConfig config, unsigned min_ctas = 1) {
  config.variant = 1;
  config.min_ctas = min_ctas;
  return config;
}

TileConfig wgmma(TileConfig config, unsigned x_path) {
  config.variant = kWgmmaVariant;
  config.x_path = x_path;
  return config;
}

// How N fits the tiles. ragged: not at all. whole_tiles: no row is missing, but 128 does not divide N (nor its halves
// with silu_mul). bands: 128 does, so that NVFP4 tiles take rows of four neighbourhoods.
enum class Rows { ragged, whole_tiles, bands };

// K fits no tile either. The ring in shared memory needs K in multiples of 32 for NVFP4; the BF16 K is a multiple of 8
// only.
ProblemShape sweep_shape(gemvjit_family family, bool silu_mul, Rows rows) {
  const std::int64_t plain = rows == Rows::ragged ? 184 : rows == Rows::whole_tiles ? 320 : 640;
  const std::int64_t gate_up = rows == Rows::ragged ? 144 : rows == Rows::whole_tiles ? 640 : 768;
  const std::int64_t k = family == GEMVJIT_BF16_GEMV ? 1512 : rows == Rows::ragged ? 1520 : 1504;
  return {family, 32, silu_mul ? gate_up : plain, k, silu_mul};
}

struct Sweep {
  TileConfig tile;
  Rows rows;
};
void PrintTo(const Sweep& sweep, std::ostream* out) { PrintTo(sweep.tile, out); }

class TileSweepTest : public GpuTest, public testing::WithParamInterface<Sweep> {
 protected:
  // Compiles everything at once, on many threads; the contexts of one nt then find it in the cache.
  static void compile_all() {
    GpuContext context(&GetParam().tile);
    for (const gemvjit_family family : {GEMVJIT_NVFP4_GEMV, GEMVJIT_BF16_GEMV}) {
      for (const bool silu_mul : {false, true}) {
        for (const bool pdl : {false, true}) context.add(sweep_shape(family, silu_mul, GetParam().rows), 0, pdl);
      }
    }
    ASSERT_TRUE(context.warm());
  }
};

TEST_P(TileSweepTest, FamiliesFlagsNtAndPdl) {
  ASSERT_NO_FATAL_FAILURE(compile_all());
  std::uint64_t seed = 1;
  for (const gemvjit_family family : {GEMVJIT_NVFP4_GEMV, GEMVJIT_BF16_GEMV}) {
    for (const bool silu_mul : {false, true}) {
      const ProblemShape shape = sweep_shape(family, silu_mul, GetParam().rows);
      const HostProblem full = random_problem(shape, seed++, 0xFF);
      const reference::Expected expected = full.expected();
      for (const int nt : {1, 2, 4}) {
        GpuContext context(&GetParam().tile);
        context.add(shape, nt, true);
        context.add(shape, nt, false);
        ASSERT_TRUE(context.warm());
        for (const int m : {1, 2, 3, 8 * nt - 1, 8 * nt}) {
          const HostProblem problem = first_tokens(full, m);
          const reference::Expected part = first_tokens(expected, m);
          const std::string what = "nt " + std::to_string(nt);
          const auto plain = run_checked(context, problem, part, kPlain, what);
          EXPECT_EQ(plain, run_checked(context, problem, part, kPdl, what)) << what << ": PDL changes bits";
          EXPECT_EQ(plain, run_checked(context, problem, part, kPlain, what)) << what << ": two runs differ";
        }
      }
    }
  }
}

// A shape that cannot have the tile would silently get another one. Needs no device.
class TileSweepShapes : public testing::TestWithParam<Sweep> {};

TEST_P(TileSweepShapes, CanHaveTheTile) {
  for (const Family family : {Family::nvfp4_gemv, Family::bf16_gemv}) {
    for (const bool silu_mul : {false, true}) {
      const ProblemShape shape = sweep_shape(static_cast<gemvjit_family>(family), silu_mul, GetParam().rows);
      for (const int nt : {1, 2, 4}) {
        TileConfig config = GetParam().tile;
        config.row_tiles = std::min(config.row_tiles, 8u / static_cast<unsigned>(nt));
        if (config.x_path == kXDealt && (nt > 1 || family == Family::bf16_gemv)) continue;
        const auto key = make_key({family, shape.n, shape.k, silu_mul, true}, nt, config, true, {90, 'a'});
        EXPECT_TRUE(key) << key.status().message();
      }
    }
  }
}

std::string sweep_text(const testing::TestParamInfo<Sweep>& info) {
  return tile_text(info.param.tile) + (info.param.rows == Rows::bands         ? "bands"
                                       : info.param.rows == Rows::whole_tiles ? "whole"
                                                                              : "");
}

const auto kSweeps = testing::Values(
    Sweep{tile(1, 1, 1, 1, 1), Rows::ragged}, Sweep{tile(8, 1, 1, 1, 4), Rows::ragged},
    Sweep{tile(16, 1, 1, 1, 4), Rows::ragged}, Sweep{tile(4, 4, 1, 1, 2, 1), Rows::ragged},
    Sweep{tile(2, 8, 1, 1, 8), Rows::ragged}, Sweep{tile(8, 1, 2, 1, 4), Rows::ragged},
    Sweep{tile(4, 2, 4, 1, 2, 1), Rows::ragged}, Sweep{tile(8, 1, 8, 1, 1), Rows::ragged},
    Sweep{tile(4, 2, 1, 2, 4), Rows::ragged}, Sweep{tile(4, 1, 2, 4, 2), Rows::ragged},
    Sweep{tile(3, 5, 1, 1, 3, 1), Rows::ragged}, Sweep{tile(16, 1, 8, 2, 4, 1), Rows::ragged},
    // Rows in bands; several row groups a CTA, evenly and not; staged x, whole and in chunks.
    Sweep{tile(8, 1, 1, 1, 2), Rows::bands}, Sweep{tile(3, 2, 2, 2, 2), Rows::bands},
    Sweep{in_rounds(tile(4, 1, 1, 1, 2), 3), Rows::ragged}, Sweep{in_rounds(tile(4, 2, 1, 2, 2), 5), Rows::bands},
    Sweep{in_rounds(tile(2, 1, 2, 1, 3), 2), Rows::bands}, Sweep{staged(tile(4, 1, 1, 1, 1), 4), Rows::bands},
    Sweep{staged(tile(2, 2, 1, 1, 1), 2), Rows::ragged}, Sweep{staged(tile(2, 2, 2, 2, 1), 1), Rows::bands},
    Sweep{staged(in_rounds(tile(4, 2, 1, 1, 1), 3), 4), Rows::bands},
    Sweep{staged(in_rounds(tile(1, 4, 1, 1, 2), 4), 2), Rows::bands},
    // Scales of rows that are no whole bands, from round to round.
    Sweep{in_rounds(tile(4, 1, 1, 1, 2), 2), Rows::whole_tiles},
    Sweep{in_rounds(tile(2, 2, 1, 2, 2), 3), Rows::whole_tiles},
    Sweep{async(in_rounds(tile(4, 1, 1, 2, 2), 5)), Rows::whole_tiles},
    // The ring in shared memory.
    Sweep{async(tile(8, 1, 1, 1, 3)), Rows::bands}, Sweep{async(tile(16, 1, 1, 1, 2), 2), Rows::bands},
    Sweep{async(tile(1, 1, 1, 1, 1)), Rows::bands}, Sweep{async(tile(5, 3, 1, 1, 5)), Rows::bands},
    Sweep{async(tile(4, 2, 4, 1, 10)), Rows::bands}, Sweep{async(in_rounds(tile(4, 2, 1, 2, 2), 3)), Rows::bands},
    Sweep{staged(async(in_rounds(tile(8, 2, 1, 1, 2), 2), 2), 3), Rows::bands},
    Sweep{staged(async(tile(4, 1, 2, 2, 2)), 3), Rows::bands},
    Sweep{staged(async(in_rounds(tile(2, 4, 2, 1, 2), 3)), 1), Rows::bands},
    // x through that ring too.
    Sweep{staged(async(tile(8, 1, 1, 1, 2)), kXRing), Rows::bands},
    Sweep{staged(async(tile(1, 1, 1, 1, 1)), kXRing), Rows::bands},
    Sweep{staged(async(tile(5, 1, 1, 1, 3), 2), kXRing), Rows::bands},
    Sweep{staged(async(in_rounds(tile(4, 2, 1, 2, 1), 3)), kXRing), Rows::bands},
    Sweep{staged(async(in_rounds(tile(2, 1, 4, 2, 5), 2)), kXRing), Rows::bands},
    // Dealt x, for one and two tokens; whole rows of tokens take the other way of the same kernel.
    Sweep{staged(tile(4, 2, 1, 1, 2), kXDealt), Rows::ragged},
    Sweep{staged(tile(3, 1, 2, 2, 1, 2), kXDealt), Rows::bands},
    Sweep{staged(async(tile(8, 1, 1, 1, 3, 2)), kXDealt), Rows::bands},
    Sweep{staged(async(in_rounds(tile(4, 2, 1, 2, 2), 3)), kXDealt), Rows::whole_tiles},
    // wgmma, x whole and in chunks.
    Sweep{wgmma(tile(2, 4, 1, 1, 2, 2), 4), Rows::bands}, Sweep{wgmma(tile(1, 8, 1, 2, 2), 4), Rows::whole_tiles},
    Sweep{wgmma(in_rounds(tile(1, 4, 2, 1, 3), 3), 3), Rows::bands},
    Sweep{wgmma(in_rounds(tile(2, 4, 4, 2, 2), 2), 2), Rows::bands},
    Sweep{wgmma(in_rounds(tile(1, 16, 1, 1, 2), 2), 2), Rows::bands},
    Sweep{wgmma(tile(4, 4, 1, 1, 1, 1), 3), Rows::bands});

INSTANTIATE_TEST_SUITE_P(Tiles, TileSweepTest, kSweeps, sweep_text);
INSTANTIATE_TEST_SUITE_P(Tiles, TileSweepShapes, kSweeps, sweep_text);

}  // namespace
}  // namespace gemvjit::test
