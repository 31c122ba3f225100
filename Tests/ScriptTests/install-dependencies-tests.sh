#!/usr/bin/env bash
# Tests scripts/install-dependencies.sh on machines made of stubs: it installs nothing and needs no root.
set -euo pipefail

script=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)/scripts/install-dependencies.sh
# shellcheck source=Tests/ScriptTests/machine.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/machine.sh"

# machine NAME: creates a Debian machine with the user root, swift, current package lists, and none of our packages.
# The machine's state is a directory of files that the stubs read and write.
machine() {
    case_name=$1
    state=$scratch/$1
    mkdir -p "$state/bin"
    touch "$state/installed" "$state/calls" "$state/listed"
    echo 0 >"$state/uid"
    local tool
    for tool in bash env grep cat rm; do ln -s "$(command -v "$tool")" "$state/bin/$tool"; done
    stub swift ''
    stub id 'cat "$STATE/uid"'
    stub dpkg-query 'for package; do :; done; grep -qx "$package" "$STATE/installed" && echo installed'
    stub apt-cache 'test -e "$STATE/listed"'
    stub apt-get '
        echo "apt-get $*" >>"$STATE/calls"
        case " $* " in
        *" update "*) test ! -e "$STATE/offline" && : >"$STATE/listed" && rm -f "$STATE/stale" ;;
        *" install "*)
            test ! -e "$STATE/offline" && test ! -e "$STATE/stale" || exit 100
            test -e "$STATE/liar" && exit 0
            for word; do
                case $word in -* | install | DPkg*) ;; *) echo "$word" >>"$STATE/installed" ;; esac
            done ;;
        esac'
}

# run ARGUMENT...: runs the script on the machine, without a terminal.
run() {
    status=0
    STATE=$state PATH=$state/bin "$BASH" "$script" "$@" </dev/null >"$state/output" 2>&1 || status=$?
}

says_nothing() { [ ! -s "$state/output" ] || fail 'says something'; }
# calls VERB...: checks the calls of apt-get, in order.
calls() {
    local made
    made=$(grep -oE ' (update|install) ?' "$state/calls" | tr -d ' \n' || true)
    local wanted
    wanted=$(printf '%s' "$@")
    [ "$made" = "$wanted" ] || fail "apt-get was called for '$made', not '$wanted'"
}

machine everything-there
printf '%s\n' libdw-dev libunwind-dev >"$state/installed"
run build
exits_with 0
says_nothing
calls

machine missing
run build
exits_with 0
calls install
for package in libdw-dev libunwind-dev; do
    grep -qx "$package" "$state/installed" || fail "did not install $package"
done
grep -q -- '--no-remove' "$state/calls" || fail 'may remove packages'

machine lint
printf '%s\n' libdw-dev libunwind-dev >"$state/installed"
run lint
exits_with 0
calls install
grep -qx clang-format "$state/installed" || fail 'did not install'

machine tests
printf '%s\n' libdw-dev libunwind-dev >"$state/installed"
run test
exits_with 0
calls install
for package in debuginfod gdb libglib2.0-dev; do
    grep -qx "$package" "$state/installed" || fail "did not install $package"
done

machine another-architecture
printf '%s\n' libdw-dev libunwind-dev >"$state/installed"
run aarch64
exits_with 0
calls install
for package in qemu-system-arm g++-aarch64-linux-gnu cpio; do
    grep -qx "$package" "$state/installed" || fail "did not install $package"
done

machine without-lists
rm "$state/listed"
run build
exits_with 0
calls update install

machine stale-lists
touch "$state/stale"
run build
exits_with 0
calls install update install

machine offline
touch "$state/offline"
run build
exits_with 69
says 'apt-get install libdw-dev libunwind-dev'

machine not-what-it-says
touch "$state/liar"
run build
exits_with 69
says 'still missing: libdw-dev libunwind-dev'

machine user-without-sudo
echo 1000 >"$state/uid"
run build
exits_with 69
calls
says 'needs root or sudo: libdw-dev libunwind-dev'

machine user-with-sudo
echo 1000 >"$state/uid"
stub sudo 'echo "sudo $1" >>"$STATE/calls"; shift; exec "$@"'
run build
exits_with 0
calls install
grep -qx 'sudo -n' "$state/calls" || fail 'sudo could ask for a password, and would wait forever'

machine user-whom-sudo-refuses
echo 1000 >"$state/uid"
stub sudo 'echo "sudo: a password is required"; exit 1'
run build
exits_with 69
calls
says 'apt-get install libdw-dev libunwind-dev'

machine without-swift
rm "$state/bin/swift"
run build
exits_with 69
calls
says 'no swift on PATH'

machine not-debian
rm "$state/bin/dpkg-query" "$state/bin/apt-get"
run build
exits_with 0
says 'not a Debian system'
says 'libdw (elfutils)'

machine wrong-argument
run everything
exits_with 64
says 'usage:'

if [ $failures -ne 0 ]; then
    echo "install-dependencies: $failures failures"
    exit 1
fi
echo 'install-dependencies: all cases passed'
