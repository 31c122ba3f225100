#!/usr/bin/env bash
# Usage: scripts/summarize-failures.sh COMMAND [ARGUMENT...]
#
# Runs a test command and, if it fails, says again at the end what failed: the end of a long log is what people and
# CI systems look at first. The exit status is the command's.
set -uo pipefail

log=$(mktemp)
trap 'rm -f -- "$log"' EXIT

"$@" 2>&1 | tee -- "$log"
status=${PIPESTATUS[0]}
if ((status != 0)); then
    echo "== Failed with exit status $status. Issues, and what was said of them:"
    # After an issue (✘) come its details (↳), which may go on for lines, such as what a program said, until the next mark.
    # The summaries of cases and suites are left out, and the comments of declarations.
    awk '/^✘ .* recorded an issue/ { details = 1; print; next }
        /^(✘|✔|◇|➜|↳ \/\/\/)/ { details = 0 }
        details' "$log" | head -n 200
fi
exit "$status"
