#include "src/runtime/build_locks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>

#include "cache/cache_folders.h"

namespace gemvjit {
namespace {

std::string own_folder_name(uid_t owner, CacheTrust trust) {
  return trust == CacheTrust::shared ? fmt::format("locks-{}", owner) : "locks";
}

}  // namespace

Result<std::string> choose_lock_folder(const std::string& runtime_dir, const std::string& cache_root, uid_t owner,
                                       CacheTrust trust) {
  GEMVJIT_TRY(make_cache_folder(cache_root, cache_root, trust, nullptr).status());
  if (!runtime_dir.empty() && check_runtime_folder(runtime_dir, owner)) {
    if (auto folder = private_folder(runtime_dir, "gemvjit", owner)) return folder;
  }
  return private_folder(cache_root, own_folder_name(owner, trust), owner);
}

LockFolderReport examine_lock_folder(const std::string& runtime_dir, const std::string& cache_root, uid_t owner,
                                     CacheTrust trust) {
  LockFolderReport report;
  if (cache_root.empty()) {
    report.problem = "kernels are in memory only, so that there is nothing to share";
    return report;
  }
  if (!runtime_dir.empty()) {
    const std::string folder = runtime_dir + "/gemvjit";
    Status fit = check_runtime_folder(runtime_dir, owner);
    if (fit) fit = check_private_folder(folder, owner);
    if (fit) {
      report.path = folder;
      report.named_by = "XDG_RUNTIME_DIR";
      return report;
    }
    report.passed_over = fit.message();
  }
  const std::string folder = cache_root + "/" + own_folder_name(owner, trust);
  if (const Status fit = check_private_folder(folder, owner); fit) {
    report.path = folder;
  } else {
    report.problem = fit.message();
  }
  return report;
}

std::string lock_file_name(const std::string& cache_root, const EntryId& id) {
  char resolved[PATH_MAX];
  const char* real = ::realpath(cache_root.c_str(), resolved);
  Sha256 sha;
  sha.update_tagged("cache", real != nullptr ? std::string_view(real) : std::string_view(cache_root));
  sha.update_tagged("entry", to_hex(id.digest));
  return to_hex(sha.finish()).substr(0, 32) + ".lock";
}

Turn BuildLocks::acquire(const EntryId& id, const std::function<bool()>& stop) {
  Turn turn;
  if (cache_root_.empty()) return turn;
  const auto folder = choose_lock_folder(runtime_dir_, cache_root_, ::geteuid(), trust_);
  if (!folder) {
    log_.debug("no locks between processes: {}", folder.status().message());
    turn.failure = folder.status();
    return turn;
  }
  LockWait wait;
  wait.stop = stop;
  wait.report = [&](std::int64_t holder, Milliseconds waited) {
    log_.info("waiting since {} s for process {}, which builds {}", waited.count() / 1000, holder, id.key.text());
  };
  const std::string name = lock_file_name(cache_root_, id);
  turn = acquire_lock(*folder, name, timing_, wait);
  if (turn.kind == Turn::Kind::unavailable) {
    log_.debug("no lock between processes: {}", turn.failure.message());
  } else if (turn.kind == Turn::Kind::stale) {
    log_.warning("{}: process {}, which has the lock {}/{}, shows no progress; it is built here as well", id.key.text(),
                 turn.holder_pid, *folder, name);
  } else if (turn.holder_died) {
    log_.info("{}: process {} ended while it built it; it is built here", id.key.text(), turn.holder_pid);
  }
  return turn;
}

}  // namespace gemvjit
