// The fuzz function of the bundle reader: any file opens or is refused with a reason, and an entry read from one that
// opens is the kernel that the index names. The bytes are tried as they are, and with the right checksum over what the
// footer calls the index, without which nothing behind it is reached.
#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "cache/bundle.h"
#include "cache/bundle_layout.h"
#include "src/base/descriptor.h"
#include "tests/fuzz/fuzz_targets.h"

namespace gemvjit {
namespace {

constexpr std::size_t kFooterBytes = bundle_layout::footer_bytes, kChecksumInFooter = 24;

// In memory where there is such a file system; a path, since a bundle is opened by one.
std::string scratch_file() {
  std::string path = access("/dev/shm", W_OK) == 0 ? "/dev/shm/bundle_fuzz.XXXXXX" : "/tmp/bundle_fuzz.XXXXXX";
  const int fd = mkstemp(path.data());
  if (fd < 0) std::abort();
  close(fd);
  static std::string left_behind;
  left_behind = path;
  std::atexit([] { unlink(left_behind.c_str()); });
  return path;
}

void check(const std::string& path, const Bytes& bytes) {
  if (truncate(path.c_str(), 0) != 0) std::abort();
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::abort();
  const auto bundle = Bundle::open(path);
  if (!bundle) {
    if (bundle.status().message().find(path) == std::string::npos) std::abort();
    return;
  }
  for (const Bundle::Item& item : (*bundle)->items()) {
    if ((*bundle)->find(item.id) == nullptr) std::abort();
    const auto entry = (*bundle)->read(item);
    if (entry && !(entry->id == item.id)) std::abort();
  }
}

}  // namespace

int fuzz_bundle(const std::uint8_t* data, std::size_t size) {
  static const std::string path = scratch_file();
  Bytes bytes(data, data + size);
  check(path, bytes);
  if (size < kFooterBytes) return 0;
  std::uint8_t* footer = bytes.data() + size - kFooterBytes;
  std::uint64_t offset = 0, length = 0;
  std::memcpy(&offset, footer, sizeof offset);
  std::memcpy(&length, footer + 8, sizeof length);
  if (offset > size - kFooterBytes || length > size - kFooterBytes - offset) return 0;
  const Digest checksum = Sha256::of(bytes.data() + offset, length);
  std::memcpy(footer + kChecksumInFooter, checksum.data(), checksum.size());
  check(path, bytes);
  return 0;
}

}  // namespace gemvjit
