// What reader and writer of OCI layouts share: names of image-spec 1.1, and how a folder is called.
#pragma once

#include <string>
#include <string_view>

namespace gemvjit::tools {

inline constexpr std::string_view oci_layout_version = "1.0.0";
inline constexpr std::string_view oci_index_type = "application/vnd.oci.image.index.v1+json";
inline constexpr std::string_view oci_manifest_type = "application/vnd.oci.image.manifest.v1+json";
inline constexpr std::string_view oci_empty_type = "application/vnd.oci.empty.v1+json";
inline constexpr std::string_view oci_empty_json = "{}";
inline constexpr std::string_view oci_empty_base64 = "e30=";
inline constexpr char oci_ref_annotation[] = "org.opencontainers.image.ref.name";
inline constexpr char oci_title_annotation[] = "org.opencontainers.image.title";

inline std::string without_last_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

}  // namespace gemvjit::tools
