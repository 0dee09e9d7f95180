#!/usr/bin/env bash
# cppcheck over the library and the tools: warnings, performance, portability. Exit 1 if it has something to say.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
cd "$GEMVJIT_ROOT"
# Not needed to build, so no part of the set-up; where it can be had it is.
command -v cppcheck >/dev/null || [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null ||
  apt-get install -y --no-install-recommends cppcheck >build/deps/cppcheck.log 2>&1 </dev/null || true
command -v cppcheck >/dev/null || {
  echo "lint: cppcheck is not installed: nothing was checked" >&2
  exit 0
}
cppcheck --quiet --enable=warning,performance,portability --inline-suppr --std=c++20 --language=c++ -I. -Iinclude \
  --suppress=missingInclude --suppress=missingIncludeSystem --suppress=unmatchedSuppression --error-exitcode=1 -j2 \
  cache src tools
echo "lint: clean"
