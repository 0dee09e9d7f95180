// ProblemList: the command line's shapes and models, times targets, nt and pdl, as the library's problems.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gemvjit/gemvjit.h"
#include "tools/common/exit_codes.h"
#include "tools/common/linear_layers.h"
#include "tools/gemvjit_warmup/warmup_options.h"

namespace gemvjit::tools {

struct ProblemList {
  // "" stands for the GPU here: the library knows which of its targets the compiler has. Owns what problems point to,
  // so it is neither copied nor changed.
  std::vector<std::string> archs;
  std::vector<gemvjit_problem> problems;
  // Of --plan: kernels by key, and then no problems.
  std::vector<std::string> keys;
  // Who wants each problem's, or key's, kernels: a shape as typed, a model and its layers, with * for numbers.
  std::vector<std::vector<std::string>> sources;
  std::vector<std::string> notes;              // what was left out and why, for stderr
  std::vector<nlohmann::ordered_json> models;  // what is told of each --model, for --json

  ProblemList() = default;
  ProblemList(const ProblemList&) = delete;
  ProblemList& operator=(const ProblemList&) = delete;
};

// exit_done, or the exit code and the reason in `error`. Compiles nothing; opens NVRTC only to say, of a target that
// is misspelt, what it supports.
ExitCode make_problem_list(gemvjit_context* context, const WarmupOptions& options, ProblemList& list,
                           std::string& error);

const char* family_name(int family);  // "nvfp4_gemv"

}  // namespace gemvjit::tools
