// Status and Result<T>: how every function of this project reports failure. No exception crosses a room; code that
// calls a library that throws (JSON, the standard library's allocation) catches at its own edge.
#pragma once

#include <cassert>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace gemvjit {

enum class StatusCode : int {
#define X(name, value, text) name = value,
#include "src/base/status_codes.inc"
#undef X
};

// The fixed text of a code; "unknown status" for a value that is none.
std::string_view status_text(StatusCode code);

// A code, and for a failure a message that says what was tried, on what, and what to do about it.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}
  static Status ok() { return {}; }

  bool is_ok() const { return code_ == StatusCode::ok; }
  explicit operator bool() const { return is_ok(); }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }
  // "compile failed: <message>", for logs and tools.
  std::string text() const;

 private:
  StatusCode code_ = StatusCode::ok;
  std::string message_;
};

// A value or the Status that says why there is none. `value()` requires is_ok().
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}                                  // NOLINT: implicit by design
  Result(Status status) : state_(std::move(status)) { assert(!this->is_ok()); }  // NOLINT: implicit by design

  bool is_ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return is_ok(); }
  T& value() & { return *std::get_if<T>(&state_); }
  const T& value() const& { return *std::get_if<T>(&state_); }
  T&& value() && { return std::move(*std::get_if<T>(&state_)); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  // The failure; ok if there is a value.
  Status status() const { return is_ok() ? Status() : *std::get_if<Status>(&state_); }

 private:
  std::variant<Status, T> state_;
};

}  // namespace gemvjit

#define GEMVJIT_CONCAT_INNER(a, b) a##b
#define GEMVJIT_CONCAT(a, b) GEMVJIT_CONCAT_INNER(a, b)

// Return the failure of a Status expression to the caller.
#define GEMVJIT_TRY(expression)                                                                  \
  do {                                                                                           \
    if (::gemvjit::Status gemvjit_failed = (expression); !gemvjit_failed) return gemvjit_failed; \
  } while (false)

// Assign the value of a Result expression, or return its failure: GEMVJIT_TRY_ASSIGN(auto key, make_key(...)).
#define GEMVJIT_TRY_ASSIGN(target, expression) \
  GEMVJIT_TRY_ASSIGN_INNER(GEMVJIT_CONCAT(gemvjit_result_, __LINE__), target, expression)
#define GEMVJIT_TRY_ASSIGN_INNER(temporary, target, expression) \
  auto temporary = (expression);                                \
  if (!temporary) return temporary.status();                    \
  target = std::move(temporary).value()
