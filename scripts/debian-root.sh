#!/usr/bin/env bash
# A root file system of Debian's unstable release, with the Swift and the C library of that release.
#
#   scripts/debian-root.sh make ROOT              makes it if it is missing: three minutes, 1 GB of downloads, 4.5 GB
#   scripts/debian-root.sh sdk ROOT               adds a Swift SDK for aarch64, /sdks, if it is missing: a minute, 0.5 GB of
#                                                 downloads, 2 GB; /arm64 there is its system root
#   scripts/debian-root.sh run ROOT COMMAND...    runs a command in it
#
# Needs root, debootstrap and the network. The mirror is DEBIAN_MIRROR, or the one that this machine's apt uses. All mounts
# are in a namespace of the command's own, so they vanish with it, however it ends.
#
# Exit status: 0 if the root is there, or that of the command; 64 for wrong arguments; 69, with one sentence, if the root
# cannot be made: not root, no debootstrap, no mirror, no space. A root that is only half made is removed.
set -euo pipefail

readonly usage=64 unavailable=69
# What the root, its package files and two builds take, in MB.
readonly space=8000
# g++ brings the C++ headers, which the compiler's package does not.
readonly packages=(
    swiftlang libswiftlang libdw-dev libunwind-dev libcurl4-openssl-dev libglib2.0-dev libc6-dev g++ make git procps
    python3-jsonschema libpng16-16t64
)

# What a program for arm64 is compiled and runs with. NAME-VERSION stands for the version of the root's compiler.
readonly foreign=(
    libswiftlang libdw-dev libunwind-dev libcurl4-openssl-dev libglib2.0-0t64 libc6-dev libstdc++-VERSION-dev
    busybox-static
)

refuse() {
    printf '%s\n' "$1" >&2
    exit $unavailable
}

# run ROOT COMMAND...: runs a command in the root, with processes of its own, and /dev and /sys of the machine.
run() {
    # shellcheck disable=SC2016 # The inner shell expands them.
    unshare --mount --pid --fork --kill-child bash -euc '
        mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && mount --rbind /sys "$0/sys"
        # Debian has no /usr/bin/swift, because another package has that name.
        exec chroot "$0" env -i HOME=/root LANG=C.UTF-8 TERM=dumb DEBIAN_FRONTEND=noninteractive \
            SWIFT_DETERMINISTIC_HASHING=1 ${STALLWATCH_UNWINDER:+STALLWATCH_UNWINDER="$STALLWATCH_UNWINDER"} \
            PATH=/usr/libexec/swift/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"' "$@"
}

# fill ROOT MIRROR: unpacks the release and installs the packages.
fill() {
    unshare --mount --pid --fork --kill-child --mount-proc \
        debootstrap --variant=minbase --include=ca-certificates sid "$1" "$2" &&
        cp /etc/resolv.conf "$1/etc/resolv.conf" &&
        echo "deb $2 sid main" >"$1/etc/apt/sources.list" &&
        # The release file of a mirror that stands still expires.
        run "$1" apt-get --quiet -o Acquire::Check-Valid-Until=false update &&
        run "$1" apt-get --quiet --yes --no-install-recommends install "${packages[@]}" &&
        run "$1" apt-get clean
}

make_root() {
    local root=$1 mirror=${DEBIAN_MIRROR-} free
    [ -e "$root/complete" ] && exit 0
    [ "$(id -u)" -eq 0 ] || refuse 'Only root can make and enter a root file system: run this with sudo.'
    command -v debootstrap >/dev/null || refuse 'There is no debootstrap: install the package debootstrap.'
    # Not the security updates, which have no unstable release.
    [ -n "$mirror" ] || mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' \
        2>/dev/null | head -n 1) || true
    [ -n "$mirror" ] || refuse "This machine's apt knows no mirror of Debian: set DEBIAN_MIRROR to the address of one."
    # An unfinished root has its log beside it. Another folder is not removed.
    if { compgen -G "$root/*" || compgen -G "$root/.[!.]*"; } >/dev/null && [ ! -e "$root.log" ]; then
        refuse "$root is not empty and no root of this script: name another folder, or empty it."
    fi
    mkdir -p "$(dirname -- "$root")"
    free=$(df --output=avail --block-size=1MB "$(dirname -- "$root")" | tail -n 1)
    [ "$free" -ge $space ] ||
        refuse "The file system of $root has $((free)) MB left, and a root with its builds needs $space MB: free some."
    rm -rf --one-file-system "$root"
    echo "Making a root file system of Debian's unstable release in $root (three minutes)." >&2
    if ! fill "$root" "$mirror" >"$root.log" 2>&1; then
        rm -rf --one-file-system "$root"
        refuse "The root file system cannot be made, and $root.log says why: $(tail -n 1 "$root.log")"
    fi
    touch "$root/complete"
}

