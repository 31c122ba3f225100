#!/usr/bin/env bash
# Runs a step of `make test` or `make test-all`, and keeps how long it took.
#
#   Tests/Programs/step.sh NAME COMMAND...   runs the command, and prints and keeps its seconds
#   Tests/Programs/step.sh                   prints the seconds of all steps, and which tests were not run
#
# The seconds are kept in the file $STEPS until they are printed, and the tests in $NOT_RUN until the next run. The exit
# status is that of the command.
set -uo pipefail

if (($# == 0)); then
    awk -F '\t' '{ printf "%6d s  %s\n", $1, $2; sum += $1 } END { printf "%6d s  in all\n", sum }' "$STEPS"
    rm -f -- "$STEPS"
    touch -- "$NOT_RUN"
    cat -- "$NOT_RUN"
    echo "Tests not run: $(wc -l <"$NOT_RUN")"
    exit
fi
name=$1 began=$SECONDS
shift
echo "== $name"
IN_STEP=1 "$@"
status=$?
seconds=$((SECONDS - began))
mkdir -p -- "$(dirname -- "$STEPS")"
printf '%d\t%s%s\n' "$seconds" "$name" "$( ((status == 0)) || echo ' (failed)')" >>"$STEPS"
echo "== $name: $seconds s"
exit "$status"
