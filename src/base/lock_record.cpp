#include "src/base/lock_record.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "src/base/binary_fields.h"
#include "src/base/sha256.h"

namespace gemvjit {
namespace {

constexpr std::string_view magic = "GEMVLCK1";
constexpr std::size_t nonce_offset = 16;
constexpr std::size_t message_limit = std::size_t{16} * 1024;

Digest outcome_checksum(const std::uint8_t* nonce, const std::uint8_t* payload, std::size_t size) {
  Sha256 sha;
  sha.update(nonce, 8);
  sha.update(payload, size);
  return sha.finish();
}

}  // namespace

Bytes encode_lock_outcome(const LockHeader& header, const LockOutcome& outcome) {
  std::string message = outcome.failure.message();
  if (message.size() > message_limit) message.replace(message_limit, std::string::npos, "\n[shortened]");
  Bytes payload;
  FieldWriter fields(payload);
  fields.number(static_cast<std::uint8_t>(outcome.kind));
  fields.number(static_cast<std::int32_t>(outcome.failure.code()));
  fields.string(std::string_view(outcome.maker).substr(0, 256));
  fields.string(message);
  Bytes bytes;
  FieldWriter out(bytes);
  out.number(static_cast<std::uint32_t>(payload.size()));
  out.raw(payload.data(), payload.size());
  const Digest checksum = outcome_checksum(header.data() + nonce_offset, payload.data(), payload.size());
  out.raw(checksum.data(), checksum.size());
  return bytes;
}

std::optional<LockOutcome> decode_lock_outcome(const Bytes& file) {
  if (file.size() < lock_header_size) return std::nullopt;
  FieldReader reader(file.data() + lock_header_size, file.size() - lock_header_size);
  std::uint32_t size = 0;
  reader.number(size);
  const std::uint8_t* payload = reader.take(size);
  const std::uint8_t* checksum = reader.take(sizeof(Digest));
  if (!reader.ok() || reader.left() != 0) return std::nullopt;
  const Digest expected = outcome_checksum(file.data() + nonce_offset, payload, size);
  if (!std::equal(expected.begin(), expected.end(), checksum)) return std::nullopt;
  FieldReader fields(payload, size);
  std::uint8_t kind = 0;
  std::int32_t code = 0;
  std::string message;
  LockOutcome outcome{};
  fields.number(kind);
  fields.number(code);
  fields.string(outcome.maker, size);
  fields.string(message, size);
  if (!fields.ok() || fields.left() != 0) return std::nullopt;
  outcome.kind = static_cast<char>(kind);
  outcome.failure = Status(static_cast<StatusCode>(code), std::move(message));
  if (outcome.kind != 'D' && outcome.kind != 'F') return std::nullopt;
  if ((outcome.kind == 'D') != outcome.failure.is_ok()) return std::nullopt;
  return outcome;
}

std::array<std::uint8_t, 8> lock_beat(std::uint64_t beat) { return little_endian(beat); }

std::int64_t lock_holder_pid(const Bytes& file) {
  if (file.size() < lock_header_size || !std::equal(magic.begin(), magic.end(), file.begin())) return 0;
  std::int64_t pid = 0;
  FieldReader(file.data() + magic.size(), sizeof pid).number(pid);
  return pid;
}

LockHeader make_lock_header() {
  std::uint64_t nonce = 0;  // tells this holding from another by the same process; need not be a secret
  if (::getrandom(&nonce, sizeof nonce, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof nonce)) {
    nonce = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  const auto pid = little_endian(static_cast<std::int64_t>(::getpid()));
  const auto nonce_bytes = little_endian(nonce);
  LockHeader header{};  // the beat is 0
  std::copy(magic.begin(), magic.end(), header.begin());
  std::copy(pid.begin(), pid.end(), header.begin() + magic.size());
  std::copy(nonce_bytes.begin(), nonce_bytes.end(), header.begin() + nonce_offset);
  return header;
}

}  // namespace gemvjit
