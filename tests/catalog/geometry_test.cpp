// kernels/shared/gemv_geometry.h: how K and N are dealt out, and the bytes of shared memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/shared/gemv_geometry.h"

namespace gemvjit {
namespace {

struct Case {
  long long k;
  int step_k;
  GemvGeometry g;
};

GemvGeometry geometry(int warps_k, int cluster_k, int stages, int variant) {
  return {warps_k, 1, cluster_k, 1, 1, stages, 1, 0, variant};
}

// Many K (with and without a tail, fewer steps than CTAs or warps) times splits.
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int step_k : {kNvfp4StepK, kBf16StepK}) {
    for (const long long k : {16, 64, 128, 464, 1504, 1536, 2688, 2880, 4096, 7168, 14336}) {
      for (const int warps_k : {1, 2, 3, 5, 8, 16}) {
        for (const int cluster_k : {1, 2, 4, 8}) {
          for (const int stages : {1, 3, 4, 8}) {
            for (const int variant : {kDirectVariant, kAsyncVariant}) {
              all.push_back({k, step_k, geometry(warps_k, cluster_k, stages, variant)});
            }
          }
        }
      }
    }
  }
  return all;
}

// A kernel's steps, as its loops name them: rank's share, turn, then the warp's steps of a turn. Those past the share
// or past K do not exist.
TEST(Geometry, SharesAndTurnsCoverEveryStepOnce) {
  for (const Case& one : cases()) {
    const auto steps = static_cast<int>((one.k + one.step_k - 1) / one.step_k);
    const int share = gemv_share_steps(one.k, one.step_k, one.g), turns = gemv_turns(one.k, one.step_k, one.g);
    const int turn_steps = gemv_turn_steps(one.g);
    std::vector<int> seen(static_cast<std::size_t>(steps));
    for (int rank = 0; rank < one.g.cluster_k; ++rank) {
      for (int turn = 0; turn < turns; ++turn) {
        for (int warp = 0; warp < one.g.warps_k; ++warp) {
          for (int l = turn * turn_steps + warp; l < (turn + 1) * turn_steps; l += one.g.warps_k) {
            if (l < share && rank * share + l < steps) ++seen[static_cast<std::size_t>(rank * share + l)];
          }
        }
      }
    }
    ASSERT_EQ(std::count(seen.begin(), seen.end(), 1), steps)
        << "K " << one.k << ", step " << one.step_k << ", warps_k " << one.g.warps_k << ", cluster_k "
        << one.g.cluster_k;
    ASSERT_LT((turns - 1) * turn_steps, share) << "a turn without work";
  }
}

TEST(Geometry, ATurnIsAWarpsRingOrOneStepAWarp) {
  EXPECT_EQ(gemv_turn_steps(geometry(8, 1, 4, kDirectVariant)), 32);
  EXPECT_EQ(gemv_turn_steps(geometry(8, 1, 4, kAsyncVariant)), 8);
}

TEST(Geometry, SharesAreEqualAndNoneIsLargerThanNeeded) {
  for (const Case& one : cases()) {
    const auto steps = static_cast<int>((one.k + one.step_k - 1) / one.step_k);
    const int share = gemv_share_steps(one.k, one.step_k, one.g);
    ASSERT_GE(share * one.g.cluster_k, steps);
    ASSERT_LT((share - 1) * one.g.cluster_k, steps);
  }
}

