#include "tools/gemvjit_cache/doctor_locks.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "src/runtime/build_locks.h"
#include "src/runtime/options.h"
#include "tools/cache_view/tool_settings.h"
#include "tools/gemvjit_cache/cache_folder.h"
#include "tools/gemvjit_cache/doctor_layers.h"

namespace gemvjit::tools {

nlohmann::ordered_json examine_locks(const CacheArguments& arguments) {
  const CacheFolder cache = choose_cache_folder(arguments);
  const std::string runtime_dir = process_environment()("XDG_RUNTIME_DIR").value_or("");
  const auto options = resolve_options({}, tool_environment());
  const LockFolderReport report =
      examine_lock_folder(runtime_dir, cache.path, ::geteuid(), options ? options->cache_trust : CacheTrust::owner);
  nlohmann::ordered_json section{{"path", nullptr}, {"named_by", nullptr}};
  if (!report.path.empty()) {
    section["path"] = report.path;
    section["named_by"] = report.named_by.empty() ? cache.source : report.named_by;
  }
  section.update(path_facts(report.path));
  section["passed_over"] = report.passed_over;
  if (!report.problem.empty()) section["problem"] = report.problem + "; processes do not share builds";
  return section;
}

}  // namespace gemvjit::tools
