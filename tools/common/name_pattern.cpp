#include "tools/common/name_pattern.h"

#include <regex.h>

#include <algorithm>
#include <cctype>
#include <vector>

namespace gemvjit::tools {
namespace {

// The last part of a dotted name, which is taken off; false where nothing is left.
bool take_last_part(std::string_view& name, std::string_view& part) {
  if (name.empty()) return false;
  const std::size_t dot = name.rfind('.');
  part = dot == std::string_view::npos ? name : name.substr(dot + 1);
  name = dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
  return true;
}

bool is_number(std::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Python's spelling as POSIX's; empty if it cannot be.
std::string posix_spelling(std::string_view pattern) {
  std::string result = "^(";
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '{' || c == '\0' || (c == '(' && pattern.substr(i + 1).starts_with('?'))) return {};
    if (c != '\\') {
      result += c;
      continue;
    }
    if (++i == pattern.size()) return {};
    if (pattern[i] == 'd') {
      result += "[0-9]";
    } else if (pattern[i] == 'w') {
      result += "[A-Za-z0-9_]";
    } else if (std::isalnum(static_cast<unsigned char>(pattern[i])) != 0) {
      return {};  // a back reference, or a class that POSIX does not have
    } else {
      result += '\\';
      result += pattern[i];
    }
  }
  return result + ")";
}

}  // namespace

std::optional<std::string> match_module_end(std::string_view module, std::string_view pattern) {
  std::vector<std::string_view> numbers;
  std::string_view rest = module, part, wanted;
  while (take_last_part(pattern, wanted)) {
    if (!take_last_part(rest, part)) return std::nullopt;
    if (wanted == "#" ? !is_number(part) : wanted != part) return std::nullopt;
    if (wanted == "#") numbers.push_back(part);
  }
  std::string key(rest);
  if (!key.empty()) key += '.';
  for (const std::string_view number : numbers) key += "|" + std::string(number) + ".";
  return key;
}

bool matches_wildcards(std::string_view name, std::string_view pattern) {
  std::size_t at = 0, in_pattern = 0, star = std::string_view::npos, resume = 0;
  while (at < name.size()) {
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      star = in_pattern++;
      resume = at;
    } else if (in_pattern < pattern.size() && (pattern[in_pattern] == '?' || pattern[in_pattern] == name[at])) {
      ++in_pattern;
      ++at;
    } else if (star != std::string_view::npos) {
      in_pattern = star + 1;
      at = ++resume;
    } else {
      return false;
    }
  }
  while (in_pattern < pattern.size() && pattern[in_pattern] == '*') ++in_pattern;
  return in_pattern == pattern.size();
}

// Python's re.match: from the beginning, not necessarily to the end.
struct ExclusionPattern::Expression {
  Expression() = default;
  ~Expression() {
    if (usable) ::regfree(&compiled);
  }
  Expression(const Expression&) = delete;
  Expression& operator=(const Expression&) = delete;

  regex_t compiled{};
  bool usable = false;
};

std::optional<ExclusionPattern> ExclusionPattern::parse(std::string_view text) {
  ExclusionPattern pattern;
  pattern.text_ = text;
  if (!text.starts_with("re:")) return pattern;
  text.remove_prefix(3);
  const std::string spelling = text.size() > 512 ? std::string() : posix_spelling(text);
  if (spelling.empty()) return std::nullopt;
  const auto expression = std::make_shared<Expression>();
  expression->usable = ::regcomp(&expression->compiled, spelling.c_str(), REG_EXTENDED | REG_NOSUB) == 0;
  if (!expression->usable) return std::nullopt;
  pattern.expression_ = expression;
  return pattern;
}

bool ExclusionPattern::matches(const std::string& module) const {
  if (expression_) return ::regexec(&expression_->compiled, module.c_str(), 0, nullptr, 0) == 0;
  if (text_.find_first_of("*?") != std::string::npos) return matches_wildcards(module, text_);
  if (text_.empty()) return false;
  return module == text_ || (module.starts_with(text_) && module[text_.size()] == '.');
}

}  // namespace gemvjit::tools
