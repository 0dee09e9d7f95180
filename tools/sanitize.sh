#!/usr/bin/env bash
# Builds with sanitizers and runs the tests: address and undefined behaviour over all of them but those that need a GPU,
# watch NVRTC's work or are scripts; threads over the rooms whose code runs on several.
#
#   tools/sanitize.sh [address] [thread]       both if none is named
#   tools/sanitize.sh build-address            builds, and leaves running to the caller
#
# By clang where it is there or can be had from apt, which takes half of GCC's time. Exit 0 if every test passed and no
# sanitizer complained.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
cd "$GEMVJIT_ROOT"
trap 'echo "sanitize: stopped: the step above failed" >&2' ERR

# Rooms whose code runs on several threads.
THREAD_TARGETS=(base_test cache_test remote_test launch_test runtime_test api_test)

setup_clang
setup_sanitizer_options

# build PRESET TARGET...
build() {
  local preset=$1
  shift
  setup_configure "$preset" "${CLANG_CMAKE_ARGS[@]}"
  echo "sanitize: building in build/$preset"
  setup_quietly "build/deps/build-$preset.log" "building $preset" cmake --build --preset "$preset" --target "$@"
}

# run_halves PROGRAM: its tests, in two processes at once.
run_halves() {
  local failed=0
  GTEST_TOTAL_SHARDS=2 GTEST_SHARD_INDEX=0 "$1" --gtest_brief=1 >"$1.log" 2>&1 &
  GTEST_TOTAL_SHARDS=2 GTEST_SHARD_INDEX=1 "$1" --gtest_brief=1 || failed=1
  if ! wait $!; then
    cat "$1.log" >&2
    failed=1
  fi
  return $failed
}

[ $# -gt 0 ] || set -- address thread
for kind in "$@"; do
  case $kind in
    build-address)
      build asan all
      ;;
    address)
      build asan all
      ctest --test-dir build/asan --output-on-failure -j2 >build/asan/ctest.log 2>&1 || {
        cat build/asan/ctest.log >&2
        false
      }
      grep 'tests passed' build/asan/ctest.log
      ;;
    thread)
      build tsan "${THREAD_TARGETS[@]}"
      for test in "${THREAD_TARGETS[@]}"; do
        echo "sanitize: tsan: $test"
        run_halves "build/tsan/tests/$test"
      done
      echo "sanitize: no race found"
      ;;
    *)
      echo "usage: tools/sanitize.sh [address] [thread] [build-address]" >&2
      exit 2
      ;;
  esac
done
