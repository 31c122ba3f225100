#!/usr/bin/env bash
# Runs the scenarios and the unit tests on aarch64, lets the monitor prove itself, and prints a row for docs/Support.md.
#
#   Tests/aarch64/swift.sh [scenario options...]
#
# Cross-compiles them with the Swift of Debian's unstable release, whose arm64 packages are the system root, and boots the
# kernel of Tests/aarch64/run.sh, which has to run before, with these packages' libraries. An emulated processor takes
# some ten to forty times as long, so the scenarios' threshold, and with it every stall, is SLOW (4) times the usual one, and
# some unit tests are left out. 40 minutes on two CPUs without other work: beside it, the machine is too slow and misses
# stalls.
#
# Needs what scripts/debian-root.sh and Tests/aarch64/run.sh need. DEBIAN_ROOT is the folder of the root,
# .build-debian/root by default.
#
# Exit status: 0 if all is right, except what is listed below, and the monitor proves itself; 1 if not; 69, with one
# sentence, if the root cannot be made.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."

# What may be wrong there, with the reason in docs/Support.md.
readonly may_be_wrong=(paging fsync file-read file-write file-lock flock-of-child tail-calls spinning-descriptor spinning-block
    owner-computing-later deadlock-two cooperative-pool-blocked mode-switch mode-switch-back mode-switch-idle saturated
    saturated-by-tasks mutex-inheriting-sleeping sigstop)
readonly unit_tests='^(LinuxSupport|StallReports|StallSymbols|StackCapture|StallWatch)Tests\.'
# What needs Python or a compiler, what makes a million rounds, and what is too slow there: a search that may take 50 ms, and
# heartbeats that must not be late.
readonly left_out='ReportSchemaTests|randomWordsNeverHaveAnOwner'\
'|both ends of a pipe are found|an idle loop is learned'
# The longest times of one build and of the machine, in seconds.
readonly longest_build=3600 longest_run=5400

root=${DEBIAN_ROOT:-$PWD/.build-debian/root}
kernel=$PWD/.build/aarch64/debian
work=$root.aarch64
status=0
fail() {
    echo "FAILED: $*" >&2
    status=1
}

scripts/debian-root.sh make "$root"
scripts/debian-root.sh sdk "$root"
Tests/Programs/debian-sources.sh "$root"
rm -rf "$work" && mkdir -p "$work"/{machine,initrd}

# The C tables again, with the C library of that release, which makes calls in another way.
LIBRARIES=$root/arm64/usr/lib/aarch64-linux-gnu Tests/aarch64/run.sh || fail 'C tables fail'

# ---- Build ----------------------------------------------------------------------------------------------------------

built=/StallWatch/.build-aarch64
# build SUFFIX OPTION...: builds in a folder of its own. An emulated processor takes 40 times as long for an unwind.
build() {
    echo "Building for aarch64: ${*:2}"
    timeout --signal=KILL $longest_build scripts/debian-root.sh run "$root" swift build --package-path /StallWatch \
        --scratch-path "$built-$1" --swift-sdks-path /sdks --swift-sdk aarch64 \
        -Xcc -DCUNWIND_UNWIND_NANOSECONDS=2000000000ull "${@:2}" >"$work/build" 2>&1 && return
    grep -E 'error:' "$work/build" | sort -u | head -20 >&2 || tail -5 "$work/build" >&2
    fail 'the build fails'
    exit $status
}
# Without the traits' packages: a program of twice the size takes so long to look up that stalls are missed meanwhile.
build scenarios --product stallwatch-scenarios
build scenarios --product stallwatch-test-host
# The package has this module without its library. Nothing of it is used, but the tests are linked with it.
mkdir -p "$root/stub" && ar rc "$root/stub/lib_Testing_Foundation.a"
build tests --build-tests --enable-all-traits -Xlinker -L/stub

# ---- Boot -----------------------------------------------------------------------------------------------------------

# The machine's disk: the libraries, the programs and the sources.
machine=$work/machine programs=aarch64-unknown-linux-gnu/debug
mkdir -p "$machine"/{proc,sys,dev,tmp,out,root,run}
tar --create --directory "$root/arm64" --exclude='*.a' --exclude='*.swiftmodule' --exclude='*/swift_static/*' \
    --exclude='*/gconv' --exclude='*/lib/gcc/*' --exclude='*/include' \
    --exclude='*/swift/lib/lib*' bin lib etc usr | tar --extract --directory "$machine"
# The programs look for Swift's libraries in the SDK, and then where the system's are.
(cd "$machine/usr/lib/aarch64-linux-gnu" && ln -s ../../libexec/swift/lib/swift/linux/lib*.so .)
(cd "$root" && tar --create StallWatch/{Package.swift,Sources,Tests,Schemas,docs} \
    "${built#/}-scenarios/$programs"/stallwatch-{scenarios,test-host} \
    "${built#/}-tests/$programs"/{StallWatchPackageTests.xctest,*-host,*.so}) | tar --extract --directory "$machine"
