// gemvjit-cache doctor: what of this machine the library would use, and what it tried where something is missing.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "cache/cache_folders.h"
#include "cache/layout.h"
#include "src/base/files.h"
#include "src/catalog/arch.h"
#include "src/cuda/driver_api.h"
#include "src/cuda/nvrtc_api.h"
#include "src/cuda/nvrtc_search.h"
#include "src/runtime/device.h"
#include "src/runtime/options.h"
#include "src/tuning/tuning_table.h"
#include "tools/cache_view/cache_refusal.h"
#include "tools/cache_view/tool_settings.h"
#include "tools/gemvjit_cache/cache_folder.h"
#include "tools/gemvjit_cache/doctor_layers.h"
#include "tools/gemvjit_cache/doctor_locks.h"
#include "tools/gemvjit_cache/doctor_policy.h"
#include "tools/gemvjit_cache/entry_facts.h"
#include "tools/gemvjit_cache/remote_access.h"
#include "tools/gemvjit_cache/signers.h"

namespace gemvjit::tools {
namespace {

using nlohmann::ordered_json;

// Whether a file can be made in it, as far as permissions tell; nothing is made. A folder that is not there yet is
// writable if the nearest one above it is.
bool is_writable(std::string folder) {
  struct stat info {};
  while (!folder.empty() && ::stat(folder.c_str(), &info) != 0) {
    const std::size_t slash = folder.find_last_of('/');
    folder = slash == std::string::npos ? "." : folder.substr(0, slash == 0 ? 1 : slash);
  }
  return S_ISDIR(info.st_mode) && ::access(folder.c_str(), W_OK | X_OK) == 0;
}

// Of one folder that holds entries, or folders with them: why none can be read there (`unusable`), or why none can be
// kept (`read_only`); both stay as they are where all is well or nothing is there yet.
void examine_folder(const std::string& folder, std::string& unusable, std::string& read_only) {
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0 && errno == ENOENT) return;
  if (::stat(folder.c_str(), &info) != 0) {
    unusable = fmt::format("{}: {}", folder, std::strerror(errno));
  } else if (!S_ISDIR(info.st_mode)) {
    unusable = fmt::format("{} is no folder: move it away, or name another cache", folder);
  } else if (::access(folder.c_str(), R_OK | X_OK) != 0) {
    unusable = fmt::format("{} cannot be read: {}", folder, std::strerror(errno));
  } else if (read_only.empty() && !is_writable(folder)) {
    read_only = fmt::format("{} cannot be written: entries in it are used, new ones are not kept", folder);
  }
}

// Why the library does not use that folder of the cache; "" where it does, or where there is none.
std::string refusal_of(const std::string& root, const std::string& folder, const EntryGuard& guard) {
  const Status opened = open_cache_folder(root, folder, &guard).status();
  return opened.code() == StatusCode::not_found ? "" : opened.message();
}

ordered_json examine_cache(const CacheArguments& arguments) {
  const CacheFolder folder = choose_cache_folder(arguments);
  if (folder.path.empty()) {
    return {{"path", ""},
            {"named_by", ""},
            {"exists", false},
            {"writable", false},
            {"usable", true},
            {"problem", "no cache folder: GEMVJIT_CACHE_DIR, XDG_CACHE_HOME and HOME are not set; memory only"}};
  }
  struct stat info {};
  const bool exists = ::stat(folder.path.c_str(), &info) == 0;
  std::string unusable, read_only;
  const std::string versioned = version_directory(folder.path);
  unusable = check_cache_folder(folder.path).message();
  if (unusable.empty()) examine_folder(folder.path, unusable, read_only);
  const EntryGuard guard = guard_of_cache();
  if (unusable.empty()) unusable = refusal_of(folder.path, versioned, guard);
  if (unusable.empty()) examine_folder(versioned, unusable, read_only);
  if (unusable.empty()) {
    const auto names = list_directory(versioned);
    if (!names && names.status().code() != StatusCode::not_found) unusable = names.status().message();
    for (const std::string& name : names ? *names : std::vector<std::string>{}) {
      if (!Arch::parse(name)) continue;
      if (unusable.empty()) unusable = refusal_of(folder.path, versioned + "/" + name, guard);
      if (unusable.empty()) examine_folder(versioned + "/" + name, unusable, read_only);
    }
  }
  if (unusable.empty() && !exists && !is_writable(folder.path)) {
    read_only = fmt::format("{} cannot be made: kernels are not kept", folder.path);
  }
  return {{"path", folder.path},        {"named_by", folder.source},
          {"exists", exists},           {"writable", unusable.empty() && read_only.empty()},
          {"usable", unusable.empty()}, {"problem", unusable.empty() ? read_only : unusable}};
}

// What a context would be made with.
ordered_json examine_options(const CacheArguments& arguments) {
  OptionRequest request;
  request.cache_dir = arguments.cache_dir;
  const auto& settings = tool_settings();
  const auto options = settings ? resolve_options(request, settings->reader()) : settings.status();
  if (!options) return {{"compile_threads", nullptr}, {"dump_dir", nullptr}, {"problem", options.status().message()}};
  return {{"compile_threads", options->compile_threads}, {"dump_dir", options->dump_dir}, {"problem", ""}};
}

// Other files that may be an NVRTC, in the order in which they would be tried: two toolkits on one machine are a common
// reason why not the one that was meant is used.
ordered_json other_nvrtcs(const cuda::NvrtcSearch& search, const std::string& used) {
  ordered_json others = ordered_json::array();
  for (const cuda::NvrtcCandidate& candidate : cuda::nvrtc_candidates(search)) {
    std::error_code unknown;
    if (!candidate.problem.empty() || candidate.file.find('/') == std::string::npos) continue;
    if (std::filesystem::equivalent(candidate.file, used, unknown)) continue;
    others.push_back(candidate.file + " (" + candidate.origin + ")");
  }
  return others;
}

ordered_json examine_nvrtc() {
  const cuda::NvrtcSearch search = cuda::nvrtc_search_from_environment();
  const auto nvrtc = cuda::load_nvrtc(search, 0, "compile kernels");
  ordered_json targets = ordered_json::array();
  if (!nvrtc) {
    return {{"found", false},
            {"path", nullptr},
            {"version", nullptr},
            {"targets", targets},
            {"policy", ordered_json::array()},
            {"others", ordered_json::array()},
            {"problem", nvrtc.status().message()}};
  }
  const cuda::NvrtcApi& api = **nvrtc;
  for (const int sm : api.supported_sms) {
    for (const char suffix : {'a', 'f', '\0'}) {
      const Arch arch{.sm = sm, .suffix = suffix};
      if (arch_facts(arch) && api.supports(sm, suffix)) targets.push_back(arch.text());
    }
  }
  return {{"found", true},
          {"path", api.path},
          {"version", fmt::format("{}.{}", api.major, api.minor)},
          {"targets", targets},
          {"policy", examine_policy(api)},
          {"others", other_nvrtcs(search, api.path)},
          {"problem", ""}};
}

// One device; `target` is null, with a problem, where no kernel of this version can be launched.
ordered_json examine_device(const cuda::DriverApi& driver, int ordinal) {
  ordered_json report{{"ordinal", ordinal}, {"name", nullptr}, {"target", nullptr}, {"problem", ""}};
  CUdevice device = 0;
  char name[256] = "";
  int major = 0, minor = 0;
  CUresult result = driver.cuDeviceGet(&device, ordinal);
  if (result == CUDA_SUCCESS) result = driver.cuDeviceGetName(name, sizeof name, device);
  for (const auto& [attribute, value] : {std::pair{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
                                         {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor}}) {
    if (result == CUDA_SUCCESS) result = driver.cuDeviceGetAttribute(value, attribute, device);
  }
  if (result != CUDA_SUCCESS) {
    report["problem"] =
        cuda::cuda_status(driver, result, fmt::format("asking device {} what it is", ordinal)).message();
    return report;
  }
  report["name"] = name;
  const std::vector<Arch> targets = possible_targets(major, minor);
  if (targets.empty()) {
    report["problem"] = fmt::format("compute capability {}.{}; 8.0 and newer are served", major, minor);
  } else {
    report["target"] = targets.front().text();
  }
  return report;
}

ordered_json examine_driver() {
  const auto driver = cuda::load_driver("launch kernels");
  ordered_json devices = ordered_json::array();
  if (!driver) {
    return {{"found", false},
            {"path", nullptr},
            {"cuda_version", nullptr},
            {"devices", devices},
            {"problem", driver.status().message()}};
  }
  const cuda::DriverApi& api = **driver;
  int version = 0, count = 0;
  (void)api.cuDriverGetVersion(&version);
  std::string problem;
  if (const Status status = cuda::cuda_status(api, api.cuDeviceGetCount(&count), "cuDeviceGetCount"); !status) {
    problem = status.message();
    count = 0;
  } else if (count == 0) {
    problem = "the driver sees no device";
  }
  for (int i = 0; i < count; ++i) devices.push_back(examine_device(api, i));
  return {{"found", true},
          {"path", api.path},
          {"cuda_version", fmt::format("{}.{}", version / 1000, version % 1000 / 10)},
          {"devices", devices},
          {"problem", problem}};
}

ordered_json examine_tuning() {
  const EnvironmentReader& environment = tool_environment();
  const std::string overlay = environment("GEMVJIT_TUNING_DIR").value_or("");
  const auto tables = TuningTables::load(overlay);
  if (!tables) return {{"overlay", overlay}, {"hash", nullptr}, {"problem", tables.status().message()}};
  return {{"overlay", overlay}, {"hash", tables->digest()}, {"problem", ""}};
}

bool can_launch(const ordered_json& driver) {
  const ordered_json& devices = driver["devices"];
  return std::any_of(devices.begin(), devices.end(),
                     [](const ordered_json& device) { return !device["target"].is_null(); });
}

// Kernels can be had: compiled here, or loaded from a cache on the device here. A cache that cannot be written, or
// none, is worth a line only; what is plainly set wrong is not.
bool usable(const ordered_json& report) {
  return (report["can_compile"] == true || report["can_launch"] == true) && report["options"]["problem"] == "" &&
         report["tuning"]["problem"] == "" && report["remote"]["problem"] == "" && report["cache"]["usable"] == true;
}

std::string device_text(const ordered_json& device) {
  std::string text = device["name"].is_null() ? "?" : device["name"].get<std::string>();
  if (!device["target"].is_null()) text += ", " + device["target"].get<std::string>();
  const std::string problem = device["problem"];
  return problem.empty() ? text : text + ": " + problem;
}

void print_section(const char* title, const ordered_json& section) {
  tell("{}\n", title);
  for (const auto& [name, value] : section.items()) {
    if (value.is_null()) continue;
    std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (value.is_boolean()) text = value == true ? "yes" : "no";
    if (name == "targets") text = fmt::format("{}", fmt::join(value.get<std::vector<std::string>>(), " "));
    if (name == "policy") continue;  // a table of its own
    if (name == "others") {
      for (const ordered_json& other : value) tell("  not used      {}\n", other.get<std::string>());
      continue;
    }
    if (name == "free_bytes" || (name == "exists" && section.contains("passed_over"))) continue;
    if (name == "devices") {
      for (const ordered_json& device : value) {
        tell("  device {}  {}\n", device["ordinal"].get<int>(), device_text(device));
      }
      continue;
    }
    if (text.empty()) continue;
    if (name == "problem") {
      print_state("  problem", Paint::bad, fmt::format("       {}\n", text));
    } else {
      tell("  {:<12}  {}\n", name, text);
    }
  }
}

}  // namespace

ExitCode run_doctor(const CacheArguments& arguments) {
  ordered_json report{{"options", examine_options(arguments)},
                      {"cache", examine_cache(arguments)},
                      {"layers", examine_layers(arguments)},
                      {"locks", examine_locks(arguments)},
                      {"signatures", examine_signatures()},
                      {"remote", examine_remote()},
                      {"nvrtc", examine_nvrtc()},
                      {"driver", examine_driver()},
                      {"tuning", examine_tuning()}};
  report["can_compile"] = report["nvrtc"]["found"];
  report["can_launch"] = can_launch(report["driver"]);
  report["usable"] = usable(report);
  if (arguments.json) {
    print_json(report);
  } else {
    print_section("Options", report["options"]);
    print_section("Cache", report["cache"]);
    print_layers(report["layers"]);
    print_section("Locks between processes", report["locks"]);
    print_signatures(report["signatures"]);
    if (report["remote"]["url"] != "" || report["remote"]["problem"] != "") {
      print_section("Remote cache", report["remote"]);
    }
    print_section("NVRTC", report["nvrtc"]);
    print_policy(report["nvrtc"]["policy"]);
    print_section("Driver", report["driver"]);
    print_section("Tuning tables", report["tuning"]);
    tell("Here kernels can{} be compiled and can{} be launched\n", report["can_compile"] == true ? "" : "not",
         report["can_launch"] == true ? "" : "not");
  }
  return report["usable"] == true ? exit_done : exit_environment;
}

}  // namespace gemvjit::tools
