#!/usr/bin/env bash
# Runs all scenarios in five builds, and counts the right results, functions and lines of each.
#
#   Tests/Programs/scenario-builds.sh [BUILD...]   all five without an argument, 9 minutes each after the builds
#
#   debug           a debug build
#   debug-static    a debug build with the Swift libraries linked statically, whose symbols take longest to read
#   release         a release build
#   release-static  a release build with the Swift libraries linked statically
#   stripped        the same, stripped; its reports are symbolicated afterwards with the debug file
#
# Exit status: 0 if everything is right, 1 if not, 64 for a wrong argument. Of the stripped build, every function and
# line must be right. Its other wrong results are only listed: a stripped process lacks the names that they depend on.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."

results=.build/scenario-builds
failed=0

# The last lines of each build's table.
declare -A counts=()

fail() {
    echo "FAILED: $*" >&2
    failed=1
}

# Builds the scenarios of build $1 and sets `program`.
build() {
    local options=(--product stallwatch-scenarios --enable-all-traits)
    case "$1" in
    debug) ;;
    debug-static) options+=(--static-swift-stdlib --scratch-path .build-debug-static) ;;
    release) options+=(-c release --scratch-path .build-release) ;;
    *) options+=(-c release --static-swift-stdlib --scratch-path .build-release-static) ;;
    esac
    swift build "${options[@]}"
    program="$(swift build "${options[@]}" --show-bin-path)/stallwatch-scenarios"
}

# Keeps the two lines of counts in the table of file $2 as the counts of build $1.
count() {
    counts[$1]=$(grep -E '^[0-9]+ of [0-9]+ ok|^blamed: ' "$2" | paste -sd ';' | sed 's/;blamed:/; blamed:/') || true
}

# Succeeds if build $1 has blamed every function and every line.
blames_all() {
    [[ ${counts[$1]} =~ blamed:\ ([0-9]+)\ of\ ([0-9]+)\ functions,\ ([0-9]+)\ of\ ([0-9]+)\ lines ]] &&
        [[ ${BASH_REMATCH[2]} -gt 0 && ${BASH_REMATCH[1]} == "${BASH_REMATCH[2]}" ]] &&
        [[ ${BASH_REMATCH[3]} == "${BASH_REMATCH[4]}" ]]
}

run() {
    local name=$1 folder=$results/$1
    mkdir -p "$folder"
    build "$name"
    "$program" --quiet --output "$folder/reports" --summary "$folder/summary.json" | tee "$folder/table.txt" ||
        fail "the $name build has wrong reports"
    count "$name" "$folder/table.txt"
    blames_all "$name" || fail "the $name build does not blame every function and line"
    # The debug build, which has all frames, says which functions may be put back.
    [[ -d $results/debug/reports ]] || return 0
    Tests/Programs/inserted-frames.py "$results/debug/reports" "$folder/reports" ||
        fail "the $name build has frames that the debug build has not"
}

run_stripped() {
    local folder=$results/stripped
    mkdir -p "$folder/symbols"
    build stripped
    swift build --product stallwatch
    local objcopy
    objcopy="$(dirname -- "$(realpath -- "$(command -v swiftc)")")/llvm-objcopy"
    # In a directory where the process does not find the debug file.
    "$objcopy" --only-keep-debug "$program" "$folder/symbols/stallwatch-scenarios.debug"
    "$objcopy" --strip-all "$program" "$folder/stallwatch-scenarios"
    "$folder/stallwatch-scenarios" --quiet --output "$folder/reports" --summary "$folder/summary.json" \
        >"$folder/table-before.txt" || true
    "$(swift build --show-bin-path)/stallwatch" symbolicate "$folder/reports" --in-place \
        --debug-path "$folder/symbols" >"$folder/images.txt"
    "$program" --judge "$folder/summary.json" --output "$folder/reports" >"$folder/table.txt" || true
    count stripped "$folder/table.txt"
    blames_all stripped || fail "the symbolicated reports do not blame every function and line"
}

[[ $# -gt 0 ]] || set -- debug debug-static release release-static stripped
for name in "$@"; do
    case "$name" in
    debug | debug-static | release | release-static | stripped) ;;
    *)
        echo "usage: $0 [debug] [debug-static] [release] [release-static] [stripped]" >&2
        exit 64
        ;;
    esac
done
rm -rf "$results"
for name in "$@"; do
    echo "== the scenarios, $name"
    if [[ $name == stripped ]]; then run_stripped; else run "$name"; fi
done

echo
for name in "$@"; do printf '%-15s %s\n' "$name" "${counts[$name]}"; done
if [[ -f $results/stripped/table.txt ]]; then
    echo "Wrong in the stripped build:"
    awk -F '  +' 'NF >= 7 && $6 != "ok" && $6 != "result" { print "  " $1 ": " $6 }' "$results/stripped/table.txt"
fi
exit "$failed"
