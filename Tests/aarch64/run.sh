#!/usr/bin/env bash
# Runs the C engine's checks on aarch64: cross-compiles them, and boots a Debian kernel under qemu-system-aarch64 with
# the program as its first process.
#
#   Tests/aarch64/run.sh [build directory]
#
# LIBRARIES is the folder of the C libraries, of those that the program is compiled with by default: a newer glibc makes
# its calls in another way.
#
# Needs what `scripts/install-dependencies.sh aarch64` installs, Swift's clang, and at the first run the network: the
# kernel and the libraries of libdw and libunwind are Debian's arm64 packages, unpacked in the build directory and not
# installed. An emulated program cannot use ptrace under qemu-user, so the whole machine is emulated: once with
# a processor that signs return addresses, and once without.
#
# Exit status: 0 if every check passed, 1 if not, 69 if the packages cannot be downloaded, 70 if the machine did not
# end by itself.
set -euo pipefail

readonly unavailable=69 no_result=70
# The machine ends itself after about a minute and a half.
readonly seconds=300
readonly target=aarch64-linux-gnu

cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."
mkdir -p "${1-.build/aarch64}"
build=$(cd -- "${1-.build/aarch64}" && pwd)
# Objects of files that are gone would be linked, too.
rm -rf "$build/objects"
mkdir -p "$build"/{objects,packages,debian}

say() { printf '%s\n' "$@" >&2; }

# apt-get with lists and a cache of its own, for another architecture. Needs no root and changes nothing outside.
apt() {
    local tool=$1 state=$build/apt
    shift
    mkdir -p "$state"/{lists,cache}/partial
    "$tool" --quiet -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::Lists="$state/lists" \
        -o Dir::State::status=/dev/null -o Dir::Cache="$state/cache" -o APT::Sandbox::User=root "$@"
}

download() {
    local kernel
    # With ||, because a function that is called in a condition goes on after a failure.
    apt apt-get update >/dev/null || return
    kernel=$(apt apt-cache depends linux-image-arm64 | grep -oE 'linux-image-[0-9][^ ]*-arm64' | head -1) || return
    (cd "$build/packages" && apt apt-get download "$kernel" libdw1 libelf1 zlib1g liblzma5 libbz2-1.0 libunwind8 \
        libunwind-dev >/dev/null) || return
    for package in "$build"/packages/*.deb; do dpkg-deb --extract "$package" "$build/debian" || return; done
    touch "$build/debian/complete"
}

if [ ! -e "$build/debian/complete" ]; then
    say 'Downloading a kernel and libraries for arm64 (90 MB).'
    download || { say 'The arm64 packages cannot be downloaded. Try again with the network.' && exit $unavailable; }
fi

# ---- Compile --------------------------------------------------------------------------------------------------------

# Swift's compiler, so that the code is what a Swift package gets; libdw's headers are the same on each architecture.
clang=$(dirname -- "$(readlink -f -- "$(command -v swift)")")/clang
[ -x "$clang" ] || clang=clang
includes=(-ISources/CUnwind{,/include} -ISources/{CSymbols,CLinux}/include -ITests/CUnwindTestSupport{,/include})
headers=$build/headers
mkdir -p "$headers" && ln -sfn /usr/include/{elfutils,dwarf.h,libelf.h,gelf.h} "$headers/" &&
    ln -sfn "$build"/debian/usr/include/aarch64-linux-gnu/libunwind*.h "$headers/"

find Sources/{CUnwind,CSymbols,CLinux/room.c} Tests/{CUnwindTestSupport,aarch64} \( -name '*.c' -o -name '*.cpp' \) -print0 |
    CLANG=$clang xargs -0 -P "$(nproc)" -I '{}' sh -c '
        object=$0/objects/$(echo "$1" | tr / _).o
        # The engine as in a release build; the tests know the frames of a debug build.
        case $1 in Tests/*) level=-O0 ;; *) level=-O2 ;; esac
        # An emulated processor takes 40 times as long.
        case $1 in *.c) set -- "$@" -std=gnu11 -DCUNWIND_UNWIND_NANOSECONDS=2000000000ull ;; esac
        source=$1
        shift 2
        exec "$CLANG" --target='$target' $level -g -Wall -Wextra -Werror -fno-omit-frame-pointer "$@" -c "$source" -o "$object"' \
        "$build" '{}' -- "${includes[@]}" "-I$headers"
machine=$build/machine
rm -rf "$machine" && mkdir -p "$machine"/{lib,proc,sys,dev,tmp}
"$clang" --target=$target -fuse-ld=lld -pie -rdynamic -o "$machine/init" "$build"/objects/*.o -lstdc++ -ldl -lpthread

# ---- Boot -----------------------------------------------------------------------------------------------------------

for name in ld-linux-aarch64.so.1 libc.so.6 libm.so.6 libgcc_s.so.1 libstdc++.so.6 libanl.so.1 libBrokenLocale.so.1 \
    libthread_db.so.1 libdl.so.2 libpthread.so.0; do
    cp -L "${LIBRARIES:-/usr/$target/lib}/$name" "$machine/lib/"
done
for name in libdw.so.1 libelf.so.1 libz.so.1 liblzma.so.5 libbz2.so.1.0 libunwind.so.8 libunwind-aarch64.so.8; do
    cp -L "$(find "$build/debian" -name "$name" | head -1)" "$machine/lib/"
done
(cd "$machine" && find . | cpio --create --format newc --quiet | gzip -1) >"$build/machine.gz"
log=$build/console.log
boot() {
    rm -f "$log"
    timeout "$seconds" qemu-system-aarch64 -M virt -cpu "$1" -smp 2 -m 1024 -display none -monitor none -nic none \
        -no-reboot -serial "file:$log" -kernel "$build"/debian/boot/vmlinuz-* -initrd "$build/machine.gz" \
        -append 'console=ttyAMA0 rdinit=/init panic=-1 quiet' &
    wait $! || say "The machine did not end within $seconds s."
    tr -d '\r' <"$log"
    status=$(tr -d '\r' <"$log" | sed -n 's/^exit status \([0-9]*\)$/\1/p' | tail -1)
    return "${status:-$no_result}"
}

for processor in cortex-a72 max; do
    status=0
    boot "$processor" || status=$?
    [ "$status" -eq 0 ] || exit "$status"
done
