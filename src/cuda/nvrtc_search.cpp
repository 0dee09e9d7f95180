#include "src/cuda/nvrtc_search.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <climits>
#include <cstdlib>
#include <set>
#include <string_view>

#include "src/base/files.h"
#include "src/base/write_access.h"

namespace gemvjit::cuda {

namespace {

constexpr int parents_beside_library = 5;  // build/<preset>/tools/<tool>/ up to the source tree

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return {};
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_of(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

// The path without links, or the path itself where there is no such file.
std::string real_path(const std::string& path) {
  char* resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  std::string result = resolved;
  std::free(resolved);
  return result;
}

bool is_directory(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool exists(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0;
}

// The numbers in a name, so that "cuda-12.10" is newer than "cuda-12.9".
std::vector<long> version_in(const std::string& name) {
  std::vector<long> numbers;
  for (std::size_t i = 0; i < name.size();) {
    if (std::isdigit(static_cast<unsigned char>(name[i])) == 0) {
      ++i;
      continue;
    }
    char* end = nullptr;
    numbers.push_back(std::strtol(name.c_str() + i, &end, 10));
    i = static_cast<std::size_t>(end - name.c_str());
  }
  return numbers;
}

// Names in a folder that begin with a prefix, the newest version first; empty if there is no such folder.
std::vector<std::string> names_with_prefix(const std::string& directory, std::string_view prefix) {
  const Result<std::vector<std::string>> names = list_directory(directory);
  std::vector<std::string> found;
  if (!names) return found;
  for (const std::string& name : *names) {
    if (name.starts_with(prefix)) found.push_back(name);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const std::string& a, const std::string& b) { return version_in(a) > version_in(b); });
  return found;
}

class CandidateList {
 public:
  void add_file(const std::string& file, const std::string& origin) {
    // A bare name is no path from the current folder.
    const bool is_path = file.find('/') != std::string::npos;
    if (seen_.insert(is_path ? real_path(file) : file).second) candidates_.push_back({file, origin, {}});
  }

  void add_problem(const std::string& place, const std::string& origin, const std::string& problem) {
    candidates_.push_back({place, origin, problem});
  }

  // Every NVRTC in a folder; whether there was one.
  bool add_folder(const std::string& directory, const std::string& origin) {
    bool found = false;
    for (const std::string& name : names_with_prefix(directory, "libnvrtc.so")) {
      if (!is_nvrtc_name(name)) continue;
      found = true;
      add_file(directory + "/" + name, origin);
    }
    return found;
  }

  // The wheels under a folder of Python packages: CUDA 13's share nvidia/cu13, those of CUDA 12 have a folder each.
  void add_wheels(const std::string& packages, const std::string& origin) {
    const std::string nvidia = packages + "/nvidia";
    for (const std::string& name : names_with_prefix(nvidia, "cu")) add_folder(nvidia + "/" + name + "/lib", origin);
  }

  // The wheels of an environment, virtual or conda.
  void add_environment(const std::string& prefix, const std::string& origin) {
    for (const char* lib : {"/lib", "/lib64"}) {
      for (const std::string& python : names_with_prefix(prefix + lib, "python3")) {
        add_wheels(prefix + lib + "/" + python + "/site-packages", origin);
      }
    }
  }

  // A toolkit's own folders.
  void add_toolkit(const std::string& root, const std::string& origin) {
    add_folder(root + "/lib64", origin);
    add_folder(root + "/lib", origin);
    for (const std::string& target : names_with_prefix(root + "/targets", "")) {
      add_folder(root + "/targets/" + target + "/lib", origin);
    }
  }

  std::vector<NvrtcCandidate> take() { return std::move(candidates_); }

 private:
  std::vector<NvrtcCandidate> candidates_;
  std::set<std::string> seen_;
};

void add_named(const std::string& named, CandidateList& list) {
  const std::string origin = "GEMVJIT_NVRTC";
  if (is_directory(named)) {
    const std::size_t end = named.find_last_not_of('/');
    const std::string folder = end == std::string::npos ? named : named.substr(0, end + 1);
    if (!list.add_folder(folder, origin)) list.add_problem(named, origin, "the folder holds no libnvrtc.so*");
  } else if (named.find('/') != std::string::npos && !exists(named)) {
    list.add_problem(named, origin, "no such file or folder");
  } else {
    list.add_file(named, origin);  // a bare name is the loader's to find
  }
}

// One that the engine (often by way of a framework) has loaded, whatever the path or the scope that it came in by.
void add_already_loaded(CandidateList& list) {
  std::vector<std::string> loaded;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        const std::string file = info->dlpi_name == nullptr ? "" : info->dlpi_name;
        if (is_nvrtc_name(name_of(file))) static_cast<std::vector<std::string>*>(data)->push_back(file);
        return 0;
      },
      &loaded);
  for (const std::string& file : loaded) list.add_file(file, "already loaded");
}

// Whether only those may write to a folder who are trusted already: root, this user, and the owner of the library's own
// folder, whose code is running.
bool is_private(const std::string& path, uid_t library_owner) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return false;
  const auto trusts = [&](uid_t user) { return who_else_may_write(path, info, {.user = user}).empty(); };
  return trusts(geteuid()) || trusts(library_owner);
}

