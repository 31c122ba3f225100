#!/usr/bin/env bash
# Installs the Debian packages that are needed and missing. Prints nothing if none is missing.
#
#   scripts/install-dependencies.sh PURPOSE
#
# PURPOSE is build, for `make demo` and `make bench`; lint, for `make lint` and `make format`; or the target of make that needs
# them: test, stack-oracle, packages, slim, run-programs, or aarch64 (`make test-aarch64`).
#
# Exit status (sysexits.h): 0 if everything is installed, or the system has no Debian packages; 64 for a wrong argument;
# 69 if a package is missing and cannot be installed.
set -euo pipefail

readonly unavailable=69

# The purpose of each package, also printed on systems without Debian packages.
declare -rA purpose=(
    [libdw-dev]='libdw (elfutils) with its headers: reads debug information; the build needs the headers only'
    [libunwind-dev]='libunwind with its headers: unwinds stacks; the build needs the headers only'
    [debuginfod]='debuginfod (elfutils): serves debug files to the tests, on the loopback address'
    [libglib2.0-dev]='GLib with its headers: the tests build the example with a GLib loop'
    [strace]='strace: the tests compare the system calls of the monitor with SECURITY.md'
    [gdb]='gdb: the tests compare its stacks with those of StallWatch'
    [mold]='mold: a linker, one of those whose programs the stack oracle captures'
    [tmux]='tmux: the terminal in which the tests run the live screen'
    [python3-jsonschema]='jsonschema for Python 3: checks reports against the published schema'
    [python3-protobuf]='protobuf for Python 3: reads exported pprof profiles'
    [python3-pip]='pip for Python 3: installs the Python packages that Debian does not have'
    [jq]='jq: runs the recipes of docs/exports.md'
    [psmisc]='fuser: the tests compare the ends of pipes with what it says'
    [iproute2]='ss: the tests compare the ends of sockets with what it says'
    [chromium]='Chromium: opens the page that the tool writes'
    [chromium-driver]='the WebDriver of Chromium: presses keys in that page'
    [python3-selenium]='Selenium for Python 3: controls the WebDriver'
    [libivykis0]='a library of syslog-ng: the tests send reports with it, unpacked beside the logger of the system'
    [libnet1]='a library of syslog-ng'
    [libpcre3]='a library of syslog-ng'
    [libwrap0]='a library of syslog-ng'
    [zlib1g-dev]='zlib with its headers: one of the libraries that the test package calls'
    [libcurl4-openssl-dev]='libcurl with its headers: Foundation is linked with it statically'
    [g++-aarch64-linux-gnu]='the C and C++ libraries of aarch64: the tests for that architecture are compiled with them'
    [qemu-system-arm]='qemu-system-aarch64: emulates a machine that runs these tests'
    [cpio]='cpio: packs the files of that machine'
    [e2fsprogs]='mke2fs and debugfs: make and read the disk of that machine'
    [debootstrap]='debootstrap: creates a slim root file system'
    [xvfb]='Xvfb: a display for the GTK program'
    [yad]='yad: a GTK program with a main loop'
    [python3-gi]='GObject for Python 3: a GLib main loop in Python'
    [clang-format]='clang-format 14: checks and formats the C files'
)
case "${1-}" in
build) packages=(libdw-dev libunwind-dev) ;;
test)
    packages=(
        libdw-dev libunwind-dev libglib2.0-dev debuginfod strace gdb tmux python3-jsonschema python3-protobuf
        python3-pip chromium chromium-driver python3-selenium jq psmisc iproute2 libivykis0 libnet1 libpcre3 libwrap0
    )
    ;;
stack-oracle) packages=(libdw-dev libunwind-dev gdb mold) ;;
packages) packages=(libdw-dev libunwind-dev zlib1g-dev libcurl4-openssl-dev) ;;
aarch64) packages=(libdw-dev libunwind-dev g++-aarch64-linux-gnu qemu-system-arm cpio debootstrap e2fsprogs) ;;
slim) packages=(libdw-dev libunwind-dev libcurl4-openssl-dev debootstrap) ;;
run-programs) packages=(libdw-dev libunwind-dev libglib2.0-dev xvfb yad python3-gi) ;;
lint) packages=(clang-format) ;;
*)
    echo "usage: $0 build|test|stack-oracle|packages|aarch64|slim|run-programs|lint" >&2
    exit 64
    ;;
esac

say() { printf '%s\n' "$@" >&2; }

# Prints the packages of "$@" that are not installed, one per line.
missing_of() {
    local package
    for package in "$@"; do
        # Prints several lines if the package is installed for several architectures.
        dpkg-query --show --showformat '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
            echo "$package"
    done
}

# Succeeds if the package lists contain every one of "$@".
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
        # Without a terminal, sudo must not ask for a password.
        sudo -n "$@"
    fi
}

# Asks no questions and removes no packages; waits while another apt-get runs.
apt() {
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get --quiet --yes -o DPkg::Lock::Timeout=120 "$@"
}

install() { apt install --no-install-recommends --no-remove "$@"; }

if ! command -v swift >/dev/null; then
    say 'There is no swift on PATH. Install Swift 6.3 or newer (https://www.swift.org/install/linux) and try again.'
    exit $unavailable
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say 'This is not a Debian system, so nothing is installed. Install these yourself:'
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
    # The lists are missing, or so old that the mirror no longer has a package's file.
    { apt update && install "${missing[@]}"; } || give_up "Debian packages could not be installed: ${missing[*]}."
fi

mapfile -t missing < <(missing_of "${missing[@]}")
if [ ${#missing[@]} -ne 0 ]; then give_up "Debian packages are still missing: ${missing[*]}."; fi
