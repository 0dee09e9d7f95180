// Reason: machine-readable reasons, each a stable token in snake_case with a text for people. reasons.inc owns them;
// docs/tools.md lists them.
#pragma once

#include <span>
#include <string_view>

namespace gemvjit {

enum class Reason {
#define X(token, text) token,
#include "src/catalog/reasons.inc"
#undef X
};

std::string_view reason_token(Reason reason);  // "nearest_shape"
std::string_view reason_text(Reason reason);   // "measured for another shape near this one, adapted to N"
std::span<const Reason> all_reasons();

}  // namespace gemvjit
