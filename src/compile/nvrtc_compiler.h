// NvrtcCompiler: a recipe becomes a cubin. Never PTX, never a default target, nothing read from disk by the compiler.
//
// Threads: compile() from any number of threads. Memory: a running compile stays below 500 MB; the highest measured is
// 115 MiB (NVRTC 13.0, sm_90a).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cache/cubin.h"
#include "src/base/status.h"
#include "src/compile/specialize.h"
#include "src/cuda/nvrtc_api.h"

namespace gemvjit {

// The seam that tests put a fake behind.
class Compiler {
 public:
  virtual ~Compiler() = default;
  // no_compiler if the target is not among supported(); compile_failed with the compiler's log and the key.
  virtual Result<Cubin> compile(const Recipe& recipe) = 0;
  // "NVRTC 13.0 (13.0.88)", or "NVRTC 13.0" where the file's name does not tell the build.
  virtual std::string version() const = 0;
  // The file that it was loaded from.
  virtual std::string path() const = 0;
  virtual bool supports(const Arch& arch) const = 0;
  virtual std::vector<int> supported_sms() const = 0;
};

std::unique_ptr<Compiler> make_nvrtc_compiler(std::shared_ptr<const cuda::NvrtcApi> nvrtc);

// What the assembler says with -v about `entry_name`; false if the log holds no report of it.
bool parse_ptxas_report(std::string_view log, std::string_view entry_name, KernelResources& resources);
// Whether PTX (what the compiler handed to the assembler) executes griddepcontrol.wait.
bool ptx_waits_for_predecessor(std::string_view ptx);

}  // namespace gemvjit
