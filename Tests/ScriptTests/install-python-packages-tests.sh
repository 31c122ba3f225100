#!/usr/bin/env bash
# Tests scripts/install-python-packages.sh with a stub of pip: it installs nothing and needs no network.
set -euo pipefail

script=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)/scripts/install-python-packages.sh
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
failures=0
case_name=

# checkout NAME BODY: creates a checkout with the script, and a python3 that runs BODY.
checkout() {
    case_name=$1
    root=$scratch/$1
    mkdir -p "$root/scripts" "$root/bin"
    cp "$script" "$root/scripts/"
    sed -i "s|/usr/bin/python3|$root/bin/python3|" "$root/scripts/install-python-packages.sh"
    printf '#!%s\n%s\n' "$BASH" "$2" >"$root/bin/python3"
    chmod +x "$root/bin/python3"
    : >"$root/calls"
    echo 'Python 3.11' >"$root/version"
}

run() {
    status=0
    ROOT=$root PATH=$root/bin:$PATH "$BASH" "$root/scripts/install-python-packages.sh" "$@" </dev/null \
        >"$root/output" 2>&1 || status=$?
}

fail() {
    echo "$case_name: $1"
    sed 's/^/    | /' "$root/output" "$root/calls"
    failures=$((failures + 1))
}

exits_with() { [ "$status" -eq "$1" ] || fail "exit status $status, not $1"; }
installs() { [ "$(grep -c install "$root/calls" || true)" -eq "$1" ] || fail "did not install $1 times"; }

# Like pip, the stub creates the target directory.
readonly pip='
[ "$1" = --version ] && cat "$ROOT/version" && exit
[ "$2" = pip ] || exit 1
[ "$3" = --version ] && exit 0
echo "$*" >>"$ROOT/calls"
while [ "$1" != --target ]; do shift; done
mkdir -p "$2"'

checkout missing "$pip"
run
exits_with 0
installs 1
grep -q gprof2dot "$root/calls" || fail 'did not ask for gprof2dot'
run
exits_with 0
installs 1
[ ! -s "$root/output" ] || fail 'says something when everything is there'
echo older >"$root/.build/python/packages"
run
exits_with 0
installs 2

# Some packages are for one version of Python.
echo 'Python 3.13' >"$root/version"
run
installs 3
run
installs 3

# The two sets do not replace each other.
run fleet
exits_with 0
installs 4
grep -q duckdb "$root/calls" || fail 'did not ask for DuckDB'
run
installs 4
run other
exits_with 64

checkout offline "$pip; exit 1"
run
exits_with 69
grep -q 'could not be installed: gprof2dot' "$root/output" || fail 'does not say what is missing'
[ ! -e "$root/.build/python/packages" ] || fail 'claims to have installed it'

checkout without-pip 'exit 1'
run
exits_with 69
installs 0

if [ $failures -ne 0 ]; then
    echo "install-python-packages: $failures failures"
    exit 1
fi
echo 'install-python-packages: all cases passed'
