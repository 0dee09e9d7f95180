#!/bin/sh
# How long it takes until KEYS kernels are warm on a node whose cache is empty: by downloading them from nginx on this
# machine (as it is, and as if it were 1 and 10 ms away), by a read-only layer (a bundle), and by compiling. Times of the
# whole process gemvjit-warmup over several runs, each with an empty cache folder. Needs NVRTC and nginx, no GPU.
#
#   tools/measure_remote.sh BUILD [KEYS [RUNS [ARCH [JOBS]]]]      BUILD/bin holds the tools; 100, 5, sm_90a and 2 if not said
#
# The distance is made by tests/remote/delay_proxy.py, a relay, since not every kernel has netem; "relay, 0 ms" shows what
# it costs itself. Files that were read before are in memory: no disk is measured. Compiling is run at most three times.
# Exit code: 0; 1 if a run failed or did something else than its row says; 2 wrong use.
set -eu
[ $# -ge 1 ] && [ $# -le 5 ] && [ -x "$1/bin/gemvjit-warmup" ] || { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
bin=$1/bin keys=${2:-100} runs=${3:-5} arch=${4:-sm_90a} jobs=${5:-2}
servers=$(cd "$(dirname "$0")/../tests/remote" && pwd)
folder=$(mktemp -d)
chmod 755 "$folder"
started=
finish() {
  for process in $started; do kill "$process" 2>/dev/null || true; done
  wait
  rm -rf "$folder"
}
trap finish EXIT
trap 'exit 1' INT TERM
unset GEMVJIT_REMOTE GEMVJIT_REMOTE_WRITE
export GEMVJIT_CONFIG=none GEMVJIT_CACHE_RO= GEMVJIT_TUNING_DIR= PYTHONDONTWRITEBYTECODE=1

# background NAME COMMAND...: starts it and waits for its first line of output, kept in $folder/NAME.
background() {
  name=$1
  shift
  "$@" > "$folder/$name" &
  started="$started $!"
  while [ ! -s "$folder/$name" ]; do
    kill -0 $! || exit 1
    sleep 0.05
  done
}

# timed LABEL RUNS COMPILED COMMAND...: a row of the table; each run must end with 0 and have compiled so many kernels.
timed() {
  python3 - "$folder/node" "$@" <<'PY'
import json, os, shutil, statistics, subprocess, sys, time
node, label, runs, compiled, *command = sys.argv[1:]
walls, cpus = [], []
for run in range(int(runs)):
    shutil.rmtree(node, ignore_errors=True)
    begin = time.monotonic()
    process = subprocess.Popen(command + ["--json"], env=os.environ | {"GEMVJIT_CACHE_DIR": node}, stdout=subprocess.PIPE)
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    walls.append(time.monotonic() - begin)
    cpus.append(usage.ru_utime + usage.ru_stime)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0 or json.loads(out)["summary"]["compiled"] != int(compiled):
        sys.exit(f"{label}: exit code {process.returncode}, {out.decode()[-600:]}")
print(f"| {label} | {min(walls):.3f} | {statistics.median(walls):.3f} | {max(walls):.3f} | {statistics.median(cpus):.3f} | {runs} |")
PY
}

# BF16 weights of N = 8, 16, ...: as many kernels as asked for.
set --
n=0
while [ "$n" -lt "$keys" ]; do
  n=$((n + 1))
  set -- "$@" --shape "$((n * 8))x8192:bf16"
done
plan=$folder/plan.json publisher=$folder/publisher
GEMVJIT_CACHE_DIR=$publisher "$bin/gemvjit-warmup" "$@" --nt 1 --arch "$arch" --dry-run --plan-out "$plan" -q > /dev/null
warmup="$bin/gemvjit-warmup --plan $plan -j $jobs -q"

background url python3 "$servers/nginx_dav.py" "$folder/nginx"
url=$(cat "$folder/url")
for distance in 0 1 10; do
  background "port$distance" python3 "$servers/delay_proxy.py" "$(expr "$url" : '.*:\([0-9]*\)/')" "$distance"
done
GEMVJIT_CACHE_DIR=$publisher $warmup --remote "$url" --remote-write --remote-required > /dev/null
GEMVJIT_CACHE_DIR=$publisher "$bin/gemvjit-cache" export "$folder/kernels.gjb" > /dev/null

echo "$keys keys, $(du -sb "$publisher/v1/$arch" | cut -f1) bytes of entries, $arch, -j $jobs; $(uname -m), $(nproc) cores," \
  "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(date -u +%Y-%m-%d)"
echo
echo "| from an empty node | wall s, min | median | max | CPU s, median | runs |"
echo "|---|---|---|---|---|---|"
timed "read-only layer (bundle)" "$runs" 0 env "GEMVJIT_CACHE_RO=$folder/kernels.gjb" $warmup
timed "remote, nginx on loopback" "$runs" 0 $warmup --remote "$url"
for distance in 0 1 10; do
  timed "remote, relay, $distance ms round trip" "$runs" 0 $warmup --remote "http://127.0.0.1:$(cat "$folder/port$distance")/rw"
done
timed "compiling" "$((runs < 3 ? runs : 3))" "$keys" $warmup
