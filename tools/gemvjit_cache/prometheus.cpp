#include "tools/gemvjit_cache/prometheus.h"

#include <fmt/format.h>

#include <set>

#include "tools/cache_view/layers.h"
#include "tools/common/printable.h"

namespace gemvjit::tools {
namespace {

std::string label(const std::string& value) {
  std::string text;
  for (const char c : valid_utf8(value)) {  // the format knows no other bytes
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  return text;
}

std::string head(const char* name, const char* help) {
  return fmt::format("# HELP gemvjit_cache_{} {}\n# TYPE gemvjit_cache_{} gauge\n", name, help, name);
}

template <typename Value>
std::string family(const char* name, const char* help, const EntryGroups& groups, const Value& value) {
  std::string text = head(name, help);
  for (const auto& [names, group] : groups) {
    text += fmt::format("gemvjit_cache_{}{{arch=\"{}\",family=\"{}\"}} {}\n", name, label(names.first),
                        label(names.second), value(group));
  }
  return text;
}

}  // namespace

std::string prometheus_text(const EntryGroups& groups, const EntryCounts& counts, const FolderHistory& history) {
  std::string text =
      family("entries", "Whole entries of the cache folder.", groups, [](const EntryGroup& g) { return g.entries; }) +
      family("bytes", "Bytes of these entries.", groups, [](const EntryGroup& g) { return g.bytes; }) +
      family("compile_seconds", "Time that compiling these entries took.", groups,
             [](const EntryGroup& g) { return fmt::format("{}.{:03}", g.compile_ms / 1000, g.compile_ms % 1000); });
  text += head("damaged", "Files of the cache folder that are no whole entry.");
  text += fmt::format("gemvjit_cache_damaged {}\n", counts.damaged);
  text += head("unreadable", "Files of the cache folder that cannot be read.");
  text += fmt::format("gemvjit_cache_unreadable {}\n", counts.unreadable);
  text += head("quarantine_files", "Damaged files that were moved to the quarantine and are still there.");
  text += fmt::format("gemvjit_cache_quarantine_files {}\n", history.quarantine.files);
  text += head("quarantine_bytes", "Bytes of these files.");
  text += fmt::format("gemvjit_cache_quarantine_bytes {}\n", history.quarantine.bytes);
  text += head("recent_evictions", "Entries evicted in the last ten minutes, as far as noted (128).");
  text += fmt::format("gemvjit_cache_recent_evictions {}\n", history.recent_evictions);
  std::string usable = head("layer_usable", "Whether a read-only layer can be used.");
  std::string entries = head("layer_entries", "Whole entries of a read-only layer.");
  std::string damaged = head("layer_damaged", "Entries of a read-only layer that are not whole or cannot be read.");
  std::set<std::string> named;
  for (LayerView& view : open_layers()) {
    const EntryCounts in_layer = count_states(list_layer(view));
    const std::string name = fmt::format("{{layer=\"{}\",kind=\"{}\"}}", label(view.path), view.kind());
    if (!named.insert(name).second) continue;  // a layer that is named twice is one series
    usable += fmt::format("gemvjit_cache_layer_usable{} {}\n", name, view.problem ? 1 : 0);
    entries += fmt::format("gemvjit_cache_layer_entries{} {}\n", name, in_layer.whole);
    damaged += fmt::format("gemvjit_cache_layer_damaged{} {}\n", name, in_layer.damaged + in_layer.unreadable);
  }
  return text + usable + entries + damaged;
}

}  // namespace gemvjit::tools
