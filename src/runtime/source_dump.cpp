#include "src/runtime/source_dump.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>
#include <system_error>

#include "cache/root_safety.h"
#include "src/base/descriptor.h"
#include "src/base/files.h"
#include "src/base/write_access.h"

namespace gemvjit {
namespace {

Status failure(const char* doing, const std::string& path) {
  const int error = errno;
  return {StatusCode::io_error, fmt::format("cannot {} {}: {}", doing, path, std::generic_category().message(error))};
}

struct Folder {
  Descriptor fd;
  std::string path;  // for messages
};

Result<Folder> examined(Folder folder) {
  if (!folder.fd.is_open()) return failure("open the folder", folder.path);
  struct stat info {};
  if (::fstat(folder.fd.get(), &info) != 0) return failure("examine", folder.path);
  const std::string danger = who_else_may_write(folder.fd.get(), info, {.user = ::geteuid()});
  if (!danger.empty()) return Status(StatusCode::io_error, fmt::format("{} is not used: {}", folder.path, danger));
  return folder;
}

Result<Folder> open_dump_dir(const std::string& path) {
  GEMVJIT_TRY(check_output_folder(path));
  GEMVJIT_TRY(make_directories(path));
  GEMVJIT_TRY(check_output_folder(path));
  return examined({Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), path});
}

Result<Folder> open_below(const Folder& parent, const std::string& name) {
  const std::string path = parent.path + "/" + name;
  if (::mkdirat(parent.fd.get(), name.c_str(), 0700) != 0 && errno != EEXIST) return failure("make the folder", path);
  constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  return examined({Descriptor(::openat(parent.fd.get(), name.c_str(), flags)), path});
}

// Under a name of its own first, then in the place of whatever has the name: no link is followed, and of two processes
// that write the same kernel's sources one's file is there whole.
Status write_file(const Folder& folder, const std::string& name, const std::string& text) {
  const std::string path = folder.path + "/" + name, temporary = temporary_file_name(0);
  constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const int fd = ::openat(folder.fd.get(), temporary.c_str(), flags, 0644);
  if (fd < 0) return failure("make", path);
  std::FILE* const file = ::fdopen(fd, "w");
  if (file == nullptr) ::close(fd);
  bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr) written = std::fclose(file) == 0 && written;
  if (written && ::renameat(folder.fd.get(), temporary.c_str(), folder.fd.get(), name.c_str()) == 0) {
    return Status::ok();
  }
  const Status status = failure("write", path);
  (void)::unlinkat(folder.fd.get(), temporary.c_str(), 0);
  return status;
}

// `name`: "options.txt" or "kernels/device/ptx.cuh", of the library's own sources.
Status write_below(const Folder& folder, std::string_view name, const std::string& text) {
  const std::size_t slash = name.find('/');
  if (slash == name.npos) return write_file(folder, std::string(name), text);
  GEMVJIT_TRY_ASSIGN(const Folder below, open_below(folder, std::string(name.substr(0, slash))));
  return write_below(below, name.substr(slash + 1), text);
}

}  // namespace

Result<std::string> dump_sources(const std::string& dump_dir, const Recipe& recipe) {
  GEMVJIT_TRY_ASSIGN(const Folder root, open_dump_dir(dump_dir));
  GEMVJIT_TRY_ASSIGN(const Folder folder, open_below(root, recipe.key.text()));
  std::string options;
  for (const std::string& option : recipe.options) options += option + "\n";
  GEMVJIT_TRY(write_below(folder, "options.txt", options));
  for (const SourceFile& source : recipe.sources) GEMVJIT_TRY(write_below(folder, source.name, source.text));
  return folder.path;
}

}  // namespace gemvjit
