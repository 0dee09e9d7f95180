// The read-only layers that GEMVJIT_CACHE_RO names, as a tool looks at them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cache/read_only_layer.h"

namespace gemvjit::tools {

struct LayerView {
  std::string path;
  std::unique_ptr<ReadOnlyLayer> layer;  // null: it cannot be used
  Status problem;                        // why not
  const char* kind() const { return layer == nullptr ? "none" : layer->is_bundle() ? "bundle" : "folder"; }
};

std::vector<std::string> layer_paths();  // in their order, whatever is there
// In their order.
std::vector<LayerView> open_layers();

// A layer's entries; a layer of no use, or one that cannot be listed, has none, and `problem` says why.
std::vector<ListedEntry> list_layer(LayerView& view);

}  // namespace gemvjit::tools
