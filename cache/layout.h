// Every path name of the cache, and how to read it back.
//
//   <root>/v1/<arch>/<first 2>/n<N>-k<K>-nt<NT>-f<flags>-<first 16 hex digits of the digest>.entry
//   <root>/v1/<arch>/<first 2>/.tmp-<pid>-<16 hex digits>    being published; not an entry
//   <root>/v1/quarantine/...                        damaged files: quarantine.h
//   <root>/v1/usage, <root>/v1/builds               usage_ledger.h, build_records.h
//
// The 256 folders of a target keep each short where there are very many entries.
#pragma once

#include <string>
#include <string_view>

#include "cache/entry.h"

namespace gemvjit {

std::string arch_directory(const std::string& root, const Arch& arch);    // <root>/v1/<arch>
std::string entry_directory(const std::string& root, const EntryId& id);  // <root>/v1/<arch>/<first 2>
std::string entry_path(const std::string& root, const EntryId& id);
std::string entry_file_name(const EntryId& id);
bool is_entry_file_name(std::string_view name);
bool is_fan_out_name(std::string_view name);  // two lower-case hex digits
bool is_temporary_file_name(std::string_view name);
std::string version_directory(const std::string& root);  // <root>/v1

}  // namespace gemvjit
