// Signatures: whether an entry or a bundle is signed by a key that this user trusts, and the key to sign with.
//
// The policy says what is asked for; signatures are parsed under each. Nothing is opened before the first question that
// needs it: then libcrypto, the trusted keys and the signing key are loaded, once, and stay what they were. What cannot
// be loaded is warned of once, and never widens what is trusted: without libcrypto nothing is signed by anybody.
//
// Threads: every function from any thread.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cache/entry.h"
#include "cache/key_files.h"
#include "src/base/log.h"

namespace gemvjit {

class Bundle;

enum class SignaturePolicy {
  off,      // nothing is asked for
  bundles,  // a bundle is used only if a trusted key signed it
  all,      // that, and an entry of any disk layer, bundles included, only if a trusted key signed it
};
std::optional<SignaturePolicy> parse_signature_policy(const std::string& text);
const char* signature_policy_name(SignaturePolicy policy);

struct SignatureOptions {
  SignaturePolicy policy = SignaturePolicy::off;
  std::vector<std::string> trust_dirs;
  std::string signing_key;  // a private key's file; "": none
  std::string libcrypto = default_libcrypto;
  bool trust_dirs_named = false;  // not the default ones: each has to be there
};

// $XDG_CONFIG_HOME/gemvjit/trust, else $HOME/.config/gemvjit/trust, and /etc/gemvjit/trust; a path of the environment
// that is not absolute is ignored.
std::vector<std::string> default_trust_dirs(const std::string& xdg_config_home, const std::string& home);

enum class SignatureState {
  none,
  trusted,      // right, and by a key of a trust directory
  unknown_key,  // right, by a key that is in none
  bad,          // not of these bytes, or not of this key
  unchecked,    // there is no libcrypto to say
};

struct SignatureFacts {
  SignatureState state = SignatureState::none;
  std::string key_id;    // of whom it says that it is; "" for none
  std::string key_file;  // trusted: the key's file
  bool is_trusted() const { return state == SignatureState::trusted; }
  std::string text() const;  // "signed by <id> (<file>)", "not signed", ...
};
const char* signature_state_name(SignatureState state);

class Signatures {
 public:
  Signatures(SignatureOptions options, Log log) : options_(std::move(options)), log_(std::move(log)) {}
  Signatures(const Signatures&) = delete;
  Signatures& operator=(const Signatures&) = delete;

  const SignatureOptions& options() const { return options_; }
  bool asks_for_bundles() const { return options_.policy != SignaturePolicy::off; }
  bool asks_for_entries() const { return options_.policy == SignaturePolicy::all; }

  // Who signed, whatever the policy.
  SignatureFacts examine(const Entry& entry) const;
  SignatureFacts examine(const Bundle& bundle) const;
  // ok if the policy asks for nothing or a trusted key signed; else unsupported, with what is wrong. A bundle's
  // signature that is there and is wrong is refused under every policy: the bundle was changed after it was signed.
  Status check(const Entry& entry) const;
  Status check(const Bundle& bundle) const;
  // The same of an entry from where others put what they like, such as a server: a trusted key must have signed it
  // unless the policy is off and there is no signing key, which would make it this user's own word.
  Status check_foreign(const Entry& entry) const;

  bool has_signing_key() const { return !options_.signing_key.empty(); }
  // invalid_argument without a key; otherwise why it could not be loaded or used.
  Result<SignatureBlock> sign(const Bytes& message) const;
  Result<Entry> sign(Entry entry) const;  // the entry with a new signature

  // For reports.
  const std::vector<TrustedKey>& trusted_keys() const { return loaded().trusted.keys; }
  std::vector<Status> problems() const;
  std::string signing_key_id() const;  // "" if there is none

 private:
  struct Loaded {
    std::shared_ptr<const Ed25519> ed25519;  // null: there is no libcrypto
    TrustedKeys trusted;
    std::shared_ptr<const Ed25519Signer> signer;
    Status library_problem, signer_problem;
  };
  const Loaded& loaded() const;
  void load() const;
  void report(const std::string& problem) const;
  SignatureFacts examine(const std::optional<SignatureBlock>& block, const Bytes& message) const;
  Status refuse(const std::string& what, const SignatureFacts& facts) const;

  const SignatureOptions options_;
  const Log log_;
  mutable std::once_flag once_;
  mutable Loaded loaded_;  // after once_
};

}  // namespace gemvjit
