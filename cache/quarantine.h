// The quarantine: where damaged and foreign files of a cache go, out of the way of the next put, for people to look at.
//
//   <root>/v1/quarantine/<16 hex digits: nanoseconds since 1970>-<pid>-<the file's name>
//
// Bounded: a file that is larger than the limit of bytes is not kept at all; after each move the oldest go until the
// rest is within the limits. Several processes at once may exceed them by what each is just moving. Threads and
// processes: any.
#pragma once

#include <cstdint>
#include <string>

#include "cache/entry_guard.h"
#include "cache/root_safety.h"
#include "src/base/folder.h"
#include "src/base/status.h"

namespace gemvjit {

struct QuarantineLimits {
  std::size_t files = 64;
  std::uint64_t bytes = 64u << 20;
};

std::string quarantine_directory(const std::string& root);  // <root>/v1/quarantine

// Where a file was moved to.
struct Quarantined {
  Folder from, to;
  std::string name;  // in `to`
};
// Move the file (not what it links to) there, by a rename. not_found if it is gone; io_error if it is a directory or
// cannot be moved, or the guard refuses a folder: it is then still where it was. The quarantine is made as `trust` has
// it; the file keeps its mode.
Result<Quarantined> quarantine_file(const std::string& root, const std::string& path, CacheTrust trust,
                                    const EntryGuard* guard = nullptr);

struct QuarantineContent {
  std::size_t files = 0;
  std::uint64_t bytes = 0;
};
QuarantineContent quarantine_content(const std::string& root);  // nothing where there is none

// Remove the oldest until the rest is within the limits. What cannot be removed is left, and so is, uncounted, what has
// no name of the form above.
void prune_quarantine(const Folder& quarantine, const QuarantineLimits& limits);

}  // namespace gemvjit
