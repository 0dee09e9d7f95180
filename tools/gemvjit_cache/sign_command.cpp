// gemvjit-cache sign: signs entries of the cache folder in place. Whoever signs vouches for what is there.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/gemvjit_cache/cache_folder.h"
#include "tools/gemvjit_cache/signers.h"

namespace gemvjit::tools {

ExitCode sign_entries(const CacheArguments& arguments) {
  std::shared_ptr<const Signatures> signatures;
  if (const ExitCode code = open_signatures(arguments, signatures); code != exit_done) return code;
  if (!signatures->has_signing_key()) {
    complain("name the private key with --sign-key or GEMVJIT_CACHE_SIGNING_KEY");
    return exit_usage;
  }
  if (const ExitCode code = check_signing_key(*signatures); code != exit_done) return code;
  std::vector<ListedEntry> entries;
  if (const ExitCode code = load_entries(arguments, entries); code != exit_done) return code;
  std::vector<const ListedEntry*> selected;
  for (const std::string& selector : arguments.selectors) {
    if (const ExitCode code = select_entries(entries, selector, selected); code != exit_done) return code;
  }
  std::size_t left_out = 0;
  for (const ListedEntry& listed : entries) {
    if (!arguments.selectors.empty()) break;
    if (listed.entry) selected.push_back(&listed);
    if (listed.entry) continue;
    ++left_out;
    complain(fmt::format("left out: {}: {}", listed.path, listed.problem.message()));
  }
  std::sort(selected.begin(), selected.end());
  selected.erase(std::unique(selected.begin(), selected.end()), selected.end());  // named twice
  std::unique_ptr<CubinStore> store;
  std::uint64_t max_bytes = 0;
  if (const ExitCode code = open_limited_store(choose_cache_folder(arguments).path, store, max_bytes);
      code != exit_done) {
    return code;
  }
  nlohmann::ordered_json signed_paths = nlohmann::ordered_json::array(), failed = signed_paths;
  for (const ListedEntry* listed : selected) {
    const Result<Entry> made = signatures->sign(*listed->entry);
    if (!made) {  // the next one would fail too
      complain(made.status().message());
      return exit_environment;
    }
    if (const Status status = store->put(*made, Replace::any); !status) {
      failed.push_back({{"path", listed->path}, {"problem", status.message()}});
      complain(status.message());
    } else {
      signed_paths.push_back(listed->path);
    }
  }
  const std::string id = signatures->signing_key_id();
  if (arguments.json) {
    print_json({{"key_id", id}, {"signed", signed_paths}, {"failed", failed}});
  } else {
    tell("{} entries signed by {}\n", signed_paths.size(), id);
  }
  if (!failed.empty()) return exit_cache_not_writable;
  return left_out == 0 ? exit_done : exit_entry_damaged;
}

}  // namespace gemvjit::tools
