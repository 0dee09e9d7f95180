#include "tools/common/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "src/base/files.h"
#include "tools/common/printable.h"
#include "tools/common/regular_file.h"

namespace gemvjit::tools {
namespace {

using nlohmann::json;

constexpr std::uint64_t prefix_bytes = 8;  // the header's size
constexpr const char* index_name = "model.safetensors.index.json";

Status bad(const std::string& file, std::string_view what) {
  return {StatusCode::invalid_argument, fmt::format("{}: {}", file, what)};
}

Status bad_tensor(const std::string& file, std::string_view name, std::string_view what) {
  return bad(file, fmt::format("tensor '{}': {}", printable(name), what));
}

// Bits of one element; nothing for a type that this reader does not know.
std::optional<std::uint64_t> dtype_bits(std::string_view dtype) {
  struct Row {
    std::string_view name;
    std::uint64_t bits;
  };
  static constexpr std::array<Row, 20> rows{{{"BOOL", 8},    {"U8", 8},   {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8},
                                             {"F8_E8M0", 8}, {"F4", 4},   {"U16", 16}, {"I16", 16},    {"F16", 16},
                                             {"BF16", 16},   {"U32", 32}, {"I32", 32}, {"F32", 32},    {"U64", 64},
                                             {"I64", 64},    {"F64", 64}, {"C64", 64}, {"F6_E2M3", 6}, {"F6_E3M2", 6}}};
  for (const Row& row : rows) {
    if (row.name == dtype) return row.bits;
  }
  return std::nullopt;
}

struct HeaderText {
  std::string text;
  std::uint64_t data_bytes = 0;  // what follows it in the file
};

Result<HeaderText> read_header_text(const std::string& path) {
  GEMVJIT_TRY_ASSIGN(const RegularFile file, RegularFile::open(path));
  const std::uint64_t file_bytes = file.bytes();
  if (file_bytes < prefix_bytes) {
    return bad(path,
               fmt::format("not a safetensors file: it has {} bytes, its header alone takes 8 and more", file_bytes));
  }
  std::array<unsigned char, prefix_bytes> prefix{};
  if (!file.read_at(0, prefix.data(), prefix.size())) return bad(path, "cannot be read");
  std::uint64_t header_bytes = 0;
  for (std::size_t i = 0; i < prefix.size(); ++i) header_bytes |= std::uint64_t{prefix[i]} << (8 * i);
  if (header_bytes > safetensors_header_limit) {
    return bad(path, fmt::format("not a safetensors file: it claims a header of {} bytes, more than the limit of {}",
                                 header_bytes, safetensors_header_limit));
  }
  if (header_bytes > file_bytes - prefix_bytes) {
    return bad(path, fmt::format("truncated: it claims a header of {} bytes, but only {} follow", header_bytes,
                                 file_bytes - prefix_bytes));
  }
  HeaderText header;
  header.text.resize(header_bytes);
  if (!file.read_at(prefix_bytes, header.text.data(), header_bytes)) return bad(path, "cannot be read");
  header.data_bytes = file_bytes - prefix_bytes - header_bytes;
  return header;
}

// Thrown by an event handler to end the parse, and caught where the parser was called.
struct Refused {
  Status status;
};

constexpr int deepest = 8;  // levels of JSON; a header has 3, an index 2 and whatever its metadata hold

// Called for every event of the parser; false drops the value (see nlohmann::json::parser_callback_t).
using EventHandler = std::function<bool(int depth, json::parse_event_t event, json& parsed)>;

// A JSON object without repeated keys on its first level (the parser would silently keep the last). What the handler
// drops takes no memory.
Result<json> parse_object(const std::string& path, std::string_view text, std::string_view what,
                          const EventHandler& handler) {
  std::set<std::string> keys;
  const auto on_event = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > deepest) throw Refused{bad(path, fmt::format("{} is nested more than {} levels deep", what, deepest))};
    if (event == json::parse_event_t::array_start && depth == 0) {
      throw Refused{bad(path, fmt::format("{} is not a JSON object", what))};
    }
    if (event == json::parse_event_t::key && depth == 1 && !keys.insert(parsed.get<std::string>()).second) {
      throw Refused{bad(path, fmt::format("{} names '{}' twice", what, printable(parsed.get<std::string>())))};
    }
    return handler(depth, event, parsed);
  };
  try {
    json document = json::parse(text, on_event, /*allow_exceptions=*/false);
    if (!document.is_object()) return bad(path, fmt::format("{} is not a JSON object", what));
    return document;
  } catch (const Refused& refused) {
    return refused.status;
  }
}

