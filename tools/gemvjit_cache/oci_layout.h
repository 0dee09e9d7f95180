// A set of cache entries as an OCI image layout, a folder that skopeo, oras and cosign move into registries and sign:
// image-spec 1.1, image-layout.md and "Guidelines for Artifact Usage" of manifest.md.
//
//   oci-layout              {"imageLayoutVersion": "1.0.0"}
//   index.json              one descriptor, of the manifest, with the name that --ref gave
//   blobs/sha256/<digest>   the manifest: artifactType oci_artifact_type, the empty config, one layer, annotations
//   blobs/sha256/<digest>   the config: the two bytes "{}"
//   blobs/sha256/<digest>   the layer: the entries as a bundle (cache/bundle.h), titled oci_layer_title
//
// One bundle, not a layer an entry. A set has hundreds of kernels of some ten kilobytes: as layers they would be as
// many uploads of two or three requests each, registries and clients bound the layers of a manifest (some at 127) and
// its bytes (4 MiB), and a set would have lost what a bundle has, one signature of ours over all of it. What is pulled
// is a file that GEMVJIT_CACHE_RO takes as it is. The price: a changed kernel makes a new layer, which shares nothing
// with the old one in the registry, of a few megabytes. Who wants it finer has a manifest a target (--arch, --ref).
//
// The same entries give the same manifest: there is no time, no host and no version of a tool in it. The name given by
// --ref is outside of it, in index.json. Its digest is what a registry calls it by and what cosign signs.
//
// Threads: one. Errors: entry_damaged for a folder that is no whole layout, io_error for what the system refuses and
// for what may not be written over, not_found, invalid_argument as said below; what a callback answers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cache/bundle.h"
#include "src/base/sha256.h"
#include "src/base/status.h"

namespace gemvjit::tools {

inline constexpr std::string_view oci_artifact_type = "application/vnd.gemvjit.cache.v1";
inline constexpr std::string_view oci_layer_type = "application/vnd.gemvjit.cache.bundle.v1";
inline constexpr std::string_view oci_layer_title = "kernels.gjb";
// What registries take of a manifest at the least; also the bound of index.json here.
inline constexpr std::uint64_t oci_document_limit = 4u << 20;
inline constexpr std::size_t oci_manifest_limit = 1024;  // descriptors in index.json

std::string oci_digest(const Digest& digest);  // "sha256:<64 hex digits>"
// Whether the grammar of org.opencontainers.image.ref.name has it: "kernels", "1.0-sm_90a", "registry.example/a/b:c".
bool is_oci_ref(std::string_view name);

struct OciTarget {
  std::string folder;    // to be made; may be there if it is empty
  std::string ref;       // "" for none
  bool replace = false;  // also over a folder with nothing but a layout that this program wrote
};

// Whether write_oci_layout may go on: io_error where something is that is not written over.
Status check_oci_target(const OciTarget& target);

struct WrittenLayout {
  WrittenBundle bundle;
  std::string bundle_path;
  Digest manifest{};
};
using WriteLayer = std::function<Result<WrittenBundle>(const std::string& path)>;  // writes the bundle to that file

// Writes to a folder beside it that is renamed at the end, so that the folder is there whole or as it was before. One
// that is replaced is exchanged in one step; io_error where the file system cannot, as NFS. On failure, an interruption
// included that `write_layer` answers with, nothing stays; what writers left that were killed over an hour ago is
// removed. Modes follow the umask: it is made to be given away.
Result<WrittenLayout> write_oci_layout(const OciTarget& target, const WriteLayer& write_layer);

struct OpenedLayout {
  std::unique_ptr<Bundle> bundle;  // whole: the layer's size and digest are the manifest's
  Digest manifest{};
};

// Follows index.json to the manifest of our artifactType and its layer; every blob on the way has the size and the
// digest that name it. A digest is the only name that is followed, no link is, nor an index within the index; nothing
// is read beyond the limits here and in bundle.h. `ref` chooses among several, a name or "sha256:<digest>"; "" for the
// only one. io_error for a folder that has nothing of a layout, not_found if there is no such manifest;
// invalid_argument, with the names, if there are several.
Result<OpenedLayout> open_oci_layout(const std::string& folder, const std::string& ref);

// Whether that is a folder, for open_oci_layout, or by a link.
bool is_folder(const std::string& path);
// io_error unless all manifests of the layout are ours, and nothing but the layout is in the folder.
Status check_only_ours(const std::string& folder);

}  // namespace gemvjit::tools
