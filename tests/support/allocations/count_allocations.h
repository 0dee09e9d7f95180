// Counts the calls of operator new of a program. For tests that hold that something allocates nothing; linked into
// those programs only, since it replaces operator new for all of one.
#pragma once

namespace gemvjit::test {

// Calls of any form of operator new so far, of all threads.
long allocations();

// false in a build with clang's thread sanitizer, which has operator new to itself: tests then skip.
bool can_count_allocations();

// Whether the count counts: allocates once and looks.
bool allocations_are_counted();

}  // namespace gemvjit::test
