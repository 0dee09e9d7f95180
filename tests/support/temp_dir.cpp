#include "tests/support/temp_dir.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace gemvjit::test {
namespace fs = std::filesystem;

TempDir::TempDir() : owner_(getpid()) {
  std::error_code error;
  std::string pattern = (fs::temp_directory_path(error) / "gemvjit-test-XXXXXX").string();
  if (error || mkdtemp(pattern.data()) == nullptr) {
    std::perror(("cannot make a temporary folder like " + pattern).c_str());
    std::abort();
  }
  path_ = pattern;
}

TempDir::~TempDir() {
  if (getpid() != owner_) return;
  if (testing::Test::HasFailure()) {
    std::fprintf(stderr, "kept for inspection: %s\n", path_.c_str());
    return;
  }
  std::error_code error;
  // A test may have taken permissions away; without them its folders could not be emptied.
  for (fs::recursive_directory_iterator it(path_, fs::directory_options::skip_permission_denied, error), end;
       !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->is_directory(ignored) && !it->is_symlink(ignored)) {
      fs::permissions(it->path(), fs::perms::owner_all, fs::perm_options::add, ignored);
    }
  }
  fs::remove_all(path_, error);
}

std::string TempDir::path(std::string_view name) const { return path_ + "/" + std::string(name); }

std::string TempDir::write(std::string_view name, std::string_view content) const {
  const std::string target = path(name);
  std::error_code error;
  fs::create_directories(fs::path(target).parent_path(), error);
  std::ofstream file(target, std::ios::binary | std::ios::trunc);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  if (!file) ADD_FAILURE() << "cannot write " << target;
  return target;
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    ADD_FAILURE() << "cannot read " << path;
    return "";
  }
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace gemvjit::test
