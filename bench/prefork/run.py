#!/usr/bin/env python3
"""Copies of a prefork server on the running kernel, as root.

A master warms a heap in folios of one size, forks workers and has them take connections from one
socket. A page was copied if its frame is another one after the write. The cases are those of
`filemap folio-ops --owners`. With --gunicorn the same heap is that of an application which gunicorn
loads before it forks; each of its workers serves one request, and the master writes at the end. The
settings of folio sizes are restored.

    bench/prefork/run.py [--workers 8] [--mib 4] [--runs 3] [--gunicorn PATH] [64k 2m]
"""

import argparse
import ctypes
import glob
import mmap
import os
import re
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

PAGE = 4096
HUGE = 2 << 20
MADV_HUGEPAGE = 14
SETTINGS = "/sys/kernel/mm/transparent_hugepage"


class Heap:
    """Anonymous memory that begins where a huge page can, with a byte in each page."""

    def __init__(self, size):
        self.map = mmap.mmap(-1, size + HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        self.skip = -start % HUGE
        self.first, self.size = (start + self.skip) // PAGE, size
        self.map.madvise(MADV_HUGEPAGE, self.skip, size)
        self.write(1)

    def write(self, byte):
        for at in range(self.skip, self.skip + self.size, PAGE):
            self.map[at] = byte

    def frames(self):
        with open("/proc/self/pagemap", "rb") as pagemap:
            pagemap.seek(self.first * 8)
            words = struct.unpack(f"{self.size // PAGE}Q", pagemap.read(self.size // PAGE * 8))
        assert all(word >> 63 for word in words), "a page of the heap is not there"
        return [word & ((1 << 55) - 1) for word in words]

    def split_entries(self):
        """Has each page an entry of its own, as mprotect of a part of a huge page leaves it."""
        libc = ctypes.CDLL(None, use_errno=True)
        for page in range(self.first, self.first + self.size // PAGE, HUGE // PAGE):
            for protection in (mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE):
                assert libc.mprotect(ctypes.c_void_p(page * PAGE), PAGE, protection) == 0

    def copied(self, byte):
        """Pages that a write to each of them copied."""
        before = self.frames()
        self.write(byte)
        return sum(old != new for old, new in zip(before, self.frames()))

    def folios(self, pages):
        """Folios of so many pages that it has."""
        frames, found = self.frames(), 0
        with open("/proc/kpageflags", "rb") as flags:
            for at in range(0, len(frames), pages):
                flags.seek(frames[at] * 8)
                words = struct.unpack(f"{pages + 1}Q", flags.read((pages + 1) * 8))
                tails = [word >> 16 & 1 for word in words[1:]]
                found += words[0] >> 15 & 1 and tails == [1] * (pages - 1) + [0]
        return found


def serve(listener, heap, number):
    """A process that takes connections until it is told to leave. It says which one it is."""
    while True:
        connection, _ = listener.accept()
        connection.sendall(bytes([number]))
        while line := connection.recv(16):
            if line == b"write":
                connection.sendall(str(heap.copied(2)).encode())
            elif line == b"leave":
                os._exit(0)


def master(path, workers, size, folio, huge_entries, ready):
    heap = Heap(size)
    found = heap.folios(folio // PAGE)
    if not huge_entries:
        heap.split_entries()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen(64)
    own = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    own.bind(path + ".master")
    own.listen(64)
    for number in range(1, workers + 1):
        if os.fork() == 0:
            own.close()
            serve(listener, heap, number)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    os.write(ready, struct.pack("I", found))
    serve(own, heap, 0)


class Server:
    def __init__(self, args, folio, huge_entries):
        self.directory = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.directory.name, "socket")
        ready, tell = os.pipe()
        if os.fork() == 0:
            try:
                master(self.path, args.workers, args.mib << 20, folio, huge_entries, tell)
            finally:
                os._exit(1)
        os.close(tell)
        found = os.read(ready, 4)
        os.close(ready)
        self.given = struct.unpack("I", found)[0] if found else 0
        _, self.master = self.connect(".master")
        # Each connection keeps one worker to itself. They are in the order of their forks.
        self.workers = [worker for _, worker in sorted(
            (self.connect() for _ in range(args.workers)), key=lambda own: own[0])]

    def connect(self, suffix=""):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(self.path + suffix)
        return connection.recv(1)[0], connection

    def end(self):
        for connection in [self.master, *self.workers]:
            leave(connection)
        self.directory.cleanup()


def write(connection):
    connection.sendall(b"write")
    return int(connection.recv(16))


def leave(connection):
    """Has the process leave, and waits until it is gone with its memory."""
    try:
        connection.sendall(b"leave")
        while connection.recv(16):
            pass
    except OSError:
        pass


def serving(server):
    return sum(write(worker) for worker in server.workers)


def reloaded(server):
    for worker in server.workers:
        leave(worker)
    return write(server.master)


def drained(server):
    leave(server.master)
    copied = 0
    for worker in server.workers:
        copied += write(worker)
        leave(worker)
    return copied


def reforked(server):
    *others, last = server.workers
    for old in [server.master, *others]:
        leave(old)
    return write(last)


def select(folio):
    """Only folios of this size, for memory that asks for them."""
    for path in glob.glob(f"{SETTINGS}/hugepages-*kB/enabled"):
        kib = int(re.search(r"hugepages-(\d+)kB", path)[1])
        put(path, "madvise" if kib << 10 == folio else "never")


def put(path, word):
    with open(path, "w") as file:
        file.write(word)


def chosen(path):
    with open(path) as file:
        return re.search(r"\[(\w+)\]", file.read())[1]


def measure(args, folio, huge_entries):
    for case in (serving, reloaded, drained, reforked):
        figures = []
        for _ in range(args.runs):
            server = Server(args, folio, huge_entries)
            if server.given * folio != args.mib << 20:
                sys.exit(f"{server.given} folios of {folio} bytes were given; free memory")
            figures.append(case(server))
            server.end()
        entries = "huge entry" if huge_entries else "entries of pages"
        spread = f"{statistics.median(figures):.0f} ({min(figures)} to {max(figures)})"
        print(f"{case.__name__:10} {folio >> 10:5} KiB, {entries:16} {spread}", flush=True)


def under_gunicorn(args, folio):
    """What workers copy that serve one request each, and then the master."""
    here = os.path.dirname(os.path.abspath(__file__))
    environment = {**os.environ, "FOLIO": str(folio), "WORKERS": str(args.workers)}
    environment |= {"MIB": str(args.mib), "PYTHONDONTWRITEBYTECODE": "1"}
    settings = os.path.join(here, "gunicorn_app.py")
    command = [args.gunicorn, "--chdir", here, "-c", settings, "gunicorn_app:application"]
    server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        folios = int(server.stdout.readline())
        if folios * folio != args.mib << 20:
            sys.exit(f"{folios} folios of {folio} bytes were given; free memory")
        copied = [request() for _ in range(3 * args.workers)]
        server.terminate()
        master = int(server.stdout.readline())
        print(f"gunicorn   {folio >> 10:5} KiB, {len(copied)} workers {min(copied)} to "
              f"{max(copied)} each, master {master}", flush=True)
    finally:
        server.terminate()
        server.wait(30)


def request():
    """The answer of a worker, as soon as there is one that listens."""
    for _ in range(300):
        try:
            return int(urllib.request.urlopen("http://127.0.0.1:8765/").read())
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    sys.exit("gunicorn does not answer on port 8765 of 127.0.0.1")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--mib", type=int, default=4)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--gunicorn")
    parser.add_argument("sizes", nargs="*", default=["64k", "2m"])
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    paths = [f"{SETTINGS}/enabled", *glob.glob(f"{SETTINGS}/hugepages-*kB/enabled")]
    before = {path: chosen(path) for path in paths}
    try:
        put(f"{SETTINGS}/enabled", "madvise")
        for size in args.sizes:
            folio = int(size[:-1]) << {"k": 10, "m": 20}[size[-1]]
            select(folio)
            if args.gunicorn:
                under_gunicorn(args, folio)
                continue
            measure(args, folio, False)
            if folio == HUGE:
                measure(args, folio, True)
    finally:
        for path, word in before.items():
            put(path, word)


if __name__ == "__main__":
    main()
