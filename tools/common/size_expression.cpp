#include "tools/common/size_expression.h"

#include <fmt/format.h>

#include <cctype>

namespace gemvjit::tools {
namespace {

constexpr int deepest = 16;

class Reader {
 public:
  Reader(std::string_view text, const NameLookup& lookup) : text_(text), lookup_(lookup) {}

  Result<std::int64_t> whole() {
    GEMVJIT_TRY_ASSIGN(const std::int64_t value, sum(0));
    skip_blanks();
    if (at_ != text_.size()) return bad(fmt::format("'{}' is not understood", text_.substr(at_)));
    return value;
  }

 private:
  Status bad(std::string_view what) const {
    return {StatusCode::invalid_argument, fmt::format("in '{}': {}", text_, what)};
  }
  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  // The next character, if it is one of these; it is passed then.
  char take(std::string_view characters) {
    skip_blanks();
    if (at_ == text_.size() || characters.find(text_[at_]) == std::string_view::npos) return 0;
    return text_[at_++];
  }
  Result<std::int64_t> in_range(std::int64_t value) const {
    if (value < 0 || value > largest_size) return bad("the result is negative or larger than any size");
    return value;
  }

  Result<std::int64_t> sum(int depth) {
    if (depth > deepest) return bad("too many parentheses");
    GEMVJIT_TRY_ASSIGN(std::int64_t value, product(depth));
    while (const char sign = take("+-")) {
      GEMVJIT_TRY_ASSIGN(const std::int64_t other, product(depth));
      GEMVJIT_TRY_ASSIGN(value, in_range(sign == '+' ? value + other : value - other));
    }
    return value;
  }

  Result<std::int64_t> product(int depth) {
    GEMVJIT_TRY_ASSIGN(std::int64_t value, single(depth));
    while (const char sign = take("*/")) {
      GEMVJIT_TRY_ASSIGN(const std::int64_t other, single(depth));
      if (sign == '*') {
        if (other != 0 && value > largest_size / other) return bad("the result is larger than any size");
        value *= other;
      } else {
        if (other == 0) return bad("division by 0");
        if (value % other != 0) return bad(fmt::format("{} is no multiple of {}", value, other));
        value /= other;
      }
    }
    return value;
  }

  Result<std::int64_t> single(int depth) {
    if (take("(") != 0) {
      GEMVJIT_TRY_ASSIGN(const std::int64_t value, sum(depth + 1));
      if (take(")") == 0) return bad("a parenthesis is not closed");
      return value;
    }
    skip_blanks();
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word.empty()) return bad("a number or a name is missing");
    if (std::isdigit(static_cast<unsigned char>(word[0])) == 0) {
      GEMVJIT_TRY_ASSIGN(const std::int64_t value, lookup_(word));
      return in_range(value);
    }
    std::int64_t value = 0;
    for (const char digit : word) {
      if (std::isdigit(static_cast<unsigned char>(digit)) == 0) return bad(fmt::format("'{}' is no number", word));
      GEMVJIT_TRY_ASSIGN(value, in_range(value * 10 + (digit - '0')));
    }
    return value;
  }

  std::string_view text_;
  const NameLookup& lookup_;
  std::size_t at_ = 0;
};

}  // namespace

Result<std::int64_t> evaluate_size(std::string_view expression, const NameLookup& lookup) {
  return Reader(expression, lookup).whole();
}

}  // namespace gemvjit::tools
