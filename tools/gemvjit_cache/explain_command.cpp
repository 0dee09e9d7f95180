// gemvjit-cache explain: whether a process with this cache and these layers would find a key, and if not, which entry
// comes closest and in what it differs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "cache/layout.h"
#include "src/compile/specialize.h"
#include "tools/cache_view/cache_refusal.h"
#include "tools/cache_view/layers.h"
#include "tools/cache_view/nearest.h"
#include "tools/common/printable.h"
#include "tools/gemvjit_cache/cache_folder.h"
#include "tools/gemvjit_cache/entry_facts.h"
#include "tools/gemvjit_cache/signers.h"

namespace gemvjit::tools {
namespace {

using nlohmann::ordered_json;

struct Layer {
  std::string path, kind;
  std::vector<ListedEntry> entries;
  std::string problem;
  std::function<Result<FoundEntry>(const EntryId& id)> look;  // as CubinStore::look
};

struct NearestEntry {
  const ListedEntry* listed = nullptr;
  const Layer* layer = nullptr;
  Nearest nearest;
};

NearestEntry find_nearest_entry(const std::vector<Layer>& layers, const EntryId& wanted) {
  std::vector<KnownEntry> known;
  std::vector<NearestEntry> places;
  for (const Layer& layer : layers) {
    for (const ListedEntry& listed : layer.entries) {
      if (!listed.entry) continue;
      known.push_back({listed.entry->id.key, to_hex(listed.entry->id.digest), listed.path});
      places.push_back({&listed, &layer, {}});
    }
  }
  std::optional<Nearest> nearest = find_nearest(known, wanted);
  if (!nearest) return {};
  NearestEntry found = places[nearest->index];
  found.nearest = std::move(*nearest);
  return found;
}

Result<FoundEntry> nothing_there(const EntryId&) { return Status(StatusCode::not_found, "nothing is there"); }

ExitCode load_layers(const CacheArguments& arguments, std::vector<Layer>& layers) {
  Layer local{choose_cache_folder(arguments).path, "writable", {}, "", nothing_there};
  // A folder that the library does not use has nothing, whatever is in it.
  if (const Status safe = check_cache_folder(local.path); !safe) {
    local.problem = safe.message();
  } else if (const ExitCode code = load_entries(arguments, local.entries, Cubins::drop); code != exit_done) {
    return code;
  } else {
    DirStoreOptions as_library;
    as_library.guard = guard_of_cache();
    const std::shared_ptr<CubinStore> store = make_dir_store(local.path, Log::silent(), as_library);
    local.look = [store](const EntryId& id) { return store->look(id); };
  }
  layers.push_back(std::move(local));
  for (LayerView& view : open_layers()) {
    std::vector<ListedEntry> entries = list_layer(view);
    for (ListedEntry& listed : entries) {
      if (listed.entry) listed.entry->cubin.bytes = {};
    }
    Layer layer{view.path, view.kind(), std::move(entries), view.problem.message(), nothing_there};
    if (const std::shared_ptr<ReadOnlyLayer> source = std::move(view.layer)) {
      layer.look = [source](const EntryId& id) -> Result<FoundEntry> {
        Result<Entry> entry = source->read(id);
        if (!entry) return entry.status();
        return FoundEntry{std::move(entry).value(), source->find(id)};
      };
    }
    layers.push_back(std::move(layer));
  }
  return exit_done;
}

// The key that a name means: its own text, or that of an entry whose digest begins so.
ExitCode find_key(const std::vector<Layer>& layers, const std::string& name, KernelKey& key) {
  if (const auto parsed = KernelKey::parse(name)) {
    key = *parsed;
    return exit_done;
  }
  // The same entry may be in several layers: once is enough to know its key.
  std::vector<ListedEntry> known;
  std::set<Digest> seen;
  for (const Layer& layer : layers) {
    for (const ListedEntry& listed : layer.entries) {
      if (listed.entry && !seen.insert(listed.entry->id.digest).second) continue;
      known.push_back(listed);
      if (known.back().entry) known.back().entry->cubin.bytes = {};
    }
  }
  std::vector<const ListedEntry*> selected;
  if (const ExitCode code = select_entries(known, name, selected); code != exit_done) return code;
  key = selected.front()->entry->id.key;
  return exit_done;
}

ordered_json nearest_json(const NearestEntry& nearest) {
  if (nearest.listed == nullptr) return nullptr;
  const Entry& entry = *nearest.listed->entry;
  ordered_json differs = ordered_json::array();
  for (const Difference& d : nearest.nearest.differences) {
    differs.push_back({{"field", d.field}, {"wanted", d.wanted}, {"found", d.found}});
  }
  return {{"key", entry.id.key.text()},   {"digest", to_hex(entry.id.digest)},        {"layer", nearest.layer->path},
          {"path", nearest.listed->path}, {"compiler", entry.cubin.compiler_version}, {"differs", differs}};
}

void print_nearest(const NearestEntry& nearest) {
  if (nearest.listed == nullptr) {
    tell("no layer has a whole entry\n");
    return;
  }
  const Entry& entry = *nearest.listed->entry;
  tell("nearest entry: {} ({})\n", entry.id.key.text(), nearest.listed->path);
  tell("first differing field: {}\n", first_difference_text(nearest.nearest));
  std::vector<std::string> others;
  const std::vector<Difference>& all = nearest.nearest.differences;
  for (std::size_t i = 1; i < all.size(); ++i) others.push_back(all[i].field);
  if (!others.empty()) tell("also differ: {}\n", fmt::join(others, ", "));
  tell("compiled by {}, which plays no part in whether an entry is found\n", printable(entry.cubin.compiler_version));
}

struct Verdict {
  std::string result = "miss", layer, path, compiler;
  std::vector<std::string> damaged;     // files of this entry that are of no use
  std::vector<std::string> unreadable;  // that the system does not let be read
  std::vector<std::string> untrusted;   // whole ones of others, or without the signature that is asked for
};

// As the library asks: the layers in order, past what is damaged, unreadable or not trusted.
Verdict look_up(const std::vector<Layer>& layers, const EntryId& id, const Signatures& signatures) {
  Verdict verdict;
  for (const Layer& layer : layers) {
    const Result<FoundEntry> found = layer.look(id);
    if (found) {
      if (const Status trusted = signatures.check(found->entry); !trusted) {
        verdict.untrusted.push_back(named_problem(found->path, trusted.message()));
        continue;
      }
      verdict.result = "hit";
      verdict.layer = layer.path;
      verdict.path = found->path;
      verdict.compiler = found->entry.cubin.compiler_version;
      return verdict;
    }
    const Status problem = found.status();
    if (problem.code() == StatusCode::not_found) continue;
    const EntryPlace place = layer.kind == "writable" ? EntryPlace::cache : EntryPlace::layer;
    const bool is_safe = layer.kind == "bundle" || check_entry_file(layer.path, id, place);
    (problem.code() == StatusCode::entry_damaged ? verdict.damaged
     : is_safe                                   ? verdict.unreadable
                                                 : verdict.untrusted)
        .push_back(problem.message());
  }
  if (!verdict.untrusted.empty()) verdict.result = "untrusted";
  if (!verdict.unreadable.empty()) verdict.result = "unreadable";
  if (!verdict.damaged.empty()) verdict.result = "damaged";
  return verdict;
}

ordered_json layers_json(const std::vector<Layer>& layers) {
  ordered_json all = ordered_json::array();
  for (const Layer& layer : layers) {
    const EntryCounts counts = count_states(layer.entries);
    all.push_back({{"path", layer.path}, {"kind", layer.kind}, {"entries", counts.whole}, {"problem", layer.problem}});
  }
  return all;
}

void print_verdict(const EntryId& id, const Verdict& verdict, const std::vector<Layer>& layers) {
  tell("{}: ", id.key.text());
  print_state(verdict.result,
              verdict.result == "hit"    ? Paint::good
              : verdict.result == "miss" ? Paint::warning
                                         : Paint::bad,
              fmt::format("\ndigest {}\n", to_hex(id.digest)));
  for (const auto* problems : {&verdict.damaged, &verdict.unreadable, &verdict.untrusted}) {
    for (const std::string& problem : *problems) tell("not used: {}\n", problem);
  }
  if (verdict.result == "hit") {
    tell("layer {}\npath {}\ncompiled by {}\n", verdict.layer, verdict.path, printable(verdict.compiler));
  }
  for (const Layer& layer : layers) {
    if (!layer.problem.empty()) tell("layer passed over: {}\n", layer.problem);
  }
}

}  // namespace

ExitCode explain_key(const CacheArguments& arguments) {
  if (arguments.selectors.size() > 1) return explain_shape(arguments);
  if (!arguments.arch.empty() || arguments.silu || arguments.bf16 || arguments.no_pdl || arguments.tuned_only) {
    complain("--arch, --silu, --bf16, --no-pdl and --tuned-only are for a shape, explain N K M: a key says all that");
    return exit_usage;
  }
  std::shared_ptr<const Signatures> signatures;
  if (const ExitCode code = open_signatures(arguments, signatures); code != exit_done) return code;
  std::vector<Layer> layers;
  if (const ExitCode code = load_layers(arguments, layers); code != exit_done) return code;
  KernelKey key;
  if (const ExitCode code = find_key(layers, arguments.selectors.front(), key); code != exit_done) return code;
  const auto recipe = specialize(key);
  if (!recipe) {
    complain(fmt::format("this version makes no kernel {}: {}", key.text(), recipe.status().message()));
    return exit_nothing_found;
  }
  const EntryId id = recipe->id();
  const Verdict verdict = look_up(layers, id, *signatures);
  const NearestEntry nearest = verdict.result == "miss" ? find_nearest_entry(layers, id) : NearestEntry{};
  if (arguments.json) {
    print_json({{"key", key.text()},
                {"digest", to_hex(id.digest)},
                {"result", verdict.result},
                {"layer", verdict.layer},
                {"path", verdict.path},
                {"compiler", verdict.compiler},
                {"damaged", verdict.damaged},
                {"unreadable", verdict.unreadable},
                {"untrusted", verdict.untrusted},
                {"nearest", nearest_json(nearest)},
                {"layers", layers_json(layers)}});
  } else {
    print_verdict(id, verdict, layers);
    if (verdict.result == "miss") print_nearest(nearest);
  }
  if (verdict.result == "hit") return exit_done;
  return verdict.result == "damaged" ? exit_entry_damaged : exit_not_warm;
}

}  // namespace gemvjit::tools
