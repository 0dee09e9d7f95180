#include "src/base/ed25519.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string_view>

#include "src/base/ed25519_point.h"
#include "src/base/process_end.h"

namespace gemvjit {

// What is used of libcrypto, as the manual pages of OpenSSL 3 declare it: BIO_s_mem(3), PEM_read_bio_PrivateKey(3),
// EVP_PKEY_new(3), EVP_PKEY_is_a(3), EVP_DigestSignInit(3), EVP_DigestVerifyInit(3), EVP_DigestInit(3),
// OPENSSL_init_crypto(3), ERR_set_mark(3). EVP_PKEY, BIO, EVP_MD_CTX and others are opaque there, and void here.
using PasswordCallback = int(char* buffer, int size, int writing, void* user);

struct Ed25519::Functions {
#define GEMVJIT_LIBCRYPTO(X)                                                                                  \
  X(void*, BIO_new_mem_buf, (const void* data, int size))                                                     \
  X(int, BIO_free, (void* bio))                                                                               \
  X(void*, PEM_read_bio_PUBKEY, (void* bio, void** key, PasswordCallback* ask, void* user))                   \
  X(void*, PEM_read_bio_PrivateKey, (void* bio, void** key, PasswordCallback* ask, void* user))               \
  X(void, EVP_PKEY_free, (void* key))                                                                         \
  X(int, EVP_PKEY_is_a, (const void* key, const char* name))                                                  \
  X(int, EVP_PKEY_get_raw_public_key, (const void* key, unsigned char* out, std::size_t* size))               \
  X(void*, EVP_PKEY_new_raw_public_key, (int type, void* engine, const unsigned char* raw, std::size_t size)) \
  X(void*, EVP_MD_CTX_new, ())                                                                                \
  X(void, EVP_MD_CTX_free, (void* context))                                                                   \
  X(int, EVP_DigestSignInit, (void* context, void** pctx, const void* md, void* engine, void* key))           \
  X(int, EVP_DigestSign,                                                                                      \
    (void* context, unsigned char* out, std::size_t* size, const unsigned char* data, std::size_t data_size)) \
  X(int, EVP_DigestVerifyInit, (void* context, void** pctx, const void* md, void* engine, void* key))         \
  X(int, EVP_DigestVerify,                                                                                    \
    (void* context, const unsigned char* signature, std::size_t size, const unsigned char* data,              \
     std::size_t data_size))                                                                                  \
  X(int, OPENSSL_init_crypto, (std::uint64_t options, const void* settings))                                  \
  X(int, ERR_set_mark, ())                                                                                    \
  X(int, ERR_pop_to_mark, ())
#define X(result, name, arguments) result(*name) arguments = nullptr;
  GEMVJIT_LIBCRYPTO(X)
#undef X
};

namespace {

using Functions = Ed25519::Functions;

constexpr int evp_pkey_ed25519 = 1087;  // EVP_PKEY_ED25519, that is NID_ED25519 of obj_mac.h

// No passphrase: OpenSSL's own callback would ask on the terminal.
int no_passphrase(char*, int, int, void*) { return 0; }

// Failures of OpenSSL leave messages in a queue of the thread, which the caller of the library may look at. Not allowed
// once the process has ended OpenSSL.
class QuietErrors {
 public:
  explicit QuietErrors(const Functions& functions) : functions_(functions) {
    if (allowed()) functions_.ERR_set_mark();
  }
  ~QuietErrors() {
    if (allowed()) functions_.ERR_pop_to_mark();
  }
  bool allowed() const { return call_.allowed(); }
  QuietErrors(const QuietErrors&) = delete;
  QuietErrors& operator=(const QuietErrors&) = delete;

 private:
  const LibraryCall call_;
  const Functions& functions_;
};

constexpr const char* process_ends = "OpenSSL is not to be used any more: the process is ending";

using Owned = std::unique_ptr<void, void (*)(void*)>;

Owned owned_key(const Functions& functions, void* key) { return Owned(key, functions.EVP_PKEY_free); }
Owned new_context(const Functions& functions) { return Owned(functions.EVP_MD_CTX_new(), functions.EVP_MD_CTX_free); }

Status refuse(const char* what) { return {StatusCode::invalid_argument, what}; }

using PemReader = void*(void* bio, void** key, PasswordCallback* ask, void* user);

Owned read_pem(const Functions& functions, PemReader* read, const Bytes& pem) {
  Owned none(nullptr, functions.EVP_PKEY_free);
  if (pem.empty() || pem.size() > (1u << 20)) return none;
  void* bio = functions.BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  if (bio == nullptr) return none;
  Owned key = owned_key(functions, read(bio, nullptr, no_passphrase, nullptr));
  functions.BIO_free(bio);
  return key;
}

constexpr std::string_view pem_begin = "-----BEGIN ";

std::string_view text_of(const Bytes& pem) { return {reinterpret_cast<const char*>(pem.data()), pem.size()}; }

// libcrypto reads the first key of a file and takes no notice of what follows.
bool has_second_key(const Bytes& pem) {
  const std::string_view text = text_of(pem);
  const std::size_t first = text.find(pem_begin);
  return first != text.npos && text.find(pem_begin, first + 1) != text.npos;
}

// Nor of what follows a key within its block: one of Ed25519 has 44 bytes, which are 60 characters.
bool has_more_than_a_key(const Bytes& pem) {
  constexpr std::size_t characters_of_key = 60;
  const std::string_view text = text_of(pem);
  const std::size_t begin = text.find('\n', text.find(pem_begin)), end = text.find("-----END ");
  if (begin >= end || end == text.npos) return true;
  const std::string_view body = text.substr(begin, end - begin);
  const auto is_blank = [](unsigned char c) { return c <= ' '; };
  return body.size() - static_cast<std::size_t>(std::count_if(body.begin(), body.end(), is_blank)) != characters_of_key;
}

bool raw_public_key(const Functions& functions, const void* key, Ed25519PublicKey& raw) {
  std::size_t size = raw.size();
  return functions.EVP_PKEY_is_a(key, "ED25519") == 1 &&
         functions.EVP_PKEY_get_raw_public_key(key, raw.data(), &size) == 1 && size == raw.size();
}

class Signer final : public Ed25519Signer {
 public:
  Signer(std::shared_ptr<const Functions> functions, Owned key, const Ed25519PublicKey& raw)
      : functions_(std::move(functions)), key_(std::move(key)), public_key_(raw) {}

