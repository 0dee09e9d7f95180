#!/usr/bin/env bash
# Sets up, builds with warnings as errors, and runs every test through ctest. Arguments go to ctest:
#   tools/test.sh -R cache
#
#   tools/test.sh --sanitized   as CI does: those tests that can be are built by clang with the address and undefined
#                               behaviour sanitizers, the others without; each runs once, in one ctest
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

trap 'echo "test: stopped: the step above failed" >&2' ERR
cd "$GEMVJIT_ROOT"
tests=build/ci
setup_newer_nvrtc
setup_remote_servers
if [ "${1:-}" = --sanitized ]; then
  shift
  tools/sanitize.sh build-address
  setup_sanitizer_options
  echo "test: building the rest in build/ci"
  setup_configure ci -DGEMVJIT_TESTS=unsanitized
  tests=build/ci_and_asan
  mkdir -p "$tests"
  printf 'subdirs("%s" "%s")\n' "$PWD/build/asan" "$PWD/build/ci" >"$tests/CTestTestfile.cmake"
else
  echo "test: building in build/ci"
  setup_configure ci
fi
cmake --build --preset ci
trap - ERR
exec ctest --test-dir "$tests" --output-on-failure -j2 "$@"
