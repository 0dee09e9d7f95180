// The sources of a kernel as its compiler gets them, written to a folder for people.
//
// Threads: any; processes too, each file being replaced whole.
#pragma once

#include <string>

#include "src/base/status.h"
#include "src/compile/specialize.h"

namespace gemvjit {

// Writes the sources and options.txt to a folder of the kernel's name below `dump_dir`, which is made with mode 0700,
// and gives that folder. cache_not_writable for a dump_dir in which, or on the way to which, others may write, or that
// is reached by another user's link; io_error for all else. Below dump_dir no link is followed: one in the place of a
// folder is refused, one in the place of a file replaced.
Result<std::string> dump_sources(const std::string& dump_dir, const Recipe& recipe);

}  // namespace gemvjit