std::optional<std::uint64_t> as_size(const json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  return value.get<std::uint64_t>();
}

// Bytes of a tensor of that type and shape; nothing if they do not fit 63 bits.
std::optional<std::uint64_t> tensor_bytes(const std::vector<std::int64_t>& shape, std::uint64_t bits) {
  constexpr auto limit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::uint64_t product = bits;
  for (const std::int64_t size : shape) {
    const auto factor = static_cast<std::uint64_t>(size);
    if (factor != 0 && product > limit / factor) return std::nullopt;
    product *= factor;
  }
  return (product + 7) / 8;
}

Result<Tensor> parse_tensor(const std::string& path, const std::string& name, const json& value,
                            const HeaderText& header) {
  const auto lie = [&](std::string_view what) { return bad_tensor(path, name, what); };
  if (!value.is_object()) return lie("its header entry is not a JSON object");
  const auto dtype = value.find("dtype"), shape = value.find("shape"), offsets = value.find("data_offsets");
  if (dtype == value.end() || !dtype->is_string()) return lie("no dtype");
  if (shape == value.end() || !shape->is_array()) return lie("no shape");
  if (offsets == value.end() || !offsets->is_array() || offsets->size() != 2) return lie("no data_offsets");

  Tensor tensor{.name = name, .dtype = dtype->get<std::string>(), .shape = {}, .file = path};
  for (const json& item : *shape) {
    const auto size = as_size(item);
    if (!size || *size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return lie("its shape holds something that is no size");
    }
    tensor.shape.push_back(static_cast<std::int64_t>(*size));
  }
  const auto begin = as_size((*offsets)[0]), end = as_size((*offsets)[1]);
  if (!begin || !end || *begin > *end) return lie("its data_offsets are no range");
  if (*end > header.data_bytes) {
    return lie(fmt::format("truncated: its data ends at {} of only {} bytes", *end, header.data_bytes));
  }
  tensor.bytes = *end - *begin;
  tensor.file_offset = prefix_bytes + header.text.size() + *begin;
  if (const auto bits = dtype_bits(tensor.dtype)) {
    const auto wanted = tensor_bytes(tensor.shape, *bits);
    if (!wanted) return lie(fmt::format("its shape {} is larger than any file", tensor.shape_text()));
    if (*wanted != tensor.bytes) {
      return lie(fmt::format("{} {} takes {} bytes, but its data_offsets span {}", printable(tensor.dtype),
                             tensor.shape_text(), *wanted, tensor.bytes));
    }
  }
  return tensor;
}

// The data is covered once: no overlap, no hole, nothing behind the last tensor.
Status check_coverage(const std::string& path, const std::vector<Tensor>& tensors, const HeaderText& header) {
  std::vector<const Tensor*> by_offset;
  for (const Tensor& tensor : tensors) by_offset.push_back(&tensor);
  std::sort(by_offset.begin(), by_offset.end(), [](const Tensor* a, const Tensor* b) {
    return std::pair(a->file_offset, a->bytes) < std::pair(b->file_offset, b->bytes);
  });
  const std::uint64_t data_begin = prefix_bytes + header.text.size();
  std::uint64_t covered = data_begin;
  for (const Tensor* tensor : by_offset) {
    if (tensor->file_offset < covered)
      return bad(path, fmt::format("tensor '{}' overlaps another one", printable(tensor->name)));
    if (tensor->file_offset > covered) {
      return bad(path, fmt::format("{} bytes before tensor '{}' belong to no tensor", tensor->file_offset - covered,
                                   printable(tensor->name)));
    }
    covered += tensor->bytes;
  }
  if (covered != data_begin + header.data_bytes) {
    return bad(path, fmt::format("its last {} bytes belong to no tensor", data_begin + header.data_bytes - covered));
  }
  return {};
}

