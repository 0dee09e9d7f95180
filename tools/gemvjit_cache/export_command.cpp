// gemvjit-cache export: entries of the cache folder as one bundle, a file or the layer of an OCI image layout.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cache/bundle.h"
#include "cache/entry_files.h"
#include "cache/layout.h"
#include "tools/cache_view/cache_refusal.h"
#include "tools/common/human_units.h"
#include "tools/common/interrupt.h"
#include "tools/common/printable.h"
#include "tools/gemvjit_cache/cache_folder.h"
#include "tools/gemvjit_cache/entry_facts.h"
#include "tools/gemvjit_cache/oci_layout.h"
#include "tools/gemvjit_cache/signers.h"

namespace gemvjit::tools {
namespace {

// Targets: none means all.
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

OciTarget oci_target(const CacheArguments& arguments) { return {arguments.file, arguments.ref, arguments.replace}; }

// The bundle, and where there is a key its entries too, signed by it. The entries are read and examined once more, one
// by one: not all need fit into memory. What is of no use by then is left out as what was so from the beginning, and
// what somebody has removed is as if it had never been there; but who named entries gets all of them or no bundle.
class Writer {
 public:
  Writer(const CacheArguments& arguments, std::string root, const Signatures& signatures, LeftOut& left_out)
      : arguments_(arguments),
        root_(std::move(root)),
        signatures_(signatures),
        left_out_(left_out),
        guard_(guard_of_root(root_)) {}

  // The exit code, with the reason said on stderr.
  ExitCode write(const std::vector<EntryId>& chosen, WrittenLayout& written) {
    SignMessage sign_bundle;
    if (signatures_.has_signing_key()) sign_bundle = [&](const Bytes& message) { return sign(message); };
    const WriteLayer write_one = [&](const std::string& path) {
      return write_bundle(
          path, chosen, [this](const EntryId& id) { return load(id); }, sign_bundle);
    };
    const auto made = arguments_.oci ? write_oci_layout(oci_target(arguments_), write_one) : write_file(write_one);
    if (made) {
      written = *made;
      return exit_done;
    }
    complain(made.status().message());
    if (code_ != exit_done) return code_;
    switch (made.status().code()) {
      case StatusCode::io_error:
        return exit_cache_not_writable;
      case StatusCode::not_found:  // all is left out
        return left_out_.all.empty() ? exit_nothing_found : left_out_.code();
      default:
        return exit_environment;
    }
  }

 private:
  Result<WrittenLayout> write_file(const WriteLayer& write_one) const {
    GEMVJIT_TRY_ASSIGN(const WrittenBundle bundle, write_one(arguments_.file));
    return WrittenLayout{bundle, arguments_.file, {}};
  }

  // Ends the work with a code that is not the bundle's.
  Status end(ExitCode code, const Status& why) {
    code_ = code;
    return {why.code(), why.message() + "; nothing was written"};
  }

  Result<SignatureBlock> sign(const Bytes& message) {
    Result<SignatureBlock> made = signatures_.sign(message);
    if (!made) return end(exit_environment, made.status());
    return made;
  }

  Result<Entry> load(const EntryId& id) {
    if (*interrupt_flag() != 0) return end(exit_interrupted, {StatusCode::cancelled, "interrupted"});
    const std::string path = entry_path(root_, id);
    Result<Entry> entry = load_entry_file(root_, id, &guard_);
    if (!entry) return refuse(path, entry.status());
    if (!(entry->id == id)) return refuse(path, foreign_entry(entry->id));
    if (const Status trusted = check_signature(signatures_, *entry); !trusted) return refuse(path, trusted);
    if (!signatures_.has_signing_key()) return entry;
    Result<Entry> made = signatures_.sign(std::move(entry).value());
    if (!made) return end(exit_environment, made.status());
    return made;
  }

  Status refuse(const std::string& path, const Status& problem) {
    const Status why = with_path(path, problem);
    const bool is_gone = problem.code() == StatusCode::not_found;
    const bool is_signature = problem.code() == StatusCode::unsupported;
    if (!arguments_.selectors.empty()) {
      return end(is_gone                                             ? exit_nothing_found
                 : is_signature                                      ? exit_not_trusted
                 : entry_state(path, problem) == EntryState::damaged ? exit_entry_damaged
                                                                     : exit_environment,
                 {is_gone ? StatusCode::io_error : why.code(), why.message()});
    }
    complain("left out: " + why.message());
    if (!is_gone) left_out_.all.push_back(problem_json({path, 0, {}, problem}));
    left_out_.some_damaged = left_out_.some_damaged || !(is_gone || is_signature);
    return {StatusCode::not_found, why.message()};
  }

  const CacheArguments& arguments_;
  const std::string root_;
  const Signatures& signatures_;
  LeftOut& left_out_;
  const EntryGuard guard_;
  ExitCode code_ = exit_done;  // of a failure that is not the bundle's
};

void tell_what_was_written(const CacheArguments& arguments, const WrittenLayout& written, const std::string& signer,
                           const LeftOut& left_out) {
  const WrittenBundle& bundle = written.bundle;
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
  };
  if (!arguments.json) {
    tell("{}: {} entries, {}, {}{}\n", arguments.file, bundle.entries, human_bytes(bundle.bytes),
         arguments.oci ? "manifest " + oci_digest(written.manifest) : "SHA-256 " + to_hex(bundle.sha256),
         signer.empty() ? "" : ", signed by " + signer);
    return;
  }
  nlohmann::ordered_json document{
      {"bundle", written.bundle_path},   {"entries", bundle.entries},         {"bytes", bundle.bytes},
      {"sha256", to_hex(bundle.sha256)}, {"signed_by", text_or_null(signer)}, {"left_out", left_out.all}};
  if (arguments.oci) {
    document["layout"] = arguments.file;
    document["ref"] = text_or_null(arguments.ref);
    document["manifest"] = oci_digest(written.manifest);
  }
  print_json(document);
}

ExitCode check_oci_options(const CacheArguments& arguments) {
  if (!arguments.oci) return exit_done;
  if (!arguments.ref.empty() && !is_oci_ref(arguments.ref)) {
    complain(fmt::format("--ref {}: no name for a manifest: letters and digits, with -._:@+/ between them",
                         printable(arguments.ref)));
    return exit_usage;
  }
  const Status possible = check_oci_target(oci_target(arguments));
  if (possible) return exit_done;
  complain(possible.message());
  return exit_cache_not_writable;
}

}  // namespace

ExitCode export_entries(const CacheArguments& arguments) {
  if (const ExitCode code = check_oci_options(arguments); code != exit_done) return code;
  CacheFolder folder;
  if (const ExitCode code = require_cache_folder(arguments, FolderUse::look, folder); code != exit_done) return code;
  std::shared_ptr<const Signatures> signatures;
  if (const ExitCode code = open_signatures(arguments, signatures); code != exit_done) return code;
  if (const ExitCode code = check_signing_key(*signatures); code != exit_done) return code;
  catch_interrupts();  // so that no half of a bundle stays
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
  WrittenLayout written;
  Writer writer(arguments, folder.path, *signatures, left_out);
  if (const ExitCode code = writer.write(chosen, written); code != exit_done) return code;
  tell_what_was_written(arguments, written, signatures->signing_key_id(), left_out);
  return left_out.code();
}

}  // namespace gemvjit::tools
