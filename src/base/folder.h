// Folder: an open directory. What is in it is reached through its descriptor and by one name at a time, so that whoever
// may rename things on the way to it cannot lead a later step to another place. A name that is a symbolic link is
// never followed.
//
// Threads: a Folder may be used by several at once. Errors: io_error with the path, but for what is said below.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "src/base/descriptor.h"
#include "src/base/files.h"
#include "src/base/status.h"

namespace gemvjit {

class Folder {
 public:
  // By a path whose way the caller has examined, or that a person named: links on it are followed. Needs no permission
  // but to search the folders. not_found if there is nothing.
  static Result<Folder> open(const std::string& path);
  // The same, but a link is followed only if it is this user's or root's.
  static Result<Folder> open_checked(const std::string& path);
  // The same as open_checked, and what is missing is made (make_folder), with `mode` for each.
  static Result<Folder> make(const std::string& path, mode_t mode);

  // The folder of that name in this one. not_found if there is none; io_error if it is a link or no folder.
  Result<Folder> open_folder(const std::string& name) const;
  // The same, through a link. For places where links are allowed and the caller looks at what was opened.
  Result<Folder> open_folder_through_link(const std::string& name) const;
  // The same as open_folder; if there is none, it is made with just this mode, whatever the umask, and where others are
  // to use it (any mode but 0700) with this folder's group. It gets its name only when it is complete.
  Result<Folder> make_folder(const std::string& name, mode_t mode) const;

  // Of the name itself, not of what it links to. not_found if there is no such name.
  Result<struct stat> examine(const std::string& name) const;
  Result<struct stat> examine() const;            // of the folder
  Result<std::vector<std::string>> list() const;  // sorted, without "." and ".."

  // As ::openat with O_NOFOLLOW and O_CLOEXEC; an errno where it fails.
  Descriptor open_file(const std::string& name, int flags, mode_t mode = 0) const;
  // The whole content of a regular file of at most `limit` bytes, if `check`, where there is one, takes the open file.
  Result<Bytes> read_file(const std::string& name, std::size_t limit, const FileCheck& check = nullptr) const;
  // files.h says what publishing is.
  Result<Published> publish(const std::string& name, const void* data, std::size_t size,
                            const PublishOptions& options) const;

  Status remove(const std::string& name) const;  // a file or link; ok if it is not there
  // A rename, which replaces a file of the new name. not_found if there is no such name here.
  Status move(const std::string& name, const Folder& to, const std::string& new_name) const;

  // Bring what was renamed in it to the disk. ok, too, where the file system cannot do that for a folder.
  Status sync() const;

  const std::string& path() const { return path_; }  // as it was opened by, for messages
  std::string path_of(const std::string& name) const { return path_ == "/" ? "/" + name : path_ + "/" + name; }
  int descriptor() const { return descriptor_.get(); }  // O_PATH: for the ...at() calls

 private:
  Folder(Descriptor descriptor, std::string path) : descriptor_(std::move(descriptor)), path_(std::move(path)) {}
  static Result<Folder> walk(const std::string& path, std::optional<mode_t> mode);
  Result<Folder> open_name(const std::string& name, int flags) const;
  Status make_private(const std::string& name) const;
  Status undo_umask(const std::string& made) const;
  Status make_for_others(const std::string& name, mode_t mode) const;

  Descriptor descriptor_;
  std::string path_;
};

}  // namespace gemvjit
