#include "src/catalog/reasons.h"

#include <cstddef>

namespace gemvjit {
namespace {

struct Row {
  std::string_view token, text;
};
constexpr Row kRows[] = {
#define X(token, text) {#token, text},
#include "src/catalog/reasons.inc"
#undef X
};
constexpr Reason kReasons[] = {
#define X(token, text) Reason::token,
#include "src/catalog/reasons.inc"
#undef X
};

}  // namespace

std::string_view reason_token(Reason reason) { return kRows[static_cast<std::size_t>(reason)].token; }
std::string_view reason_text(Reason reason) { return kRows[static_cast<std::size_t>(reason)].text; }
std::span<const Reason> all_reasons() { return kReasons; }

}  // namespace gemvjit
