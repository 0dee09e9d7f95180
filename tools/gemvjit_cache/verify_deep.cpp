#include "tools/gemvjit_cache/verify_deep.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cache/bundle.h"
#include "tools/cache_view/layers.h"
#include "tools/gemvjit_cache/cache_folder.h"
#include "tools/gemvjit_cache/entry_facts.h"
#include "tools/gemvjit_cache/signers.h"

namespace gemvjit::tools {
namespace {

using nlohmann::ordered_json;

// Which kernels one compiler made for each name, and where they lie.
class Answers {
 public:
  void add(const std::vector<ListedEntry>& entries) {
    for (const ListedEntry& listed : entries) {
      if (!listed.entry) continue;
      const Entry& entry = *listed.entry;
      const std::string name = entry.id.key.text() + " " + to_hex(entry.id.digest);
      const Digest kernel = Sha256::of(entry.cubin.bytes.data(), entry.cubin.bytes.size());
      answers_[{name, entry.cubin.compiler_version}][kernel].push_back(listed.path);
    }
  }

  ordered_json differing() const {
    ordered_json all = ordered_json::array();
    for (const auto& [name, kernels] : answers_) {
      if (kernels.size() < 2) continue;
      ordered_json paths = ordered_json::array();
      for (const auto& [kernel, where] : kernels) {
        for (const std::string& path : where) paths.push_back(path);
      }
      const std::size_t space = name.first.find(' ');
      all.push_back({{"key", name.first.substr(0, space)},
                     {"digest", name.first.substr(space + 1)},
                     {"compiler", name.second},
                     {"paths", paths}});
    }
    return all;
  }

 private:
  std::map<std::pair<std::string, std::string>, std::map<Digest, std::vector<std::string>>> answers_;
};

ordered_json verify_layer(LayerView& view, const Signatures& signatures, bool print, Answers& answers,
                          DeepResult& result) {
  const std::vector<ListedEntry> entries = list_layer(view);
  answers.add(entries);
  ordered_json damaged = ordered_json::array(), unreadable = damaged;
  for (const ListedEntry& listed : entries) {
    if (listed.entry) continue;
    const bool is_damaged = state_of(listed) == EntryState::damaged;
    (is_damaged ? damaged : unreadable).push_back(problem_json(listed));
    ++(is_damaged ? result.damaged : result.unreadable);
    if (print) {
      print_state(is_damaged ? "DAMAGED" : "UNREADABLE", is_damaged ? Paint::bad : Paint::warning,
                  fmt::format(" {}\n", named_problem(listed.path, listed.problem.message())));
    }
  }
  if (view.problem.code() == StatusCode::unsupported) {
    ++result.not_trusted;
    if (print) print_state("NOT TRUSTED", Paint::bad, fmt::format(" {}\n", view.problem.message()));
  } else if (!view.problem) {
    ++(view.problem.code() == StatusCode::entry_damaged ? result.damaged : result.unreadable);
    if (print) {
      print_state("LAYER OF NO USE", Paint::bad,
                  fmt::format(" {}\n", named_problem(view.path, view.problem.message())));
    };
  } else if (print) {
    tell("layer {} ({}): {} entries checked, {} whole\n", view.path, view.kind(), entries.size(),
         count_states(entries).whole);
  }
  ordered_json report{{"path", view.path},
                      {"kind", view.kind()},
                      {"checked", entries.size()},
                      {"whole", count_states(entries).whole},
                      {"damaged", damaged},
                      {"unreadable", unreadable},
                      {"problem", view.problem.message()}};
  // Also of one that is refused for it.
  report["signature"] = nullptr;
  if (view.problem.code() == StatusCode::unsupported || view.kind() == std::string_view("bundle")) {
    if (const auto bundle = Bundle::open(view.path)) report["signature"] = signature_json(signatures.examine(**bundle));
  }
  result.not_trusted += report_signatures(entries, signatures, print, report);
  return report;
}

}  // namespace

DeepResult verify_layers(const std::vector<ListedEntry>& local, const Signatures& signatures, bool print,
                         ordered_json& document) {
  DeepResult result;
  Answers answers;
  answers.add(local);
  document["layers"] = ordered_json::array();
  for (LayerView& view : open_layers())
    document["layers"].push_back(verify_layer(view, signatures, print, answers, result));
  document["differs"] = answers.differing();
  result.differing = document["differs"].size();
  if (print) {
    for (const ordered_json& one : document["differs"]) {
      print_state("DIFFERS", Paint::bad,
                  fmt::format(" {} of {}:\n", one["key"].get<std::string>(), one["compiler"].get<std::string>()));
      for (const ordered_json& path : one["paths"]) tell("  {}\n", path.get<std::string>());
    }
  }
  return result;
}

}  // namespace gemvjit::tools
