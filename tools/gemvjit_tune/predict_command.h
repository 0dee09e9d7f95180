// gemvjit-tune --predict: a table for a chip that is not here, from one that was measured (prediction.h has the rules).
#pragma once

#include "tools/gemvjit_tune/tune_options.h"

namespace gemvjit::tools {

// Writes options.output, which is replaced unless it holds something measured. An exit code.
int predict_command(const TuneOptions& options);

}  // namespace gemvjit::tools
