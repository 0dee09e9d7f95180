#include "cache/entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "src/base/binary_fields.h"

namespace gemvjit {
namespace {

constexpr std::string_view magic = "GEMVJIT\n";
constexpr std::size_t prefix_size = magic.size() + 4 + 4;  // magic, version, header_size
constexpr std::size_t checksum_size = std::tuple_size_v<Digest>;
constexpr std::size_t smallest_entry = prefix_size + 8 + checksum_size;

template <typename... Args>
Status damaged(fmt::format_string<Args...> format, Args&&... args) {
  return {StatusCode::entry_damaged, fmt::format(format, std::forward<Args>(args)...)};
}

Bytes encode_header(const Entry& entry) {
  Bytes header;
  FieldWriter out(header);
  const KernelKey& key = entry.id.key;
  const Cubin& cubin = entry.cubin;
  out.number(key.n);
  out.number(key.k);
  out.number(key.nt);
  out.number(key.flags);
  out.number(static_cast<std::int32_t>(key.arch.sm));
  out.number(static_cast<std::uint8_t>(key.arch.suffix));
  out.raw(entry.id.digest.data(), entry.id.digest.size());
  out.number(entry.created_unix_seconds);
  out.number(cubin.compile_ms);
  out.number(cubin.resources.registers);
  out.number(cubin.resources.static_smem_bytes);
  out.number(cubin.resources.spill_store_bytes);
  out.number(cubin.resources.spill_load_bytes);
  out.number(cubin.resources.stack_bytes);
  out.number(static_cast<std::uint8_t>(cubin.waits_for_predecessor ? 1 : 0));
  out.string(cubin.entry_name);
  out.string(cubin.compiler_version);
  return header;
}

// The fields in the order of encode_header; then the rules that give every entry one encoding.
Status decode_header(const std::uint8_t* data, std::size_t size, Entry& entry) {
  FieldReader in(data, size);
  KernelKey& key = entry.id.key;
  Cubin& cubin = entry.cubin;
  std::int32_t sm = 0;
  std::uint8_t suffix = 0;
  std::uint8_t waits = 0;
  in.number(key.n);
  in.number(key.k);
  in.number(key.nt);
  in.number(key.flags);
  in.number(sm);
  in.number(suffix);
  in.raw(entry.id.digest.data(), entry.id.digest.size());
  in.number(entry.created_unix_seconds);
  in.number(cubin.compile_ms);
  in.number(cubin.resources.registers);
  in.number(cubin.resources.static_smem_bytes);
  in.number(cubin.resources.spill_store_bytes);
  in.number(cubin.resources.spill_load_bytes);
  in.number(cubin.resources.stack_bytes);
  in.number(waits);
  in.string(cubin.entry_name, entry_string_limit);
  in.string(cubin.compiler_version, entry_string_limit);
  if (!in.ok()) return damaged("the header of {} bytes ends within a field, or holds too long a string", size);
  if (in.left() != 0) return damaged("{} bytes are left over at the end of the header", in.left());

  key.arch.sm = sm;
  key.arch.suffix = static_cast<char>(suffix);
  if (key.n < 0 || key.k < 0 || key.nt < 0) return damaged("the key has a negative size");
  if (sm < 1 || sm > 9999 || (suffix != 0 && suffix != 'a' && suffix != 'f')) {
    return damaged("the architecture {} with suffix byte {} is none", sm, suffix);
  }
  if (waits > 1) return damaged("the field that says whether the code waits holds {}, expected 0 or 1", waits);
  cubin.waits_for_predecessor = waits == 1;
  return Status::ok();
}

}  // namespace

Bytes encode_entry(const Entry& entry) {
  Bytes bytes = encode_unsigned_entry(entry);
  if (entry.signature) append_signature_block(bytes, *entry.signature);
  return bytes;
}

Bytes encode_unsigned_entry(const Entry& entry) {
  const Bytes header = encode_header(entry);
  Bytes bytes;
  bytes.reserve(smallest_entry + header.size() + entry.cubin.bytes.size() + signature_block_bytes);
  FieldWriter out(bytes);
  out.raw(magic.data(), magic.size());
  out.number(entry_format_version);
  out.number(static_cast<std::uint32_t>(header.size()));
  out.raw(header.data(), header.size());
  out.number(std::uint64_t{entry.cubin.bytes.size()});
  out.raw(entry.cubin.bytes.data(), entry.cubin.bytes.size());
  const Digest checksum = Sha256::of(bytes.data(), bytes.size());
  out.raw(checksum.data(), checksum.size());
  return bytes;
}

Result<Entry> decode_entry(const Bytes& bytes) {
  if (bytes.size() < smallest_entry) return damaged("{} bytes are too few for an entry", bytes.size());
  if (std::memcmp(bytes.data(), magic.data(), magic.size()) != 0) return damaged("it does not begin as an entry does");

  FieldReader prefix(bytes.data() + magic.size(), prefix_size - magic.size());
  std::uint32_t version = 0;
  std::uint32_t header_size = 0;
  prefix.number(version);
  prefix.number(header_size);
  if (version != entry_format_version) {
    return damaged("it has format version {}, this library reads version {}", version, entry_format_version);
  }
  if (header_size > bytes.size() - smallest_entry) {
    return damaged("a header of {} bytes does not fit into its {} bytes", header_size, bytes.size());
  }

  const std::uint8_t* header = bytes.data() + prefix_size;
  const std::uint8_t* payload = header + header_size + 8;
  FieldReader sizes(header + header_size, 8);
  std::uint64_t payload_size = 0;
  sizes.number(payload_size);
  // The sizes say whether there is a signature; what the bytes look like does not.
  std::size_t payload_space = bytes.size() - smallest_entry - header_size;
  const bool is_signed =
      payload_space >= signature_block_bytes && payload_size == payload_space - signature_block_bytes;
  if (is_signed) payload_space -= signature_block_bytes;
  if (payload_size != payload_space) {
    return damaged("it is cut off or too long: a payload of {} bytes where there are {}", payload_size, payload_space);
  }

  Digest stored;
  std::memcpy(stored.data(), payload + payload_space, checksum_size);
  const std::uint8_t* checksum = payload + payload_space;
  if (Sha256::of(bytes.data(), static_cast<std::size_t>(checksum - bytes.data())) != stored) {
    return damaged("its checksum does not match");
  }

  Entry entry;
  if (is_signed) {
    entry.signature = parse_signature_block(checksum + checksum_size);
    if (!entry.signature) return damaged("what follows its checksum is no signature");
  }
  GEMVJIT_TRY(decode_header(header, header_size, entry));
  entry.cubin.bytes.assign(payload, payload + payload_space);
  return entry;
}

}  // namespace gemvjit
