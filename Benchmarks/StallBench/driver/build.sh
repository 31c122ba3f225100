#!/usr/bin/env bash
# Builds the drivers and the plugins as a distribution builds programs (-O2 -g), with frame pointers and exported names.
#
#   driver/build.sh FOLDER            makes FOLDER/driver-glib, driver-thread, driver-cf, driver-swift and the twins
#   driver/build.sh FOLDER --only-c   without CoreFoundation and Swift
#   --sentry-native PATH, --swift-profile-recorder PATH
#                                     also the plugins with these projects' libraries, from checkouts
#
# What cannot be built here (no GLib, no Swift) is left out, with a line that says so.
set -euo pipefail
mkdir -p -- "$1"
out=$(cd -- "$1" && pwd)
shift
only_c='' sentry='' recorder=''
while [ $# -gt 0 ]; do
    case $1 in
    --only-c) only_c=1 ;;
    --sentry-native) sentry=$(realpath -- "$2") && shift ;;
    --swift-profile-recorder) recorder=$(realpath -- "$2") && shift ;;
    *) echo "stallbench: what is $1?" >&2 && exit 64 ;;
    esac
    shift
done
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"
CC=${CC:-$(command -v clang || echo cc)}
flags=(-std=gnu17 -O2 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -Wall -Wextra -Werror)
common=(driver.c busy.c waiting.c healthy.c loop.c)

"$CC" "${flags[@]}" -rdynamic "${common[@]}" -o "$out/driver-thread" -lm -lpthread -ldl
if pkg-config --exists glib-2.0 2>/dev/null; then
    read -ra glib <<<"$(pkg-config --cflags --libs glib-2.0)"
    "$CC" "${flags[@]}" -DLOOP_GLIB -rdynamic "${common[@]}" -o "$out/driver-glib" "${glib[@]}" -lm -lpthread -ldl
else
    echo 'stallbench: no driver-glib: the headers of GLib are missing' >&2
fi
cp driver.py "$out/driver-python"
for twin in SEASTAR GLOMMIO WATCHDOG; do
    "$CC" "${flags[@]}" -D$twin -shared -fPIC ../plugins/twins.c -o "$out/${twin,,}.so" -lpthread -lrt
done

# sentry_native CHECKOUT: the library without what sends and what catches crashes, which need its submodules or curl.
sentry_native() {
    # A folder that was moved keeps the paths of its first place.
    rm -rf "$out/sentry-native"
    cmake -S "$1" -B "$out/sentry-native" -DSENTRY_BUILD_SHARED_LIBS=OFF -DSENTRY_BACKEND=none -DSENTRY_TRANSPORT=none \
        -DSENTRY_BUILD_TESTS=OFF -DSENTRY_BUILD_EXAMPLES=OFF &&
        cmake --build "$out/sentry-native" --target sentry --parallel 2 &&
        "$CC" "${flags[@]}" -shared -fPIC -DSENTRY_BUILD_STATIC -isystem "$1/include" ../plugins/sentry-native.c \
            -o "$out/sentry-native.so" "$out/sentry-native/libsentry.a" \
            "$(find "$out/sentry-native" -name libunwind.a)" -Wl,--exclude-libs,ALL -lpthread -lrt -ldl
}
# swift_profile_recorder CHECKOUT: its sampler, which is C alone.
swift_profile_recorder() {
    local sampler=$1/Sources/CProfileRecorderSampler
    "$CC" "${flags[@]}" -fPIC -isystem "$sampler/include" -c ../plugins/swift-profile-recorder.c -o "$out/recorder.o" &&
        "$CC" "${flags[@]}" -w -shared -fPIC "$out/recorder.o" "$sampler"/*.c -o "$out/swift-profile-recorder.so" -lpthread
}
# try FUNCTION CHECKOUT: what does not build gets a row that says so.
try() {
    if [ "$2" ] && ! "$1" "$2" >"$out/$1.log" 2>&1; then
        tail -n 5 "$out/$1.log" >&2
        echo "stallbench: $1 cannot be built; the rest is in $out/$1.log" >&2
    fi
}
rm -f "$out/sentry-native.so" "$out/swift-profile-recorder.so"
try sentry_native "$sentry"
try swift_profile_recorder "$recorder"
if [ "$only_c" ]; then exit; fi
swift=$(dirname -- "$(dirname -- "$(readlink -f -- "$(command -v swiftc || echo /none/none)")")")/lib/swift
if [ -d "$swift/CoreFoundation" ]; then
    objects=()
    for source in "${common[@]}"; do
        objects+=("$out/objects/${source%.c}.o")
        mkdir -p "$out/objects"
        "$CC" "${flags[@]}" -DLOOP_CF -fblocks -isystem "$swift" -c "$source" -o "${objects[-1]}"
    done
    "$CC" -rdynamic "${objects[@]}" -o "$out/driver-cf" -L"$swift/linux" -lFoundation -lBlocksRuntime \
        -Wl,-rpath,"$swift/linux" -lm -lpthread -ldl
    swiftc -O -g -swift-version 6 -import-objc-header bench.h -parse-as-library Cases.swift "${objects[@]}" \
        -Xlinker -export-dynamic -o "$out/driver-swift"
else
    echo 'stallbench: no driver-cf and no driver-swift: there is no Swift toolchain' >&2
fi
