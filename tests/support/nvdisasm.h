// The vendor's disassembler, where a machine has it: for tests that look at machine code.
#pragma once

#include <string>

#include "src/base/files.h"

namespace gemvjit::test {

// Path of nvdisasm: NVDISASM, build/deps (tools/setup.sh), a CUDA toolkit, PATH. Empty if there is none.
std::string find_nvdisasm();
// The listing of a cubin; empty if nvdisasm refuses it.
std::string disassemble(const std::string& nvdisasm, const Bytes& cubin);

}  // namespace gemvjit::test
