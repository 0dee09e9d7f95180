#include "cache/usage_ledger.h"

#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "cache/cache_folders.h"
#include "cache/layout.h"
#include "src/base/binary_fields.h"
#include "src/base/blocked_signal.h"
#include "src/base/descriptor.h"
#include "src/base/sha256.h"

namespace gemvjit {
namespace {

constexpr char magic[] = "GEMVUSE2";
constexpr std::size_t magic_size = 8;
constexpr char file_name[] = "usage";  // in the format version's folder

// Fields in the order of the header comment.
Bytes encode(const Usage& usage) {
  Bytes bytes;
  FieldWriter out(bytes);
  out.raw(magic, magic_size);
  out.number(usage.total_bytes);
  out.number(usage.scanned_at);
  out.number(usage.scans);
  out.number(usage.next);
  for (const Usage::Evicted& one : usage.evicted) out.number(one.digest), out.number(one.when);
  const Digest digest = Sha256::of(bytes.data(), bytes.size());
  out.raw(digest.data(), digest.size());
  return bytes;
}

std::optional<Usage> decode(const Bytes& bytes) {
  if (bytes.size() != encode({}).size() || std::memcmp(bytes.data(), magic, magic_size) != 0) return std::nullopt;
  const std::size_t body = bytes.size() - Digest{}.size();
  const Digest digest = Sha256::of(bytes.data(), body);
  if (std::memcmp(digest.data(), bytes.data() + body, digest.size()) != 0) return std::nullopt;
  Usage usage;
  FieldReader in(bytes.data() + magic_size, body - magic_size);
  in.number(usage.total_bytes);
  in.number(usage.scanned_at);
  in.number(usage.scans);
  in.number(usage.next);
  for (Usage::Evicted& one : usage.evicted) in.number(one.digest), in.number(one.when);
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

std::string usage_ledger_path(const std::string& root) { return version_directory(root) + "/" + file_name; }

std::size_t Usage::evictions_since(std::int64_t since) const {
  return static_cast<std::size_t>(std::count_if(
      evicted.begin(), evicted.end(), [&](const Evicted& one) { return one.when != 0 && one.when >= since; }));
}

Result<Folder> UsageLedger::folder() const {
  return open_cache_folder(root_, version_directory(root_), guard_ ? &*guard_ : nullptr);
}

Usage UsageLedger::read() const {
  const auto in = folder();
  const auto bytes = in ? in->read_file(file_name, encode({}).size()) : in.status();
  return bytes ? decode(*bytes).value_or(Usage{}) : Usage{};
}

bool UsageLedger::update(int patience_ms, const Change& change, Missing missing) const {
  const auto in = folder();
  if (!in) return false;
  const Descriptor file = open_cache_record(*in, file_name, magic, trust_, guard_ ? &*guard_ : nullptr, missing);
  if (!file.is_open() || !lock_within(file.get(), patience_ms)) return false;
  Bytes bytes(encode({}).size());
  const ssize_t got = ::pread(file.get(), bytes.data(), bytes.size(), 0);
  Usage usage;
  if (got == static_cast<ssize_t>(bytes.size())) usage = decode(bytes).value_or(Usage{});
  const auto keep = [&] {
    const Bytes now = encode(usage);
    const BlockedSignal no_sigxfsz(SIGXFSZ);
    // A write that does not succeed leaves a torn ledger, which the next reader replaces by a scan.
    [[maybe_unused]] const ssize_t written = ::pwrite(file.get(), now.data(), now.size(), 0);
  };
  change(usage, keep);
  keep();
  return true;
}

}  // namespace gemvjit