# fill_sdk ROOT: unpacks the arm64 packages, of which nothing is installed, and describes them as a Swift SDK.
fill_sdk() {
    local store=/arm64.packages version
    local apt=(
        apt-get --quiet --yes --no-install-recommends -o APT::Architecture=arm64 -o APT::Architectures=arm64
        -o "Dir::State=$store" -o "Dir::Cache=$store" -o Dir::State::status=/dev/null
        -o APT::Sandbox::User=root -o Acquire::Check-Valid-Until=false
    )
    rm -rf --one-file-system "$1"/{arm64,sdks,$store} &&
        mkdir -p "$1/$store"/{lists,archives}/partial "$1/arm64/usr/"{lib,bin} "$1/sdks/aarch64.artifactbundle/sdk" &&
        version=$(run "$1" g++ -dumpversion) &&
        run "$1" "${apt[@]}" update &&
        run "$1" "${apt[@]}" --download-only install "${foreign[@]/VERSION/$version}" &&
        # Of the compiler itself only the modules and headers, so not what it depends on.
        run "$1" sh -c 'cd "$0/archives" && "$@"' $store "${apt[@]}" download swiftlang &&
        ln -s usr/lib usr/bin "$1/arm64" &&
        # shellcheck disable=SC2016 # The inner shell expands them.
        run "$1" sh -euc 'for package in "$0"/archives/*.deb; do
            dpkg-deb --fsys-tarfile "$package" | tar --extract --directory /arm64 --keep-directory-symlink \
                --exclude "./usr/libexec/swift/bin/*" --exclude "*/swift/host/*" --exclude "./usr/share/*"
        done' $store &&
        # The compiler looks for the static libraries here, and the package has this link for the dynamic ones only.
        ln -s ../libexec/swift/lib/swift_static "$1/arm64/usr/lib/swift_static" &&
        ln -s /arm64 "$1/sdks/aarch64.artifactbundle/sdk/root" || return
    rm -rf --one-file-system "${1:?}/$store"
    cat >"$1/sdks/aarch64.artifactbundle/info.json" <<'INFO'
{"schemaVersion": "1.0", "artifacts": {"aarch64": {
  "type": "swiftSDK", "version": "1.0",
  "variants": [{"path": "sdk", "supportedTriples": ["x86_64-unknown-linux-gnu", "x86_64-pc-linux-gnu"]}]
}}}
INFO
    cat >"$1/sdks/aarch64.artifactbundle/sdk/swift-sdk.json" <<'SDK'
{"schemaVersion": "4.0", "targetTriples": {"aarch64-unknown-linux-gnu": {
  "sdkRootPath": "root",
  "swiftResourcesPath": "root/usr/libexec/swift/lib/swift",
  "swiftStaticResourcesPath": "root/usr/libexec/swift/lib/swift_static",
  "toolsetPaths": ["toolset.json"]
}}}
SDK
    # As the package manager's own flags for the machine that it runs on.
    cat >"$1/sdks/aarch64.artifactbundle/sdk/toolset.json" <<'TOOLS'
{"schemaVersion": "1.0", "swiftCompiler": {"extraCLIOptions": ["-use-ld=lld"]},
  "cCompiler": {"extraCLIOptions": ["-fPIC"]}, "cxxCompiler": {"extraCLIOptions": ["-fPIC"]}}
TOOLS
}

make_sdk() {
    local root=$1
    [ -e "$root/complete" ] || refuse "There is no root file system in $root: make it first."
    [ -e "$root/sdks/complete" ] && exit 0
    echo "Making a Swift SDK for aarch64 in $root/sdks (a minute)." >&2
    if ! fill_sdk "$root" >"$root.sdk.log" 2>&1; then
        rm -rf --one-file-system "$root"/{arm64,arm64.packages,sdks}
        refuse "The Swift SDK cannot be made, and $root.sdk.log says why: $(tail -n 1 "$root.sdk.log")"
    fi
    touch "$root/sdks/complete"
}

case "${1-} $#" in
'make 2') make_root "$2" ;;
'sdk 2') make_sdk "$2" ;;
'run '[3-9]* | 'run '[1-9][0-9]*)
    shift
    run "$@"
    ;;
*)
    echo "usage: $0 make ROOT | sdk ROOT | run ROOT COMMAND..." >&2
    exit $usage
    ;;
esac
