// Refuses a name that a JSON object has twice: readers differ in which of the two they take. Called from a callback of
// nlohmann::json::parse for each event.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gemvjit {

// Thrown out of the parse.
struct KeyTwice {
  std::string key;
};

class UniqueKeys {
 public:
  void on_event(nlohmann::json::parse_event_t event, const nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end && !keys_.empty()) keys_.pop_back();
    if (event != Event::key || keys_.empty()) return;
    std::string key = parsed.get<std::string>();
    if (!keys_.back().insert(key).second) throw KeyTwice{std::move(key)};
  }

 private:
  std::vector<std::set<std::string>> keys_;  // of the objects that are open
};

// nlohmann::json::parse, which throws KeyTwice besides what it throws itself.
inline nlohmann::json parse_unique_keys(std::string_view text, bool allow_exceptions = true,
                                        bool ignore_comments = false) {
  UniqueKeys keys;
  const auto on_event = [&](int, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    keys.on_event(event, parsed);
    return true;
  };
  return nlohmann::json::parse(text, on_event, allow_exceptions, ignore_comments);
}

}  // namespace gemvjit