  ~Signer() override {
    if (!LibraryCall().allowed()) (void)key_.release();
  }

  const Ed25519PublicKey& public_key() const override { return public_key_; }

  Result<Ed25519Signature> sign(const Bytes& message) const override {
    const QuietErrors quiet(*functions_);
    if (!quiet.allowed()) return Status(StatusCode::cancelled, process_ends);
    const Owned context = new_context(*functions_);
    Ed25519Signature signature{};
    std::size_t size = signature.size();
    // Ed25519 hashes by itself: no digest is named, and the message goes in whole.
    if (context == nullptr ||
        functions_->EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) != 1 ||
        functions_->EVP_DigestSign(context.get(), signature.data(), &size, message.data(), message.size()) != 1 ||
        size != signature.size()) {
      return Status(StatusCode::internal_error, "libcrypto could not sign");
    }
    return signature;
  }

 private:
  std::shared_ptr<const Functions> functions_;
  Owned key_;
  Ed25519PublicKey public_key_;
};

Result<std::shared_ptr<const Functions>> load(const std::string& file) {
  void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = ::dlerror();
    return Status(StatusCode::unsupported, fmt::format("signatures need OpenSSL 3, and {} cannot be opened: {}", file,
                                                       reason == nullptr ? "no reason given" : reason));
  }
  auto functions = std::make_shared<Functions>();
#define X(result, name, arguments)                                                                   \
  functions->name = reinterpret_cast<result(*) arguments>(::dlsym(handle, #name));                   \
  if (functions->name == nullptr) {                                                                  \
    return Status(StatusCode::unsupported,                                                           \
                  fmt::format("signatures need OpenSSL 3, and {} has no function {}", file, #name)); \
  }
  GEMVJIT_LIBCRYPTO(X)
#undef X
  (void)functions->OPENSSL_init_crypto(0, nullptr);  // now, so that its handler of exit() comes after this library's
  watch_process_end();
  return std::shared_ptr<const Functions>(std::move(functions));
}

}  // namespace

Result<std::shared_ptr<const Ed25519>> Ed25519::open(const std::string& libcrypto) {
  static std::mutex& mutex = *new std::mutex;
  // Outlives every static: keys are freed by functions of the library. Failures are not kept.
  static auto* const opened = new std::map<std::string, std::shared_ptr<const Functions>>;
  const std::lock_guard lock(mutex);
  auto& functions = (*opened)[libcrypto];
  if (functions == nullptr) {
    GEMVJIT_TRY_ASSIGN(functions, load(libcrypto));
  }
  return std::shared_ptr<const Ed25519>(new Ed25519(functions));
}

Result<Ed25519PublicKey> Ed25519::read_public_key(const Bytes& pem) const {
  const QuietErrors quiet(*functions_);
  if (!quiet.allowed()) return Status(StatusCode::cancelled, process_ends);
  const Owned key = read_pem(*functions_, functions_->PEM_read_bio_PUBKEY, pem);
  if (key == nullptr) return refuse("it is no public key in PEM format (openssl pkey -pubout writes one)");
  Ed25519PublicKey raw{};
  if (!raw_public_key(*functions_, key.get(), raw)) return refuse("it is a key of another kind than Ed25519");
  if (has_second_key(pem) || has_more_than_a_key(pem)) {
    return refuse("it holds more than one key (each belongs into a file of its own)");
  }
  GEMVJIT_TRY(check_ed25519_point(raw));
  return raw;
}

Result<std::shared_ptr<const Ed25519Signer>> Ed25519::read_private_key(const Bytes& pem) const {
  const QuietErrors quiet(*functions_);
  if (!quiet.allowed()) return Status(StatusCode::cancelled, process_ends);
  Owned key = read_pem(*functions_, functions_->PEM_read_bio_PrivateKey, pem);
  if (key == nullptr) {
    return refuse("it is no private key in PEM format without a passphrase (openssl genpkey -algorithm ed25519)");
  }
  Ed25519PublicKey raw{};
  if (!raw_public_key(*functions_, key.get(), raw)) return refuse("it is a key of another kind than Ed25519");
  if (has_second_key(pem)) return refuse("it holds more than one key (each belongs into a file of its own)");
  return std::shared_ptr<const Ed25519Signer>(std::make_shared<Signer>(functions_, std::move(key), raw));
}

bool Ed25519::verify(const Ed25519PublicKey& key, const Bytes& message, const Ed25519Signature& signature) const {
  const QuietErrors quiet(*functions_);
  if (!quiet.allowed()) return false;
  const Owned made = owned_key(
      *functions_, functions_->EVP_PKEY_new_raw_public_key(evp_pkey_ed25519, nullptr, key.data(), key.size()));
  const Owned context = new_context(*functions_);
  return made != nullptr && context != nullptr &&
         functions_->EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, made.get()) == 1 &&
         functions_->EVP_DigestVerify(context.get(), signature.data(), signature.size(), message.data(),
                                      message.size()) == 1;
}

}  // namespace gemvjit
