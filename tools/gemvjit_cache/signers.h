// What the commands say and ask of signatures.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "cache/signatures.h"
#include "cache/store.h"
#include "tools/gemvjit_cache/commands.h"

namespace gemvjit::tools {

// Policy, trusted keys and signing key of the environment; --sign-key wins. exit_usage, said on stderr, for a policy
// that is none. Where the policy asks for signatures, what cannot be loaded is said on stderr too.
ExitCode open_signatures(const CacheArguments& arguments, std::shared_ptr<const Signatures>& signatures);

// exit_environment, said on stderr, where there is a signing key and nothing can be signed with it. Asked before the
// work, so that its failure is neither taken for another nor missed where there is nothing to sign.
ExitCode check_signing_key(const Signatures& signatures);

// Why an entry is not passed on, least of all under another signature: under the policy all no trusted key signed it,
// or under any its signature is wrong.
Status check_signature(const Signatures& signatures, const Entry& entry);

nlohmann::ordered_json signature_json(const SignatureFacts& facts);

// Who signed the whole ones of the entries, as the field "signatures" of the document and, if asked for, in lines.
// Returns how many are not to be trusted: wrong signatures under each policy, and under the policy all what no trusted
// key signed.
std::size_t report_signatures(const std::vector<ListedEntry>& entries, const Signatures& signatures, bool print,
                              nlohmann::ordered_json& document);

// For doctor: policy, trust directories, keys.
nlohmann::ordered_json examine_signatures();
void print_signatures(const nlohmann::ordered_json& report);

}  // namespace gemvjit::tools
