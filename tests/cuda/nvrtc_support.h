// What the tests of the search and of the loading share: folders with fake libraries, and the real NVRTC if there is
// one.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "src/cuda/nvrtc_search.h"
#include "tests/support/temp_dir.h"

namespace gemvjit::cuda {

// Copies a library to dir/name, with the folders on the way, and returns its path.
inline std::string place(const test::TempDir& dir, const std::string& name, const std::string& library) {
  const std::filesystem::path target = dir.path(name);
  std::filesystem::create_directories(target.parent_path());
  std::filesystem::copy_file(library, target);
  return target.string();
}

// A search that looks nowhere, for a test to fill. (The loader's path and the process itself are always looked at.)
inline NvrtcSearch search_nowhere() {
  NvrtcSearch search;
  search.toolkits_parent.clear();
  return search;
}

inline NvrtcSearch search_named(const std::string& file_or_folder) {
  NvrtcSearch search = search_nowhere();
  search.gemvjit_nvrtc = file_or_folder;
  return search;
}

// The candidates without those that depend on the machine and on which tests ran before in this process.
inline std::vector<NvrtcCandidate> own_candidates(const NvrtcSearch& search) {
  std::vector<NvrtcCandidate> own;
  for (NvrtcCandidate& candidate : nvrtc_candidates(search)) {
    if (candidate.origin != "already loaded" && candidate.origin != "loader's path")
      own.push_back(std::move(candidate));
  }
  return own;
}

// This machine's NVRTC, or why there is none. Not one that is loaded already, since that may be a fake.
inline Result<std::shared_ptr<const NvrtcApi>> real_nvrtc() {
  std::string tried;
  for (const NvrtcCandidate& candidate : nvrtc_candidates(nvrtc_search_from_environment())) {
    if (candidate.origin == "already loaded") continue;
    auto loaded = load_nvrtc(search_named(candidate.file), 0, "run this test");
    if (loaded) return loaded;
    tried += "\n" + loaded.status().message();
  }
  return Status(StatusCode::no_compiler, "no NVRTC on this machine:" + tried);
}

}  // namespace gemvjit::cuda
