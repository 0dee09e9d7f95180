// The entry that comes closest to a kernel which is not there, and in what it differs: what explain and a failed check
// tell.
//
// Pure but for list_known_entries. Threads: any.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cache/entry.h"

namespace gemvjit::tools {

struct Difference {
  std::string field;  // "n", "k", "nt", a flag's name, "flags" (bits without one), "arch", "recipe"
  std::string wanted, found;
};

// An entry as its name tells of it.
struct KnownEntry {
  KernelKey key;
  std::string digest;  // hex digits: all 64, or the first 16, which are what a file's name has
  std::string path;
};

// In the order in which a key is read. The digest covers the key, so it says something of its own, that the recipe is
// another (kernel sources, options or entry format), only where the keys are alike: then the only one is "recipe".
// Empty for the wanted kernel itself.
std::vector<Difference> differences(const EntryId& wanted, const KnownEntry& found);

struct Nearest {
  std::size_t index = 0;  // of the entries
  std::vector<Difference> differences;
};
// The fewest differences; of equals the closest shape, then the first. Nothing where there are no entries.
std::optional<Nearest> find_nearest(const std::vector<KnownEntry>& entries, const EntryId& wanted);

// "recipe: wanted ..., found ... (made of other kernel sources, options or entry format)".
std::string first_difference_text(const Nearest& nearest);

// The entries of a folder with the cache's layout (by their names: no file is read), then of the layers that
// GEMVJIT_CACHE_RO names; those of a bundle are read. A folder or layer that cannot be listed has none.
std::vector<KnownEntry> list_known_entries(const std::string& root);

}  // namespace gemvjit::tools
