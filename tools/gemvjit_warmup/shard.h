// A shard of a run: the kernels split over ranks, so that together they build each once and one waits for no other.
//
// The distinct kernels, sorted by key text, are numbered from 0; shard I of N has those whose number leaves I when
// divided by N. So all ranks that are told the same shapes agree without a word, and sizes are spread evenly.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "gemvjit/gemvjit.h"

namespace gemvjit::tools {

struct Shard {
  int index = 0, count = 1;  // 0 <= index < count
};

// "2/8"; nothing for anything but 0 <= I < N <= 4096.
std::optional<Shard> parse_shard(std::string_view text);

// The problems of a shard's kernels: each has one kernel. A problem that is malformed, and so has none, is kept in
// every shard, to be reported. `problems` is what all ranks are told, in any order; texts that they point to are
// shared.
std::vector<gemvjit_problem> problems_of_shard(gemvjit_context* context, const std::vector<gemvjit_problem>& problems,
                                               const Shard& shard);

}  // namespace gemvjit::tools