// Makes a tensor of each entry as soon as it is read, and keeps nothing else.
class HeaderReader {
 public:
  HeaderReader(const std::string& path, const HeaderText& header, std::vector<Tensor>& tensors)
      : path_(path), header_(header), tensors_(tensors) {}

  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    using Event = json::parse_event_t;
    if (depth == 1 && event == Event::key) name_ = parsed.get<std::string>();
    if (depth == 0 || (depth == 1 && event == Event::key)) return true;
    if (name_ == "__metadata__") return false;
    switch (event) {
      case Event::object_start:
        if (depth > 1) refuse("an object where the format has none");
        return true;
      case Event::array_start:
        if (depth == 1) refuse("its header entry is not a JSON object");
        if (depth > 2) refuse("a list where the format has none");
        list_size_ = 0;
        return true;
      case Event::key:
        return parsed == "dtype" || parsed == "shape" || parsed == "data_offsets";
      case Event::value:
        if (depth == 1) refuse("its header entry is not a JSON object");
        if (depth == 3 && ++list_size_ > most_dimensions)
          refuse(fmt::format("more than {} dimensions", most_dimensions));
        return true;
      case Event::object_end:
        add(parsed);
        return false;  // the tensor is all that is needed of it
      case Event::array_end:
        return true;
    }
    return true;
  }

 private:
  static constexpr std::size_t most_dimensions = 64;

  [[noreturn]] void refuse(std::string_view what) const { throw Refused{bad_tensor(path_, name_, what)}; }
  void add(const json& entry) {
    Result<Tensor> tensor = parse_tensor(path_, name_, entry, header_);
    if (!tensor) throw Refused{tensor.status()};
    tensors_.push_back(std::move(tensor).value());
  }

  const std::string& path_;
  const HeaderText& header_;
  std::vector<Tensor>& tensors_;
  std::string name_;
  std::size_t list_size_ = 0;
};

void sort_by_name(std::vector<Tensor>& tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const Tensor& a, const Tensor& b) { return a.name < b.name; });
}

Result<std::string> read_index_text(const std::string& path) {
  GEMVJIT_TRY_ASSIGN(const RegularFile file, RegularFile::open(path));
  if (file.bytes() > safetensors_header_limit) {
    return bad(path, fmt::format("an index of {} bytes is not believed", file.bytes()));
  }
  std::string text(file.bytes(), '\0');
  if (!file.read_at(0, text.data(), text.size())) return bad(path, "cannot be read");
  return text;
}

// Of an index only weight_map is kept, whose values are names.
EventHandler keep_weight_map() {
  return [](int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::key && depth == 1) return parsed == "weight_map";
    return depth <= 2 && !(depth == 2 && event == json::parse_event_t::array_start);
  };
}

// weight_map of an index: tensor to file name.
Result<std::map<std::string, std::string>> parse_index(const std::string& path, const std::string& text) {
  GEMVJIT_TRY_ASSIGN(const json document, parse_object(path, text, "the index", keep_weight_map()));
  const auto map = document.find("weight_map");
  if (map == document.end() || !map->is_object() || map->empty()) {
    return bad(path, "the index has no weight_map that names files");
  }
  std::map<std::string, std::string> files;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string()) return bad(path, fmt::format("the file of tensor '{}' is no string", printable(tensor)));
    const auto name = file.get<std::string>();
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
        name.find('\0') != std::string::npos) {
      return bad(path, fmt::format("the file of tensor '{}', '{}', is no name of a file in this folder",
                                   printable(tensor), printable(name)));
    }
    files[tensor] = name;
  }
  return files;
}

