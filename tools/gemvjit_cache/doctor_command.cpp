// gemvjit-cache doctor: what of this machine the library would use, and what it tried where something is missing.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "src/catalog/arch.h"
#include "src/cuda/driver_api.h"
#include "src/cuda/nvrtc_api.h"
#include "src/runtime/options.h"
#include "src/tuning/tuning_table.h"
#include "tools/gemvjit_cache/cache_folder.h"
#include "tools/gemvjit_cache/entry_facts.h"

namespace gemvjit::tools {
namespace {

using nlohmann::ordered_json;

// Without making anything: a folder that is not there yet is writable if the nearest one above it is.
bool is_writable(std::string folder) {
  struct stat info {};
  while (!folder.empty() && ::stat(folder.c_str(), &info) != 0) {
    const std::size_t slash = folder.find_last_of('/');
    folder = slash == std::string::npos ? "." : folder.substr(0, slash == 0 ? 1 : slash);
  }
  return S_ISDIR(info.st_mode) && ::access(folder.c_str(), W_OK | X_OK) == 0;
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
  const bool writable = is_writable(folder.path);
  std::string problem;
  const bool is_file = exists && !S_ISDIR(info.st_mode);
  if (is_file) {
    problem = "it is a file, no folder";
  } else if (!writable) {
    problem = "it cannot be written: entries in it are used, new ones are not kept";
  }
  return {{"path", folder.path},  {"named_by", folder.source}, {"exists", exists},
          {"writable", writable}, {"usable", !is_file},        {"problem", problem}};
}

ordered_json examine_nvrtc() {
  const auto nvrtc = cuda::load_nvrtc(cuda::nvrtc_search_from_environment(), 0, "compile kernels");
  if (!nvrtc) return {{"found", false}, {"problem", nvrtc.status().message()}};
  const cuda::NvrtcApi& api = **nvrtc;
  ordered_json targets = ordered_json::array();
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
          {"problem", ""}};
}

std::string device_line(const cuda::DriverApi& driver, int ordinal, std::string& target) {
  CUdevice device = 0;
  char name[256] = "";
  int major = 0, minor = 0;
  if (driver.cuDeviceGet(&device, ordinal) != CUDA_SUCCESS ||
      driver.cuDeviceGetName(name, sizeof name, device) != CUDA_SUCCESS ||
      driver.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) != CUDA_SUCCESS ||
      driver.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device) != CUDA_SUCCESS) {
    return "it does not answer";
  }
  target = targets_for_device(major, minor).front().text();
  return name;
}

ordered_json examine_driver() {
  const auto driver = cuda::load_driver("launch kernels");
  if (!driver) {
    return {{"found", false}, {"devices", ordered_json::array()}, {"problem", driver.status().message()}};
  }
  const cuda::DriverApi& api = **driver;
  int version = 0, count = 0;
  (void)api.cuDriverGetVersion(&version);
  std::string problem;
  if (const Status status = cuda::cuda_status(api, api.cuDeviceGetCount(&count), "cuDeviceGetCount"); !status) {
    problem = status.message();
  } else if (count == 0) {
    problem = "the driver sees no device";
  }
  ordered_json devices = ordered_json::array();
  for (int i = 0; i < count; ++i) {
    std::string target;
    const std::string name = device_line(api, i, target);
    devices.push_back({{"ordinal", i}, {"name", name}, {"target", target}});
  }
  return {{"found", true},
          {"path", api.path},
          {"cuda_version", fmt::format("{}.{}", version / 1000, version % 1000 / 10)},
          {"devices", devices},
          {"problem", problem}};
}

ordered_json examine_tuning() {
  const EnvironmentReader environment = process_environment();
  const std::string overlay = environment("GEMVJIT_TUNING_DIR").value_or("");
  const auto tables = TuningTables::load(overlay);
  if (!tables) return {{"overlay", overlay}, {"hash", ""}, {"problem", tables.status().message()}};
  return {{"overlay", overlay}, {"hash", tables->digest()}, {"problem", ""}};
}

// Kernels can be had: compiled here, or loaded from a cache on the device here. A cache that cannot be written, or
// none, is worth a line only; what is plainly set wrong is not.
bool usable(const ordered_json& report) {
  const bool compiles = report["nvrtc"]["found"] == true;
  const bool launches = !report["driver"]["devices"].empty();
  return (compiles || launches) && report["tuning"]["problem"] == "" && report["cache"]["usable"] == true;
}

void print_section(const char* title, const ordered_json& section) {
  fmt::print("{}\n", title);
  for (const auto& [name, value] : section.items()) {
    std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    if (value.is_boolean()) text = value == true ? "yes" : "no";
    if (name == "targets") text = fmt::format("{}", fmt::join(value.get<std::vector<std::string>>(), " "));
    if (name == "devices") {
      for (const ordered_json& device : value) {
        fmt::print("  device {}  {}, {}\n", device["ordinal"].get<int>(), device["name"].get<std::string>(),
                   device["target"].get<std::string>());
      }
      continue;
    }
    if (!text.empty()) fmt::print("  {:<12}  {}\n", name, text);
  }
}

}  // namespace

ExitCode run_doctor(const CacheArguments& arguments) {
  ordered_json report{{"cache", examine_cache(arguments)},
                      {"nvrtc", examine_nvrtc()},
                      {"driver", examine_driver()},
                      {"tuning", examine_tuning()}};
  report["can_compile"] = report["nvrtc"]["found"];
  report["can_launch"] = !report["driver"]["devices"].empty();
  report["usable"] = usable(report);
  if (arguments.json) {
    print_json(report);
  } else {
    print_section("Cache", report["cache"]);
    print_section("NVRTC", report["nvrtc"]);
    print_section("Driver", report["driver"]);
    print_section("Tuning tables", report["tuning"]);
    fmt::print("Here kernels can{} be compiled and can{} be launched\n", report["can_compile"] == true ? "" : "not",
               report["can_launch"] == true ? "" : "not");
  }
  return report["usable"] == true ? exit_done : exit_environment;
}

}  // namespace gemvjit::tools