TEST(Geometry, XChunksKeepToTheBudgetAndToTheShare) {
  for (Case one : cases()) {
    EXPECT_EQ(gemv_x_chunk_turns(one.k, one.step_k, one.g), 0);
    EXPECT_EQ(gemv_x_token_bytes(one.k, one.step_k, one.g), 0);
    for (const int nt : {1, 2, 4}) {
      for (const int x_path : {1, 2, 3, 4}) {
        one.g.nt = nt;
        one.g.x_path = x_path;
        const int turns = gemv_turns(one.k, one.step_k, one.g), chunk = gemv_x_chunk_turns(one.k, one.step_k, one.g);
        const int all_tokens = gemv_turn_steps(one.g) * one.step_k * 2 * nt * 8;  // bytes of a turn
        const int budget = 8192 << x_path;
        ASSERT_LE(chunk, turns);
        ASSERT_LE(chunk * all_tokens, budget);
        if (chunk < turns) {
          ASSERT_GT((chunk + 1) * all_tokens, budget) << "one more turn would have fitted";
        }
        const int token = gemv_x_token_bytes(one.k, one.step_k, one.g);
        ASSERT_GT(token, chunk * all_tokens / (nt * 8)) << "tokens without a gap share banks";
        ASSERT_EQ(token % 16, 0);
      }
    }
  }
}

// The kernel leaves out the check against K where this says no: a chunk that ends past K would be read past x.
TEST(Geometry, XPassesKWhereSomeChunkEndsPastIt) {
  int passing = 0;
  for (Case one : cases()) {
    for (const int x_path : {1, 4}) {
      one.g.x_path = x_path;
      const int chunk = gemv_x_chunk_turns(one.k, one.step_k, one.g), turn_steps = gemv_turn_steps(one.g);
      if (chunk == 0) continue;
      bool passes = false;
      for (int rank = 0; rank < one.g.cluster_k; ++rank) {
        for (int turn = 0; turn < gemv_turns(one.k, one.step_k, one.g); turn += chunk) {
          const int first = rank * gemv_share_steps(one.k, one.step_k, one.g) + turn * turn_steps;
          passes = passes || static_cast<long long>(first + chunk * turn_steps) * one.step_k > one.k;
        }
      }
      passing += passes ? 1 : 0;
      ASSERT_EQ(gemv_x_passes_k(one.k, one.step_k, one.g), passes)
          << "K " << one.k << ", cluster_k " << one.g.cluster_k;
    }
  }
  EXPECT_GT(passing, 0);
}

// A quarter of a warp reads 16 bytes a lane: 4 lanes of each of two tokens. Those of a token lie 32 bytes apart (NVFP4,
// modulo 128) or side by side (BF16); the other token's must lie between or beside them.
TEST(Geometry, TokensOfStagedXBeginInDifferentBanks) {
  for (const int step_k : {kNvfp4StepK, kBf16StepK}) {
    GemvGeometry g = geometry(4, 1, 2, kDirectVariant);
    g.x_path = 4;
    const int token = gemv_x_token_bytes(4096, step_k, g);
    EXPECT_EQ(token % 128, step_k == kNvfp4StepK ? 16 : 64);
  }
}

TEST(Geometry, GroupsAndCtasOverNRoundUp) {
  for (const int warps_n : {1, 2, 3, 8}) {
    for (const int row_tiles : {1, 2, 4}) {
      for (const int rounds : {1, 2, 3, 7, 63}) {
        for (const long long n : {8LL, 16LL, 24LL, 184LL, 1968LL, 2880LL, 57344LL, 1LL << 31}) {
          const GemvGeometry g{1, warps_n, 1, row_tiles, 1, 1, rounds, 0, 0};
          const long long rows = 16LL * warps_n * row_tiles, groups = gemv_row_groups(n, g),
                          ctas = gemv_ctas_over_n(n, g);
          ASSERT_GE(groups * rows, n);
          ASSERT_LT((groups - 1) * rows, n);
          ASSERT_GE(ctas * rounds, groups);
          ASSERT_LT((ctas - 1) * rounds, groups);
          ASSERT_LE(ctas, groups) << "a CTA without a row group";
        }
      }
    }
  }
}

TEST(Geometry, PartialSumsHaveTwoBuffersInRoundsAndATotalInAClusterOnly) {
  GemvGeometry g{8, 2, 1, 2, 2, 4, 1, 0, 0};
  const int once = gemv_partial_bytes(g);
  EXPECT_EQ(once, 8 * (2 * 8) * (2 * 2 * 16 + 4) * 4);
  g.rounds = 5;
  EXPECT_EQ(gemv_partial_bytes(g), 2 * once);
  g.rounds = 1;
  g.cluster_k = 4;
  EXPECT_EQ(gemv_partial_bytes(g), once / 8 * 9);
  g.warps_k = 1;  // its one warp's sums are the CTA's total
  EXPECT_EQ(gemv_partial_bytes(g), once / 8);
}

