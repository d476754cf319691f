#!/usr/bin/env python3
"""Measures cold starts of large programs: plain, and under `filemap govern --prefetch`.

To be run as root in a mount namespace of its own: unshare -m bench/startup/run.py ... The trees
that the programs read are copied to a loop device, which is mounted over them in that namespace, so
that all of their files can be dropped from the page cache, libc too. See docs/results/governor.md.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

PROGRAMS = {
    "java -version": ["java", "-version"],
    "java class": ["java", "-cp", "{work}", "Hello"],
    "python numpy": ["{python}", "-c", "import numpy; print(numpy.arange(9).sum())"],
    "chromium": [
        "/usr/lib/chromium/chromium", "--headless", "--no-sandbox", "--disable-gpu",
        "--user-data-dir={work}/profile", "--dump-dom", "about:blank",
    ],
}
HELLO = 'class Hello { public static void main(String[] words) { System.out.println("hello"); } }'


def call(words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def copy_trees(arguments, work):
    """Copies the trees to a device of their own, and mounts the copies over them."""
    sizes = [subprocess.check_output(["du", "-sm", tree], text=True) for tree in arguments.tree]
    size = sum(int(line.split()[0]) for line in sizes)
    image, mounted = work / "trees.ext4", work / "trees"
    with open(image, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, (size + size // 8 + 256) << 20)
    call(["mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", "-E", "lazy_itable_init=0", image])
    found = ["losetup", "--find", "--show", "--direct-io=on", image]
    device = subprocess.check_output(found, text=True).strip()
    queue = pathlib.Path("/sys/block") / pathlib.Path(device).name / "queue/read_ahead_kb"
    before = queue.read_text()
    try:
        queue.write_text(arguments.read_ahead_kb)
        mounted.mkdir()
        call(["mount", "-o", "noatime", device, mounted])
        for number, tree in enumerate(arguments.tree):
            call(["cp", "-a", tree, mounted / str(number)])
        call(["sync", "-f", mounted])
        for number, tree in enumerate(arguments.tree):
            call(["mount", "--bind", mounted / str(number), tree])
        return device, queue, before
    except BaseException:
        release(device, queue, before)
        raise


def release(device, queue, before):
    # The device is freed with its last mount.
    queue.write_text(before)
    call(["losetup", "--detach", device])


def drop(trees):
    for tree in trees:
        for directory, _, names in os.walk(tree):
            for name in names:
                try:
                    file = os.open(os.path.join(directory, name), os.O_RDONLY | os.O_NOFOLLOW)
                except OSError:
                    continue
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(file)


def run_once(words, trees):
    drop(trees)
    begin = time.monotonic()
    child = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.monotonic() - begin
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"startup: exit {child.returncode}: {words}")
    return {"seconds": seconds, "bytes_read": usage.ru_inblock * 512, "major": usage.ru_majflt}


def measure(arguments, work):
    (work / "Hello.java").write_text(HELLO)
    call(["javac", "-d", work, work / "Hello.java"])
    places = {"work": work, "python": arguments.python}
    for name in arguments.programs or PROGRAMS:
        plain = [word.format(**places) for word in PROGRAMS[name]]
        recording = work / "start.recording"
        recording.unlink(missing_ok=True)
        everything = ["--include", "*", "--min-size", "1k"]
        call([arguments.filemap, "record", *everything, "-o", recording, "--", *plain])
        ways = {
            "plain": plain,
            "prefetch": [str(arguments.filemap), "govern", "--prefetch", str(recording), "--", *plain],
        }
        samples = {way: [] for way in ways}
        for run in range(arguments.runs):
            for way in sorted(ways, reverse=run % 2 == 1):
                samples[way].append(run_once(ways[way], arguments.tree))
        row = [name, arguments.read_ahead_kb]
        medians = {}
        for way, of in samples.items():
            medians[way] = statistics.median(sample["seconds"] for sample in of)
            least, most = (f(sample["seconds"] for sample in of) for f in (min, max))
            read = statistics.median(sample["bytes_read"] for sample in of) / 2**20
            major = statistics.median(sample["major"] for sample in of)
            row += [f"{medians[way]:.3f}", f"{least:.3f} to {most:.3f}", f"{read:.0f}", f"{major:.0f}"]
        print("| " + " | ".join([*row, f"{medians['plain'] / medians['prefetch']:.2f}"]) + " |", flush=True)
        if arguments.json:
            with open(arguments.json, "a") as file:
                print(json.dumps({"program": name, "read_ahead_kb": arguments.read_ahead_kb, **samples}), file=file)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(PROGRAMS))
    parser.add_argument("--filemap", type=pathlib.Path, required=True)
    parser.add_argument("--python", required=True, help="an interpreter with NumPy")
    parser.add_argument("--tree", action="append", required=True, help="what the programs read")
    parser.add_argument("--read-ahead-kb", default="8192")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", help="append each program's runs to this file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="filemap-startup-") as work:
        device, queue, before = copy_trees(arguments, pathlib.Path(work))
        try:
            measure(arguments, pathlib.Path(work))
        finally:
            release(device, queue, before)
            for tree in reversed(arguments.tree):
                call(["umount", "--lazy", tree])
            call(["umount", "--lazy", pathlib.Path(work) / "trees"])


if __name__ == "__main__":
    main()
