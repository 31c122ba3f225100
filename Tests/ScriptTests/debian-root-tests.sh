#!/usr/bin/env bash
# Tests what scripts/debian-root.sh refuses, on machines made of stubs: it makes no root and needs none.
set -euo pipefail

script=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)/scripts/debian-root.sh
# shellcheck source=Tests/ScriptTests/machine.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/machine.sh"

# machine NAME: creates a machine with the user root, debootstrap, a mirror and enough space. `mounted` is what is mounted.
machine() {
    case_name=$1
    state=$scratch/$1
    root=$state/roots/sid
    mkdir -p "$state/bin"
    touch "$state/calls"
    local tool
    for tool in bash cat cp dirname head ln mkdir printf rm tail touch; do ln -s "$(command -v "$tool")" "$state/bin/$tool"; done
    stub id 'echo 0'
    stub df 'echo Avail; echo 9000'
    stub apt-get 'echo "http://mirror.invalid/debian"; echo "http://other.invalid/debian"'
    stub debootstrap ''
    # Only the last words are the command: the options make the namespaces.
    stub unshare '
        echo "${*//$'"'\n'"'/ }" >>"$STATE/calls"
        test ! -e "$STATE/fails" || { echo "E: no space left"; mkdir -p "$STATE/roots/sid/proc"; exit 1; }
        mkdir -p "$STATE/roots/sid/etc/apt"'
}

# run ARGUMENT...: runs the script on the machine.
run() {
    status=0
    STATE=$state PATH=$state/bin DEBIAN_MIRROR=${mirror-} "$BASH" "$script" "$@" </dev/null >"$state/output" 2>&1 ||
        status=$?
}

# refuses SENTENCE: checks for status 69, one line, and that nothing was made.
refuses() {
    exits_with 69
    says "$1"
    [ "$(wc -l <"$state/output")" -eq 1 ] || fail 'says more than a sentence'
    [ ! -s "$state/calls" ] || fail 'has begun'
    [ ! -e "$root" ] || fail 'has made a root'
}

machine user
stub id 'echo 1000'
run make "$root"
refuses 'Only root can'

machine without-debootstrap
rm "$state/bin/debootstrap"
run make "$root"
refuses 'There is no debootstrap'

machine without-mirror
stub apt-get ''
run make "$root"
refuses 'set DEBIAN_MIRROR'

machine without-apt
rm "$state/bin/apt-get"
run make "$root"
refuses 'set DEBIAN_MIRROR'

machine without-space
stub df 'echo Avail; echo 7999'
run make "$root"
refuses 'has 7999 MB left'

machine that-fails
touch "$state/fails"
run make "$root"
exits_with 69
says 'E: no space left'
[ ! -e "$root" ] || fail 'leaves half of a root'
if grep -v -- '^--mount ' "$state/calls"; then fail 'mounts outside a namespace of its own'; fi

machine good
run make "$root"
exits_with 0
[ -e "$root/complete" ] || fail 'is not complete'
grep -q 'sid .*http://mirror.invalid/debian$' "$state/calls" || fail 'another mirror'
if grep -v -- '^--mount ' "$state/calls"; then fail 'mounts outside a namespace of its own'; fi
: >"$state/calls"
run make "$root"
exits_with 0
[ ! -s "$state/calls" ] || fail 'makes it again'

# An unfinished root is made again; another folder stays.
machine another-folder
mkdir -p "$root" && touch "$root/thesis"
run make "$root"
exits_with 69
says 'no root of this script'
[ ! -s "$state/calls" ] || fail 'has begun'
[ -e "$root/thesis" ] || fail 'removes another folder'
touch "$root.log"
run make "$root"
exits_with 0

machine another-mirror
mirror=http://chosen.invalid/debian
run make "$root"
exits_with 0
grep -q 'http://chosen.invalid/debian$' "$state/calls" || fail 'another mirror'
unset mirror

machine sdk-without-root
run sdk "$root"
refuses 'There is no root file system in'

machine sdk-that-fails
mkdir -p "$root" && touch "$root/complete" "$state/fails"
run sdk "$root"
exits_with 69
says 'The Swift SDK cannot be made'
[ ! -e "$root/sdks" ] && [ ! -e "$root/arm64" ] || fail 'leaves half of an SDK'

machine good-sdk
mkdir -p "$root" && touch "$root/complete"
run sdk "$root"
exits_with 0
[ -e "$root/sdks/complete" ] && [ -e "$root/sdks/aarch64.artifactbundle/info.json" ] || fail 'is not complete'
if grep -v -- '^--mount ' "$state/calls"; then fail 'mounts outside a namespace of its own'; fi
: >"$state/calls"
run sdk "$root"
exits_with 0
[ ! -s "$state/calls" ] || fail 'makes it again'

machine wrong-arguments
for arguments in '' 'make' 'sdk' "run $root" "remove $root"; do
    # shellcheck disable=SC2086 # Words.
    run $arguments
    exits_with 64
    says 'usage:'
done

if [ $failures -ne 0 ]; then
    echo "debian-root: $failures failures"
    exit 1
fi
echo 'debian-root: all cases passed'