// Two tokens, whole turns of 2 warps x 3 stages x 128 k, 16 bytes between the tokens, and 64 + 2 x 16 x 4.
TEST(Geometry, DealtXHoldsTwoTokensOfWholeTurns) {
  GemvGeometry g{2, 1, 1, 1, 1, 3, 1, kXDealt, kDirectVariant};
  EXPECT_EQ(gemv_dealt_bytes(1000, kNvfp4StepK, g), 2 * (2 * 768 * 2 + 16) + 64 + 128);
  EXPECT_EQ(gemv_dealt_bytes(100000, kNvfp4StepK, g), 2 * (10 * 768 * 2 + 16) + 64 + 128) << "no more than 8192 k";
  EXPECT_EQ(gemv_x_token_bytes(1000, kNvfp4StepK, g), 0);
  g.x_path = kXDirect;
  EXPECT_EQ(gemv_dealt_bytes(1000, kNvfp4StepK, g), 0);
}

// For every exponent that the largest x of a token can have, Inf's and NaN's among them: x' stays finite where x is, no
// factor is Inf or zero, with the largest scale neither, and a block's sum (16 products of at most 6 * 2^-126 * x')
// times it is what the true sum needs.
TEST(Geometry, DealtXStaysInRangeForEveryExponent) {
  for (int field = 0; field <= 255; ++field) {
    const int up = dealt_up(field), first = up / 2, second = up - first;
    const int exponent = std::min(field, 254) - 127;
    EXPECT_LE(exponent + up, kDealtTopExponent) << field;
    for (const int step : {first, second}) EXPECT_TRUE(step >= -126 && step <= 127) << "2^" << step << " as BF16";
    const float factor = std::ldexp(1.0f, dealt_factor_exponent(first)) * std::ldexp(1.0f, -second);
    EXPECT_TRUE(std::isfinite(factor) && factor > 0) << field;
    EXPECT_TRUE(std::isfinite(factor * 448.0f)) << field;
    EXPECT_EQ(factor * (1.0f / 512) * 512, factor) << field << ": the smallest scale loses nothing";
    EXPECT_EQ(std::ilogb(factor) + up - 126 + 7 + kDealtSpare, 0) << field;
    EXPECT_TRUE(std::isfinite(16 * 6 * std::ldexp(1.0f, -126) * std::ldexp(2.0f, kDealtTopExponent) * (factor * 448)))
        << field;
    EXPECT_TRUE(field < 9 || exponent + up == kDealtTopExponent) << field;
  }
  EXPECT_EQ(dealt_up(255), dealt_up(254)) << "Inf and NaN count as the largest finite exponent";
}

// What a warp's lanes write: 16 bytes a lane and 8 rows of codes and 4 of scales (NVFP4), 2 x 16 bytes (BF16).
TEST(Geometry, TheRingHoldsTheStagesOfEveryWarp) {
  GemvGeometry g{4, 2, 1, 2, 1, 5, 1, 0, kAsyncVariant};
  const int slots = 4 * 2 * 5, half_tiles = 2 * 2;
  EXPECT_EQ(gemv_ring_bytes(kNvfp4StepK, kNvfp4StepK / 2, true, g), slots * half_tiles * 32 * (16 + 4));
  EXPECT_EQ(gemv_ring_bytes(kBf16StepK, kBf16StepK * 2, false, g), slots * half_tiles * 32 * 2 * 16);
  g.variant = kDirectVariant;
  EXPECT_EQ(gemv_ring_bytes(kNvfp4StepK, kNvfp4StepK / 2, true, g), 0);
}

}  // namespace
}  // namespace gemvjit
