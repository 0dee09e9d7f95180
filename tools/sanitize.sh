#!/usr/bin/env bash
# Builds the library's tests with sanitizers and runs them: address and undefined behaviour over all that need neither a
# GPU nor NVRTC, threads over those whose code runs on several.
#
#   tools/sanitize.sh [address] [thread]       both if none is named
#
# Exit 0 if every test passed and no sanitizer complained.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
cd "$GEMVJIT_ROOT"
trap 'echo "sanitize: stopped: the step above failed" >&2' ERR

ADDRESS_TESTS=(base_test cache_test catalog_test cuda_test launch_test runtime_test api_test tuning_test)
THREAD_TESTS=(base_test cache_test launch_test runtime_test api_test)

# sanitize PRESET TEST...
sanitize() {
  local preset=$1 test
  shift
  cmake --preset "$preset" "${GEMVJIT_CMAKE_ARGS[@]}" >"build/deps/configure-$preset.log" 2>&1 || {
    cat "build/deps/configure-$preset.log" >&2
    false
  }
  cmake --build --preset "$preset" --target "$@" | tail -n 1
  for test in "$@"; do
    echo "sanitize: $preset: $test"
    "build/$preset/tests/$test" --gtest_brief=1
  done
}

export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:allocator_may_return_null=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1}
[ $# -gt 0 ] || set -- address thread
for kind in "$@"; do
  case $kind in
    address) sanitize asan "${ADDRESS_TESTS[@]}" ;;
    thread) sanitize tsan "${THREAD_TESTS[@]}" ;;
    *)
      echo "usage: tools/sanitize.sh [address] [thread]" >&2
      exit 2
      ;;
  esac
done
echo "sanitize: clean"
