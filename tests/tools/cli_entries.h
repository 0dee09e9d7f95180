// Entries that a tool takes for kernels of this version, made without a compiler.
#pragma once

#include "cache/store.h"
#include "src/compile/specialize.h"

namespace gemvjit::test {

inline constexpr const char* cli_entry_key = "n64-k4096-nt1-f0000410208848021-sm_90a";

// Of that key with another n.
inline Entry cli_entry(std::int64_t n) {
  KernelKey key = *KernelKey::parse(cli_entry_key);
  key.n = n;
  Entry made;
  made.id = specialize(key)->id();
  made.created_unix_seconds = 1700000000;
  made.cubin.bytes = {1, 2, 3};
  made.cubin.entry_name = "kernel";
  made.cubin.compiler_version = "NVRTC 0.0";
  return made;
}

}  // namespace gemvjit::test
