#!/usr/bin/env bash
# Bakes the kernels of a plan into a root file system, as an image build does, without a container tool and without a GPU:
# a plain chroot takes the place of `RUN`. What it leaves in the image is one bundle and the two tools; the compiler is gone
# again. Then it proves the image as a node would use it: a random user, no HOME, the root read-only.
#
#   examples/image/bake.sh --bin DIR --plan FILE --root DIR [--nvrtc FILE]
#
#   --bin DIR     where gemvjit-warmup and gemvjit-cache are
#   --plan FILE   what to bake (gemvjit-warmup --model DIR --arch ... --dry-run --plan-out FILE)
#   --root DIR    the root file system to bake into; an empty folder does, too: the tools' own libraries are copied
#   --nvrtc FILE  libnvrtc.so.*, its builtins beside it; found by `gemvjit-cache doctor` if not given
#
# Needs root (chroot, mount). Exit 0 if every kernel of the plan is in the image and the check says so; 2 for wrong use or a
# plan that is none, and then nothing was written.
set -euo pipefail
# What this script makes is for all to read, whatever the caller's umask.
umask 022

LAYER=/opt/gemvjit/kernels.gjb # what a node names in GEMVJIT_CACHE_RO
BIN='' PLAN='' ROOT='' NVRTC=''
say() { printf 'bake: %s\n' "$*" >&2; }
fail() {
  say "error: $*"
  exit 1
}
wrong_use() {
  say "error: $*; see --help"
  exit 2
}
usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; }
while [ $# -gt 0 ]; do
  case $1 in
    --bin | --plan | --root | --nvrtc) [ -n "${2:-}" ] || wrong_use "$1 needs a value" ;;
    -h | --help)
      usage
      exit 0
      ;;
    *) wrong_use "unknown argument $1" ;;
  esac
  case $1 in
    --bin) BIN=$2 ;;
    --plan) PLAN=$2 ;;
    --root) ROOT=$2 ;;
    --nvrtc) NVRTC=$2 ;;
  esac
  shift 2
done
[ -n "$BIN" ] && [ -n "$PLAN" ] && [ -n "$ROOT" ] || wrong_use "--bin, --plan and --root are needed"
for tool in gemvjit-warmup gemvjit-cache; do
  [ -x "$BIN/$tool" ] || fail "no $tool in $BIN"
done
[ "$(id -u)" = 0 ] || fail "chroot and mount need root"
[ -f "$PLAN" ] || fail "no plan $PLAN"
if [ -z "$NVRTC" ]; then
  # doctor's exit code is about the machine, not about this answer.
  NVRTC=$({ "$BIN/gemvjit-cache" doctor --json || true; } | sed -n 's/.*"path": *"\([^"]*libnvrtc[^"]*\)".*/\1/p' | head -n 1)
fi
[ -f "$NVRTC" ] || fail "no NVRTC found; name one with --nvrtc"
# Before anything is written: a plan that this version cannot bake has the tool's own message and exit code.
env -i PATH="$PATH" GEMVJIT_CONFIG=none "$BIN/gemvjit-warmup" --plan "$PLAN" --dry-run -q \
  --cache-dir "${TMPDIR:-/tmp}/gemvjit-bake-none.$$" >/dev/null

mkdir -p "$ROOT"
ROOT=$(cd "$ROOT" && pwd)
[ $((0$(stat -c %a "$ROOT") & 5)) = 5 ] || fail "$ROOT is closed to other users, as the image's would be (chmod 755)"

install -d "$ROOT/usr/bin" "$ROOT/opt/gemvjit" "$ROOT/tmp"
# copy_libraries_of FILE: what the loader needs for it, where the root has none of that path.
copy_libraries_of() {
  local library
  for library in $(ldd "$1" | grep -o '/[^ ]*'); do
    [ -e "$ROOT$library" ] || install -D "$library" "$ROOT$library"
  done
}
for tool in gemvjit-warmup gemvjit-cache; do
  install -m 755 "$BIN/$tool" "$ROOT/usr/bin/"
  copy_libraries_of "$BIN/$tool"
done
install -m 644 "$PLAN" "$ROOT/opt/gemvjit/plan.json"

# Only while baking: the compiler, and the cache folder, which is the builder's own (0700) and no use to other users.
BUILD_ONLY="$ROOT/tmp/gemvjit-bake"
trap 'rm -rf "$BUILD_ONLY"' EXIT
install -d "$BUILD_ONLY"
cp -L "$(dirname "$NVRTC")"/libnvrtc.so.* "$(dirname "$NVRTC")"/libnvrtc-builtins.so.* "$BUILD_ONLY/"
copy_libraries_of "$NVRTC"

# in_image VARIABLE=VALUE... COMMAND...: in the chroot, with nothing of the caller's environment.
in_image() {
  local variables=(PATH=/usr/sbin:/usr/bin GEMVJIT_CONFIG=none)
  while [[ $1 == *=* ]]; do
    variables+=("$1")
    shift
  done
  env -i "${variables[@]}" chroot "$ROOT" "$@"
}
say "compile the plan in the chroot"
in_image GEMVJIT_NVRTC=/tmp/gemvjit-bake gemvjit-warmup --plan /opt/gemvjit/plan.json --cache-dir /tmp/gemvjit-bake/cache -q
rm -f "$ROOT$LAYER"
in_image gemvjit-cache export "$LAYER" --cache-dir /tmp/gemvjit-bake/cache
rm -rf "$BUILD_ONLY"

# The node's side. Ids that no account has; the mounts end with the process that made them.
ID=$((100000 + RANDOM))
say "check as user $ID, without HOME, the root read-only"
# shellcheck disable=SC2016 # the variables are the inner shell's
ROOT="$ROOT" ID="$ID" LAYER="$LAYER" unshare --mount --propagation private bash -euc '
  mount --bind "$ROOT" "$ROOT"
  mount -o remount,bind,ro "$ROOT"
  if touch "$ROOT/tmp/probe" 2>/dev/null; then echo "bake: error: the root is not read-only" >&2; exit 1; fi
  exec env -i PATH=/usr/sbin:/usr/bin GEMVJIT_CACHE_RO="$LAYER" chroot --userspec="$ID:$ID" "$ROOT" \
    gemvjit-warmup --plan /opt/gemvjit/plan.json --check
'
say "the image is warm: set GEMVJIT_CACHE_RO=$LAYER in it"