echo 'root:x:0:0:root:/root:/bin/sh' >"$machine/etc/passwd"
echo '127.0.0.1 localhost' >"$machine/etc/hosts"
cat >"$machine/start" <<RUN
mount -t proc proc /proc && mount -t sysfs sys /sys && mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts && mount -t tmpfs shm /dev/shm && mount -t devpts devpts /dev/pts
mount -t cgroup2 cgroup /sys/fs/cgroup && echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
ip link set lo up
export HOME=/root LANG=C.UTF-8 STALLWATCH_UNWINDER=${STALLWATCH_UNWINDER-}
cd $built-scenarios/$programs
./stallwatch-scenarios --threshold $((250 * ${SLOW:-4}))ms --output /out/stalls --summary /out/scenarios.json ${*@Q} \
    >/out/scenarios 2>&1
cd $built-tests/$programs
./StallWatchPackageTests.xctest --testing-library swift-testing --no-parallel --filter '$unit_tests' --skip '$left_out' \
    >/out/tests 2>&1
cd $built-scenarios/$programs
PROOF_ATTEMPTS=5 SETTLE_SECONDS=300 timeout -s KILL 600 ./stallwatch-test-host main-stalls /tmp \
    $((50 * ${SLOW:-4})) $((200 * ${SLOW:-4})) stallwatch-test-host >/out/proof 2>&1
printf '\nexit %d\n' \$? >>/out/proof
sync
RUN
truncate --size 4G "$work/disk"
/sbin/mke2fs -q -t ext4 -d "$machine" "$work/disk"

# Debian's kernel has the drivers of that disk as modules.
initrd=$work/initrd
mkdir -p "$initrd"/{bin,proc,dev,disk}
cp "$machine/usr/bin/busybox" "$initrd/bin/"
modules=(virtio_mmio virtio_blk crc16 mbcache jbd2 crc32c_generic ext4 unix_diag)
for module in "${modules[@]}"; do cp "$(find "$kernel/" -name "$module.ko")" "$initrd/"; done
cat >"$initrd/init" <<INIT
#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox --install -s /bin
mount -t devtmpfs dev /dev
for module in ${modules[*]}; do insmod /\$module.ko; done
until [ -e /dev/vda ]; do sleep 1; done
mount -t ext4 -o noatime /dev/vda /disk
chroot /disk /bin/busybox --install -s /bin
chroot /disk /bin/sh /start
mount -o remount,ro /disk
poweroff -f
INIT
chmod +x "$initrd/init"
(cd "$initrd" && find . | cpio --create --format newc --quiet | gzip -1) >"$work/initrd.gz"
echo 'Running in the emulated machine: half an hour.'
timeout $longest_run qemu-system-aarch64 -M virt -cpu max -smp 2 -m 4096 -display none -monitor none -nic none -no-reboot \
    -serial "file:$work/console" -kernel "$kernel"/boot/vmlinuz-* -initrd "$work/initrd.gz" \
    -append 'console=ttyAMA0 rdinit=/init panic=-1 quiet' \
    -drive "if=none,id=disk,file=$work/disk,format=raw,cache=unsafe" -device virtio-blk-device,drive=disk ||
    fail "the machine did not end within $longest_run s"
/sbin/debugfs -R "rdump /out $work" "$work/disk" 2>/dev/null

# ---- Count ----------------------------------------------------------------------------------------------------------

if [ ! -s "$work/out/scenarios.json" ]; then
    tail -5 "$work/out/scenarios" "$work/console" >&2
    fail 'the scenarios did not run'
    exit $status
fi
Tests/Programs/count-scenarios.py "$work/out/scenarios.json" aarch64 "${may_be_wrong[@]}" | tee "$work/counts" ||
    fail 'the scenarios have wrong results'
# Emulated, a stall may end before the watchdog comes.
Tests/Programs/judge-proof.py aarch64 0 <"$work/out/proof" || fail 'the monitor does not prove itself'
grep -E '^✘ Test .* failed' "$work/out/tests" | tail -40 && fail 'unit tests fail'
tests=$(grep -oE 'Test run with .*' "$work/out/tests" | tail -1) || fail 'no unit test has run'
version=$(scripts/debian-root.sh run "$root" swift --version 2>/dev/null | grep -oE 'Swift version [0-9.]+' | head -1)
glibc=$(scripts/debian-root.sh run "$root" ldd --version | head -1 | grep -oE '[0-9.]+$')
linux=$(basename -- "$kernel"/boot/vmlinuz-*)
echo
echo "| ${version#Swift version } of Debian's unstable release | glibc $glibc, Linux ${linux#vmlinuz-}, emulated |" \
    "aarch64 | $(head -1 "$work/counts"); unit tests: ${tests:-none} |"
exit $status
