#include "cache/signatures.h"

#include <fmt/format.h>

#include <algorithm>

#include "cache/bundle.h"
#include "src/base/files.h"

namespace gemvjit {
namespace {

struct PolicyName {
  SignaturePolicy policy;
  const char* name;
};
constexpr PolicyName policy_names[] = {
    {SignaturePolicy::off, "off"}, {SignaturePolicy::bundles, "bundles"}, {SignaturePolicy::all, "all"}};

constexpr const char* system_trust_dir = "/etc/gemvjit/trust";

}  // namespace

std::optional<SignaturePolicy> parse_signature_policy(const std::string& text) {
  for (const PolicyName& row : policy_names) {
    if (text == row.name) return row.policy;
  }
  return std::nullopt;
}

const char* signature_policy_name(SignaturePolicy policy) {
  for (const PolicyName& row : policy_names) {
    if (policy == row.policy) return row.name;
  }
  return "unknown";
}

std::vector<std::string> default_trust_dirs(const std::string& xdg_config_home, const std::string& home) {
  std::vector<std::string> folders;
  const std::string folder = user_config_folder(xdg_config_home, home);
  if (!folder.empty()) folders.push_back(folder + "/trust");
  folders.emplace_back(system_trust_dir);
  return folders;
}

const char* signature_state_name(SignatureState state) {
  switch (state) {
    case SignatureState::none:
      return "none";
    case SignatureState::trusted:
      return "trusted";
    case SignatureState::unknown_key:
      return "unknown_key";
    case SignatureState::bad:
      return "bad";
    case SignatureState::unchecked:
      return "unchecked";
  }
  return "unknown";
}

std::string SignatureFacts::text() const {
  switch (state) {
    case SignatureState::none:
      return "not signed";
    case SignatureState::trusted:
      return fmt::format("signed by {} ({})", key_id, key_file);
    case SignatureState::unknown_key:
      return fmt::format("signed by {}, a key that is in no trust directory", key_id);
    case SignatureState::bad:
      return fmt::format("its signature, said to be by {}, is wrong", key_id);
    case SignatureState::unchecked:
      return fmt::format("signed by {}, it says, which cannot be checked without libcrypto", key_id);
  }
  return "";
}

const Signatures::Loaded& Signatures::loaded() const {
  std::call_once(once_, [this] { load(); });
  return loaded_;
}

// Under a policy that asks for nothing, and without a key to sign with, nobody needs to know.
void Signatures::report(const std::string& problem) const {
  if (asks_for_bundles() || has_signing_key()) {
    log_.warning("{}", problem);
  } else {
    log_.debug("{}", problem);
  }
}

void Signatures::load() const {
  auto ed25519 = Ed25519::open(options_.libcrypto);
  if (!ed25519) {
    loaded_.library_problem = loaded_.signer_problem = ed25519.status();
    report(
        fmt::format("no signature of a cache entry or bundle can be checked or made: {}", ed25519.status().message()));
    return;
  }
  loaded_.ed25519 = std::move(ed25519).value();
  loaded_.trusted = load_trusted_keys(options_.trust_dirs, options_.trust_dirs_named, *loaded_.ed25519);
  for (const Status& problem : loaded_.trusted.problems) {
    report("keys not trusted: " + problem.message());
  }
  if (options_.signing_key.empty()) return;
  auto signer = load_signing_key(options_.signing_key, *loaded_.ed25519);
  if (!signer) {
    loaded_.signer_problem = signer.status();
    log_.warning("cache entries are not signed: {}", signer.status().message());
    return;
  }
  loaded_.signer = std::move(signer).value();
  const auto& keys = loaded_.trusted.keys;
  const bool trusted = std::any_of(keys.begin(), keys.end(),
                                   [&](const TrustedKey& known) { return known.key == loaded_.signer->public_key(); });
  if (asks_for_entries() && !trusted) {
    log_.warning("the signing key {} is in no trust directory: entries that it signs are not used here",
                 key_id(loaded_.signer->public_key()));
  }
}

SignatureFacts Signatures::examine(const std::optional<SignatureBlock>& block, const Bytes& message) const {
  if (!block) return {};
  SignatureFacts facts{SignatureState::unchecked, key_id(block->public_key), ""};
  const Loaded& with = loaded();
  if (with.ed25519 == nullptr) return facts;
  if (!with.ed25519->verify(block->public_key, message, block->signature)) {
    facts.state = SignatureState::bad;
    return facts;
  }
  facts.state = SignatureState::unknown_key;
  for (const TrustedKey& known : with.trusted.keys) {
    if (known.key != block->public_key) continue;
    facts.state = SignatureState::trusted;
    facts.key_file = known.file;
    break;
  }
  return facts;
}

SignatureFacts Signatures::examine(const Entry& entry) const {
  if (!entry.signature) return {};
  return examine(entry.signature, entry_signing_message(entry));
}

SignatureFacts Signatures::examine(const Bundle& bundle) const {
  return examine(bundle.signature(), bundle.signing_message());
}

Status Signatures::refuse(const std::string& what, const SignatureFacts& facts) const {
  return {StatusCode::unsupported, fmt::format("{}: {}, and cache_signatures is {}", what, facts.text(),
                                               signature_policy_name(options_.policy))};
}

Status Signatures::check(const Entry& entry) const {
  if (!asks_for_entries()) return Status::ok();
  const SignatureFacts facts = examine(entry);
  return facts.is_trusted() ? Status::ok() : refuse(entry.id.key.text(), facts);
}

Status Signatures::check_foreign(const Entry& entry) const {
  const bool asks = options_.policy != SignaturePolicy::off || has_signing_key();
  const SignatureFacts facts = asks || entry.signature ? examine(entry) : SignatureFacts{};
  if (facts.state == SignatureState::bad) {
    return {StatusCode::unsupported, fmt::format("{}: {}", entry.id.key.text(), facts.text())};
  }
  if (!asks || facts.is_trusted()) return Status::ok();
  if (options_.policy != SignaturePolicy::off) return refuse(entry.id.key.text(), facts);
  return {StatusCode::unsupported, fmt::format("{}: {}, and what comes from elsewhere is not signed with the key here",
                                               entry.id.key.text(), facts.text())};
}

Status Signatures::check(const Bundle& bundle) const {
  const SignatureFacts facts = asks_for_bundles() || bundle.signature() ? examine(bundle) : SignatureFacts{};
  if (facts.state == SignatureState::bad) {
    return {StatusCode::unsupported, fmt::format("{}: {}", bundle.path(), facts.text())};
  }
  return !asks_for_bundles() || facts.is_trusted() ? Status::ok() : refuse(bundle.path(), facts);
}

Result<SignatureBlock> Signatures::sign(const Bytes& message) const {
  if (!has_signing_key()) return Status(StatusCode::invalid_argument, "no signing key is named");
  const Loaded& with = loaded();
  if (with.signer == nullptr) return with.signer_problem;
  SignatureBlock block;
  block.public_key = with.signer->public_key();
  GEMVJIT_TRY_ASSIGN(block.signature, with.signer->sign(message));
  return block;
}

Result<Entry> Signatures::sign(Entry entry) const {
  GEMVJIT_TRY_ASSIGN(entry.signature, sign(entry_signing_message(entry)));
  return entry;
}

std::vector<Status> Signatures::problems() const {
  const Loaded& with = loaded();
  std::vector<Status> all = with.trusted.problems;
  if (!with.library_problem) {
    all.push_back(with.library_problem);
  } else if (!with.signer_problem) {
    all.push_back(with.signer_problem);
  }
  return all;
}

std::string Signatures::signing_key_id() const {
  const Loaded& with = loaded();
  return with.signer == nullptr ? "" : key_id(with.signer->public_key());
}

}  // namespace gemvjit
