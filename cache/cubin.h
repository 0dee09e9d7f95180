// Cubin: what the compiler made, with what it reported about it. Plain data; any room above may include it.
#pragma once

#include <cstdint>
#include <string>

#include "src/base/files.h"

namespace gemvjit {

// From the assembler's own report of the entry function.
struct KernelResources {
  std::uint32_t registers = 0;          // per thread
  std::uint32_t static_smem_bytes = 0;  // per CTA, dynamic shared memory not included
  std::uint32_t spill_store_bytes = 0;
  std::uint32_t spill_load_bytes = 0;
  std::uint32_t stack_bytes = 0;  // per thread
  bool operator==(const KernelResources&) const = default;
};

struct Cubin {
  Bytes bytes;                   // the ELF image
  std::string entry_name;        // the one kernel in it
  std::string compiler_version;  // "NVRTC 13.0 (13.0.88)"; provenance, not part of any key
  KernelResources resources;
  bool waits_for_predecessor = false;  // the compiled code executes griddepcontrol.wait
  std::uint32_t compile_ms = 0;        // 0: not known
};

}  // namespace gemvjit
