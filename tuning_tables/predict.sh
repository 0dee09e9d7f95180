#!/bin/sh
# Derives the tables of GPUs that were not measured from sm_90a.json: sm_90.json, sm_100a.json, sm_120a.json and
# sm_121a.json.
# Needs no GPU. README.md in this folder says where the figures are from.
#
#   tuning_tables/predict.sh path/to/gemvjit-tune [more options of gemvjit-tune, such as --sample-compile 100]
set -eu
[ $# -ge 1 ] || { echo "usage: $0 path/to/gemvjit-tune [options]" >&2; exit 2; }
tune=$1
shift
tables=$(dirname "$0")

predict() {  # targets, SMs, GB/s, table, and what the caller adds
  targets=$1 sms=$2 bandwidth=$3 table=$4
  shift 4
  # 132 SMs and 4800 GB/s: the H200 of sm_90a.json.
  "$tune" --predict "$targets" --sm-count "$sms" --bandwidth "$bandwidth" --from "$tables/sm_90a.json" \
    --from-sm-count 132 --from-bandwidth 4800 --output "$tables/$table" "$@"
}

predict sm_90 132 4800 sm_90.json "$@"
predict sm_100a,sm_100f,sm_100,sm_103a,sm_103f,sm_103 148 8000 sm_100a.json "$@"
predict sm_120a,sm_120f,sm_120 188 1792 sm_120a.json --no-clusters "$@"
predict sm_121a,sm_121f,sm_121 48 273 sm_121a.json --no-clusters "$@"
