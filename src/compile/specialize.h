// specialize: a key becomes everything that decides the compiled bytes. Pure; needs no NVRTC, no GPU, no file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cache/entry.h"
#include "src/base/sha256.h"
#include "src/base/status.h"

namespace gemvjit {

struct SourceFile {
  std::string name;  // as the kernels include it: "kernels/device/ptx_mma.cuh"
  std::string text;
};

struct Recipe {
  KernelKey key;
  std::string entry_name;            // extern "C", no lowering
  std::vector<SourceFile> sources;   // first: the kernel; then its headers, kernel_config.h last
  std::vector<std::string> options;  // NVRTC's, in order
  Digest digest{};                   // over format version, key, sources, options; nothing of this machine or NVRTC
  EntryId id() const { return {key, digest}; }
};

Result<Recipe> specialize(const KernelKey& key);

// The generated header alone, as `--dump` shows it.
Result<std::string> generate_kernel_config(const KernelKey& key);

}  // namespace gemvjit
