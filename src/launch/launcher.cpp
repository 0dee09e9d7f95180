#include "src/launch/launcher.h"

namespace gemvjit {

void marshal_attributes(const LaunchConfig& config, LaunchAttributes& out) {
  out.count = 0;
  if (config.cluster_x > 1) {
    CUlaunchAttribute& attribute = out.attributes[out.count++];
    attribute = CUlaunchAttribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = config.cluster_x;
    attribute.value.clusterDim.y = 1;
    attribute.value.clusterDim.z = 1;
  }
  if (config.pdl) {
    CUlaunchAttribute& attribute = out.attributes[out.count++];
    attribute = CUlaunchAttribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
  }
}

CUresult launch(const cuda::DriverApi& driver, CUkernel kernel, const LaunchConfig& config, unsigned m,
                void** kernel_arguments, CUstream stream) {
  LaunchAttributes attributes;
  marshal_attributes(config, attributes);
  CUlaunchConfig driver_config{};
  driver_config.gridDimX = config.grid_x;
  driver_config.gridDimY = 1;
  driver_config.gridDimZ = 1;
  driver_config.blockDimX = config.block_x;
  driver_config.blockDimY = 1;
  driver_config.blockDimZ = 1;
  driver_config.sharedMemBytes = config.smem_token_bytes == 0 ? config.smem_bytes : config.smem_bytes_for(m);
  driver_config.hStream = stream;
  driver_config.attrs = attributes.attributes.data();
  driver_config.numAttrs = attributes.count;
  // The driver takes a CUkernel where it takes a CUfunction and picks the current context's function.
  return driver.cuLaunchKernelEx(&driver_config, reinterpret_cast<CUfunction>(kernel), kernel_arguments, nullptr);
}

}  // namespace gemvjit
