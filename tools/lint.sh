#!/usr/bin/env bash
# Static analysis of the library and the tools. Exit 1 if it has something to say.
#
#   tools/lint.sh               cppcheck: warnings, performance, portability
#   tools/lint.sh --tidy        and clang-tidy with the checks of .clang-tidy, but for the clang static analyzer: minutes
#   tools/lint.sh --tidy-core   the same of the library alone, without cppcheck
#   tools/lint.sh --analyze     all of it and the analyzer: three times as long
#
# A tool that is neither there nor to be had from apt is left out, with a word about it.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
cd "$GEMVJIT_ROOT"

TIDY_CHECKS=-clang-analyzer-*
TIDY_FOLDERS=(cache src tools)
case ${1:-} in
  '' | --tidy) ;;
  --tidy-core) TIDY_FOLDERS=(cache src) ;;
  --analyze) TIDY_CHECKS= ;;
  *)
    echo "usage: tools/lint.sh [--tidy | --tidy-core | --analyze]" >&2
    exit 2
    ;;
esac

setup_optional cppcheck cppcheck
if [ "${1:-}" = --tidy-core ]; then
  :
elif command -v cppcheck >/dev/null; then
  cppcheck --quiet --enable=warning,performance,portability --inline-suppr --std=c++20 --language=c++ -I. -Iinclude \
    --suppress=missingInclude --suppress=missingIncludeSystem --suppress=unmatchedSuppression --error-exitcode=1 -j2 \
    cache src tools
  echo "lint: cppcheck: clean"
else
  echo "lint: cppcheck is not installed: left out" >&2
fi

[ $# -gt 0 ] || exit 0

setup_optional clang-tidy clang-tidy
setup_clang
if [ -n "$CLANG" ] && command -v clang-tidy >/dev/null; then
  # The sanitizers' build: its headers are precompiled, by a compiler that clang-tidy understands.
  setup_configure asan "${CLANG_CMAKE_ARGS[@]}"
  targets=(gemvjit_api)
  if [[ " ${TIDY_FOLDERS[*]} " == *" tools "* ]]; then
    targets+=(gemvjit-warmup gemvjit-cache gemvjit-verify gemvjit-bench gemvjit-tune)
  fi
  setup_quietly build/deps/build-asan.log "building asan" cmake --build --preset asan --target "${targets[@]}"
  git ls-files "${TIDY_FOLDERS[@]/%//*.cpp}" |
    xargs -P "$(nproc)" -n 4 clang-tidy -p build/asan --quiet --warnings-as-errors='*' --checks="$TIDY_CHECKS" 2>/dev/null || {
    echo "lint: clang-tidy has something to say, see above" >&2
    exit 1
  }
  echo "lint: clang-tidy: clean (${TIDY_FOLDERS[*]})"
else
  echo "lint: clang-tidy or clang is not installed: left out" >&2
fi
