// Safetensors headers: which tensors a file or a model folder holds, without reading a byte of their data.
//
//   file   := header_size:u64 (little-endian)  header:JSON  data
//   header := {"<name>": {"dtype": "BF16", "shape": [n, k], "data_offsets": [begin, end]}, ..., "__metadata__": {...}}
//
// Offsets count from the start of `data`. A header is believed only after it was checked against the file: every tensor
// lies inside it, has the size that its type and shape give, and the tensors cover the data without overlap or hole
// (as the format asks). A message names the file and, where there is one, the tensor. Values nested more deeply than
// the format has them, and shapes of more than 64 dimensions, are refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"

namespace gemvjit::tools {

// Bytes of a header or an index; the format would allow a header of 100 MB. Headers are read as a stream that keeps
// only the tensors: a header full of the smallest ones (600,000) took 335 MiB, nonsense of the same size 36 MiB.
inline constexpr std::uint64_t safetensors_header_limit = 32u << 20;

struct Tensor {
  std::string name;
  std::string dtype;  // as in the file: "BF16", "F8_E4M3", "U8"; one not known here is kept, its size unchecked
  std::vector<std::int64_t> shape;
  std::string file;               // path
  std::uint64_t file_offset = 0;  // of its first byte, from the start of the file
  std::uint64_t bytes = 0;

  std::string shape_text() const;  // "[30522, 384]"; at most 8 dimensions are spelt out
};

// The tensors of one file, sorted by name. invalid_argument for a file that is not whole, honest safetensors;
// not_found or io_error where it cannot be read.
Result<std::vector<Tensor>> read_safetensors_file(const std::string& path);

// The tensors of a model, sorted by name. `path` is a folder (the files that model.safetensors.index.json names, or if
// there is no index all *.safetensors files in it) or one file. not_found if the folder is absent or holds no such
// file; invalid_argument also for an index that names an absent file or tensor, and for a name in two files.
Result<std::vector<Tensor>> read_model(const std::string& path);

}  // namespace gemvjit::tools
