// Files as this project needs them: read whole with a bound, publish whole or not at all.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"

struct stat;

namespace gemvjit {

using Bytes = std::vector<std::uint8_t>;

// The whole content of a regular file of at most `limit` bytes, through one descriptor (opened without following a
// final symbolic link, without blocking on a FIFO). not_found if there is no such file, io_error for all else, a file
// that ended before its own size included.
// With a check, only if it takes the open file (what fstat says of it), before a byte is read; else its failure.
using FileCheck = std::function<Status(int descriptor, const struct stat& info)>;
Result<Bytes> read_file(const std::string& path, std::size_t limit, const FileCheck& check = nullptr);

// Make `directory` and its missing parents with mode 0700, as Folder::make does (folder.h).
Status make_directories(const std::string& directory);

// How the name of a file begins that publish_file is still writing: ".tmp-<pid>-<16 hex digits>".
inline constexpr std::string_view temporary_file_prefix = ".tmp-";
// Another at each call. `attempt` goes in too, so that a source of random numbers that repeats itself still gives one.
std::string temporary_file_name(unsigned attempt);

// How publish_file treats a name that is taken, and the file's mode.
struct PublishOptions {
  bool replace = true;  // else a file that has the name stays: Published::already_there
  mode_t mode = 0;      // whatever the umask; 0: 0644 less the umask
};
enum class Published { whole, already_there };

// Publish bytes as `directory/name`: an exclusive temporary file in the same directory, written, fsynced, read back,
// closed, moved to the name, directory fsynced. Readers see what was there before or the whole new file. On failure the
// temporary is removed. io_error, too, where only the last fsync failed: the file is there then, but may not survive a
// crash of the machine. Without `replace` no other file is lost, but for a file system that can neither link nor rename
// without replacing, where two writers at the same moment may replace each other's.
Result<Published> publish_file(const std::string& directory, const std::string& name, const void* data,
                               std::size_t size, const PublishOptions& options);
Status publish_file(const std::string& directory, const std::string& name, const void* data, std::size_t size);

// "a/b" as {"a", "b"}, "b" as {".", "b"}, "/b" as {"/", "b"}; the name of "a/" is "".
struct SplitPath {
  std::string folder, name;
};
SplitPath split_path(const std::string& path);

// Without the slashes at its end; "/" stays.
std::string without_end_slashes(std::string path);

// "$XDG_CONFIG_HOME/gemvjit", else "$HOME/.config/gemvjit"; "" where neither is absolute, as the XDG specification
// asks.
std::string user_config_folder(const std::string& xdg_config_home, const std::string& home);

// ok if the path leads to nothing or to a regular file: what may be replaced by a rename. io_error for a link, a
// device, a folder: replacing these would do something else than writing there.
Status check_replaceable(const std::string& path);

// Names in a directory in sorted order, without "." and "..". not_found if it is not there.
Result<std::vector<std::string>> list_directory(const std::string& directory);

// Whether nothing can be in it, since it is not there or something else is.
bool is_no_folder(const std::string& path);

Status remove_file(const std::string& path);  // ok if it is not there

}  // namespace gemvjit
