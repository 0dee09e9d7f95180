// gemvjit-cache export: entries of the cache folder as one bundle.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "cache/bundle.h"
#include "tools/common/human_units.h"
#include "tools/common/printable.h"
#include "tools/gemvjit_cache/cache_folder.h"
#include "tools/gemvjit_cache/entry_facts.h"
#include "tools/gemvjit_cache/signers.h"

namespace gemvjit::tools {
namespace {

// The whole entries that the names and the target select, each once.
ExitCode choose_entries(const CacheArguments& arguments, const std::vector<ListedEntry>& entries,
                        std::vector<const Entry*>& chosen) {
  std::vector<const ListedEntry*> selected;
  for (const std::string& selector : arguments.selectors) {
    if (const ExitCode code = select_entries(entries, selector, selected); code != exit_done) return code;
  }
  if (arguments.selectors.empty()) {
    for (const ListedEntry& listed : entries) {
      if (listed.entry) selected.push_back(&listed);
    }
  }
  std::map<std::string, const Entry*> by_path;
  for (const ListedEntry* listed : selected) {
    if (arguments.arch.empty() || listed->entry->id.key.arch.text() == arguments.arch) {
      by_path[listed->path] = &*listed->entry;
    }
  }
  for (const auto& [path, entry] : by_path) chosen.push_back(entry);
  if (!chosen.empty()) return exit_done;
  complain(fmt::format("no entry to export{}; nothing was written",
                       arguments.arch.empty() ? "" : " of target " + printable(arguments.arch)));
  return exit_nothing_found;
}

// Under the policy all what no trusted key signed is not passed on, least of all under another signature.
void leave_out_untrusted(const Signatures& signatures, std::vector<ListedEntry>& entries) {
  for (ListedEntry& listed : entries) {
    if (!listed.entry) continue;
    if (const Status trusted = signatures.check(*listed.entry); !trusted) {
      listed.problem = trusted;
      listed.entry.reset();
    }
  }
}

// The bundle, and where there is a key its entries too, signed by it.
Result<WrittenBundle> write(const std::string& file, std::vector<const Entry*> chosen, const Signatures& signatures) {
  if (!signatures.has_signing_key()) return write_bundle(file, std::move(chosen));
  std::vector<Entry> with_signature;
  with_signature.reserve(chosen.size());  // the pointers stay what they are
  for (const Entry*& entry : chosen) {
    GEMVJIT_TRY_ASSIGN(Entry made, signatures.sign(*entry));
    with_signature.push_back(std::move(made));
    entry = &with_signature.back();
  }
  return write_bundle(file, std::move(chosen), [&](const Bytes& message) { return signatures.sign(message); });
}

}  // namespace

ExitCode export_entries(const CacheArguments& arguments) {
  if (!arguments.arch.empty()) {
    if (const auto arch = Arch::parse(arguments.arch); !arch) {
      complain("--arch: " + arch.status().message());
      return exit_usage;
    }
  }
  std::vector<ListedEntry> entries;
  if (const ExitCode code = load_entries(arguments, entries); code != exit_done) return code;
  std::shared_ptr<const Signatures> signatures;
  if (const ExitCode code = open_signatures(arguments, signatures); code != exit_done) return code;
  leave_out_untrusted(*signatures, entries);
  std::vector<const Entry*> chosen;
  if (const ExitCode code = choose_entries(arguments, entries, chosen); code != exit_done) return code;
  const auto written = write(arguments.file, std::move(chosen), *signatures);
  if (!written) {
    complain(written.status().message());
    return written.status().code() == StatusCode::io_error ? exit_cache_not_writable : exit_environment;
  }
  // Who asked for all must hear that all was not to be had; who named some has them.
  nlohmann::ordered_json left_out = nlohmann::ordered_json::array();
  const std::string signer = signatures->signing_key_id();
  bool all_whole = true;
  if (arguments.selectors.empty()) {
    for (const ListedEntry& listed : entries) {
      if (listed.entry) continue;
      left_out.push_back(problem_json(listed));
      all_whole = all_whole && listed.problem.code() == StatusCode::unsupported;
      complain(fmt::format("left out: {}: {}", listed.path, listed.problem.message()));
    }
  }
  if (arguments.json) {
    print_json({{"bundle", arguments.file},
                {"entries", written->entries},
                {"bytes", written->bytes},
                {"sha256", to_hex(written->sha256)},
                {"signed_by", signer.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(signer)},
                {"left_out", left_out}});
  } else {
    fmt::print("{}: {} entries, {}, SHA-256 {}{}\n", arguments.file, written->entries, human_bytes(written->bytes),
               to_hex(written->sha256), signer.empty() ? "" : ", signed by " + signer);
  }
  if (!all_whole) return exit_entry_damaged;
  return left_out.empty() ? exit_done : exit_not_trusted;
}

}  // namespace gemvjit::tools
