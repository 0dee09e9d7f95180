// Descriptor: owns one file descriptor.
#pragma once

#include <unistd.h>

#include <cerrno>

namespace gemvjit {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  // Ignores what close() says, which is right for a reader only: a writer calls close().
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      if (fd_ >= 0) ::close(fd_);
      fd_ = other.release();
    }
    return *this;
  }
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  // 0, or the errno. The descriptor is gone either way, after EINTR too (Linux).
  int close() {
    const int result = ::close(release());
    return result == 0 || errno == EINTR ? 0 : errno;
  }

 private:
  int fd_;
};

}  // namespace gemvjit