Result<std::vector<Tensor>> read_files(const std::string& folder, const std::set<std::string>& names) {
  std::vector<Tensor> all;
  for (const std::string& name : names) {
    GEMVJIT_TRY_ASSIGN(std::vector<Tensor> tensors, read_safetensors_file(folder + "/" + name));
    all.insert(all.end(), std::make_move_iterator(tensors.begin()), std::make_move_iterator(tensors.end()));
  }
  sort_by_name(all);
  const auto twice =
      std::adjacent_find(all.begin(), all.end(), [](const Tensor& a, const Tensor& b) { return a.name == b.name; });
  if (twice != all.end()) {
    return bad(folder, fmt::format("tensor '{}' is in both {} and {}; pass one of the files instead of the folder",
                                   printable(twice->name), twice->file, std::next(twice)->file));
  }
  return all;
}

Result<std::vector<Tensor>> read_indexed(const std::string& folder, const std::string& index_path,
                                         const std::string& text) {
  GEMVJIT_TRY_ASSIGN(const auto index, parse_index(index_path, text));
  std::set<std::string> files;
  for (const auto& [tensor, file] : index) {
    if (files.insert(file).second && ::access((folder + "/" + file).c_str(), F_OK) != 0) {
      return bad(index_path, fmt::format("names {} for tensor '{}', but there is no such file in the folder",
                                         printable(file), printable(tensor)));
    }
  }
  GEMVJIT_TRY_ASSIGN(std::vector<Tensor> tensors, read_files(folder, files));
  std::map<std::string_view, std::string_view> found;
  for (const Tensor& tensor : tensors) found[tensor.name] = tensor.file;
  for (const auto& [tensor, file] : index) {
    const auto place = found.find(tensor);
    if (place == found.end() || place->second != folder + "/" + file) {
      return bad(index_path,
                 fmt::format("says that {} holds tensor '{}', but it does not", printable(file), printable(tensor)));
    }
  }
  return tensors;
}

}  // namespace

std::string Tensor::shape_text() const {
  constexpr std::size_t shown = 8;
  if (shape.size() <= shown) return fmt::format("[{}]", fmt::join(shape, ", "));
  return fmt::format("[{}, ... {} more]", fmt::join(shape.begin(), shape.begin() + shown, ", "), shape.size() - shown);
}

Result<std::vector<Tensor>> read_safetensors_file(const std::string& path) {
  GEMVJIT_TRY_ASSIGN(const HeaderText header, read_header_text(path));
  std::vector<Tensor> tensors;
  GEMVJIT_TRY_ASSIGN(const json rest, parse_object(path, header.text, "not a safetensors file: its header",
                                                   HeaderReader(path, header, tensors)));
  GEMVJIT_TRY(check_coverage(path, tensors, header));
  sort_by_name(tensors);
  return tensors;
}

Result<std::vector<Tensor>> read_model(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return Status(StatusCode::not_found, fmt::format("model {}: {}", path, std::strerror(errno)));
  }
  if (!S_ISDIR(info.st_mode)) return read_safetensors_file(path);

  GEMVJIT_TRY_ASSIGN(const std::vector<std::string> names, list_directory(path));
  std::set<std::string> files;
  for (const std::string& name : names) {
    if (name == index_name) {
      const std::string index_path = path + "/" + name;
      GEMVJIT_TRY_ASSIGN(const std::string text, read_index_text(index_path));
      return read_indexed(path, index_path, text);
    }
    if (name.ends_with(".safetensors")) files.insert(name);
  }
  if (files.empty()) {
    return Status(StatusCode::not_found, fmt::format("model {}: the folder holds no *.safetensors file", path));
  }
  return read_files(path, files);
}

}  // namespace gemvjit::tools
