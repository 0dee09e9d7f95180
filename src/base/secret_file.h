// SecretFile: what a file holds that only its owner may know: a private key, a token, a password.
//
// Threads: any, each object one at a time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "src/base/files.h"
#include "src/base/status.h"

namespace gemvjit {

class SecretFile {
 public:
  // Reads at most `limit` bytes of a regular file, links followed. It must belong to this user or root and give group
  // and others no right at all, an ACL's names included (their mask is the group's part of the mode): invalid_argument,
  // else, with the remedy. io_error where it cannot be opened or read. `what` is for messages, which hold nothing of
  // the content: "the signing key".
  static Result<SecretFile> read(const std::string& path, std::size_t limit, std::string_view what);
  ~SecretFile();
  SecretFile(SecretFile&& other) noexcept = default;

  const Bytes& bytes() const { return bytes_; }  // gone with the object, whose memory is wiped

 private:
  SecretFile() = default;

  Bytes bytes_;
};

}  // namespace gemvjit
