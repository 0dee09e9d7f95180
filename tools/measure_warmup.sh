#!/bin/sh
# Times a warmup of Llama-3.1-70B at TP 1, 2, 4 and 8, both families, nt 1, 2 and 4, for one target: cold, warm, --check;
# then --check of 100 and 1000 keys (which compiles 1000 kernels more). Wall and user time, since the machine may be
# busy. Needs NVRTC, no GPU.
#
#   tools/measure_warmup.sh BUILD [ARCH [JOBS]]      BUILD/bin holds the tools; sm_90a and 2 if not said
#
# Exit code: 0; 1 if a run failed; 2 wrong use.
set -eu
[ $# -ge 1 ] && [ $# -le 3 ] && [ -x "$1/bin/gemvjit-warmup" ] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
warmup=$1/bin/gemvjit-warmup arch=${2:-sm_90a} jobs=${3:-2}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export GEMVJIT_CACHE_DIR="$folder/cache" GEMVJIT_CACHE_RO= GEMVJIT_TUNING_DIR=

# qkv_proj, o_proj, gate_up_proj (fused with silu_mul), down_proj, lm_head.
shapes="10240x8192 8192x8192 57344x8192:silu 8192x28672 128256x8192
        5120x8192 8192x4096 28672x8192:silu 8192x14336 64128x8192
        2560x8192 8192x2048 14336x8192:silu 8192x7168 32064x8192
        1280x8192 8192x1024 7168x8192:silu 8192x3584 16032x8192"
set --
for shape in $shapes; do
  base=${shape%:silu}
  silu=${shape#"$base"}
  set -- "$@" --shape "$base:nvfp4$silu" --shape "$base:bf16$silu"
done

# timed LABEL COMMAND...: a line with wall, user and system seconds; the command's last line of output below it.
timed() {
  label=$1
  shift
  python3 - "$label" "$folder/out" "$@" <<'PY'
import resource, subprocess, sys, time
label, out, *command = sys.argv[1:]
begin = time.monotonic()
with open(out, "w") as stream:
    code = subprocess.run(command, stdout=stream, stderr=subprocess.DEVNULL).returncode
wall = time.monotonic() - begin
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{label}: wall {wall:.3f} s, user {usage.ru_utime:.3f} s, system {usage.ru_stime:.3f} s, exit code {code}")
sys.exit(code)
PY
  tail -n 1 "$folder/out"
}

echo "$(uname -m), $(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(date -u +%Y-%m-%d)"
timed "plan" "$warmup" "$@" --arch "$arch" --dry-run --plan-out "$folder/plan.json"
timed "cold, -j $jobs" "$warmup" --plan "$folder/plan.json" -j "$jobs" -q
timed "warm" "$warmup" --plan "$folder/plan.json" -j "$jobs" -q
timed "check" "$warmup" --plan "$folder/plan.json" --check -q
timed "dry run" "$warmup" --plan "$folder/plan.json" --dry-run -q

# Many keys: BF16 weights of N = 8, 16, ... once all missing, beside the entries from above, and once all there.
for count in 100 1000; do
  set --
  n=0
  while [ "$n" -lt "$count" ]; do
    n=$((n + 1))
    set -- "$@" --shape "$((n * 8))x8192:bf16"
  done
  plan="$folder/plan-$count.json"
  "$warmup" "$@" --nt 1 --arch "$arch" --dry-run --plan-out "$plan" -q > /dev/null
  timed "check of $count keys, most of them missing" sh -c "'$warmup' --plan '$plan' --check -q; [ \$? -eq 9 ]"
done
export GEMVJIT_CACHE_DIR="$folder/many"
"$warmup" --plan "$folder/plan-1000.json" -j "$jobs" -q > /dev/null
for count in 100 1000; do
  timed "check of $count keys, all there" "$warmup" --plan "$folder/plan-$count.json" --check -q
done
