#!/usr/bin/env bash
# Static analysis of the library and the tools. Exit 1 if it has something to say.
#
#   tools/lint.sh             cppcheck: warnings, performance, portability
#   tools/lint.sh --tidy      and clang-tidy with the checks of .clang-tidy, but for the clang static analyzer: minutes
#   tools/lint.sh --analyze   and that: three times as long
#
# A tool that is neither there nor to be had from apt is left out, with a word about it.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
cd "$GEMVJIT_ROOT"

TIDY_CHECKS=-clang-analyzer-*
case ${1:-} in
  '' | --tidy) ;;
  --analyze) TIDY_CHECKS= ;;
  *)
    echo "usage: tools/lint.sh [--tidy | --analyze]" >&2
    exit 2
    ;;
esac

setup_optional cppcheck cppcheck
if command -v cppcheck >/dev/null; then
  cppcheck --quiet --enable=warning,performance,portability --inline-suppr --std=c++20 --language=c++ -I. -Iinclude \
    --suppress=missingInclude --suppress=missingIncludeSystem --suppress=unmatchedSuppression --error-exitcode=1 -j2 \
    cache src tools
  echo "lint: cppcheck: clean"
else
  echo "lint: cppcheck is not installed: left out" >&2
fi

[ $# -gt 0 ] || exit 0

setup_optional clang-tidy clang-tidy
if command -v clang-tidy >/dev/null; then
  setup_configure ci
  # Sources include what the build makes.
  cmake --build --preset ci
  git ls-files 'cache/*.cpp' 'src/*.cpp' 'tools/*.cpp' |
    xargs -P "$(nproc)" -n 4 clang-tidy -p build/ci --quiet --warnings-as-errors='*' --checks="$TIDY_CHECKS" 2>/dev/null || {
    echo "lint: clang-tidy has something to say, see above" >&2
    exit 1
  }
  echo "lint: clang-tidy: clean"
else
  echo "lint: clang-tidy is not installed: left out" >&2
fi
