#!/usr/bin/env bash
# Usage: Tests/Programs/summarize-failures.sh COMMAND [ARGUMENT...]
#
# Runs a test command. At the end it repeats the skipped tests, the known issues and, if the command failed, the
# recorded issues, because people and CI systems read the end of a long log first. The exit status is that of the
# command, or 1 if more than SKIP_LIMIT tests were skipped.
set -uo pipefail

# Without special rights, a handful of tests is skipped. If there are more, tools are missing.
SKIP_LIMIT=12

log=$(mktemp)
trap 'rm -f -- "$log"' EXIT

"$@" 2>&1 | tee -- "$log"
status=${PIPESTATUS[0]}

# repeat TITLE PATTERN: prints a title with the number of matching lines, and the lines, if there are any.
repeat() {
    local count
    count=$(grep -cE "$2" "$log")
    if ((count > 0)); then
        echo "== $1: $count"
        grep -E "$2" "$log" | head -n 50
    fi
}
skipped=$(grep -cE '^➜ .* skipped' "$log")

repeat "Skipped tests" '^➜ .* skipped'
repeat "Known issues" '^.{1,4} .* recorded a known issue'
if ((status != 0)); then
    echo "== Failed with exit status $status. Issues and their details:"
    # Details (↳) follow an issue (✘). They can have several lines, such as a program's output, up to the next
    # mark. The summaries of cases and suites, and the comments of declarations, are left out.
    awk '/^✘ .* recorded an issue/ { details = 1; print; next }
        /^(✘|✔|◇|➜|━|↳ \/\/\/)/ { details = 0 }
        details' "$log" | head -n 200
fi
if ((skipped > SKIP_LIMIT)); then
    echo "== Failed: $skipped tests were skipped; the limit is $SKIP_LIMIT. Install the tools, or get the rights."
    ((status != 0)) || status=1
fi
exit "$status"
