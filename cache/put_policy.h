// What a put does where a whole entry with the same id is there already. One rule for every store.
#pragma once

#include "cache/entry.h"
#include "cache/store.h"

namespace gemvjit {

enum class PutVerdict {
  unchanged,       // the same code is there: nothing to do
  other_compiler,  // other code, by another compiler version: what is there stays and is served
  nondeterminism,  // other code by the same compiler version, which must not be: an alarm, and what is there stays
  replace,         // other code, or the same under another signature, and the caller asked for it
};

inline PutVerdict judge_put(const Entry& present, const Entry& fresh, Replace replace) {
  const Cubin& old = present.cubin;
  const Cubin& made = fresh.cubin;
  if (old.bytes == made.bytes && old.entry_name == made.entry_name) {
    // The same code, which somebody signed since.
    const bool signed_anew = fresh.signature && fresh.signature != present.signature;
    return signed_anew && replace == Replace::any ? PutVerdict::replace : PutVerdict::unchanged;
  }
  if (replace == Replace::any) return PutVerdict::replace;
  return old.compiler_version == made.compiler_version ? PutVerdict::nondeterminism : PutVerdict::other_compiler;
}

}  // namespace gemvjit
