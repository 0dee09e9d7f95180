#!/usr/bin/env bash
# libFuzzer, with AddressSanitizer and UndefinedBehaviorSanitizer, on the readers of files that others may have made:
# cache entries and bundles.
#
#   tools/fuzz.sh [SECONDS]      for each reader; default 60
#
# Inputs that found new paths are kept in build/fuzz/corpus and begin the next run. Exit 0 if nothing was found, or, with
# a word about it, if there is no clang with libFuzzer; an input that finds something is written to build/fuzz.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
cd "$GEMVJIT_ROOT"
trap 'echo "fuzz: stopped: the step above failed" >&2' ERR
SECONDS_EACH=${1:-60}

setup_clang
if [ -z "$CLANG" ] || ! echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
  "$CLANG" -x c++ -fsanitize=fuzzer - -o build/deps/fuzzer-probe 2>/dev/null; then
  echo "fuzz: no clang with libFuzzer here: nothing was run" >&2
  exit 0
fi

setup_configure fuzz "${CLANG_CMAKE_ARGS[@]}"
setup_quietly build/deps/build-fuzz.log "building fuzz" cmake --build build/fuzz --target entry_fuzz bundle_fuzz
# Each on a processor of its own.
fuzz() {
  local seed=$1 kind=${1%%_*}
  local corpus=build/fuzz/corpus/$kind
  mkdir -p "$corpus"
  cp "tests/golden/$seed" "$corpus"
  "build/fuzz/tests/fuzz/${kind}_fuzz" -max_total_time="$SECONDS_EACH" -max_len=8192 -print_final_stats=1 \
    -artifact_prefix=build/fuzz/ "$corpus" >build/fuzz/$kind.log 2>&1 || {
    tail -n 60 build/fuzz/$kind.log >&2
    return 1
  }
  echo "fuzz: $kind: $(sed -n 's/^stat::number_of_executed_units: *//p' build/fuzz/$kind.log) inputs, nothing found"
}
fuzz entry_v1.entry &
first=$!
fuzz bundle_v1.gjb
wait $first
