// gemvjit-cache gc: remove what was used least recently, by size, age or target; or all that a plan does not have.
#include <fmt/format.h>

#include <charconv>
#include <ctime>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "cache/layout.h"
#include "cache/size_limit.h"
#include "tools/cache_view/plan_file.h"
#include "tools/common/printable.h"
#include "tools/gemvjit_cache/cache_folder.h"
#include "tools/gemvjit_cache/entry_facts.h"

namespace gemvjit::tools {
namespace {

struct Unit {
  char letter;
  std::uint64_t factor;
};
constexpr Unit kSizes[] = {{'K', 1u << 10}, {'M', 1u << 20}, {'G', 1u << 30}};
constexpr Unit kTimes[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};

// "512M": a number and one of the units; nothing for anything else or more than `most`.
template <std::size_t Count>
std::optional<std::uint64_t> parse(std::string text, const Unit (&units)[Count], std::uint64_t most) {
  std::uint64_t factor = 1;
  for (const Unit& unit : units) {
    if (!text.empty() && text.back() == unit.letter) {
      factor = unit.factor;
      text.pop_back();
      break;
    }
  }
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != end || number > most / factor) return std::nullopt;
  return number * factor;
}

// What the arguments ask for, or a word on what is wrong.
std::string make_request(const CacheArguments& arguments, CollectRequest& request) {
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  if (arguments.max_bytes.empty() && arguments.max_age.empty() && arguments.arch.empty() && !arguments.other_versions &&
      arguments.keep_plan.empty()) {
    return "gc needs to be told what: --max-bytes, --max-age, --arch, --other-versions or --keep-plan";
  }
  if (!arguments.max_bytes.empty()) {
    request.max_bytes = parse(arguments.max_bytes, kSizes, most);
    if (!request.max_bytes)
      return fmt::format("--max-bytes {}: a size like 1000000, 512M or 2G", printable(arguments.max_bytes));
  }
  if (!arguments.max_age.empty()) {
    const auto seconds = parse(arguments.max_age, kTimes, most);
    if (!seconds) return fmt::format("--max-age {}: a time like 3600, 12h or 30d", printable(arguments.max_age));
    request.max_age_seconds = static_cast<std::int64_t>(*seconds);
  }
  request.archs = {arguments.targets.begin(), arguments.targets.end()};
  request.other_versions = arguments.other_versions;
  request.dry_run = arguments.dry_run;
  request.now = static_cast<std::int64_t>(std::time(nullptr));
  return "";
}

// Asks for everything that the plan does not have, told by the files' names. A word on what is wrong with the plan.
std::string keep_plan_only(const CacheArguments& arguments, CollectRequest& request) {
  if (arguments.keep_plan.empty()) return "";
  std::string warning;
  const Result<Plan> plan = read_fitting_plan(arguments.keep_plan, arguments.any_digest, warning);
  if (!plan) return plan.status().message();
  if (!warning.empty()) say(fmt::format("gemvjit-cache: warning: {}\n", warning));
  std::set<std::string> archs, names;
  const bool any_digest = arguments.any_digest;
  // With any digest a name counts without its last part.
  const auto name_of = [any_digest](const std::string& arch, const std::string& file) {
    return arch + "/" + (any_digest ? file.substr(0, file.rfind('-')) : file);
  };
  for (const PlannedKernel& kernel : plan->kernels) {
    const std::string arch = kernel.id.key.arch.text();
    archs.insert(arch);
    names.insert(name_of(arch, entry_file_name(kernel.id)));
  }
  const bool all_archs = arguments.all_archs;
  request.is_unwanted = [=](const CachedFile& file) {
    if (!all_archs && !archs.contains(file.arch)) return false;
    return !names.contains(name_of(file.arch, file.path.substr(file.path.rfind('/') + 1)));
  };
  return "";
}

}  // namespace

ExitCode collect_entries(const CacheArguments& arguments) {
  CollectRequest request;
  std::string wrong = make_request(arguments, request);
  if (wrong.empty()) wrong = keep_plan_only(arguments, request);
  if (!wrong.empty()) {
    complain(wrong);
    return exit_usage;
  }
  CacheFolder folder;
  if (const ExitCode code = require_cache_folder(arguments, FolderUse::look, folder); code != exit_done) return code;
  request.guard = guard_of_folder(folder.path);
  const auto collected = collect_garbage(folder.path, request);
  if (!collected) {
    complain(collected.status().message());
    return exit_environment;
  }
  nlohmann::ordered_json failed = nlohmann::ordered_json::array();
  for (const Status& status : collected->failed) {
    failed.push_back(status.message());
    complain(status.message());
  }
  const ExitCode code = failed.empty() ? exit_done : exit_cache_not_writable;
  const char* done = request.dry_run ? "would be removed" : "removed";
  if (arguments.json) {
    nlohmann::ordered_json removed = nlohmann::ordered_json::array();
    for (const CachedFile& file : collected->removed) {
      removed.push_back({{"path", file.path}, {"bytes", file.bytes}, {"last_used", file.last_used}});
    }
    print_json({{"dry_run", request.dry_run},
                {"removed", removed},
                {"removed_bytes", collected->removed_bytes},
                {"kept", collected->kept},
                {"kept_bytes", collected->kept_bytes},
                {"failed", failed}});
    return code;
  }
  for (const CachedFile& file : collected->removed) tell("{} {}\n", done, file.path);
  tell("{} entries of {} bytes {}, {} of {} bytes kept\n", collected->removed.size(), collected->removed_bytes, done,
       collected->kept, collected->kept_bytes);
  return code;
}

}  // namespace gemvjit::tools
