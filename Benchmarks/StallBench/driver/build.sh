#!/usr/bin/env bash
# Builds the drivers and the plugins as a distribution builds programs (-O2 -g), with frame pointers and exported names.
#
#   driver/build.sh FOLDER            makes FOLDER/driver-glib, driver-thread, driver-cf, driver-swift and the twins
#   driver/build.sh FOLDER --only-c   without CoreFoundation and Swift
#
# What cannot be built here (no GLib, no Swift) is left out, with a line that says so.
set -euo pipefail
mkdir -p -- "$1"
out=$(cd -- "$1" && pwd)
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
if [ "${2-}" = --only-c ]; then exit; fi
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
