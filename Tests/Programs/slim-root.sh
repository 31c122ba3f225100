#!/usr/bin/env bash
# Runs the scenarios in slim root file systems and counts the right reports in each.
#
#   Tests/Programs/slim-root.sh [scenario options...]   three minutes each, and one more for each at the first run
#
#   slim               Debian's minimal root (debootstrap, minbase) with the additions of Swift's slim images: libcurl,
#                      libxml2, tzdata
#   libunwind8         the same with libunwind8, which then unwinds the stacks
#   libunwind8+libdw1  the same with libunwind8 and libdw1, which adds inlined functions, files and lines
#
# The program is a release build with the Swift libraries linked statically. In each root it has its own /proc, and the
# machine's /dev and /sys, as in a container.
#
# Needs root for chroot(2) and mounts, the packages of `scripts/install-dependencies.sh slim`, and the network at the
# first run. SLIM_ROOTS is the directory of the roots, .build/slim by default. Exit status: 0 if the scenarios ran in all
# roots, with all results right (without libdw, except those that need inlined functions), and the monitor proves itself in
# each; 1 if not; 69 without root.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."

readonly unavailable=69
readonly release=bookworm
readonly base=libcurl4,libxml2,tzdata
readonly roots=${SLIM_ROOTS:-$PWD/.build/slim}

if [ "$(id -u)" -ne 0 ]; then
    echo 'Only root can create and enter a root file system: run this with sudo.' >&2
    exit $unavailable
fi

# The options of `make builds`, which uses the same folder.
options=(--product stallwatch-scenarios --enable-all-traits -c release --static-swift-stdlib --scratch-path .build-release-static)
swift build "${options[@]}"
swift build "${options[@]/stallwatch-scenarios/stallwatch-test-host}"
program=$(swift build "${options[@]}" --show-bin-path)/stallwatch-scenarios

# make_root NAME [PACKAGE...]: creates the root if it is missing.
make_root() {
    local name=$1 packages=$base
    shift
    [ -e "$roots/$name/complete" ] && return
    for package in "$@"; do packages+=,$package; done
    echo "Creating the root file system $name (one minute)."
    # An unfinished root has its log beside it. Another folder is not removed.
    if [ -e "$roots/$name" ] && [ ! -e "$roots/$name.log" ]; then
        echo "$roots/$name is no root of this script: set SLIM_ROOTS to another folder." >&2
        exit $unavailable
    fi
    rm -rf --one-file-system "${roots:?}/$name"
    mkdir -p "$roots/packages"
    debootstrap --variant=minbase --cache-dir="$roots/packages" --include="$packages" "$release" "$roots/$name" \
        >"$roots/$name.log" || {
        tail -5 "$roots/$name.log" >&2
        exit $unavailable
    }
    touch "$roots/$name/complete"
}

# has NAME LIBRARY: succeeds if the root has the library.
has() { compgen -G "$roots/$1/usr/lib/*/$2.so.*" >/dev/null; }

# run_in NAME [scenario options...]: runs the scenarios in the root, in mount and process namespaces of its own.
run_in() {
    local root=$roots/$1
    shift
    cp -- "$program" "${program%/*}/stallwatch-test-host" "$root/"
    rm -rf "$root/stalls" "$root/summary.json" "$root/proof"
    # shellcheck disable=SC2016 # The inner shell expands them.
    unshare --mount --pid --fork --kill-child bash -c '
        mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && mount --rbind /sys "$0/sys" &&
            mount -t tmpfs tmpfs "$0/tmp" &&
            { PROOF_ATTEMPTS=5 timeout --signal=KILL 600 chroot "$0" \
                /stallwatch-test-host main-stalls /tmp 50 200 /stallwatch-scenarios >"$0/proof"
            printf "\nexit %d\n" $? >>"$0/proof"; } &&
            exec chroot "$0" /stallwatch-scenarios --quiet --output /stalls --summary /summary.json "$@"' "$root" "$@" \
        >"$root.output" 2>&1
}

status=0
check() {
    local name=$1
    shift
    if [ ! -s "$roots/$name/summary.json" ]; then
        echo "$name: the scenarios did not run:" >&2
        tail -5 "$roots/$name.output" >&2
        status=1
    else
        Tests/Programs/count-scenarios.py "$roots/$name/summary.json" "$name" "$@" || status=1
    fi
    Tests/Programs/judge-proof.py "$name" <"$roots/$name/proof" || status=1
}

make_root slim
make_root libunwind8 libunwind8
make_root libunwind8+libdw1 libunwind8 libdw1
if has slim libunwind || has slim libdw || has libunwind8 libdw || ! has libunwind8 libunwind ||
    ! has libunwind8+libdw1 libdw; then
    echo "The roots in $roots do not have the libraries of their names: remove them and run this again." >&2
    exit 1
fi

# The program's own exit status does not count, because each root has its own list of allowed results.
for name in slim libunwind8 libunwind8+libdw1; do run_in "$name" "$@" || true; done
check slim inlined
check libunwind8 inlined
check libunwind8+libdw1
exit $status
