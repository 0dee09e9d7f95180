#include "src/base/lock_record.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string_view>

#include "src/base/sha256.h"

namespace gemvjit {
namespace {

constexpr std::string_view magic = "GEMVLCK1";
constexpr std::size_t nonce_offset = 16;
constexpr std::size_t message_limit = 16 * 1024;

template <typename Integer>
void put_integer(Bytes& bytes, Integer value) {
  for (std::size_t i = 0; i < sizeof value; ++i) {
    bytes.push_back(static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) >> (8 * i)));
  }
}

void put_string(Bytes& bytes, std::string_view text) {
  put_integer(bytes, static_cast<std::uint32_t>(text.size()));
  bytes.insert(bytes.end(), text.begin(), text.end());
}

// Reads on from a position; `good` is false once anything was not there.
struct Reader {
  const std::uint8_t* at;
  std::size_t left;
  bool good = true;

  template <typename Integer>
  Integer integer() {
    std::uint64_t value = 0;
    const std::uint8_t* bytes = take(sizeof(Integer));
    for (std::size_t i = 0; bytes != nullptr && i < sizeof(Integer); ++i) value |= std::uint64_t{bytes[i]} << (8 * i);
    return static_cast<Integer>(value);
  }
  std::string string() {
    const std::size_t size = integer<std::uint32_t>();
    const std::uint8_t* bytes = take(size);
    return bytes == nullptr ? std::string() : std::string(bytes, bytes + size);
  }
  const std::uint8_t* take(std::size_t size) {
    if (!good || size > left) {
      good = false;
      return nullptr;
    }
    const std::uint8_t* taken = at;
    at += size;
    left -= size;
    return taken;
  }
};

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
  payload.push_back(static_cast<std::uint8_t>(outcome.kind));
  put_integer(payload, static_cast<std::int32_t>(outcome.failure.code()));
  put_string(payload, std::string_view(outcome.maker).substr(0, 256));
  put_string(payload, message);
  Bytes bytes;
  put_integer(bytes, static_cast<std::uint32_t>(payload.size()));
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  const Digest checksum = outcome_checksum(header.data() + nonce_offset, payload.data(), payload.size());
  bytes.insert(bytes.end(), checksum.begin(), checksum.end());
  return bytes;
}

std::optional<LockOutcome> decode_lock_outcome(const Bytes& file) {
  if (file.size() < lock_header_size) return std::nullopt;
  Reader reader{file.data() + lock_header_size, file.size() - lock_header_size};
  const std::size_t size = reader.integer<std::uint32_t>();
  const std::uint8_t* payload = reader.take(size);
  const std::uint8_t* checksum = reader.take(sizeof(Digest));
  if (!reader.good || reader.left != 0) return std::nullopt;
  const Digest expected = outcome_checksum(file.data() + nonce_offset, payload, size);
  if (!std::equal(expected.begin(), expected.end(), checksum)) return std::nullopt;
  Reader fields{payload, size};
  LockOutcome outcome{};
  outcome.kind = static_cast<char>(fields.integer<std::uint8_t>());
  const auto code = static_cast<StatusCode>(fields.integer<std::int32_t>());
  outcome.maker = fields.string();
  outcome.failure = Status(code, fields.string());
  if (!fields.good || fields.left != 0) return std::nullopt;
  if (outcome.kind != 'D' && outcome.kind != 'F') return std::nullopt;
  if ((outcome.kind == 'D') != outcome.failure.is_ok()) return std::nullopt;
  return outcome;
}

std::array<std::uint8_t, 8> lock_beat(std::uint64_t beat) {
  std::array<std::uint8_t, 8> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(beat >> (8 * i));
  return bytes;
}

std::int64_t lock_holder_pid(const Bytes& file) {
  if (file.size() < lock_header_size || !std::equal(magic.begin(), magic.end(), file.begin())) return 0;
  Reader reader{file.data() + 8, 8};
  return reader.integer<std::int64_t>();
}

LockHeader make_lock_header() {
  Bytes bytes(magic.begin(), magic.end());
  put_integer(bytes, static_cast<std::int64_t>(::getpid()));
  std::uint64_t nonce = 0;  // tells this holding from another by the same process; need not be a secret
  if (::getrandom(&nonce, sizeof nonce, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof nonce)) {
    nonce = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  put_integer(bytes, nonce);
  put_integer(bytes, std::uint64_t{0});
  LockHeader header{};
  std::copy(bytes.begin(), bytes.end(), header.begin());
  return header;
}

}  // namespace gemvjit
