#!/usr/bin/env bash
# Runs the demo in a slim root file system, without and with libdw, and counts the right reports.
#
#   scripts/check-slim-root.sh [demo options...]
#
# The root is Debian's minimal one (debootstrap, minbase) with what Swift's slim images add: libcurl, libxml2 and tzdata.
# The program is a release build with the Swift libraries linked statically. StallWatch has an unwinder of its own, so
# libunwind makes no difference. libdw adds inlined functions and lines.
#
# Needs root for chroot(2) and mounts, what `scripts/install-dependencies.sh slim` installs, and at the first run the
# network. Exit status: 0 if the demo ran in both and all results with libdw are right, 1 if not, 69 without root.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

readonly unavailable=69
readonly release=bookworm
readonly roots=${SLIM_ROOTS:-$PWD/.build/slim}

if [ "$(id -u)" -ne 0 ]; then
    echo 'A root file system can be made and entered by root only: run this with sudo.' >&2
    exit $unavailable
fi

options=(-c release --static-swift-stdlib --scratch-path .build-static --product stallwatch-demo)
swift build "${options[@]}"
program=$(swift build "${options[@]}" --show-bin-path)/stallwatch-demo

# make_root NAME PACKAGE,...: makes the root if it is missing.
make_root() {
    [ -e "$roots/$1/complete" ] && return
    echo "Making the root file system $1 (one minute)."
    mkdir -p "$roots"
    rm -rf --one-file-system "${roots:?}/$1"
    debootstrap --variant=minbase --include="$2" "$release" "$roots/$1" >"$roots/$1.log" || {
        tail -5 "$roots/$1.log" >&2
        exit $unavailable
    }
    touch "$roots/$1/complete"
}

# run_in NAME [demo options...]: runs the demo in the root, in mount and process namespaces of its own.
run_in() {
    local root=$roots/$1
    shift
    cp -- "$program" "$root/stallwatch-demo"
    rm -rf "$root/stalls" "$root/summary.json"
    unshare --mount --pid --fork --kill-child bash -c '
        mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && mount -t tmpfs tmpfs "$0/tmp" &&
            exec chroot "$0" /stallwatch-demo --quiet --output /stalls --summary /summary.json "$@"' "$root" "$@" \
        >"$root.output" 2>&1
}

# count NAME: prints the counts of the summary. Fails if a result is not right.
count() {
    python3 - "$1" "$roots/$1/summary.json" <<'PYTHON'
import json, sys

name, path = sys.argv[1:]
results = json.load(open(path))
right = [result for result in results if result["result"] == "ok"]
wanted = [result for result in results if result["expectedFunction"]]
named = [result for result in wanted if result["blamedFunction"] == result["expectedFunction"]]
print(f"{name}: {len(right)} of {len(results)} scenarios right, {len(named)} of {len(wanted)} functions right")
for result in results:
    if result["result"] != "ok":
        print(f"  {result['scenario']}: {result['result']}, {result['blamedFunction']}, {result['cause']}")
sys.exit(0 if results and len(right) == len(results) else 1)
PYTHON
}

slim=libcurl4,libxml2,tzdata
make_root without-libdw "$slim"
make_root with-libdw "$slim,libdw1"
status=0
for root in without-libdw with-libdw; do
    if [ "$root" = without-libdw ] && ls "$roots/$root"/usr/lib/*/libdw.so* >/dev/null 2>&1; then
        echo "$root: there is a libdw, so this shows nothing" >&2
        exit 1
    fi
    # The demo's own status says whether all results are right; the counts say it per root.
    run_in "$root" "$@" || true
    if [ ! -s "$roots/$root/summary.json" ]; then
        echo "$root: the demo did not run:" >&2
        tail -5 "$roots/$root.output" >&2
        status=1
    elif ! count "$root" && [ "$root" = with-libdw ]; then
        status=1
    fi
done
exit $status
