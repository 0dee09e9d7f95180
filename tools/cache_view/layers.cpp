#include "tools/cache_view/layers.h"

#include "src/runtime/options.h"
#include "tools/cache_view/tool_settings.h"

namespace gemvjit::tools {

std::vector<std::string> layer_paths() {
  return split_layer_paths(tool_environment()("GEMVJIT_CACHE_RO").value_or(""));
}

std::vector<LayerView> open_layers() {
  std::vector<LayerView> views;
  const Result<SignatureOptions> options = resolve_signature_options(tool_environment());
  const Signatures signatures(options ? *options : SignatureOptions{}, Log::silent());
  for (const std::string& path : layer_paths()) {
    LayerView view;
    view.path = path;
    auto layer = open_read_only_layer(path, &signatures);
    if (!options) {
      view.problem = options.status();
    } else if (layer) {
      view.layer = std::move(layer).value();
    } else {
      view.problem = layer.status();
    }
    views.push_back(std::move(view));
  }
  return views;
}

std::vector<ListedEntry> list_layer(LayerView& view) {
  if (view.layer == nullptr) return {};
  auto listed = view.layer->list();
  if (listed) return std::move(listed).value();
  view.problem = listed.status();
  return {};
}

}  // namespace gemvjit::tools
