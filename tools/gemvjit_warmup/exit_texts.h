// The exit codes of gemvjit-warmup: see tools/common/exit_code_text.h.
#pragma once

#include "tools/common/exit_code_text.h"

namespace gemvjit::tools {

inline constexpr ExitCodeText exit_texts[] = {
    {0, "done; --check: all kernels are warm"},
    {2,
     "a bad option, variable, shape, target, plan or tuning table; a model that is damaged or lies about its sizes; "
     "nothing was done"},
    {3, "some kernels could not be built"},
    {4,
     "no shapes found: a model folder that is absent, has no *.safetensors, or no linear layer that a kernel serves"},
    {5,
     "no NVRTC, a target that NVRTC does not know, no GPU where the target was to be the GPU's own, a driver that "
     "fails; stdout or the file of --plan-out not written"},
    {6, "the cache cannot be written and something had to be"},
    {7, "--check: an entry is damaged"},
    {8, "--remote-required: the remote cache failed in some way; all kernels are ready all the same"},
    {9,
     "--check: some kernels are missing, or their files cannot be read or not be trusted (error says \"unreadable\" "
     "and why); --max-seconds: some were not begun"},
    {130, "SIGINT, SIGTERM or SIGHUP: what was finished is kept, run again to go on"},
};

}  // namespace gemvjit::tools
