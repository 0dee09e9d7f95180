// What push, pull and doctor share: the remote cache that the command line or the settings name.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "src/remote/remote_store.h"
#include "tools/gemvjit_cache/commands.h"

namespace gemvjit::tools {

// The remote cache of --remote or of the settings. exit_usage for an address that is none, exit_remote_failed where
// none is named; said on stderr. Warnings of the store are not: the commands say what failed.
ExitCode open_remote(const CacheArguments& arguments, bool write, std::shared_ptr<const Signatures> signatures,
                     std::unique_ptr<RemoteStore>& remote);

// ok for letters, digits and ._-, 1 to 128 of them.
Status check_set_name(const std::string& name);

// push and pull take as long as they take; each request has its own limit.
Deadline no_deadline();

// For doctor: address, libcurl, whether it answers and how fast, and, where the settings ask for writing, whether
// that works. Nothing is asked where none is named.
nlohmann::ordered_json examine_remote();

}  // namespace gemvjit::tools
