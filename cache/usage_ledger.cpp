#include "cache/usage_ledger.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "src/base/sha256.h"

namespace gemvjit {
namespace {

constexpr char magic[] = "GEMVUSE\n";
constexpr std::size_t magic_size = 8;

// Fields in the order of the header comment, in the machine's own byte order: the file is never carried elsewhere.
std::vector<std::uint8_t> encode(const Usage& usage) {
  std::vector<std::uint8_t> bytes(magic, magic + magic_size);
  const auto add = [&](const auto& value) {
    const auto* from = reinterpret_cast<const std::uint8_t*>(&value);
    bytes.insert(bytes.end(), from, from + sizeof value);
  };
  add(usage.total_bytes);
  add(usage.scanned_at);
  add(usage.next);
  for (const Usage::Evicted& one : usage.evicted) add(one.digest), add(one.when);
  const Digest digest = Sha256::of(bytes.data(), bytes.size());
  bytes.insert(bytes.end(), digest.begin(), digest.end());
  return bytes;
}

std::optional<Usage> decode(const std::vector<std::uint8_t>& bytes) {
  if (bytes.size() != encode({}).size() || std::memcmp(bytes.data(), magic, magic_size) != 0) return std::nullopt;
  const std::size_t body = bytes.size() - Digest{}.size();
  const Digest digest = Sha256::of(bytes.data(), body);
  if (!std::equal(digest.begin(), digest.end(), bytes.begin() + static_cast<std::ptrdiff_t>(body))) return std::nullopt;
  Usage usage;
  const std::uint8_t* at = bytes.data() + magic_size;
  const auto take = [&](auto& value) {
    std::memcpy(&value, at, sizeof value);
    at += sizeof value;
  };
  take(usage.total_bytes);
  take(usage.scanned_at);
  take(usage.next);
  for (Usage::Evicted& one : usage.evicted) take(one.digest), take(one.when);
  return usage;
}

bool lock_within(int fd, int patience_ms) {
  using namespace std::chrono_literals;
  for (int waited = 0;; waited += 5) {
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK && errno != EINTR) return false;  // no locks on this file system
    if (waited >= patience_ms) return false;
    std::this_thread::sleep_for(5ms);
  }
}

}  // namespace

void Usage::note_eviction(std::uint64_t digest, std::int64_t when) {
  evicted[next++ % evicted.size()] = {digest, when};
}

bool Usage::was_evicted_since(std::uint64_t digest, std::int64_t since) const {
  return std::any_of(evicted.begin(), evicted.end(),
                     [&](const Evicted& one) { return one.digest == digest && one.when != 0 && one.when >= since; });
}

bool UsageLedger::update(int patience_ms, const std::function<void(Usage&)>& change) const {
  const int fd = ::open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
  if (fd < 0) return false;
  const bool locked = lock_within(fd, patience_ms);
  if (locked) {
    std::vector<std::uint8_t> bytes(encode({}).size());
    const ssize_t got = ::pread(fd, bytes.data(), bytes.size(), 0);
    Usage usage;
    if (got == static_cast<ssize_t>(bytes.size())) usage = decode(bytes).value_or(Usage{});
    change(usage);
    bytes = encode(usage);
    // A write that does not succeed leaves a torn ledger, which the next reader replaces by a scan.
    [[maybe_unused]] const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), 0);
  }
  ::close(fd);
  return locked;
}

}  // namespace gemvjit
