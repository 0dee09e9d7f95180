// verify --deep: the read-only layers as well, and whether two layers give different kernels for one name.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "cache/signatures.h"
#include "cache/store.h"

namespace gemvjit::tools {

struct DeepResult {
  std::size_t damaged = 0, unreadable = 0;  // in the layers; a layer of no use counts as one
  std::size_t differing = 0;                // names with different kernels of one compiler
  std::size_t not_trusted = 0;              // entries, and bundles that the policy refuses
};

// `local` are the cache folder's. Adds "layers" and "differs" to the document; with `print` says each finding.
DeepResult verify_layers(const std::vector<ListedEntry>& local, const Signatures& signatures, bool print,
                         nlohmann::ordered_json& document);

}  // namespace gemvjit::tools
