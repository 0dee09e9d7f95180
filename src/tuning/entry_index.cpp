#include "src/tuning/entry_index.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "src/catalog/kernel_flags.h"

namespace gemvjit {
namespace {

constexpr std::uint64_t predicted_bit = 1;

// In units of 1e-9, so that shapes that are equally near are so on every machine, whatever the last bit of its log().
std::int64_t rounded(double distance) { return std::llround(distance * 1e9); }

// Sizes of problems that check_problem() accepts: products stay far inside 64 bits.
bool within_factor(std::int64_t a, std::int64_t b) { return a <= kNeighbourFactor * b && b <= kNeighbourFactor * a; }

double log_ratio(std::int64_t a, std::int64_t b) {
  return std::abs(std::log(static_cast<double>(a) / static_cast<double>(b)));
}

double distance_between(const Problem& problem, const TunedEntry& entry) {
  return std::hypot(log_ratio(problem.n, entry.n), log_ratio(problem.k, entry.k));
}

}  // namespace

std::uint64_t EntryIndex::kind_of(Family family, int nt, bool silu_mul) {
  return static_cast<std::uint64_t>(family) << 16 | static_cast<std::uint64_t>(nt) << 8 | (silu_mul ? 2u : 0u);
}

std::size_t EntryIndex::ShapeHash::operator()(const Shape& shape) const {
  std::uint64_t h = static_cast<std::uint64_t>(shape.n) * 0x9E3779B97F4A7C15u;
  h = (h ^ (h >> 29) ^ static_cast<std::uint64_t>(shape.k)) * 0xBF58476D1CE4E5B9u;
  h = (h ^ (h >> 32) ^ shape.kind) * 0x94D049BB133111EBu;
  return static_cast<std::size_t>(h ^ (h >> 31));
}

EntryIndex::EntryIndex(const std::vector<TunedEntry>& entries) {
  exact_.reserve(entries.size());
  for (const TunedEntry& entry : entries) {
    const std::uint64_t kind = kind_of(entry.family, entry.nt, entry.silu_mul);
    exact_.emplace(Shape{entry.n, entry.k, kind | (entry.predicted ? predicted_bit : 0)}, &entry);
    if (!entry.predicted) measured_by_kind_[kind].push_back(&entry);
  }
  for (auto& [kind, group] : measured_by_kind_) {
    std::sort(group.begin(), group.end(),
              [](const TunedEntry* a, const TunedEntry* b) { return std::tie(a->n, a->k) < std::tie(b->n, b->k); });
  }
}

const TunedEntry* EntryIndex::find(const Problem& problem, int nt, bool predicted) const {
  const std::uint64_t kind = kind_of(problem.family, nt, problem.silu_mul) | (predicted ? predicted_bit : 0);
  const auto found = exact_.find({problem.n, problem.k, kind});
  return found == exact_.end() ? nullptr : found->second;
}

Neighbour EntryIndex::nearest(const Problem& problem, int nt, bool silu_mul, const Accept& accept) const {
  const auto found = measured_by_kind_.find(kind_of(problem.family, nt, silu_mul));
  if (found == measured_by_kind_.end()) return {};
  const std::vector<const TunedEntry*>& group = found->second;
  // Only the part of the group whose N is near enough is looked at.
  const auto by_n = [](const TunedEntry* entry, std::int64_t n) { return entry->n < n; };
  const std::int64_t least_n = (problem.n + kNeighbourFactor - 1) / kNeighbourFactor;
  const auto begin = std::lower_bound(group.begin(), group.end(), least_n, by_n);
  const auto end = std::lower_bound(begin, group.end(), problem.n * kNeighbourFactor + 1, by_n);
  std::vector<Neighbour> near;
  for (auto i = begin; i != end; ++i) {
    if (within_factor(problem.k, (*i)->k)) near.push_back({*i, distance_between(problem, **i)});
  }
  // A heap instead of a full sort: the first is taken as a rule.
  const auto is_further = [](const Neighbour& a, const Neighbour& b) {
    const std::int64_t left = rounded(a.distance), right = rounded(b.distance);
    return std::tie(left, a.entry->n, a.entry->k) > std::tie(right, b.entry->n, b.entry->k);
  };
  std::make_heap(near.begin(), near.end(), is_further);
  for (auto last = near.end(); last != near.begin(); --last) {
    if (accept(*near.front().entry)) return near.front();
    std::pop_heap(near.begin(), last, is_further);
  }
  return {};
}

TileConfig adapt_tile(TileConfig tile, std::int64_t from_n, std::int64_t to_n) {
  constexpr double most_rounds = (1u << flag_field::rounds.width) - 1;
  if (tile.rounds > 1) {
    const double scaled = static_cast<double>(tile.rounds) * static_cast<double>(to_n) / static_cast<double>(from_n);
    tile.rounds = static_cast<unsigned>(std::clamp(std::round(scaled), 1.0, most_rounds));
  }
  return tile;
}

}  // namespace gemvjit
