#!/usr/bin/env bash
# Builds StallWatch with the Swift of Debian's unstable release, runs the scenarios and the unit tests, lets the monitor
# prove itself, compares the order of the run loop with docs/RunLoop.md, and prints a row for docs/Support.md.
#
#   Tests/Programs/debian-swift.sh [scenario options...]
#
# There the runtime libraries have no `.symtab`, the linker is GNU ld and the C library is newer. They are built with lld,
# too. An hour on two CPUs at the first run, of which the downloads are a few minutes; later runs build what has changed.
#
# Needs what scripts/debian-root.sh needs. DEBIAN_ROOT is the folder of the root, .build-debian/root by default; the root
# itself needs no network: the resolved packages are copied into it.
#
# Exit status: 0 if everything builds without a warning and is right, except what is listed below, and the monitor proves
# itself; 1 if not; 69, with one sentence, if the root cannot be made.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."

# What may be wrong there, with the reason in Limits.md.
readonly may_be_wrong=(socket)
readonly unit_tests='^(LinuxSupport|StallReports|StallSymbols|StackCapture|StallWatch|TextOutput|StallWatchCLI|ScenarioKit)Tests\.'
# They compare the release's libunwind with the built-in unwinder, function by function.
readonly unwinder_tests='^CUnwindTests\.UnwinderTests'
# The longest times of one build, of one run of the scenarios or the tests, and of the proofs, in seconds.
readonly longest_build=3600 longest_run=1200 longest_proof=600

root=${DEBIAN_ROOT:-$PWD/.build-debian/root}
results=$(dirname -- "$root")/results
status=0
fail() {
    echo "FAILED: $*" >&2
    status=1
}

scripts/debian-root.sh make "$root"
mkdir -p "$results"
run() { timeout --signal=KILL "$1" scripts/debian-root.sh run "$root" "${@:2}"; }
Tests/Programs/debian-sources.sh "$root"

# ---- Build ----------------------------------------------------------------------------------------------------------

# build NAME OPTION...: builds in the folder .build-NAME. A warning about the project's own files is a failure.
build() {
    local log=$results/$1.build
    echo "Building: $1"
    run $longest_build swift build --package-path /StallWatch --scratch-path "/StallWatch/.build-$1" \
        "${@:2}" >"$log" 2>&1 || {
        grep -E 'error:' "$log" | sort -u | head -20 >&2 || tail -5 "$log" >&2
        fail "the build $1 fails"
        return 1
    }
    local warnings
    if warnings=$(grep -E '^/StallWatch/(Sources|Tests)/.*warning:' "$log" | sort -u); then
        head -20 <<<"$warnings"
        fail "the build $1 has warnings"
    fi
}

# ---- Run ------------------------------------------------------------------------------------------------------------

counts=()

# scenarios NAME [scenario options...]: runs the scenarios of a build, and counts the right results.
scenarios() {
    local name=$1 program=/StallWatch/.build-$1/debug/stallwatch-scenarios
    shift
    rm -rf "$root/stalls-$name" "$root/$name.json"
    run $longest_run "$program" --quiet --output "/stalls-$name" --summary "/$name.json" "$@" \
        >"$results/$name.scenarios" 2>&1 || true
    if [ ! -s "$root/$name.json" ]; then
        tail -5 "$results/$name.scenarios" >&2
        fail "the scenarios of the build $name did not run"
    else
        Tests/Programs/count-scenarios.py "$root/$name.json" "$name" "${may_be_wrong[@]}" |
            tee "$results/$name.counts" || fail "the scenarios of the build $name have wrong results"
        counts+=("$(head -1 "$results/$name.counts")")
        grep -rqE '"unwinder" ?: ?"libunwind' "$root/stalls-$name" || fail "the build $name did not use libunwind"
    fi
}

if build dynamic --product stallwatch-scenarios; then
    scenarios dynamic "$@"
    run 60 /StallWatch/.build-dynamic/debug/stallwatch-scenarios order |
        diff <(sed -n '/begin of the table/,/end of the table/{//!p}' docs/RunLoop.md) - ||
        fail 'the run loop has another order than docs/RunLoop.md shows'
fi
if build static --product stallwatch-scenarios --static-swift-stdlib; then scenarios static "$@"; fi
for name in dynamic static; do
    options=(--product stallwatch-test-host)
    [ $name = dynamic ] || options+=(--static-swift-stdlib)
    build $name "${options[@]}" || continue
    program=/StallWatch/.build-$name/debug/stallwatch-test-host
    rm -rf "$root/proof-$name"
    ended=0
    run $longest_proof env PROOF_ATTEMPTS=5 "$program" main-stalls "/proof-$name" 50 200 "$program" \
        >"$results/$name.proof" 2>&1 || ended=$?
    printf '\nexit %d\n' $ended >>"$results/$name.proof"
    Tests/Programs/judge-proof.py $name <"$results/$name.proof" || fail "the monitor of the build $name does not prove itself"
done
for name in dynamic-lld static-lld; do
    options=(--product stallwatch-scenarios -Xswiftc -use-ld=lld)
    [ $name = dynamic-lld ] || options+=(--static-swift-stdlib)
    if ! build $name "${options[@]}"; then
        continue
    elif grep -q 'Linker: LLD' <(readelf --string-dump=.comment "$root/StallWatch/.build-$name/debug/stallwatch-scenarios"); then
        scenarios $name "$@"
    else
        fail "the build $name is not linked with lld"
    fi
done
# The package has this module without its library. Nothing of it is used, but the tests are linked with it.
mkdir -p "$root/stub" && ar rc "$root/stub/lib_Testing_Foundation.a"
if build tests --build-tests --enable-all-traits -Xlinker -L/stub; then
    run $longest_run swift test --skip-build --package-path /StallWatch --scratch-path /StallWatch/.build-tests \
        --enable-all-traits --disable-xctest --filter "$unit_tests" >"$results/tests" 2>&1 || fail 'unit tests fail'
    grep -E '^✘ Test .* failed|^.{1,4} Test run with' "$results/tests" | tail -20 || fail 'no unit test has run'
    counts+=("unit tests: $(grep -oE 'Test run with .*' "$results/tests" | tail -1)")
    run $longest_run swift test --skip-build --package-path /StallWatch --scratch-path /StallWatch/.build-tests \
        --enable-all-traits --disable-xctest --no-parallel --filter "$unwinder_tests" >"$results/unwinders" 2>&1 ||
        fail 'libunwind and the built-in unwinder differ'
    grep -E '^✘ Test .* failed|^.{1,4} Test run with' "$results/unwinders" | tail -5 || fail 'no test of the unwinders has run'
fi

version=$(run 60 swift --version 2>/dev/null | grep -oE 'Swift version [0-9.]+' | head -1)
glibc=$(run 60 ldd --version | head -1 | grep -oE '[0-9.]+$')
row=$(printf '%s; ' "${counts[@]-}")
echo
echo "| ${version#Swift version } of Debian's unstable release | glibc $glibc, Linux $(uname -r) | $(uname -m) | ${row%; } |"
exit $status
