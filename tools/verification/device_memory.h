// DeviceBuffer: device memory between two guard zones that must stay as they are, so that a write past either end is
// seen. Guards and fresh payload hold bytes 0xFF (a NaN as BF16, as E4M3 and as FP32), so that a value read from them,
// or an element not written, is seen too.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tools/verification/gpu_harness.h"

namespace gemvjit {

class DeviceBuffer {
 public:
  static constexpr std::size_t kGuardBytes = 1024;
  // Buffers made from now on in this process have no guards (and end where their allocation ends), or have them again:
  // for a memory checker, which sees an access past an allocation but none into a guard.
  static void use_guards(bool on);

  static constexpr std::uint8_t kPoison = 0xFF;

  // `bytes` of payload that begin `offset` bytes after a 1024-byte boundary; the guards touch it on both sides. Large
  // buffers (poison = false) keep their payload as it comes.
  static Result<DeviceBuffer> create(const GpuHarness& gpu, std::size_t bytes, std::size_t offset = 0,
                                     bool poison = true);
  // A buffer with this content.
  template <typename T>
  static Result<DeviceBuffer> from(const GpuHarness& gpu, std::span<const T> content, std::size_t offset = 0) {
    GEMVJIT_TRY_ASSIGN(DeviceBuffer buffer, create(gpu, content.size_bytes(), offset));
    GEMVJIT_TRY(buffer.upload(content));
    return buffer;
  }
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;

  CUdeviceptr address() const { return payload_; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(payload_);
  }
  std::size_t size() const { return bytes_; }

  template <typename T>
  Status upload(std::span<const T> content, std::size_t at = 0) {
    return upload_bytes(content.data(), content.size_bytes(), at);
  }
  // Copies on the legacy default stream and waits; the caller waits for its own streams first.
  template <typename T>
  Result<std::vector<T>> download() const {
    std::vector<T> out(bytes_ / sizeof(T));
    GEMVJIT_TRY(download_bytes(out.data(), out.size() * sizeof(T), 0));
    return out;
  }
  Status download_bytes(void* to, std::size_t bytes, std::size_t at) const;
  // All bytes of the payload.
  Status fill(std::uint8_t byte);
  // internal_error with the first changed byte's distance from the payload, if a guard changed.
  Status check_guards() const;

 private:
  explicit DeviceBuffer(const GpuHarness& gpu) : gpu_(&gpu) {}
  Status upload_bytes(const void* from, std::size_t bytes, std::size_t at);
  Status write_guard(CUdeviceptr begin, std::size_t bytes) const;
  Status check_guard(CUdeviceptr begin, std::size_t bytes, std::int64_t distance) const;

  const GpuHarness* gpu_;
  CUdeviceptr base_ = 0, payload_ = 0;
  std::size_t bytes_ = 0, allocated_ = 0, guard_bytes_ = 0;
};

// Fills a buffer with `block` over and over (the last copy cut), by copies on the device: for weights of many GB.
Status fill_repeating(const GpuHarness& gpu, DeviceBuffer& buffer, std::span<const std::uint8_t> block);

}  // namespace gemvjit
