// Cold operands: random weights on a device, so many copies of each that none is still in L2 when its turn comes again.
//
// HostBlocks are random bytes on the host, made once a process and read by any thread. ColdArena holds them on one
// device, repeated at odd periods over a few large buffers that all shapes share: byte i of a buffer is block[i %
// block.size()], so that a reference needs no download. An arena grows when a shape needs more.
//
// Threads: HostBlocks any; an arena by the one thread in which its device is current. The arena ends before the device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "src/base/status.h"
#include "src/catalog/catalog.h"
#include "tools/verification/device_memory.h"
#include "tools/verification/gpu_harness.h"

namespace gemvjit::tools {

inline constexpr float kGlobalScale = 0.01f;  // of all NVFP4 weights here

struct HostBlocks {
  std::vector<std::uint16_t> bf16;          // weights, normal, standard deviation 0.05
  std::vector<std::uint8_t> codes, scales;  // E2M1 pairs, uniform; E4M3 between 2^-3 and 2^3
  std::vector<std::uint16_t> x;             // activations, normal, standard deviation 1
  HostBlocks();
};

// How many distinct copies of a weight make a cold chain: more than 210 MB together, at least 4, at most 1024 (the
// weights of a shape that would need more are small enough to count as in cache whatever is done).
int cold_copies(std::uint64_t bytes);

// Addresses for one shape; valid until the arena's next prepare().
struct ColdBuffers {
  CUdeviceptr weights = 0, scales = 0, x = 0, out = 0, hidden = 0, global_scale = 0;
  std::uint64_t weight_stride = 0, scale_stride = 0, out_stride = 0;  // bytes from one copy to the next
  std::uint64_t bytes = 0;                                            // of weight and scales of one copy
  std::uint64_t weights_size = 0;                                     // all copies
  std::int64_t out_columns = 0;
  int copies = 0;

  CUdeviceptr weight_of(int copy) const { return weights + static_cast<std::uint64_t>(copy) * weight_stride; }
  CUdeviceptr scale_of(int copy) const { return scales + static_cast<std::uint64_t>(copy) * scale_stride; }
  CUdeviceptr out_of(int copy) const { return out + static_cast<std::uint64_t>(copy) * out_stride; }
};

class ColdArena {
 public:
  ColdArena(const GpuHarness& gpu, const HostBlocks& blocks) : gpu_(gpu), blocks_(blocks) {}

  // x [max_m, k] without gaps, one `out` [max_m, columns] a copy, `hidden` [max_m, n] for the product before a separate
  // SiLU. `copies` 0: as many as make it cold. cuda_error if the memory is not there.
  Result<ColdBuffers> prepare(const Problem& problem, int max_m, int copies = 0);

 private:
  Status ensure(std::optional<DeviceBuffer>& buffer, std::uint64_t bytes, std::span<const std::uint8_t> block);

  const GpuHarness& gpu_;
  const HostBlocks& blocks_;
  std::optional<DeviceBuffer> bf16_, codes_, scales_, x_, out_, hidden_, global_scale_;
};

}  // namespace gemvjit::tools
