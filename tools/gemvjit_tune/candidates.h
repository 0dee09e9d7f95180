// Which configurations of a case are worth compiling: a broad grid, pruned by plain rules, ranked by a rough model of
// the kernel's time. Which tiles exist at all is the catalog's to say (make_key); nothing here repeats that.
//
// The rules. A configuration is dropped if
//   1. a CTA has fewer than 2 or more than 16 warps that compute;
//   2. K has fewer steps than warps that split it (warps_k * cluster_k), or a smaller `stages` already holds all of a
//      warp's steps;
//   3. it leaves a quarter of the SMs without a CTA though smaller row groups would not (row_tiles, warps_n or rounds
//      above 1);
//   4. it splits K over a cluster though N alone gives each SM a CTA (but for wgmma, whose x a cluster shares out);
//   5. the weights in flight on an SM are less than 8 KiB (or half of all that it reads), or more than 224 KiB;
//   6. x gets twice the shared memory that it needs, or more;
//   7. it needs (an estimate) a tenth more registers than its threads can have, so that it would spill; with min_ctas,
//      which makes the compiler look for another way, six tenths more;
//   8. it multiplies by wgmma with x in chunks though more shared memory would hold it whole.
//
// The model adds up, in microseconds: a fixed cost; the largest of the time to stream the weights and x (with few bytes
// in flight: in proportion less bandwidth), to decode and multiply them (with few warps: in proportion less issue), and
// to wait for a warp's steps one `stages` after another, each for the SM with the most CTAs; adding partial sums up,
// dearer over a cluster. Its constants are those of one H200-like SM and only have to rank: configurations are measured
// before one is chosen.
//
// Pure functions; any thread.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tools/gemvjit_tune/tune_case.h"

namespace gemvjit::tools {

struct Machine {
  Arch arch;
  int sm_count = 0;
};

struct Candidate {
  Configuration configuration;
  double model_us = 0;
};

double model_us(const TuneCase& c, const Machine& machine, const TileConfig& tile);
// Of the weights, on the SM with the most CTAs, by the same estimate.
double in_flight_bytes(const TuneCase& c, const Machine& machine, const TileConfig& tile);
int differing_fields(const TileConfig& a, const TileConfig& b);

// All that the rules leave, pdl on, release 0, best by the model first. They may still be none that the catalog knows.
// Release 1 and 2 and pdl off are tried later, on what did well (neighbours, the search's final).
std::vector<Candidate> enumerate_candidates(const TuneCase& c, const Machine& machine);

// Whether the catalog has a kernel for it on this target.
bool is_valid(const TuneCase& c, const Machine& machine, const Configuration& configuration);

// At most `count` valid ones of `ranked`: by turns the best of each kind (variant, row_tiles, warps_k, x staged or not,
// cluster or not), so that a wrong model cannot hide a whole kind, and the best of all that differ in three fields from
// those picked before (what differs in one is a neighbour, which the search tries where it promises something); then
// the rest.
std::vector<Configuration> pick_diverse(const TuneCase& c, const Machine& machine, const std::vector<Candidate>& ranked,
                                        std::size_t count);

// One step in each field, both ways, valid or not; pdl as it is.
std::vector<Configuration> neighbours(const Configuration& configuration);

// `configuration` of a case with another N, with `rounds` such that an SM gets as many CTAs as there.
Configuration rescale_rounds(const Configuration& configuration, std::int64_t from_n, std::int64_t to_n);

}  // namespace gemvjit::tools
