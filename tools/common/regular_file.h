// RegularFile: a file that the user named, opened once and read in parts. Links are followed: model folders are often made
// of links into a download cache, and so are mounted ConfigMaps. Never blocks on a FIFO.
//
// Threads: any; a file is one thread's at a time only while it is opened and closed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/base/descriptor.h"
#include "src/base/status.h"

namespace gemvjit::tools {

class RegularFile {
 public:
  // not_found if there is no such file, io_error if it cannot be opened, invalid_argument if it is no regular file.
  static Result<RegularFile> open(const std::string& path);

  std::uint64_t bytes() const { return bytes_; }
  // Exactly `size` bytes from `offset`; false if there are fewer, or they cannot be read.
  bool read_at(std::uint64_t offset, void* out, std::size_t size) const;

  // A whole file; in addition to open(): invalid_argument if it has more than `limit` bytes.
  static Result<std::string> read_all(const std::string& path, std::uint64_t limit);

 private:
  RegularFile(int fd, std::uint64_t bytes) : file_(fd), bytes_(bytes) {}

  Descriptor file_;
  std::uint64_t bytes_;
};

}  // namespace gemvjit::tools
