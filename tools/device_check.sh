#!/usr/bin/env bash
# Everything that needs a GPU, in one command, for a machine that has one and may lack everything else: no compiler, no
# network. Takes a build made elsewhere.
#
#     tools/device_check.sh BUILD [MODELS]
#
#   BUILD    build folder with tests/gpu_test, bin/gemvjit-verify and bin/gemvjit-warmup
#   MODELS   folder with minilm-nvfp4 and minilm-bf16 (default: build/models of this checkout), as tools/quickstart.sh
#            makes them; left out if absent
#   OUT      (environment) folder for what was said in full; default device_check_out
#
# Steps: the tests labelled gpu; compute-sanitizer memcheck and racecheck on small shapes; both GEMVs on real weights; the
# host memory of loaded kernels and the host time of a launch. The table comes last. Exit 0 if every step that could run
# passed, 1 if not, 2 for wrong use.
# Takes six minutes; the limits of the steps add up to eleven. Needs libnvrtc on the machine (see docs/configuration.md).
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ $# -lt 1 ] || [ $# -gt 2 ] || [ ! -x "$1/tests/gpu_test" ]; then
  echo "usage: tools/device_check.sh BUILD [MODELS]; BUILD must hold tests/gpu_test" >&2
  exit 2
fi
BUILD=$(cd "$1" && pwd)
MODELS=${2:-build/models}
OUT=${OUT:-device_check_out}
mkdir -p "$OUT"
CACHE=$(mktemp -d)
trap 'rm -rf "$CACHE"' EXIT
GPU_TEST="$BUILD/tests/gpu_test"
VERIFY="$BUILD/bin/gemvjit-verify"
SMALL='SwizzleOnDevice.*:ScaleSegments.WithSiluMul*:ExactBuffersTest.*:Cases/GoldenGpuTest.*/nvfp4_k48:Cases/GoldenGpuTest.*/nvfp4_silu_n48:Cases/GoldenGpuTest.*/bf16_silu_n16'
ROWS=()
FAILED=0

# step NAME LIMIT_SECONDS FILE COMMAND...: runs it, keeps what it says in FILE, and adds a row to the table.
step() {
  local name=$1 limit=$2 file=$3
  shift 3
  local begin=$SECONDS code=0
  echo "== $name"
  timeout --kill-after=10 "$limit" "$@" >"$OUT/$file" 2>&1 || code=$?
  local word=passed
  if [ $code -eq 124 ] || [ $code -eq 137 ]; then
    word="stopped after $limit s"
  elif [ $code -ne 0 ]; then
    word="FAILED (exit $code)"
  fi
  if [ $code -ne 0 ]; then
    FAILED=1
    tail -n 25 "$OUT/$file"
  fi
  ROWS+=("$name|$word|$((SECONDS - begin)) s|$(note_of "$file")")
}

skip() { ROWS+=("$1|not run|-|$2"); }

# What a step's output says in a few words.
note_of() {
  local text="$OUT/$1"
  case $1 in
    gpu_test.txt | memcheck.txt | racecheck.txt)
      grep -hoE '(PASSED|SKIPPED|FAILED)  ?\] [0-9]+ tests?|ERROR SUMMARY: .*|RACECHECK SUMMARY: .*' "$text" |
        sed -E 's/ *\]//' | sort -u | paste -sd ';' - | sed 's/;/; /g'
      ;;
    verify.txt)
      awk '$NF == "ok" { ok++; e = $(NF - 2); if (e > worst) worst = e } / WRONG / { wrong++ }
           END { printf "%d runs within bounds, %d wrong, largest error/bound %s", ok, wrong, worst }' "$text"
      ;;
    loaded_memory.txt) grep -oE '[0-9]+ kernels loaded.*' "$text" ;;
    loaded_fill.txt) tail -n 1 "$text" ;;
    overhead.txt) grep -oE 'difference -?[0-9]+ ns' "$text" | paste -sd ';' - | sed 's/;/; /g' ;;
  esac
}

if command -v nvidia-smi >/dev/null; then
  nvidia-smi --query-gpu=name,driver_version,clocks.max.sm,clocks.max.mem --format=csv,noheader | tee "$OUT/device.txt"
fi

step "GPU tests" 360 gpu_test.txt "$GPU_TEST" "--gtest_output=xml:$OUT/gpu_test.xml"
if grep -m 1 'needs a CUDA device' "$OUT/gpu_test.txt"; then
  echo "device_check: there is no usable CUDA device here: nothing was checked" >&2
  exit 1
fi

SANITIZER=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer /opt/nvidia/*/compute-sanitizer 2>/dev/null | head -n 1)
for tool in memcheck racecheck; do
  if [ -n "$SANITIZER" ]; then
    step "compute-sanitizer $tool" 80 $tool.txt "$SANITIZER" --tool $tool --error-exitcode 9 "$GPU_TEST" "--gtest_filter=$SMALL"
  else
    skip "compute-sanitizer $tool" "not installed"
  fi
done

if [ ! -x "$VERIFY" ]; then
  skip "real weights" "no bin/gemvjit-verify in the build"
elif [ -d "$MODELS/minilm-nvfp4" ] && [ -d "$MODELS/minilm-bf16" ]; then
  step "real weights" 30 verify.txt "$VERIFY" --nvfp4 "$MODELS/minilm-nvfp4" --bf16 "$MODELS/minilm-bf16" --all --cache-dir "$CACHE"
else
  skip "real weights" "no checkpoints in $MODELS"
fi
if [ -x "$VERIFY" ]; then
  # NVRTC is hidden from the measured process: what it needs must come from the cache.
  step "fill the cache for it" 60 loaded_fill.txt "$BUILD/bin/gemvjit-warmup" --arch native --cache-dir "$CACHE" \
    $(for i in $(seq 34); do echo --shape $((256 * i))x1024:bf16; done)
  step "memory of loaded kernels" 20 loaded_memory.txt env GEMVJIT_NVRTC=/nonexistent "$VERIFY" --loaded-memory \
    --cache-dir "$CACHE"
  step "host time of a launch" 20 overhead.txt "$VERIFY" --launch-overhead --cache-dir "$CACHE"
fi

{
  printf '\n%-28s %-22s %-8s %s\n' step result time notes
  for row in "${ROWS[@]}"; do
    IFS='|' read -r name word seconds note <<<"$row"
    printf '%-28s %-22s %-8s %s\n' "$name" "$word" "$seconds" "$note"
  done
} | tee "$OUT/summary.txt"
exit $FAILED
