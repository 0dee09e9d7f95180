#!/usr/bin/env bash
# Builds with sanitizers and runs the tests: address and undefined behaviour over all of them but those that need a GPU
# or compile every kernel (labels gpu, nvrtc); threads over the rooms whose code runs on several.
#
#   tools/sanitize.sh [address] [thread]       both if none is named
#
# By clang where it is there or can be had from apt, which takes half of GCC's time. Exit 0 if every test passed and no
# sanitizer complained.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
cd "$GEMVJIT_ROOT"
trap 'echo "sanitize: stopped: the step above failed" >&2' ERR

# Rooms whose code runs on several threads.
THREAD_TARGETS=(base_test cache_test launch_test runtime_test api_test)

setup_clang

# build PRESET TARGET...
build() {
  local preset=$1
  shift
  setup_configure "$preset" "${CLANG_CMAKE_ARGS[@]}"
  echo "sanitize: building in build/$preset"
  setup_quietly "build/deps/build-$preset.log" "building $preset" cmake --build --preset "$preset" --target "$@"
}

# The libraries that tests preload come before the sanitizer's own in some programs.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:allocator_may_return_null=1:verify_asan_link_order=0}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1}
[ $# -gt 0 ] || set -- address thread
for kind in "$@"; do
  case $kind in
    address)
      build asan all
      ctest --test-dir build/asan --output-on-failure -j2 -LE 'gpu|nvrtc' >build/asan/ctest.log 2>&1 || {
        cat build/asan/ctest.log >&2
        false
      }
      grep 'tests passed' build/asan/ctest.log
      ;;
    thread)
      build tsan "${THREAD_TARGETS[@]}"
      for test in "${THREAD_TARGETS[@]}"; do
        echo "sanitize: tsan: $test"
        "build/tsan/tests/$test" --gtest_brief=1
      done
      ;;
    *)
      echo "usage: tools/sanitize.sh [address] [thread]" >&2
      exit 2
      ;;
  esac
done
echo "sanitize: clean"
