#!/usr/bin/env bash
# Builds the drivers and the plugins as a distribution builds programs (-O2 -g), with frame pointers and exported names.
#
#   driver/build.sh FOLDER   makes FOLDER/driver-glib, driver-thread, driver-cf, driver-swift and the plugins
#
# What cannot be built here (no GLib, no Swift) is left out, with a line that says so.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")"
mkdir -p -- "$1"
out=$(cd -- "$1" && pwd)
CC=${CC:-$(command -v clang || echo cc)}
flags=(-std=gnu17 -O2 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -Wall -Wextra -Werror)
common=(truth.c plan.c cases.c healthy.c helpers.c)

"$CC" "${flags[@]}" -rdynamic "${common[@]}" loop-thread.c -o "$out/driver-thread" -lm -lpthread -ldl
if pkg-config --exists glib-2.0; then
    read -ra glib <<<"$(pkg-config --cflags --libs glib-2.0)"
    "$CC" "${flags[@]}" -rdynamic "${common[@]}" loop-glib.c -o "$out/driver-glib" "${glib[@]}" -lm -lpthread -ldl
else
    echo 'stallbench: no driver-glib: the headers of GLib are missing' >&2
fi
for plugin in ../plugins/*.c; do
    "$CC" "${flags[@]}" -shared -fPIC "$plugin" -o "$out/$(basename "$plugin" .c).so" -lpthread -lrt
done
swift=$(dirname -- "$(dirname -- "$(readlink -f -- "$(command -v swiftc || echo /none/none)")")")/lib/swift
if [ -d "$swift/CoreFoundation" ]; then
    "$CC" "${flags[@]}" -fblocks -rdynamic -isystem "$swift" "${common[@]}" loop-cf.c -o "$out/driver-cf" \
        -L"$swift/linux" -lFoundation -lBlocksRuntime -Wl,-rpath,"$swift/linux" -lm -lpthread -ldl
    mkdir -p "$out/objects"
    for source in "${common[@]}" loop-cf.c; do
        "$CC" "${flags[@]}" -fblocks -isystem "$swift" -c "$source" -o "$out/objects/${source%.c}.o"
    done
    swiftc -O -g -swift-version 6 -import-objc-header bench.h -parse-as-library Cases.swift "$out"/objects/*.o \
        -Xlinker -export-dynamic -o "$out/driver-swift"
else
    echo 'stallbench: no driver-cf and no driver-swift: there is no Swift toolchain' >&2
fi
