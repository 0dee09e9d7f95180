#include "tools/gemvjit_cache/target_names.h"

#include "src/catalog/arch.h"
#include "src/catalog/arch_names.h"
#include "src/cuda/driver_api.h"
#include "tools/common/output.h"
#include "tools/common/printable.h"

namespace gemvjit::tools {
namespace {

// The target of the first device; nothing where there is none.
std::vector<Arch> native_targets() {
  const auto driver = cuda::load_driver("see which GPU is here");
  if (!driver) return {};
  CUdevice device = 0;
  int major = 0, minor = 0;
  const cuda::DriverApi& api = **driver;
  if (api.cuDeviceGet(&device, 0) != CUDA_SUCCESS) return {};
  if (api.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) != CUDA_SUCCESS) return {};
  if (api.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device) != CUDA_SUCCESS) return {};
  std::vector<Arch> targets = possible_targets(major, minor);
  if (targets.size() > 1) targets.resize(1);
  return targets;
}

}  // namespace

ExitCode read_targets(const std::string& name, std::vector<Arch>& targets) {
  const Result<NamedTargets> named = parse_targets(name);
  if (!named) {
    complain("--arch: " + named.status().message());
    return exit_usage;
  }
  if (!named->note.empty()) say(fmt::format("gemvjit-cache: --arch {}: {}\n", printable(name), named->note));
  targets = named->targets.empty() ? native_targets() : named->targets;
  if (!targets.empty()) return exit_done;
  complain("no GPU was found, so the target is not known: name one, such as --arch sm_90a or --arch hopper");
  return exit_environment;
}

}  // namespace gemvjit::tools
