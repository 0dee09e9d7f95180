#include "tests/support/nvdisasm.h"

#include <glob.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "tests/support/temp_dir.h"

namespace gemvjit::test {

std::string find_nvdisasm() {
  if (const char* named = std::getenv("NVDISASM"); named != nullptr && access(named, X_OK) == 0) return named;
  const std::string source = GEMVJIT_SOURCE_DIR;
  for (const std::string& pattern : {source + "/build/deps/cuda/nvidia/*/bin/nvdisasm",
                                     std::string("/usr/local/cuda*/bin/nvdisasm"), std::string("/usr/bin/nvdisasm")}) {
    glob_t matches{};
    std::string found;
    if (glob(pattern.c_str(), 0, nullptr, &matches) == 0 && access(matches.gl_pathv[0], X_OK) == 0) {
      found = matches.gl_pathv[0];
    }
    globfree(&matches);
    if (!found.empty()) return found;
  }
  return {};
}

std::string disassemble(const std::string& nvdisasm, const Bytes& cubin) {
  const TempDir dir;
  if (!publish_file(dir.path(), "kernel.cubin", cubin.data(), cubin.size())) return {};
  const std::string command = "'" + nvdisasm + "' '" + dir.path() + "/kernel.cubin' 2>/dev/null";
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  std::string listing;
  std::array<char, 65536> buffer;
  while (const std::size_t size = fread(buffer.data(), 1, buffer.size(), pipe)) listing.append(buffer.data(), size);
  return pclose(pipe) == 0 ? listing : std::string();
}

}  // namespace gemvjit::test
