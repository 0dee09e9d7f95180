// ShapeSources: the cases of a run, from --shape, --shapes-file and --model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/gemvjit_tune/tune_case.h"

namespace gemvjit::tools {

struct CaseList {
  std::vector<TuneCase> cases;  // each once, in the order in which they were first asked for
  std::size_t refused = 0;      // shapes of a file or a model that no kernel serves
  std::string first_refusal;
};

struct CaseRequest {
  std::vector<std::string> shapes;        // "NxK" or "NxK:silu"
  std::vector<std::string> shapes_files;  // {"models": [{"layers_by_tp": {"tp1": [{"layer", "N", "K"}, ...]}}]}
  std::vector<std::string> models;        // folders with safetensors
  std::vector<int> tensor_parallel = {1, 2, 4, 8};  // of shapes_files
  std::vector<Family> families = {Family::nvfp4_gemv, Family::bf16_gemv};
  std::vector<int> nt = {1, 2, 4};
};

// Layers of a file that are called gate_up count twice, plain and with silu_mul. A layer of a model counts for the
// family that it is stored in, if that is asked for. invalid_argument for a --shape that is misspelt or that no kernel
// serves, and for a file that is not of this form; not_found for a file or model that is not there.
Result<CaseList> make_cases(const CaseRequest& request);

}  // namespace gemvjit::tools
