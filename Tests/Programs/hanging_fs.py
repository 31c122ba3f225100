#!/usr/bin/env python3
"""Serves a folder's files read-only through FUSE, and stops to answer for a while now and then.

    Tests/Programs/hanging_fs.py MOUNT_POINT FOLDER SECONDS

Speaks the kernel's protocol over /dev/fuse (linux/fuse.h), so it needs root and no library. Every name is looked up anew, so
that each open(2) waits while it hangs: for SECONDS, from a request on that comes 5 to 20 seconds after the last hang. Prints
`mounted`, and a line when it begins and ends to hang. Ends with its parent, or when it is unmounted.
"""

import ctypes
import errno
import os
import pathlib
import random
import signal
import struct
import sys
import time

MS_RDONLY, MS_NOSUID, MS_NODEV = 1, 2, 4
PR_SET_PDEATHSIG = 1
LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT = 1, 2, 3, 14, 15, 17, 18, 25, 26
OPENDIR, READDIR, RELEASEDIR, INTERRUPT, DESTROY, BATCH_FORGET = 27, 28, 29, 36, 38, 42
UNANSWERED = {FORGET, INTERRUPT, BATCH_FORGET}
ROOT = 1
PAUSE = (5, 20)
# The kernel asks for 128 KiB at most, and wants a buffer for what it could write.
BUFFER_BYTES = 1 << 20

libc = ctypes.CDLL(None, use_errno=True)


def mount(source, target, kind, flags, options):
    encoded = [text and os.fsencode(text) for text in (source, target, kind)]
    if libc.mount(*encoded, ctypes.c_ulong(flags), options and options.encode()) != 0:
        raise OSError(ctypes.get_errno(), f"mount of {target}: {os.strerror(ctypes.get_errno())}")


def attributes(node, status):
    return struct.pack(
        "<6Q10I", node, status.st_size, status.st_blocks, int(status.st_atime), int(status.st_mtime), int(status.st_ctime),
        0, 0, 0, status.st_mode, status.st_nlink, 0, 0, 0, 4096, 0)


class FileSystem:
    def __init__(self, folder):
        self.paths = {ROOT: folder}
        for number, path in enumerate(sorted(folder.iterdir()), ROOT + 1):
            self.paths[number] = path
        self.nodes = {os.fsencode(path.name): node for node, path in self.paths.items() if node != ROOT}

    def answer(self, operation, node, body):
        """Returns what the kernel gets; raises OSError for an error number."""
        if operation == INIT:
            read_ahead = struct.unpack_from("<I", body, 8)[0]
            return struct.pack("<4I2H2I2H8I", 7, 31, read_ahead, 0, 12, 9, 65536, 1, 0, 0, *[0] * 8)
        if operation == LOOKUP:
            node = self.nodes.get(body.rstrip(b"\0"))
            if node is None:
                raise OSError(errno.ENOENT, "")
            return struct.pack("<4Q2I", node, 0, 0, 0, 0, 0) + attributes(node, self.paths[node].stat())
        if operation == GETATTR:
            return struct.pack("<Q2I", 0, 0, 0) + attributes(node, self.paths[node].stat())
        if operation in (OPEN, OPENDIR):
            return struct.pack("<Q2I", 0, 0, 0)
        if operation in (READ, READDIR):
            _, offset, size = struct.unpack_from("<2QI", body)
            return self.read(node, offset, size) if operation == READ else self.list(offset, size)
        if operation == STATFS:
            return struct.pack("<5Q10I", 0, 0, 0, 0, 0, 4096, 255, 4096, *[0] * 7)
        if operation in (RELEASE, FLUSH, RELEASEDIR, DESTROY):
            return b""
        raise OSError(errno.ENOSYS, "")

    def read(self, node, offset, size):
        with open(self.paths[node], "rb") as file:
            return os.pread(file.fileno(), size, offset)

    def list(self, offset, size):
        entries = b""
        for number, (name, node) in enumerate(list(self.nodes.items())[offset:], offset + 1):
            entry = struct.pack("<2Q2I", node, number, len(name), 0) + name
            entry += b"\0" * (-len(entry) % 8)
            if len(entries) + len(entry) > size:
                break
            entries += entry
        return entries


def serve(device, file_system, seconds):
    hangs_at = time.monotonic() + random.uniform(*PAUSE)
    while True:
        try:
            request = os.read(device, BUFFER_BYTES)
        except OSError as error:
            # A request was interrupted before it was read.
            if error.errno in (errno.ENOENT, errno.EINTR, errno.EAGAIN):
                continue
            if error.errno == errno.ENODEV:
                return
            raise
        _, operation, unique, node = struct.unpack_from("<2I2Q", request)
        if operation in UNANSWERED:
            continue
        if time.monotonic() >= hangs_at and operation != INIT:
            print("hangs", flush=True)
            time.sleep(seconds)
            print("goes on", flush=True)
            hangs_at = time.monotonic() + random.uniform(*PAUSE)
        try:
            error, data = 0, file_system.answer(operation, node, request[40:])
        except OSError as failure:
            error, data = -failure.errno, b""
        try:
            os.write(device, struct.pack("<IiQ", 16 + len(data), error, unique) + data)
        except OSError as failure:
            # The program that asked has been killed.
            if failure.errno != errno.ENOENT:
                raise


def main(point, folder, seconds):
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
    mount("hanging_fs", point, "fuse.hanging_fs", MS_RDONLY | MS_NOSUID | MS_NODEV, options)
    print("mounted", flush=True)
    serve(device, FileSystem(pathlib.Path(folder)), float(seconds))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
