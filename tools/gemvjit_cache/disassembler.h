// The vendor's disassembler of cubins, as a program of this machine: finding it, and running it on bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"

namespace gemvjit::tools {

struct Disassembler {
  std::string path;
  std::vector<std::string> arguments;  // before the file's name
};

// GEMVJIT_NVDISASM if it is set, and then nothing else; else nvdisasm, else cuobjdump, each in the folders of PATH, in
// $CUDA_HOME/bin and in /usr/local/cuda*/bin. not_found names all that was looked for.
Result<Disassembler> find_disassembler();

// Runs it on the cubin, which is in a temporary file of this user's alone meanwhile ($TMPDIR, else /tmp), without a
// shell, and hands on what it writes to stdout as it comes; its stderr is this process's. io_error if it cannot be run
// or ends with anything but 0, with its path and how it ended. Once `cancel` is not 0 the program is ended at the next
// look, a few times a second.
Status run_disassembler(const Disassembler& tool, const std::vector<std::uint8_t>& cubin,
                        const std::function<void(std::string_view)>& on_output, const volatile std::int32_t* cancel);

}  // namespace gemvjit::tools
