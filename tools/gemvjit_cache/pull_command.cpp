// gemvjit-cache pull: a set, or the kernels of a plan, from a remote cache into the cache folder.
#include <fmt/format.h>

#include <mutex>
#include <nlohmann/json.hpp>

#include "cache/signed_store.h"
#include "tools/cache_view/plan_file.h"
#include "tools/common/interrupt.h"
#include "tools/gemvjit_cache/cache_folder.h"
#include "tools/gemvjit_cache/remote_access.h"
#include "tools/gemvjit_cache/signers.h"

namespace gemvjit::tools {
namespace {

// One kernel that is wanted, and where its payload is, if a manifest of several says so.
struct Wanted {
  EntryId id;
  std::optional<ManifestFile> file;
};

ExitCode complain_of_remote(const Status& status) {
  complain(status.message());
  return status.code() == StatusCode::not_found ? exit_nothing_found : exit_remote_failed;
}

ExitCode wanted_of_set(RemoteStore& remote, const std::string& set, std::vector<Wanted>& wanted) {
  const Result<Manifest> manifest = remote.read_set(set_name(set), no_deadline());
  if (!manifest) return complain_of_remote(manifest.status());
  for (const ManifestFile& file : manifest->files) {
    const Result<EntryId> id = parse_manifest_path(file.path);
    if (!id) {
      complain(fmt::format("{}: the manifest of set {} is damaged: {}", remote.base_url(), set, id.status().message()));
      return exit_remote_failed;
    }
    wanted.push_back({*id, file});
  }
  return exit_done;
}

ExitCode wanted_of_plan(RemoteStore& remote, const std::string& path, std::vector<Wanted>& wanted) {
  std::string warning;
  const Result<Plan> plan = read_fitting_plan(path, false, warning);
  if (!plan) {
    complain(plan.status().message());
    return exit_usage;
  }
  std::vector<EntryId> ids;
  for (const PlannedKernel& kernel : plan->kernels) ids.push_back(kernel.id);
  // Where the plan has no manifest, or it cannot be read, each kernel's own says more.
  const RemoteStore::PlanFiles known = remote.read_plan(ids, no_deadline());
  if (known.problem.code() == StatusCode::unsupported) return complain_of_remote(known.problem);  // cannot ask
  for (const EntryId& id : ids) {
    const auto found = known.by_path.find(manifest_path(id));
    wanted.push_back({id, found == known.by_path.end() ? std::nullopt : std::optional(found->second)});
  }
  return exit_done;
}

struct Outcome {
  std::mutex mutex;  // guards what follows
  std::size_t fetched = 0, kept = 0, untrusted = 0;
  nlohmann::ordered_json failed = nlohmann::ordered_json::array(), unwritten = nlohmann::ordered_json::array(),
                         missing = nlohmann::ordered_json::array();
};

void note(const std::string& kernel, const Status& status, nlohmann::ordered_json& list) {
  list.push_back({{"kernel", kernel}, {"problem", status.message()}});
  if (list.size() <= 8) complain(fmt::format("{}: {}", kernel, status.message()));
}

nlohmann::ordered_json kernels_of(const nlohmann::ordered_json& noted) {
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  for (const auto& one : noted) kernels.push_back(one["kernel"]);
  return kernels;
}

void pull_one(RemoteStore& remote, CubinStore& store, const Wanted& wanted, Outcome& outcome) {
  const bool is_here = store.look(wanted.id).is_ok();
  const Result<Entry> entry = is_here ? Result<Entry>(Status(StatusCode::not_found, ""))
                                      : remote.fetch(wanted.id, wanted.file ? &*wanted.file : nullptr, no_deadline());
  const Status put = entry ? store.put(*entry) : Status::ok();
  const std::string kernel = manifest_path(wanted.id);
  const std::lock_guard lock(outcome.mutex);
  if (is_here) {
    ++outcome.kept;
  } else if (entry && put) {
    ++outcome.fetched;
  } else if (entry) {
    note(kernel, put, outcome.unwritten);
  } else if (entry.status().code() == StatusCode::not_found) {
    note(kernel, {StatusCode::not_found, "not there"}, outcome.missing);
  } else {
    if (entry.status().code() == StatusCode::unsupported) ++outcome.untrusted;
    note(kernel, entry.status(), outcome.failed);
  }
}

}  // namespace

ExitCode pull_entries(const CacheArguments& arguments) {
  const Status named = arguments.set.empty() ? Status::ok() : check_set_name(arguments.set);
  if (!named || (arguments.set.empty() && arguments.plan.empty())) {
    complain(!named ? named.message() : "pull needs to be told what: --set NAME or --plan FILE");
    return exit_usage;
  }
  CacheFolder folder;
  if (const ExitCode code = require_cache_folder(arguments, FolderUse::make, folder); code != exit_done) return code;
  std::shared_ptr<const Signatures> signatures;
  if (const ExitCode code = open_signatures(arguments, signatures); code != exit_done) return code;
  std::unique_ptr<RemoteStore> remote;
  if (const ExitCode code = open_remote(arguments, false, signatures, remote); code != exit_done) return code;
  catch_interrupts();
  std::vector<Wanted> wanted;
  const ExitCode asked = arguments.plan.empty() ? wanted_of_set(*remote, arguments.set, wanted)
                                                : wanted_of_plan(*remote, arguments.plan, wanted);
  if (asked != exit_done) return asked;
  std::unique_ptr<CubinStore> limited;
  std::uint64_t max_bytes = 0;
  if (const ExitCode code = open_limited_store(folder.path, limited, max_bytes); code != exit_done) return code;
  const auto store = make_signed_store(std::move(limited), signatures, Log::silent());

  Outcome outcome;
  remote->for_each(
      wanted.size(), [] { return *interrupt_flag() != 0; },
      [&](std::size_t i) { pull_one(*remote, *store, wanted[i], outcome); });
  if (arguments.json) {
    print_json({{"cache_dir", folder.path},
                {"remote", remote->base_url()},
                {"fetched", outcome.fetched},
                {"kept", outcome.kept},
                {"missing", outcome.missing.size()},
                {"not_there", kernels_of(outcome.missing)},
                {"failed", outcome.failed},
                {"unwritten", outcome.unwritten}});
  } else {
    tell("{} entries fetched into {}, {} were here, {} are not there, {} failed\n", outcome.fetched, folder.path,
         outcome.kept, outcome.missing.size(), outcome.failed.size() + outcome.unwritten.size());
  }
  if (*interrupt_flag() != 0) return exit_interrupted;
  if (outcome.failed.size() > outcome.untrusted) return exit_remote_failed;
  if (outcome.untrusted > 0) return exit_not_trusted;
  if (!outcome.unwritten.empty()) return exit_cache_not_writable;
  return !outcome.missing.empty() ? exit_not_warm : exit_done;
}

}  // namespace gemvjit::tools
