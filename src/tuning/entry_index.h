// EntryIndex: the entries of one tuning table by shape, and the nearest measured ones of a shape that has none.
//
// Pure. Look-ups are hash or sorted look-ups: tables may hold many thousands of entries, and a warmup asks for each
// kernel of a model. The entries belong to the table, which outlives the index and does not move them. Threads: any,
// once made.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "src/tuning/table_data.h"

namespace gemvjit {

// A measured shape counts as a neighbour only within this factor of N and of K: further away what bounds a kernel
// changes (too few CTAs, a reduction too short to fill the pipeline), and the family's default is the better guess.
inline constexpr std::int64_t kNeighbourFactor = 4;

struct Neighbour {
  const TunedEntry* entry = nullptr;  // nullptr: none
  double distance = 0;                // sqrt(ln(n/n')^2 + ln(k/k')^2)
};

class EntryIndex {
 public:
  explicit EntryIndex(const std::vector<TunedEntry>& entries);

  // The entry of just this shape and nt; nullptr if there is none.
  const TunedEntry* measured(const Problem& problem, int nt) const { return find(problem, nt, false); }
  const TunedEntry* predicted(const Problem& problem, int nt) const { return find(problem, nt, true); }

  // `problem` must pass check_problem(). The nearest measured entry of the same family, nt and `silu_mul` that `accept`
  // takes; of several equally near the one with the smallest n. `accept` is asked in the order of distance.
  using Accept = std::function<bool(const TunedEntry&)>;
  Neighbour nearest(const Problem& problem, int nt, bool silu_mul, const Accept& accept) const;

 private:
  struct Shape {
    std::int64_t n, k;
    std::uint64_t kind;  // see kind_of() in the source
    bool operator==(const Shape&) const = default;
  };
  struct ShapeHash {
    std::size_t operator()(const Shape& shape) const;
  };
  static std::uint64_t kind_of(Family family, int nt, bool silu_mul);
  const TunedEntry* find(const Problem& problem, int nt, bool predicted) const;

  std::unordered_map<Shape, const TunedEntry*, ShapeHash> exact_;                       // measured and predicted
  std::unordered_map<std::uint64_t, std::vector<const TunedEntry*>> measured_by_kind_;  // each sorted by n, then k
};

// The tile of a measured neighbour of `from_n` rows for a problem of `to_n` rows. A kernel whose CTAs work through
// several row groups was tuned to a grid that fits the device, so that the grid is kept and the rounds are scaled.
TileConfig adapt_tile(TileConfig tile, std::int64_t from_n, std::int64_t to_n);

}  // namespace gemvjit
