// Arithmetic of the rules in tools/model_rules: "heads * head_dim + 2 * kv_heads * head_dim".
//
//   sum := product {(+|-) product}   product := value {(*|/) value}   value := number | name | ( sum )
//
// All values are whole numbers in 0..2^40. A division must come out even. Pure; at most 16 parentheses deep.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/status.h"

namespace gemvjit::tools {

inline constexpr std::int64_t largest_size = std::int64_t{1} << 40;

// What a name stands for, or why there is nothing.
using NameLookup = std::function<Result<std::int64_t>(std::string_view name)>;

// invalid_argument with what is wrong: a spelling, a name that has no value, a result outside the range, a division
// with a remainder or by 0.
Result<std::int64_t> evaluate_size(std::string_view expression, const NameLookup& lookup);

}  // namespace gemvjit::tools
