#!/usr/bin/env bash
# Tests Tests/Programs/summarize-failures.sh with commands that print what Swift Testing prints.
set -euo pipefail

script=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)/Tests/Programs/summarize-failures.sh
failures=0

# expect NAME STATUS LAST_LINES BODY: with the command BODY, the script exits with STATUS and its output ends with
# LAST_LINES.
expect() {
    local output status=0
    output=$("$script" bash -c "$4") || status=$?
    if [ "$status" -ne "$2" ] || [ "${output: -${#3}}" != "$3" ]; then
        printf '%s: exit status %d, output:\n%s\n' "$1" "$status" "$output"
        failures=$((failures + 1))
    fi
}

expect "a command that passes adds nothing" 0 "✔ Test run passed" "echo '✔ Test run passed'"
expect "issues and their details are repeated" 3 \
    "Issues and their details:
✘ Test a() recorded an issue at A.swift:3:4: Expectation failed
↳ because
  of this" "
echo '✘ Test a() recorded an issue at A.swift:3:4: Expectation failed'
echo '↳ because'
echo '  of this'
echo '✔ Test b() passed'
echo '↳ of another test'
echo '✘ Test a() failed after 1 seconds with 1 issue.'
echo '↳ /// A comment of its declaration.'
exit 3"
expect "skipped tests and known issues are counted and repeated" 0 \
    "== Skipped tests: 2
➜ Test a() skipped: \"needs root\"
➜ Test b() skipped
== Known issues: 1
━ Test c() recorded a known issue at C.swift:5:6: Expectation failed" "
echo '➜ Test a() skipped: \"needs root\"'
echo '━ Test c() recorded a known issue at C.swift:5:6: Expectation failed'
echo '➜ Test b() skipped'
echo '✔ Test run passed'"
expect "too many skipped tests fail" 1 "Install the tools, or get the rights." \
    'for i in {1..13}; do echo "➜ Test t$i() skipped"; done'
expect "the limit of skipped tests passes" 0 "➜ Test t12() skipped" \
    'for i in {1..12}; do echo "➜ Test t$i() skipped"; done'
expect "a command that dies without an issue keeps its status" 137 "Issues and their details:" 'kill -KILL $$'

if ((failures > 0)); then
    echo "summarize-failures-tests.sh: $failures failed" >&2
    exit 1
fi
echo "summarize-failures-tests.sh: all passed"
