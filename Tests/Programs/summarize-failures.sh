#!/usr/bin/env bash
# Usage: Tests/Programs/summarize-failures.sh COMMAND [ARGUMENT...]
#
# Runs a test command. At the end it repeats the tests that were not run, the known issues and, if the command failed,
# the recorded issues, because people and CI systems read the end of a long log first. What was not run is added to the
# file $NOT_RUN, one test a line.
#
# A program of Tests/ that lacks what it needs (exit status 69, sysexits.h) was not run: within a step of `make test` that is
# no failure. (For Swift Testing, 69 is a filter without a test.) Otherwise the exit status is that of the command, or 1 if
# $CI is set and more than SKIP_LIMIT tests were skipped.
set -uo pipefail

# In CI every tool is installed, and without special rights a handful of tests is skipped.
SKIP_LIMIT=12
UNAVAILABLE=69

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

# Swift Testing's own line, and the one of `notRun` (Tests/TestSupport).
not_run='^➜ Test .* (skipped|not run)'
program=
for word in "$@"; do [[ $word != Tests/* ]] || program=$word; done
if [[ $status -eq $UNAVAILABLE && -n $program ]]; then
    reason="$program: $(tail -n 1 -- "$log")"
    echo "== Not run: $reason"
    echo "$reason" >>"${NOT_RUN:-/dev/null}"
    [[ -n ${IN_STEP-} ]] && exit 0
    exit "$status"
fi
repeat "Not run" "$not_run"
grep -E "$not_run" "$log" >>"${NOT_RUN:-/dev/null}"
repeat "Known issues" '^.{1,4} .* recorded a known issue'
if ((status != 0)); then
    echo "== Failed with exit status $status. Issues and their details:"
    # Details (↳) follow an issue (✘). They can have several lines, such as a program's output, up to the next
    # mark. The summaries of cases and suites, and the comments of declarations, are left out.
    awk '/^✘ .* recorded an issue/ { details = 1; print; next }
        /^(✘|✔|◇|➜|━|↳ \/\/\/)/ { details = 0 }
        details' "$log" | head -n 200
fi
count=$(grep -cE '^➜ Test .* skipped' "$log")
if [[ -n ${CI-} ]] && ((count > SKIP_LIMIT)); then
    echo "== Failed: $count tests were skipped; the limit is $SKIP_LIMIT. Install the tools, or get the rights."
    ((status != 0)) || status=1
fi
exit "$status"
