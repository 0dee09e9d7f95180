#include "tools/gemvjit_warmup/shard.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string>

namespace gemvjit::tools {
namespace {

constexpr int most_shards = 4096;

bool parse_number(std::string_view text, int& number) {
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  return !text.empty() && text.front() != '-' && parsed.ec == std::errc() && parsed.ptr == end;
}

}  // namespace

std::optional<Shard> parse_shard(std::string_view text) {
  const std::size_t slash = text.find('/');
  Shard shard;
  if (slash == std::string_view::npos || !parse_number(text.substr(0, slash), shard.index) ||
      !parse_number(text.substr(slash + 1), shard.count)) {
    return std::nullopt;
  }
  const bool makes_sense = shard.count >= 1 && shard.count <= most_shards && shard.index < shard.count;
  return makes_sense ? std::optional(shard) : std::nullopt;
}

std::vector<gemvjit_problem> problems_of_shard(gemvjit_context* context, const std::vector<gemvjit_problem>& problems,
                                               const Shard& shard) {
  std::map<std::string, gemvjit_problem> kernels;  // by key text, each once
  std::vector<gemvjit_problem> chosen;
  struct One {
    std::map<std::string, gemvjit_problem>* kernels;
    const gemvjit_problem* problem;
  };
  const auto on_planned = [](void* user, const gemvjit_kernel_info* kernel) {
    const One& one = *static_cast<One*>(user);
    gemvjit_problem single = *one.problem;
    single.nt = kernel->nt;
    one.kernels->emplace(kernel->key, single);
    return 0;
  };
  for (const gemvjit_problem& problem : problems) {
    One one{&kernels, &problem};
    if (gemvjit_plan(context, &problem, 1, on_planned, &one) != GEMVJIT_OK) chosen.push_back(problem);
  }
  int number = 0;
  for (const auto& [key, problem] : kernels) {
    if (number++ % shard.count == shard.index) chosen.push_back(problem);
  }
  return chosen;
}

}  // namespace gemvjit::tools
