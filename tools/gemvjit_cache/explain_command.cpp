// gemvjit-cache explain: whether a process with this cache and these layers would find a key, and if not, which entry
// comes closest and in what it differs.
#include <fmt/format.h>
#include <fmt/ranges.h>

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

ExitCode load_layers(const CacheArguments& arguments, Cubins cubins, std::vector<Layer>& layers) {
  Layer local{choose_cache_folder(arguments).path, "writable", {}, ""};
  // A folder that the library does not use has nothing, whatever is in it.
  if (const Status safe = check_cache_folder(local.path); !safe) {
    local.problem = safe.message();
  } else if (const ExitCode code = load_entries(arguments, local.entries, cubins); code != exit_done) {
    return code;
  }
  layers.push_back(std::move(local));
  for (LayerView& view : open_layers()) {
    std::vector<ListedEntry> entries = list_layer(view);
    for (ListedEntry& listed : entries) {
      if (listed.entry && cubins == Cubins::drop) listed.entry->cubin.bytes = {};
    }
    layers.push_back({view.path, view.kind(), std::move(entries), view.problem.message()});
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
  std::vector<std::string> damaged;    // files of this entry that are of no use
  std::vector<std::string> untrusted;  // whole ones of others, or without the signature that is asked for
};

// As the library asks: the layers in order, past what is damaged or not trusted.
Verdict look_up(const std::vector<Layer>& layers, const EntryId& id, const Signatures& signatures) {
  Verdict verdict;
  const std::string in_bundle = "#" + id.key.arch.text() + "/" + entry_file_name(id);
  for (const Layer& layer : layers) {
    for (const ListedEntry& listed : layer.entries) {
      const bool is_called_so = listed.path.ends_with(entry_path("", id)) || listed.path.ends_with(in_bundle);
      const bool is_it = listed.entry && listed.entry->id == id;
      const Status safe =
          layer.kind == "bundle" || !(is_it || is_called_so)
              ? Status::ok()
              : check_entry_file(listed.path, layer.kind == "writable" ? EntryPlace::cache : EntryPlace::layer);
      if (!safe) {  // a layer's list has looked, too, and holds no entry then
        verdict.untrusted.push_back(named_problem(listed.path, safe.message()));
        continue;
      }
      if (is_it) {
        if (const Status trusted = signatures.check(*listed.entry); !trusted) {
          verdict.untrusted.push_back(named_problem(listed.path, trusted.message()));
          continue;
        }
        verdict.result = "hit";
        verdict.layer = layer.path;
        verdict.path = listed.path;
        verdict.compiler = listed.entry->cubin.compiler_version;
        return verdict;
      }
      if (!listed.entry && is_called_so) {
        verdict.damaged.push_back(named_problem(listed.path, listed.problem.message()));
      }
    }
  }
  if (!verdict.untrusted.empty()) verdict.result = "untrusted";
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
  for (const auto* problems : {&verdict.damaged, &verdict.untrusted}) {
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
  const Cubins cubins = signatures->asks_for_entries() ? Cubins::keep : Cubins::drop;  // signatures cover them
  if (const ExitCode code = load_layers(arguments, cubins, layers); code != exit_done) return code;
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
