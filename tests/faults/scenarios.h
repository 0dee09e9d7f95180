// What the fault tests do to a cache folder: a state before, one operation, and which answers and states are right.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/faults/faults_support.h"

namespace gemvjit::test {

// All use shape 64. A content of 0 means that there is no usable entry.
struct FaultScenario {
  std::string name;
  std::function<void(const std::string& root)> prepare;
  bool is_put = false;
  Entry entry;  // that is put
  Replace replace = Replace::unusable_only;
  std::uint8_t before = 0;  // content of the usable entry before; 0: none
  std::uint8_t after = 0;   // and after an operation that nothing disturbed
};

const std::vector<FaultScenario>& fault_scenarios();

// The content of the usable entry of shape 64, read by a store of its own; 0 if there is none. Adds a test failure
// where something else is served.
std::uint8_t usable_content(const std::string& root);

// Adds a test failure for each file below the root that is none of: a whole entry, a file in the quarantine, and, with
// `allow_temporaries`, one being published.
void expect_no_third_state(const std::string& root, bool allow_temporaries);

}  // namespace gemvjit::test
