#!/usr/bin/env bash
# Installs the Debian packages that are needed and missing. Says nothing when none is.
#
#   scripts/install-dependencies.sh build     what `make demo` and `make bench` need
#   scripts/install-dependencies.sh test      what `make test` needs
#   scripts/install-dependencies.sh packages  what `make packages` needs
#   scripts/install-dependencies.sh aarch64   what `make test-aarch64` needs
#   scripts/install-dependencies.sh slim      what `make slim` needs
#   scripts/install-dependencies.sh lint      what `make lint` and `make format` need
#
# Exit status (sysexits.h): 0 when everything is there, 64 for a wrong argument, 69 when something is missing and cannot
# be installed here.
set -euo pipefail

readonly unavailable=69

# Each package, and what it is needed for: also what is said where there are no Debian packages.
declare -rA purpose=(
    [libdw-dev]='libdw (elfutils) with its headers: it reads debug information; only its library is loaded, when there is one'
    [debuginfod]='debuginfod (elfutils): the tests ask it for debug files, on the loopback address'
    [libglib2.0-dev]='GLib with its headers: the tests build the example with a GLib loop'
    [gdb]='gdb: the tests compare its stacks with those of StallWatch'
    [python3-jsonschema]='jsonschema for Python 3: it checks reports against the published schema'
    [python3-protobuf]='protobuf for Python 3: it reads exported pprof profiles'
    [python3-pip]='pip for Python 3: it installs the Python packages that Debian does not have'
    [chromium]='Chromium: it opens the page that the tool writes'
    [chromium-driver]='the WebDriver of Chromium: it presses the keys in that page'
    [python3-selenium]='Selenium for Python 3: it tells the driver which'
    [zlib1g-dev]='zlib with its headers: one of the libraries that the test package calls'
    [libcurl4-openssl-dev]='libcurl with its headers: Foundation needs it where it is linked statically'
    [g++-aarch64-linux-gnu]='the C and C++ libraries of aarch64: the tests for that architecture are compiled with them'
    [qemu-system-arm]='qemu-system-aarch64: it emulates a machine that runs them'
    [cpio]='cpio: it packs the files of that machine'
    [debootstrap]='debootstrap: it makes a slim root file system'
    [clang-format]='clang-format 14: it checks and mends the format of the C files'
)
case "${1-}" in
build) packages=(libdw-dev) ;;
test)
    packages=(
        libdw-dev libglib2.0-dev debuginfod gdb python3-jsonschema python3-protobuf python3-pip
        chromium chromium-driver python3-selenium
    )
    ;;
packages) packages=(libdw-dev zlib1g-dev libcurl4-openssl-dev) ;;
aarch64) packages=(libdw-dev g++-aarch64-linux-gnu qemu-system-arm cpio) ;;
slim) packages=(libdw-dev libcurl4-openssl-dev debootstrap) ;;
lint) packages=(clang-format) ;;
*)
    echo "usage: $0 build|test|packages|aarch64|slim|lint" >&2
    exit 64
    ;;
esac

say() { printf '%s\n' "$@" >&2; }

# The packages of "$@" that are not installed, one a line.
missing_of() {
    local package
    for package in "$@"; do
        # More than one line where it is installed for several architectures.
        dpkg-query --show --showformat '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
            echo "$package"
    done
}

# The packages' lists know every one of "$@".
are_listed() {
    local package
    for package in "$@"; do
        apt-cache show "$package" >/dev/null 2>&1 || return 1
    done
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif [ -t 0 ]; then
        sudo "$@"
    else
        # There is nobody who could type a password.
        sudo -n "$@"
    fi
}

# Neither asks questions nor takes a package away to make room; waits for another apt-get that is at work.
apt() {
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get --quiet --yes -o DPkg::Lock::Timeout=120 "$@"
}

install() { apt install --no-install-recommends --no-remove "$@"; }

if ! command -v swift >/dev/null; then
    say 'There is no swift on PATH. Install Swift 6.2 or newer (https://www.swift.org/install/linux) and try again.'
    exit $unavailable
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say 'This is not a Debian system, so nothing is installed for you. What is needed:'
    for package in "${packages[@]}"; do say "  - ${purpose[$package]}"; done
    exit 0
fi

mapfile -t missing < <(missing_of "${packages[@]}")
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

give_up() {
    say "$1 Run this as root, then try again:" "    apt-get update && apt-get install ${missing[*]}"
    exit $unavailable
}

if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
    give_up "Debian packages are missing, and installing them needs root or sudo: ${missing[*]}."
fi

say "Installing Debian packages: ${missing[*]}"
if are_listed "${missing[@]}" && install "${missing[@]}"; then
    :
else
    # The lists are missing, or so old that a package's file is no longer on the mirror.
    { apt update && install "${missing[@]}"; } || give_up "Debian packages could not be installed: ${missing[*]}."
fi

mapfile -t missing < <(missing_of "${missing[@]}")
if [ ${#missing[@]} -ne 0 ]; then give_up "Debian packages are still missing: ${missing[*]}."; fi
