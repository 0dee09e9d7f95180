#include "src/cuda/nvrtc_api.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

#include "src/base/secure_program.h"
#include "src/cuda/nvrtc_call.h"
#include "src/cuda/nvrtc_search.h"
#include "src/cuda/nvrtc_signals.h"

namespace gemvjit::cuda {

struct NvrtcProbes {
  std::mutex mutex;
  std::map<std::pair<int, char>, bool> known;
};

namespace {

struct Probe {
  nvrtcResult result = NVRTC_SUCCESS;
  std::string log;
};

// Compiles the smallest kernel down to a cubin. The assembler runs, and the front end wants libnvrtc-builtins.
Probe compile_probe(const NvrtcApi& nvrtc, int sm, char suffix) {
  Probe probe;
  const NvrtcCall call;
  if (!call.allowed()) {
    probe.result = NVRTC_ERROR_INTERNAL_ERROR;
    return probe;
  }
  nvrtcProgram program = nullptr;
  const char* source = "extern \"C\" __global__ void probe() {}\n";
  probe.result = nvrtc.nvrtcCreateProgram(&program, source, "probe.cu", 0, nullptr, nullptr);
  if (probe.result != NVRTC_SUCCESS) return probe;
  std::string arch = fmt::format("--gpu-architecture=sm_{}", sm);
  if (suffix != 0) arch.push_back(suffix);
  const char* options[] = {arch.c_str(), "--no-cache", "--no-source-include"};
  probe.result = nvrtc.nvrtcCompileProgram(program, 3, options);
  std::size_t size = 0;
  if (probe.result != NVRTC_SUCCESS && nvrtc.nvrtcGetProgramLogSize(program, &size) == NVRTC_SUCCESS && size > 1) {
    probe.log.resize(size);
    if (nvrtc.nvrtcGetProgramLog(program, probe.log.data()) != NVRTC_SUCCESS) probe.log.clear();
    while (!probe.log.empty() && (probe.log.back() == '\0' || probe.log.back() == '\n')) probe.log.pop_back();
  }
  nvrtc.nvrtcDestroyProgram(&program);
  return probe;
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

// Everything below returns why a file is no good as a Status whose message is the reason alone: the caller names the
// file.
Status unusable(std::string reason) { return {StatusCode::no_compiler, std::move(reason)}; }

std::string list_sms(const std::vector<int>& sms) { return fmt::format("sm_{}", fmt::join(sms, ", sm_")); }

Status read_supported_sms(NvrtcApi& api) {
  int count = 0;
  if (api.nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count < 1) {
    return unusable("nvrtcGetNumSupportedArchs names no architecture");
  }
  api.supported_sms.resize(static_cast<std::size_t>(count));
  if (api.nvrtcGetSupportedArchs(api.supported_sms.data()) != NVRTC_SUCCESS) {
    return unusable("nvrtcGetSupportedArchs failed");
  }
  std::sort(api.supported_sms.begin(), api.supported_sms.end());
  return Status::ok();
}

// "13.0.88" of a file whose real name is libnvrtc.so.13.0.88: NVRTC itself tells the first two numbers only. "" where
// the name has no more, as in NVIDIA's wheels.
std::string build_of(const NvrtcApi& api) {
  char* resolved = realpath(api.path.c_str(), nullptr);
  const std::string file = resolved == nullptr ? api.path : resolved;
  std::free(resolved);
  const std::string name = file.substr(file.find_last_of('/') + 1),
                    version = fmt::format("{}.{}.", api.major, api.minor);
  const std::string begin = "libnvrtc.so." + version;
  if (!name.starts_with(begin) || name.size() == begin.size()) return "";
  const std::string last = name.substr(begin.size());
  return last.find_first_not_of("0123456789.") == std::string::npos ? version + last : "";
}

// NVRTC opens libnvrtc-builtins of exactly its own version at its first compile, by bare name and so along the loader's
// path alone: in a pip wheel, or any folder that the loader does not know, it would not see the file beside itself. One
// that is open already answers to its name, so open that file first. Kept open, as NVRTC itself is. A missing one is
// no error yet: the loader may know another.
void open_builtins_beside(const NvrtcApi& api) {
  const std::string name = fmt::format("/libnvrtc-builtins.so.{}.{}", api.major, api.minor);
  if (dlopen((parent_of(api.path) + name).c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return;
  char* resolved = realpath(api.path.c_str(), nullptr);  // a link from elsewhere
  if (resolved == nullptr) return;
  dlopen((parent_of(resolved) + name).c_str(), RTLD_NOW | RTLD_LOCAL);
  std::free(resolved);
}

// Without its builtins every compile fails, so find out now, and say which file is to be where.
Status check_compiles(const NvrtcApi& api) {
  const Probe probe = compile_probe(api, api.supported_sms.back(), 0);
  if (probe.result == NVRTC_SUCCESS) return Status::ok();
  const std::string detail =
      fmt::format("{}{}{}", api.nvrtcGetErrorString(probe.result), probe.log.empty() ? "" : ": ", probe.log);
  if (probe.result == NVRTC_ERROR_BUILTIN_OPERATION_FAILURE || probe.log.find("builtins") != std::string::npos) {
    return unusable(
        fmt::format("its libnvrtc-builtins.so.{}.{} is missing or of another version; it belongs in the folder "
                    "{} ({})",
                    api.major, api.minor, parent_of(api.path), detail));
  }
  return unusable(fmt::format("it does not compile an empty kernel ({})", detail));
}

Status fill_table(void* handle, NvrtcApi& api) {
  // The version first: that an old one lacks some function is not the news.
  api.nvrtcVersion = reinterpret_cast<decltype(api.nvrtcVersion)>(dlsym(handle, "nvrtcVersion"));
  if (api.nvrtcVersion == nullptr) return unusable("it lacks nvrtcVersion, so it is no NVRTC");
  if (api.nvrtcVersion(&api.major, &api.minor) != NVRTC_SUCCESS) return unusable("nvrtcVersion failed");
  if (std::pair(api.major, api.minor) < oldest_nvrtc) {
    return unusable(fmt::format("its version is {}.{}, older than {}.{}", api.major, api.minor, oldest_nvrtc.first,
                                oldest_nvrtc.second));
  }
#define X(name)                                                          \
  api.name = reinterpret_cast<decltype(api.name)>(dlsym(handle, #name)); \
  if (api.name == nullptr) return unusable("it lacks " #name);
#include "src/cuda/nvrtc_symbols.inc"
#undef X
  api.set_flow_callback = reinterpret_cast<decltype(api.set_flow_callback)>(dlsym(handle, "nvrtcSetFlowCallback"));
  return Status::ok();
}

// The table of one file: made and checked once a process, shared by all. A failure is not kept, the file may be mended.
// Files are told apart by the loader's handle, which is the same for every name of one file. The lock is held.
Result<std::shared_ptr<const NvrtcApi>> open_nvrtc(const std::string& file) {
  static auto& opened = *new std::map<void*, std::shared_ptr<const NvrtcApi>>;  // never destroyed: see the lock
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* text = dlerror();
    std::string reason = text == nullptr ? "the loader gives no reason" : text;
    // The loader begins with the name of the file, which the caller has told already.
    if (reason.starts_with(file + ": ")) reason.erase(0, file.size() + 2);
    return unusable(std::move(reason));
  }
  if (const auto found = opened.find(handle); found != opened.end()) return found->second;
  auto api = std::make_shared<NvrtcApi>();
  GEMVJIT_TRY(fill_table(handle, *api));
  Dl_info info{};
  const bool named = dladdr(reinterpret_cast<void*>(api->nvrtcVersion), &info) != 0 && info.dli_fname != nullptr;
  api->path = named ? info.dli_fname : file;
  api->build = build_of(*api);
  open_builtins_beside(*api);
  GEMVJIT_TRY(read_supported_sms(*api));
  keep_signals_from(handle);
  GEMVJIT_TRY(check_compiles(*api));
  std::shared_ptr<const NvrtcApi> done = std::move(api);
  opened.emplace(handle, done);
  return done;
}

bool lists(const NvrtcApi& api, int sm) {
  return std::find(api.supported_sms.begin(), api.supported_sms.end(), sm) != api.supported_sms.end();
}

}  // namespace

NvrtcApi::NvrtcApi() : probes_(std::make_shared<NvrtcProbes>()) {}

bool NvrtcApi::supports(int sm, char suffix) const {
  if (!lists(*this, sm)) return false;
  const std::lock_guard lock(probes_->mutex);
  const std::pair target{sm, suffix};
  if (const auto found = probes_->known.find(target); found != probes_->known.end()) return found->second;
  const bool compiles = compile_probe(*this, sm, suffix).result == NVRTC_SUCCESS;
  probes_->known.emplace(target, compiles);
  return compiles;
}

Result<std::shared_ptr<const NvrtcApi>> load_nvrtc(const NvrtcSearch& search, int sm, const std::string& purpose) {
  static std::mutex& mutex = *new std::mutex;  // threads may ask while the process ends
  const std::lock_guard lock(mutex);
  const NvrtcCall call;
  if (!call.allowed()) return Status(StatusCode::cancelled, "NVRTC is not opened any more: the process is ending");
  // NVRTC's own: flags for its compiler, and names of files that it reads or writes.
  if (const std::string variable =
          set_in_secure_program({"NVRTC_APPEND_FLAGS", "NVRTC_PREPEND_FLAGS", "AS_SECURE_LOG_FILE",
                                 "DUMP_KNOBS_TO_FILE", "EDG_BASE", "EDG_MODULES_PATH", "NVRTCWIZ"});
      !variable.empty()) {
    return Status(
        StatusCode::no_compiler,
        fmt::format("NVRTC is not used to {}: {} is set, which it would heed with this program's rights (set-ID "
                    "or capabilities), that its user has not",
                    purpose, variable));
  }
  std::string tried;
  for (const NvrtcCandidate& candidate : nvrtc_candidates(search)) {
    std::string reason = candidate.problem;
    if (reason.empty()) {
      Result<std::shared_ptr<const NvrtcApi>> opened = open_nvrtc(candidate.file);
      if (opened && (sm == 0 || lists(**opened, sm))) return opened;
      reason = opened ? fmt::format("NVRTC {}.{} does not know sm_{}; it lists {}", (*opened)->major, (*opened)->minor,
                                    sm, list_sms((*opened)->supported_sms))
                      : opened.status().message();
    }
    tried += fmt::format("\n  {} ({}): {}", candidate.file, candidate.origin, reason);
  }
  const std::string wanted = sm == 0 ? "" : fmt::format(" that knows sm_{}", sm);
  return Status(
      StatusCode::no_compiler,
      fmt::format("NVRTC {}.{} or newer{} is needed to {}, and none was found. Tried:{}\nInstall the pip package "
                  "nvidia-cuda-nvrtc or a CUDA toolkit, or name a libnvrtc (file or folder) in GEMVJIT_NVRTC",
                  oldest_nvrtc.first, oldest_nvrtc.second, wanted, purpose, tried));
}

}  // namespace gemvjit::cuda
