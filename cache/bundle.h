// Bundle: many cache entries in one file, made once and then only read: shipped in an image, beside a model, on a
// share.
//
// File format, version 1. Little-endian, no padding; `string` is u32 length then bytes. Written from front to back.
//
//   bundle  := header entries index footer [signature]
//   header  := magic version reserved            magic := 8 bytes "GEMVJITB", version := u32, reserved := u32 0
//   entries := each entry exactly as encode_entry() writes it (entry.h), one after another
//   index   := for each entry: key:string digest:32 bytes offset:u64 size:u64 sha256:32 bytes
//   footer  := index_offset:u64 index_size:u64 entry_count:u64 index_sha256:32 bytes end_magic
//              end_magic := 8 bytes "GJBEND\r\n"
//   signature := a block as signature_block.h has it; there or not, by the last 8 bytes of the file
//
// `key` is the key's text, `digest` the id's, `sha256` that of the entry's bytes. The index is sorted by key text and
// digest without two alike, and the entries lie in its order without a gap: the same entries give the same bytes, and
// no byte of the file is covered by nothing. Whatever breaks one of these is damaged.
//
// The digests guard against damage, not against somebody who may write the file; for that there is the signature, which
// covers the index and through its digests every entry. It is parsed here, and verified by signatures.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/entry.h"
#include "src/base/descriptor.h"
#include "src/base/files.h"
#include "src/base/status.h"

namespace gemvjit {

inline constexpr std::uint32_t bundle_format_version = 1;
inline constexpr std::string_view bundle_suffix = ".gjb";
inline constexpr std::uint64_t bundle_entry_limit = 1u << 20;    // entries
inline constexpr std::uint64_t bundle_index_limit = 256u << 20;  // bytes of the index
inline constexpr std::uint64_t bundle_size_limit = 64ull << 30;  // bytes of the file
inline constexpr std::uint32_t bundle_key_limit = 128;           // bytes of a key's text

// One opened bundle. Threads: every function from any thread. The file stays open, so one that is replaced meanwhile is
// read on as it was; one that is cut or overwritten in place gives failures, never a wrong entry and no signal: bytes
// are copied by pread into memory of the process, verified, and used only then. Nothing is ever written.
class Bundle {
 public:
  struct Item {
    EntryId id;
    std::uint64_t offset = 0, size = 0;
    Digest sha256{};
  };

  // Reads and verifies header, footer and index. The path is opened without following a final symbolic link and must be
  // a regular file. not_found if there is none, entry_damaged for what is no whole bundle, io_error for what the system
  // refuses. Messages name the path.
  static Result<std::unique_ptr<Bundle>> open(const std::string& path);
  // The same of a file that is open already, for reading; `path` is for messages.
  static Result<std::unique_ptr<Bundle>> open(const std::string& path, Descriptor file);
  ~Bundle();
  Bundle(const Bundle&) = delete;
  Bundle& operator=(const Bundle&) = delete;

  const std::string& path() const { return path_; }
  const std::vector<Item>& items() const { return items_; }  // in the index's order
  std::uint64_t file_bytes() const { return file_bytes_; }
  const std::optional<SignatureBlock>& signature() const { return signature_; }
  const Bytes& signing_message() const { return signing_message_; }  // what a signature of it signs
  // nullptr if the bundle has no such entry.
  const Item* find(const EntryId& id) const;
  // The verified entry of an item of this bundle: entry_damaged if its bytes are not what the index says, do not
  // decode, or are another kernel's; io_error if they cannot be read.
  Result<Entry> read(const Item& item) const;
  // How messages and lists name an entry in it: "<path>#<the file name that a directory would give it>".
  std::string path_of(const EntryId& id) const;

 private:
  Bundle(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  Status read_index();
  Status parse_index(const Bytes& bytes, std::uint64_t count, std::uint64_t index_offset);
  Result<Bytes> read_bytes(std::uint64_t offset, std::uint64_t size) const;

  std::string path_;
  int fd_;
  std::uint64_t file_bytes_ = 0;
  std::vector<Item> items_;
  std::optional<SignatureBlock> signature_;
  Bytes signing_message_;
};

struct WrittenBundle {
  std::uint64_t entries = 0, bytes = 0;
  Digest sha256{};  // of the whole file
};

using SignMessage = std::function<Result<SignatureBlock>(const Bytes& message)>;

// Write the entries, in any order, as a bundle: to a temporary beside it, synced, renamed over `path`. On failure what
// was at `path` is as it was, and the temporary is gone. The file's mode follows the umask: it is made to be given
// away. What writers left beside it that were killed over an hour ago is removed. invalid_argument for two entries of
// one id, for one that could not be read back, and beyond a limit; io_error; and what `sign` answers, if there is one:
// it makes the bundle's signature, the entries keep theirs.
Result<WrittenBundle> write_bundle(const std::string& path, std::vector<const Entry*> entries,
                                   const SignMessage& sign = nullptr);
// The same of entries that are loaded one at a time, each once and in the bundle's order, so that never more than one
// is in memory. An entry for which `load` answers not_found is left out, and not_found is the result where that leaves
// none; all else that it answers ends it; invalid_argument if it gives another entry than was asked for.
using LoadEntry = std::function<Result<Entry>(const EntryId& id)>;
Result<WrittenBundle> write_bundle(const std::string& path, std::vector<EntryId> ids, const LoadEntry& load,
                                   const SignMessage& sign = nullptr);

}  // namespace gemvjit
