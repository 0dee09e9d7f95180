#include "tools/verification/device_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

namespace gemvjit {
namespace {

std::atomic<bool> guards_on{true};

}  // namespace

void DeviceBuffer::use_guards(bool on) { guards_on.store(on); }

Result<DeviceBuffer> DeviceBuffer::create(const GpuHarness& gpu, std::size_t bytes, std::size_t offset, bool poison) {
  DeviceBuffer buffer(gpu);
  buffer.guard_bytes_ = guards_on.load() ? kGuardBytes : 0;
  buffer.allocated_ = std::max<std::size_t>(2 * buffer.guard_bytes_ + offset + bytes, 1);
  buffer.bytes_ = bytes;
  GEMVJIT_TRY(gpu.check(gpu.api().cuMemAlloc(&buffer.base_, buffer.allocated_),
                        fmt::format("allocating {} bytes on {}", buffer.allocated_, gpu.device_name())));
  buffer.payload_ = buffer.base_ + buffer.guard_bytes_ + offset;
  const std::size_t before = buffer.payload_ - buffer.base_;
  if (poison) {
    GEMVJIT_TRY(gpu.check(gpu.api().cuMemsetD8(buffer.base_, kPoison, buffer.allocated_), "poisoning a buffer"));
  } else {
    GEMVJIT_TRY(buffer.write_guard(buffer.base_, before));
    GEMVJIT_TRY(buffer.write_guard(buffer.payload_ + bytes, buffer.guard_bytes_));
  }
  // Memsets may still run when they return; other streams do not wait for the default one.
  GEMVJIT_TRY(gpu.check(gpu.api().cuStreamSynchronize(nullptr), "poisoning a buffer"));
  return buffer;
}

DeviceBuffer::~DeviceBuffer() {
  if (base_ != 0) (void)gpu_->api().cuMemFree(base_);
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : gpu_(other.gpu_),
      base_(std::exchange(other.base_, 0)),
      payload_(other.payload_),
      bytes_(other.bytes_),
      allocated_(other.allocated_),
      guard_bytes_(other.guard_bytes_) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(gpu_, other.gpu_);
  std::swap(base_, other.base_);
  std::swap(payload_, other.payload_);
  std::swap(bytes_, other.bytes_);
  std::swap(allocated_, other.allocated_);
  std::swap(guard_bytes_, other.guard_bytes_);
  return *this;
}

Status DeviceBuffer::upload_bytes(const void* from, std::size_t bytes, std::size_t at) {
  if (bytes == 0) return Status::ok();
  if (at + bytes > bytes_) return {StatusCode::invalid_argument, "upload past the end of a buffer"};
  GEMVJIT_TRY(gpu_->check(gpu_->api().cuMemcpyHtoD(payload_ + at, from, bytes), "copying to the device"));
  return gpu_->check(gpu_->api().cuStreamSynchronize(nullptr), "copying to the device");
}

Status DeviceBuffer::download_bytes(void* to, std::size_t bytes, std::size_t at) const {
  if (bytes == 0) return Status::ok();
  if (at + bytes > bytes_) return {StatusCode::invalid_argument, "download past the end of a buffer"};
  return gpu_->check(gpu_->api().cuMemcpyDtoH(to, payload_ + at, bytes), "copying from the device");
}

Status DeviceBuffer::fill(std::uint8_t byte) {
  if (bytes_ == 0) return Status::ok();
  GEMVJIT_TRY(gpu_->check(gpu_->api().cuMemsetD8(payload_, byte, bytes_), "filling a buffer"));
  return gpu_->check(gpu_->api().cuStreamSynchronize(nullptr), "filling a buffer");
}

Status DeviceBuffer::write_guard(CUdeviceptr begin, std::size_t bytes) const {
  if (bytes == 0) return Status::ok();
  return gpu_->check(gpu_->api().cuMemsetD8(begin, kPoison, bytes), "writing a guard");
}

Status DeviceBuffer::check_guard(CUdeviceptr begin, std::size_t bytes, std::int64_t distance) const {
  if (bytes == 0) return Status::ok();
  std::vector<std::uint8_t> guard(bytes);
  GEMVJIT_TRY(gpu_->check(gpu_->api().cuMemcpyDtoH(guard.data(), begin, bytes), "reading a guard"));
  const auto changed = std::find_if(guard.begin(), guard.end(), [](std::uint8_t byte) { return byte != kPoison; });
  if (changed == guard.end()) return Status::ok();
  return {StatusCode::internal_error,
          fmt::format("a guard zone was written: byte 0x{:02X} at {} relative to a buffer of {} bytes", *changed,
                      distance + (changed - guard.begin()), bytes_)};
}

Status DeviceBuffer::check_guards() const {
  const std::size_t before = payload_ - base_;
  GEMVJIT_TRY(check_guard(base_, before, -static_cast<std::int64_t>(before)));
  return check_guard(payload_ + bytes_, guard_bytes_, static_cast<std::int64_t>(bytes_));
}

Status fill_repeating(const GpuHarness& gpu, DeviceBuffer& buffer, std::span<const std::uint8_t> block) {
  const std::size_t first = std::min(block.size(), buffer.size());
  GEMVJIT_TRY(buffer.upload(block.first(first)));
  // Doubling whole blocks keeps the period and needs few copies.
  for (std::size_t done = first; done < buffer.size();) {
    const std::size_t step = std::min(done, buffer.size() - done);
    GEMVJIT_TRY(gpu.check(gpu.api().cuMemcpyDtoD(buffer.address() + done, buffer.address(), step), "filling a buffer"));
    done += step;
  }
  return gpu.check(gpu.api().cuStreamSynchronize(nullptr), "filling a buffer");
}

}  // namespace gemvjit
