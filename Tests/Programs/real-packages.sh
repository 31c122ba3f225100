#!/usr/bin/env bash
# Stalls in calls into published packages, and checks that each report blames the app's function that made the call.
#
#   Tests/Programs/real-packages.sh debug            a debug build
#   Tests/Programs/real-packages.sh release-static   a release build with the Swift libraries linked statically
#
# With HEAVY_PACKAGES=1 it has a package, too, that takes minutes to compile.
#
# With --build-only nothing is run. Other arguments go to the program: a folder for the reports, and a part of the labels to
# try. Exit status: that of the program, 64 for a wrong argument, or 69 if a package that it needs cannot be installed.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."

kind=${1-}
case "$kind" in
debug) options=() ;;
release-static) options=(-c release --static-swift-stdlib) ;;
*)
    echo "usage: $0 debug|release-static [--build-only | REPORTS [LABEL]]" >&2
    exit 64
    ;;
esac
shift

package=Tests/Samples/RealPackages
options+=(--package-path "$package" --scratch-path "$package/.build-$kind" --product real-packages)
# A module that takes minutes keeps a job: with one for each processor others begin late, for which the last ones wait.
options+=(--jobs "$((2 * $(nproc)))")
scripts/install-dependencies.sh packages
# As in the Makefile.
export SWIFT_DETERMINISTIC_HASHING=1
swift build "${options[@]}"
[ "${1-}" != --build-only ] || exit 0
"$(swift build "${options[@]}" --show-bin-path)/real-packages" "$@"
