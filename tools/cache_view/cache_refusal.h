// Whether the library would use a cache folder, asked as it asks.
#pragma once

#include <string>

#include "cache/entry.h"
#include "cache/entry_guard.h"
#include "src/base/status.h"

namespace gemvjit::tools {

// The folder that the settings of this process name; "" for none.
std::string default_cache_folder();

// ok, or why a context here would keep kernels in memory only: what check_cache_root says of the folder under the
// cache_trust of this process's settings. ok too for "" and where the settings cannot be read: others say so.
Status check_cache_folder(const std::string& folder);

// With which guard a context here reads what is below its cache folder.
EntryGuard guard_of_cache();
// With which trust a tool writes below a root: that of the settings; shared for one that only a process with that trust
// would use, so that what this one makes there does not lock the others out.
CacheTrust trust_of_root(const std::string& root);
// With which guard a tool works below a root: that of trust_of_root(), or anyone's where the library would not use it.
EntryGuard guard_of_root(const std::string& root);

// The same for an entry's file that is there, in the cache folder or in a layer that is one: whether its owner and
// mode, and those of the folders between it and the root, let the library read it. What is no regular file is no matter
// of trust, but for its folders.
enum class EntryPlace { cache, layer };
Status check_entry_file(const std::string& root, const EntryId& id, EntryPlace place);

}  // namespace gemvjit::tools
