// gemvjit-cache push: entries of the cache folder into a remote cache.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "cache/entry_files.h"
#include "cache/layout.h"
#include "tools/cache_view/cache_refusal.h"
#include "tools/cache_view/plan_file.h"
#include "tools/common/human_units.h"
#include "tools/common/interrupt.h"
#include "tools/gemvjit_cache/cache_folder.h"
#include "tools/gemvjit_cache/entry_facts.h"
#include "tools/gemvjit_cache/remote_access.h"
#include "tools/gemvjit_cache/signers.h"

namespace gemvjit::tools {
namespace {

// What to send: the plan's kernels, each of which has to be there; else all whole entries of the targets, while damaged
// ones are named and left out.
ExitCode choose(const CacheArguments& arguments, const std::vector<ListedEntry>& entries, std::vector<EntryId>& chosen,
                bool& some_left_out) {
  std::set<std::string> wanted;
  if (!arguments.plan.empty()) {
    std::string warning;
    const Result<Plan> plan = read_fitting_plan(arguments.plan, false, warning);
    if (!plan) {
      complain(plan.status().message());
      return exit_usage;
    }
    for (const PlannedKernel& kernel : plan->kernels) wanted.insert(manifest_path(kernel.id));
  }
  for (const ListedEntry& listed : entries) {
    if (!is_of_target(listed, arguments.targets)) continue;
    if (!listed.entry && arguments.plan.empty()) {
      complain(fmt::format("left out: {}: {}", listed.path, listed.problem.message()));
      some_left_out = true;
    }
    if (!listed.entry) continue;
    const EntryId& id = listed.entry->id;
    if (!arguments.plan.empty() && wanted.erase(manifest_path(id)) == 0) continue;
    chosen.push_back(id);
  }
  if (!wanted.empty()) {
    complain(fmt::format("{} kernels of the plan are not in the cache, {} among them: warm it first; nothing was sent",
                         wanted.size(), *wanted.begin()));
    return exit_nothing_found;
  }
  if (!chosen.empty()) return exit_done;
  complain("no entry to send");
  return exit_nothing_found;
}

struct Sent {
  std::mutex mutex;  // guards what follows
  Manifest all;
  std::uint64_t bytes = 0;
  nlohmann::ordered_json failed = nlohmann::ordered_json::array();
  ExitCode code = exit_done;  // of the first that failed
};

// What a failure is of: the entry's signature, the entry, or the remote cache.
ExitCode code_of(const Status& loaded) {
  if (loaded) return exit_remote_failed;
  return loaded.code() == StatusCode::unsupported ? exit_not_trusted : exit_entry_damaged;
}

// The entry, or why it is not passed on.
Result<Entry> load(const std::string& root, const EntryId& id, const EntryGuard& guard, const Signatures& signatures) {
  GEMVJIT_TRY_ASSIGN(Entry entry, load_entry_file(root, id, &guard));
  if (!(entry.id == id)) return foreign_entry(entry.id);
  GEMVJIT_TRY(check_signature(signatures, entry));
  return entry;
}

}  // namespace

ExitCode push_entries(const CacheArguments& arguments) {
  if (!arguments.set.empty()) {
    if (const Status named = check_set_name(arguments.set); !named) {
      complain(named.message());
      return exit_usage;
    }
  }
  CacheFolder folder;
  if (const ExitCode code = require_cache_folder(arguments, FolderUse::look, folder); code != exit_done) return code;
  std::shared_ptr<const Signatures> signatures;
  if (const ExitCode code = open_signatures(arguments, signatures); code != exit_done) return code;
  std::unique_ptr<RemoteStore> remote;
  if (const ExitCode code = open_remote(arguments, true, signatures, remote); code != exit_done) return code;
  catch_interrupts();
  std::vector<ListedEntry> entries;
  if (const ExitCode code = load_entries(arguments, entries, Cubins::drop); code != exit_done) return code;
  std::vector<EntryId> chosen;
  bool some_left_out = false;
  if (const ExitCode code = choose(arguments, entries, chosen, some_left_out); code != exit_done) return code;

  Sent sent;
  const EntryGuard guard = guard_of_folder(folder.path);
  const auto interrupted = [] { return *interrupt_flag() != 0; };
  remote->for_each(chosen.size(), interrupted, [&](std::size_t i) {
    const std::string path = entry_path(folder.path, chosen[i]);
    const Result<Entry> entry = load(folder.path, chosen[i], guard, *signatures);
    const Result<ManifestFile> file =
        entry ? remote->publish(*entry, !arguments.force, no_deadline()) : Result<ManifestFile>(entry.status());
    const std::lock_guard lock(sent.mutex);
    if (file) {
      sent.all.files.push_back(*file);
      sent.bytes += file->size;
      return;
    }
    if (sent.code == exit_done) sent.code = code_of(entry.status());
    sent.failed.push_back({{"path", path}, {"problem", file.status().message()}});
    if (sent.failed.size() <= 8) complain(fmt::format("not sent: {}: {}", path, file.status().message()));
  });
  if (*interrupt_flag() != 0) {
    complain("interrupted; what was sent is there, and neither a set nor a plan of it");
    return exit_interrupted;
  }
  const bool is_whole = sent.all.files.size() == chosen.size();
  if (!is_whole && sent.failed.empty()) {
    complain("out of memory: not all was sent");
    sent.code = exit_environment;
  }
  Status named;
  if (is_whole) {
    if (!arguments.set.empty()) named = remote->write_set(set_name(arguments.set), sent.all, no_deadline());
    if (named && !arguments.plan.empty()) named = remote->write_set(plan_name(chosen), sent.all, no_deadline());
    if (!named) complain(named.message());
  }
  if (arguments.json) {
    print_json({{"remote", remote->base_url()},
                {"set", arguments.set},
                {"entries", sent.all.files.size()},
                {"bytes", sent.bytes},
                {"failed", sent.failed}});
  } else {
    tell("{}: {} entries, {}, are there{}\n", remote->base_url(), sent.all.files.size(), human_bytes(sent.bytes),
         arguments.set.empty() || !named || !is_whole ? "" : ", as set " + arguments.set);
  }
  if (!named) return exit_remote_failed;
  if (!is_whole) return sent.code;
  return some_left_out ? exit_entry_damaged : exit_done;
}

}  // namespace gemvjit::tools
