// Files as this project needs them: read whole with a bound, publish whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"

namespace gemvjit {

using Bytes = std::vector<std::uint8_t>;

// The whole content of a regular file of at most `limit` bytes, through one descriptor (opened without following a
// final symbolic link, without blocking on a FIFO). not_found if there is no such file, io_error for all else.
Result<Bytes> read_file(const std::string& path, std::size_t limit);

// Make `directory` and its missing parents with mode 0700. ok if it is there already. io_error names the part that
// could not be made, or that is no directory.
Status make_directories(const std::string& directory);

// How the name of a file begins that publish_file is still writing: ".tmp-<pid>-<16 hex digits>".
inline constexpr std::string_view temporary_file_prefix = ".tmp-";

// Publish bytes as `directory/name`: an exclusive temporary file in the same directory, written, fsynced, renamed over
// the name, directory fsynced. Readers see the old file or the whole new one. On failure the temporary is removed.
// io_error, too, where only the last fsync failed: the file is there then, but may not survive a crash of the machine.
Status publish_file(const std::string& directory, const std::string& name, const void* data, std::size_t size);

// Names in a directory in sorted order, without "." and "..". not_found if it is not there.
Result<std::vector<std::string>> list_directory(const std::string& directory);

Status remove_file(const std::string& path);  // ok if it is not there

}  // namespace gemvjit
