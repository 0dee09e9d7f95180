// TempDir: a folder of its own for one test, removed when the test passes and kept (with a line that says where) when
// it failed. Forked children leave it alone: only the process that made it removes it.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace gemvjit::test {

class TempDir {
 public:
  TempDir();  // aborts the test program if no folder can be made
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  // path() + "/" + name; nothing is made.
  std::string path(std::string_view name) const;
  // Write a file below the folder (missing parents are made) and return its path.
  std::string write(std::string_view name, std::string_view content) const;

 private:
  std::string path_;
  pid_t owner_;
};

// A whole file as a string; adds a test failure and returns "" if it cannot be read.
std::string read_text(const std::string& path);
// Replaces what is there.
void write_text(const std::string& path, const std::string& text);

}  // namespace gemvjit::test
