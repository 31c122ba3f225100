#!/usr/bin/env bash
# Runs two commands at the same time.
#
#   Tests/Programs/beside.sh QUIET COMMAND
#
# Both are words for a shell. The output of QUIET is shown when both have ended, and only if it fails. Exit status: 0 if both
# succeed, else 1.
set -uo pipefail

log=$(mktemp)
# A group of its own, which ends with this script.
setsid bash -c "$1" >"$log" 2>&1 &
quiet=$!
trap '[ -z "$quiet" ] || kill -TERM -- "-$quiet"; rm -f -- "$log"' EXIT
trap 'exit 130' INT TERM
status=0
bash -c "$2" || status=1
began=$SECONDS
wait "$quiet"
result=$? quiet=
if ((result != 0)); then
    echo "== Failed beside other steps: $1"
    cat -- "$log"
    status=1
fi
printf '%d\tWait for: %s\n' $((SECONDS - began)) "$1" >>"$STEPS"
exit "$status"
