#include "tools/common/shape_spec.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "src/base/suggestion.h"

namespace gemvjit::tools {
namespace {

constexpr std::string_view accepted =
    "accepted: NxK[:nvfp4|:bf16|:dequant|:swizzle][:silu][:segments] with decimal N and K, such as 4096x14336, "
    "28672x4096:silu or 6144x4096:bf16";

Status refuse(std::string_view text, std::string_view why) {
  return {StatusCode::invalid_argument, fmt::format("shape '{}': {}; {}", text, why, accepted)};
}

// All of `text` as a signed decimal number; an empty optional and the reason if it is none.
std::optional<std::int64_t> parse_size(std::string_view text, std::string_view& why) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range) {
    why = "a size does not fit 64 bits";
    return std::nullopt;
  }
  if (error != std::errc() || stop != end) {
    why = "N and K must be numbers joined by one 'x'";
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::string_view shape_family_name(ShapeFamily family) {
  switch (family) {
    case ShapeFamily::nvfp4:
      return "nvfp4";
    case ShapeFamily::bf16:
      return "bf16";
    case ShapeFamily::dequant:
      return "dequant";
    case ShapeFamily::swizzle:
      return "swizzle";
  }
  return "unknown";
}

Result<ShapeSpec> parse_shape(std::string_view text) {
  ShapeSpec spec;
  std::string_view sizes = text.substr(0, text.find(':'));
  const std::size_t cross = sizes.find('x');
  if (cross == std::string_view::npos) return refuse(text, "there is no 'x' between N and K");
  std::string_view why;
  const auto n = parse_size(sizes.substr(0, cross), why);
  const auto k = n ? parse_size(sizes.substr(cross + 1), why) : std::nullopt;
  if (!k) return refuse(text, why);
  spec.n = *n;
  spec.k = *k;

  bool has_family = false;
  for (std::string_view rest = text.substr(sizes.size()); !rest.empty();) {
    rest.remove_prefix(1);  // the colon
    const std::string_view word = rest.substr(0, rest.find(':'));
    rest.remove_prefix(word.size());
    if (word == "silu" || word == "segments") {
      bool& is_set = word == "silu" ? spec.silu_mul : spec.scale_segments;
      if (is_set) return refuse(text, fmt::format("':{}' is given twice", word));
      is_set = true;
      continue;
    }
    if (has_family) return refuse(text, fmt::format("'{}' follows a family", word));
    if (spec.silu_mul || spec.scale_segments) return refuse(text, "the family comes before ':silu' and ':segments'");
    has_family = true;
    if (word == "nvfp4") {
      spec.family = ShapeFamily::nvfp4;
    } else if (word == "bf16") {
      spec.family = ShapeFamily::bf16;
    } else if (word == "dequant") {
      spec.family = ShapeFamily::dequant;
    } else if (word == "swizzle") {
      spec.family = ShapeFamily::swizzle;
    } else {
      return refuse(text, fmt::format("'{}' is no family{}", word,
                                      did_you_mean(word, {"nvfp4", "bf16", "dequant", "swizzle", "silu", "segments"})));
    }
  }
  const bool is_gemv = spec.family == ShapeFamily::nvfp4 || spec.family == ShapeFamily::bf16;
  if (spec.silu_mul && !is_gemv)
    return refuse(text, fmt::format("{} has no silu form", shape_family_name(spec.family)));
  if (spec.scale_segments && spec.family != ShapeFamily::nvfp4) {
    return refuse(text, fmt::format("{} has no scale segments", shape_family_name(spec.family)));
  }
  return spec;
}

}  // namespace gemvjit::tools
