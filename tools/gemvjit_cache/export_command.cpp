// gemvjit-cache export: entries of the cache folder as one bundle.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cache/bundle.h"
#include "cache/entry_files.h"
#include "cache/layout.h"
#include "tools/common/human_units.h"
#include "tools/common/printable.h"
#include "tools/gemvjit_cache/cache_folder.h"
#include "tools/gemvjit_cache/entry_facts.h"
#include "tools/gemvjit_cache/signers.h"

namespace gemvjit::tools {
namespace {

// Targets: none means all.
bool is_of_target(const ListedEntry& listed, const std::vector<std::string>& targets) {
  return targets.empty() || std::ranges::any_of(targets, [&](const std::string& arch) {
           if (listed.entry) return listed.entry->id.key.arch.text() == arch;
           return (listed.path + "/").find("/" + arch + "/") != std::string::npos;  // its folder's name
         });
}

// The whole entries that the names and the target select, each once.
ExitCode choose_entries(const CacheArguments& arguments, const std::vector<ListedEntry>& entries,
                        std::vector<EntryId>& chosen) {
  std::vector<const ListedEntry*> selected;
  for (const std::string& selector : arguments.selectors) {
    if (const ExitCode code = select_entries(entries, selector, selected); code != exit_done) return code;
  }
  if (arguments.selectors.empty()) {
    for (const ListedEntry& listed : entries) {
      if (listed.entry) selected.push_back(&listed);
    }
  }
  std::map<std::string, const EntryId*> by_path;
  for (const ListedEntry* listed : selected) {
    if (is_of_target(*listed, arguments.targets)) by_path[listed->path] = &listed->entry->id;
  }
  for (const auto& [path, id] : by_path) chosen.push_back(*id);
  if (!chosen.empty()) return exit_done;
  complain(fmt::format("no entry to export{}; nothing was written",
                       arguments.arch.empty() ? "" : " of target " + printable(arguments.arch)));
  return exit_nothing_found;
}

// Why an entry is not passed on, least of all under another signature: under the policy all no trusted key signed it,
// or under any its signature is wrong.
Status check_signature(const Signatures& signatures, const Entry& entry) {
  GEMVJIT_TRY(signatures.check(entry));
  const SignatureFacts facts = signatures.examine(entry);
  if (facts.state != SignatureState::bad) return Status::ok();
  return {StatusCode::unsupported, facts.text()};
}

// What was asked for by name has to be trusted. Of all the rest those that cannot be passed on are left out, and named.
struct LeftOut {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  bool some_damaged = false;
  ExitCode code() const { return some_damaged ? exit_entry_damaged : all.empty() ? exit_done : exit_not_trusted; }
};
using Verdicts = std::map<std::string, Status>;  // what check_signature said, by the entry's path
ExitCode leave_out(const CacheArguments& arguments, const Verdicts& verdicts, std::vector<ListedEntry>& entries,
                   LeftOut& left_out) {
  std::vector<const ListedEntry*> named;
  for (const std::string& selector : arguments.selectors) {
    if (const ExitCode code = select_entries(entries, selector, named); code != exit_done) return code;
  }
  for (const ListedEntry* listed : named) {
    if (!is_of_target(*listed, arguments.targets)) continue;
    if (const Status& trusted = verdicts.at(listed->path); !trusted) {
      complain(fmt::format("{}: {}; nothing was written", listed->path, trusted.message()));
      return exit_not_trusted;
    }
  }
  if (!named.empty()) return exit_done;  // who named some has them
  for (ListedEntry& listed : entries) {
    if (!is_of_target(listed, arguments.targets)) continue;
    if (listed.entry) {
      listed.problem = verdicts.at(listed.path);
      if (listed.problem) continue;
      listed.entry.reset();
    } else {
      left_out.some_damaged = true;
    }
    left_out.all.push_back(problem_json(listed));
    complain(fmt::format("left out: {}: {}", listed.path, listed.problem.message()));
  }
  return exit_done;
}

// The bundle, and where there is a key its entries too, signed by it. Read and examined once more, one by one: not all
// need fit into memory.
Result<WrittenBundle> write(const std::string& file, const std::string& root, const std::vector<EntryId>& chosen,
                            const Signatures& signatures) {
  const bool sign = signatures.has_signing_key();
  const auto load = [&](const EntryId& id) -> Result<Entry> {
    const std::string path = entry_path(root, id);
    Result<Entry> entry = load_entry_file(path);
    if (!entry) return with_path(path, entry.status());
    if (const Status trusted = check_signature(signatures, *entry); !trusted) return with_path(path, trusted);
    return sign ? signatures.sign(std::move(entry).value()) : std::move(entry);
  };
  SignMessage sign_bundle;
  if (sign) sign_bundle = [&](const Bytes& message) { return signatures.sign(message); };
  return write_bundle(file, chosen, load, sign_bundle);
}

}  // namespace

ExitCode export_entries(const CacheArguments& arguments) {
  CacheFolder folder;
  if (const ExitCode code = require_cache_folder(arguments, FolderUse::look, folder); code != exit_done) return code;
  std::shared_ptr<const Signatures> signatures;
  if (const ExitCode code = open_signatures(arguments, signatures); code != exit_done) return code;
  std::vector<ListedEntry> entries;
  Verdicts verdicts;
  const auto examine = [&](const ListedEntry& listed) {
    if (listed.entry) verdicts[listed.path] = check_signature(*signatures, *listed.entry);
  };
  if (const ExitCode code = load_entries(arguments, entries, Cubins::drop, examine); code != exit_done) return code;
  LeftOut left_out;
  if (const ExitCode code = leave_out(arguments, verdicts, entries, left_out); code != exit_done) return code;
  std::vector<EntryId> chosen;
  if (const ExitCode code = choose_entries(arguments, entries, chosen); code != exit_done) {
    return code == exit_nothing_found && !left_out.all.empty() ? left_out.code() : code;
  }
  const auto written = write(arguments.file, folder.path, chosen, *signatures);
  if (!written) {
    complain(written.status().message());
    return written.status().code() == StatusCode::io_error ? exit_cache_not_writable : exit_environment;
  }
  const std::string signer = signatures->signing_key_id();
  if (arguments.json) {
    print_json({{"bundle", arguments.file},
                {"entries", written->entries},
                {"bytes", written->bytes},
                {"sha256", to_hex(written->sha256)},
                {"signed_by", signer.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(signer)},
                {"left_out", left_out.all}});
  } else {
    tell("{}: {} entries, {}, SHA-256 {}{}\n", arguments.file, written->entries, human_bytes(written->bytes),
         to_hex(written->sha256), signer.empty() ? "" : ", signed by " + signer);
  }
  return left_out.code();
}

}  // namespace gemvjit::tools
