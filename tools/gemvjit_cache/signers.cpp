#include "tools/gemvjit_cache/signers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <nlohmann/json.hpp>

#include "src/runtime/options.h"
#include "tools/cache_view/tool_settings.h"

namespace gemvjit::tools {

using nlohmann::ordered_json;

ExitCode open_signatures(const CacheArguments& arguments, std::shared_ptr<const Signatures>& signatures) {
  Result<SignatureOptions> options = resolve_signature_options(tool_environment());
  if (!options) {
    complain(options.status().message());
    return exit_usage;
  }
  if (!arguments.sign_key.empty()) options->signing_key = arguments.sign_key;
  signatures = std::make_shared<const Signatures>(std::move(options).value(), Log::silent());
  if (signatures->asks_for_bundles()) {
    for (const Status& problem : signatures->problems()) complain(problem.message());
  }
  return exit_done;
}

ExitCode check_signing_key(const Signatures& signatures) {
  if (!signatures.has_signing_key()) return exit_done;
  const Result<SignatureBlock> signed_nothing = signatures.sign(Bytes{});
  if (signed_nothing) return exit_done;
  complain(signed_nothing.status().message());
  return exit_environment;
}

Status check_signature(const Signatures& signatures, const Entry& entry) {
  GEMVJIT_TRY(signatures.check(entry));
  const SignatureFacts facts = signatures.examine(entry);
  if (facts.state != SignatureState::bad) return Status::ok();
  return {StatusCode::unsupported, facts.text()};
}

ordered_json signature_json(const SignatureFacts& facts) {
  const auto text_or_null = [](const std::string& text) { return text.empty() ? ordered_json() : ordered_json(text); };
  return {{"state", signature_state_name(facts.state)},
          {"key_id", text_or_null(facts.key_id)},
          {"key_file", text_or_null(facts.key_file)}};
}

std::size_t report_signatures(const std::vector<ListedEntry>& entries, const Signatures& signatures, bool print,
                              ordered_json& document) {
  std::size_t refused = 0;
  ordered_json wrong = ordered_json::array();
  std::map<std::string, std::pair<SignatureFacts, std::size_t>> signers;  // by what is said of them
  for (const ListedEntry& listed : entries) {
    if (!listed.entry) continue;
    const SignatureFacts facts = signatures.examine(*listed.entry);
    const std::string text = facts.text();
    auto& [same, count] = signers[text];
    same = facts;
    ++count;
    const bool is_bad = facts.state == SignatureState::bad;
    if (!is_bad && (!signatures.asks_for_entries() || facts.is_trusted())) continue;
    ++refused;
    if (is_bad) wrong.push_back(listed.path);
    if (print) print_state("NOT TRUSTED", Paint::bad, fmt::format(" {}: {}\n", listed.path, text));
  }
  ordered_json counts = ordered_json::array();
  for (const auto& [text, signer] : signers) {
    ordered_json row = signature_json(signer.first);
    row["entries"] = signer.second;
    counts.push_back(std::move(row));
    const bool only_unsigned = signers.size() == 1 && signer.first.state == SignatureState::none;
    if (print && !only_unsigned) tell("{} entries: {}\n", signer.second, text);
  }
  document["signatures"] = {{"policy", signature_policy_name(signatures.options().policy)},
                            {"not_trusted", refused},
                            {"wrong", wrong},
                            {"signers", counts}};
  return refused;
}

ordered_json examine_signatures() {
  const Result<SignatureOptions> options = resolve_signature_options(tool_environment());
  ordered_json report{
      {"policy", nullptr},      {"trust_dirs", ordered_json::array()}, {"keys", ordered_json::array()},
      {"signing_key", nullptr}, {"signing_key_id", nullptr},           {"problems", ordered_json::array()}};
  if (!options) {
    report["problems"].push_back(options.status().message());
    return report;
  }
  const Signatures signatures(*options, Log::silent());
  report["policy"] = signature_policy_name(options->policy);
  report["trust_dirs"] = options->trust_dirs;
  for (const TrustedKey& key : signatures.trusted_keys()) {
    report["keys"].push_back({{"key_id", key_id(key.key)}, {"key_file", key.file}});
  }
  if (signatures.has_signing_key()) {
    report["signing_key"] = options->signing_key;
    if (const std::string id = signatures.signing_key_id(); !id.empty()) report["signing_key_id"] = id;
  }
  for (const Status& problem : signatures.problems()) report["problems"].push_back(problem.message());
  return report;
}

void print_signatures(const ordered_json& report) {
  tell("Signatures\n");
  if (!report["policy"].is_null()) tell("  {:<12}  {}\n", "policy", report["policy"].get<std::string>());
  const auto folders = report["trust_dirs"].get<std::vector<std::string>>();
  if (!folders.empty()) tell("  {:<12}  {}\n", "trust_dirs", fmt::join(folders, ", "));
  for (const ordered_json& key : report["keys"]) {
    tell("  {:<12}  {} ({})\n", "trusted key", key["key_id"].get<std::string>(), key["key_file"].get<std::string>());
  }
  if (!report["signing_key"].is_null()) {
    const std::string id = report["signing_key_id"].is_null() ? "" : report["signing_key_id"].get<std::string>() + " ";
    tell("  {:<12}  {}({})\n", "signing key", id, report["signing_key"].get<std::string>());
  }
  for (const ordered_json& problem : report["problems"]) {
    tell("  {:<12}  {}\n", "problem", problem.get<std::string>());
  }
}

}  // namespace gemvjit::tools
