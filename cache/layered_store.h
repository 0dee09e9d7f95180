// A CubinStore over one writable store and any number of read-only layers (read_only_layer.h).
//
// get()   asks the writable store first, then the layers in their order; the first whole entry is the answer. A damaged
//         one is warned of once and the next layer is asked.
// put(), remove()  touch the writable store only. Nothing is copied from a layer into it, so what a layer brings can
//         never take the place of a local entry. A put whose kernel differs from a layer's of the same name and the
//         same compiler is warned of (once a name): the compiler, or somebody, gave two answers. Both are kept, the
//         local one is served.
// list()  has the entries of all; their paths tell the layers apart.
// path_of() names the file that get() would read if it is whole: the writable store's if there is one, else the first
//         layer's that has the entry ("<bundle>#<name>"), else where a put would go.
// root()  is the writable store's. stats() counts an entry of any layer as a hit; puts are the writable store's.
//
// Layers are opened at the first get, put, list or path_of, not before, and stay what they were then. One that is
// missing, unreadable or damaged is passed over with one warning; so is a bundle, and an entry, without the signature
// that the policy asks for (signatures.h), which the writable store has to see to itself (signed_store.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cache/signatures.h"
#include "cache/store.h"

namespace gemvjit {

// Without layers the writable store itself.
std::unique_ptr<CubinStore> make_layered_store(std::unique_ptr<CubinStore> writable,
                                               std::vector<std::string> layer_paths, Log log,
                                               std::shared_ptr<const Signatures> signatures = nullptr);

}  // namespace gemvjit
