# What tests of scripts on machines made of stubs share, to be read with `.`: the test sets `script`, and a function of its
# own sets `state`, the machine's folder, and `case_name`.
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
failures=0
case_name=

# stub NAME BODY: adds a command to the machine.
stub() {
    printf '#!%s/bin/bash\n%s\n' "$state" "$2" >"$state/bin/$1"
    chmod +x "$state/bin/$1"
}

fail() {
    echo "$case_name: $1"
    sed 's/^/    | /' "$state/output" "$state/calls"
    failures=$((failures + 1))
}

exits_with() { [ "$status" -eq "$1" ] || fail "exit status $status, not $1"; }
says() { grep -qF -- "$1" "$state/output" || fail "does not say: $1"; }
