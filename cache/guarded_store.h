// A cache folder that is used only once it is known to be safe (root_safety.h).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cache/root_safety.h"
#include "cache/store.h"

namespace gemvjit {

// `inner` keeps its entries below `root`. A root that is there is examined now. One that is not is examined when it has
// come into being, before anything is read from it: at the first get that finds it there, and at the first put, which
// makes it: whoever else could make it in between may be somebody else. One that is refused is never touched again: one
// warning, kernels are kept in memory, each put answers the reason, and root() and path_of() are "".
//
// Threads: every function from any thread. `check` is check_cache_root of this process, but in tests.
using RootCheck = std::function<Status(const std::string& root)>;
std::unique_ptr<CubinStore> make_guarded_store(std::unique_ptr<CubinStore> inner, std::string root, RootCheck check,
                                               Log log, CacheTrust trust = CacheTrust::owner);
std::unique_ptr<CubinStore> make_guarded_store(std::unique_ptr<CubinStore> inner, std::string root, CacheTrust trust,
                                               Log log);

}  // namespace gemvjit
