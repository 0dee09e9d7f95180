// The exit codes of gemvjit-verify: see tools/common/exit_code_text.h.
#pragma once

#include "tools/common/exit_code_text.h"

namespace gemvjit::tools {

inline constexpr ExitCodeText exit_texts[] = {
    {0, "all results within bounds; also where there is no supported GPU and nothing was run"},
    {2, "a bad option; a checkpoint that is damaged or cannot be read"},
    {3, "a result out of bounds, or a kernel that could not be built"},
    {4, "no such checkpoint, or no linear layer in it"},
    {5, "no NVRTC, a driver or device that fails; stdout not written"},
};

}  // namespace gemvjit::tools