// The first that is not private of a file and the folders between it and `top`; "" if all are.
std::string exposed_below(const std::string& top, const std::string& file, uid_t library_owner) {
  for (std::string path = file; path.size() > top.size(); path = parent_of(path)) {
    if (!is_private(path, library_owner)) return path;
  }
  return {};
}

// The library in site-packages/<engine>/lib, in an environment's lib, or in a build folder whose dependencies were
// fetched into deps/cuda. A folder that others may write to (such as /tmp) is none to load code from, nor to look
// above; nor is a library below it that others could have written.
void add_beside_library(const std::string& library_directory, CandidateList& list) {
  const std::string origin = "beside the library";
  std::string directory = library_directory;
  struct stat own {};
  if (stat(directory.c_str(), &own) != 0) return;
  for (int i = 0; i <= parents_beside_library && !directory.empty() && directory != "/"; ++i) {
    if (!is_private(directory, own.st_uid)) return;
    CandidateList found;
    found.add_wheels(directory, origin);
    found.add_wheels(directory + "/deps/cuda", origin);
    found.add_wheels(directory + "/build/deps/cuda", origin);
    if (i == 1) found.add_environment(directory, origin);
    for (const NvrtcCandidate& candidate : found.take()) {
      const std::string exposed = exposed_below(directory, candidate.file, own.st_uid);
      if (exposed.empty()) {
        list.add_file(candidate.file, origin);
      } else {
        list.add_problem(candidate.file, origin, exposed + " may be written by others");
      }
    }
    directory = parent_of(directory);
  }
}

}  // namespace

bool is_nvrtc_name(const std::string& name) {
  constexpr std::string_view stem = "libnvrtc.so";
  if (!name.starts_with(stem)) return false;
  const std::string_view rest = std::string_view(name).substr(stem.size());
  if (rest.empty()) return true;
  return rest.size() > 1 && rest.front() == '.' && rest.find_first_not_of(".0123456789") == std::string_view::npos;
}

std::vector<NvrtcCandidate> nvrtc_candidates(const NvrtcSearch& search) {
  CandidateList list;
  if (!search.gemvjit_nvrtc.empty()) {
    add_named(search.gemvjit_nvrtc, list);
    return list.take();
  }
  add_already_loaded(list);
  if (!search.library_directory.empty()) add_beside_library(search.library_directory, list);
  if (!search.virtual_env.empty()) list.add_environment(search.virtual_env, "VIRTUAL_ENV");
  if (!search.conda_prefix.empty()) {
    list.add_environment(search.conda_prefix, "CONDA_PREFIX");
    list.add_toolkit(search.conda_prefix, "CONDA_PREFIX");
  }
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) list.add_file(name, "loader's path");
  if (!search.cuda_home.empty()) list.add_toolkit(search.cuda_home, "CUDA_HOME");
  if (!search.toolkits_parent.empty()) {
    // Plain "cuda" is the one that the administrator chose; then the newest first.
    list.add_toolkit(search.toolkits_parent + "/cuda", search.toolkits_parent);
    for (const std::string& name : names_with_prefix(search.toolkits_parent, "cuda-")) {
      list.add_toolkit(search.toolkits_parent + "/" + name, search.toolkits_parent);
    }
  }
  return list.take();
}

NvrtcSearch nvrtc_search_from_environment() {
  const auto variable = [](const char* name) -> std::string {
    const char* value = ::secure_getenv(name);
    return value == nullptr ? "" : value;
  };
  NvrtcSearch search;
  search.gemvjit_nvrtc = variable("GEMVJIT_NVRTC");
  search.virtual_env = variable("VIRTUAL_ENV");
  search.conda_prefix = variable("CONDA_PREFIX");
  search.cuda_home = variable("CUDA_HOME");
  // This function is in the library, or in the executable where the library was linked statically. The loader's name
  // for an executable is whatever it was started by; /proc knows the file.
  Dl_info info{};
  link_map* object = nullptr;
  const int known =
      dladdr1(reinterpret_cast<void*>(&nvrtc_candidates), &info, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP);
  const bool is_library = known != 0 && object != nullptr && object->l_name != nullptr && object->l_name[0] != '\0';
  search.library_directory = parent_of(real_path(is_library ? object->l_name : "/proc/self/exe"));
  return search;
}

}  // namespace gemvjit::cuda
