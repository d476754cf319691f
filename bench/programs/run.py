#!/usr/bin/env python3
"""Measures third-party programs that read large files by mmap: plain, all RANDOM, and governed.

README.md beside this file says what the programs are and how a measurement goes.
Needs Python 3.11 or later, and nothing else.
"""

import argparse
import contextlib
import ctypes
import hashlib
import json
import os
import pathlib
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib

BENCH = pathlib.Path(__file__).resolve().parent
WAYS = ("plain", "random", "first", "governed")
UNGOVERNED = ("plain", "random")
NOBODY = 65534
MAX_DROPS = 20
SECTOR_BYTES = 512  # the unit of ru_inblock
SYS_CACHESTAT = 451
libc = ctypes.CDLL(None, use_errno=True)


class Failed(Exception):
    """What stops the run, in one line."""


class Bench:
    """The programs of programs.toml, and where their builds and data are."""

    def __init__(self, root):
        self.root = pathlib.Path(root).absolute()
        listed = tomllib.loads((BENCH / "programs.toml").read_text())
        self.seed = listed["seed"]
        self.builds = listed["build"]
        self.data = listed["data"]
        self.programs = {program["name"]: program for program in listed["program"]}

    def chosen(self, names, held_out):
        unknown = [name for name in names if name not in self.programs]
        if unknown:
            raise Failed(f"no program {unknown[0]} in programs.toml; `run.py list` names them")
        if names:
            return [self.programs[name] for name in names]
        wanted = {"with": (True, False), "without": (False,), "only": (True,)}[held_out]
        return [p for p in self.programs.values() if p["held_out"] in wanted]

    def data_directory(self, program):
        return self.root / "data" / program["data"]

    def words(self, command, data):
        places = {
            "bench": BENCH,
            "build": self.root / "build",
            "python": self.root / "python/bin/python",
            "data": data,
            "seed": self.seed,
        }
        return [word.format(**places) for word in shlex.split(command)]

    def wrapper(self):
        return self.root / "build/advise_random"


def prepare(bench, arguments):
    programs = bench.chosen(arguments.names, "with")
    make_python(bench)
    build = bench.root / "build"
    build.mkdir(parents=True, exist_ok=True)
    source = BENCH / "advise_random/advise_random.c"
    call(["gcc", "-O2", "-Wall", "-o", str(bench.wrapper()), str(source)])
    for name in dict.fromkeys(program["build"] for program in programs if "build" in program):
        print(f"build {name}", flush=True)
        for command in bench.builds[name]:
            call(bench.words(command, build))
    for name in dict.fromkeys(program["data"] for program in programs):
        make_data(bench, name)


def make_python(bench):
    required = (BENCH / "requirements.txt").read_bytes()
    stamp = bench.root / "python.made"
    if stamp.exists() and stamp.read_bytes() == required:
        return
    call([sys.executable, "-m", "venv", str(bench.root / "python")])
    pip = bench.root / "python/bin/pip"
    call([str(pip), "install", "-q", "-r", str(BENCH / "requirements.txt")])
    stamp.write_bytes(required)


def make_data(bench, name):
    """Makes a data set once; it appears whole or not at all."""
    done = bench.root / "data" / name
    if done.exists():
        return
    making = done.with_name(name + ".making")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True)
    print(f"data {name}", end=" ", flush=True)
    begin = time.monotonic()
    for command in bench.data[name]:
        call(bench.words(command, making))
    size = sum(path.stat().st_size for path in files_under(making))
    print(f"{size / 2**20:.0f} MiB in {time.monotonic() - begin:.0f} s", flush=True)
    making.rename(done)


def call(words):
    done = subprocess.run(words, stdout=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Failed(f"exit {done.returncode}: {shlex.join(words)}")


def files_under(directory):
    return [path for path in sorted(directory.rglob("*")) if path.is_file()]


class Cachestat(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("cached", "dirty", "writeback", "evicted", "recent")]


def cached_pages(descriptor):
    whole = (ctypes.c_uint64 * 2)(0, 0)
    state = Cachestat()
    if libc.syscall(SYS_CACHESTAT, descriptor, whole, ctypes.byref(state), 0) != 0:
        raise Failed("cachestat failed: this needs Linux 6.5 or later")
    return state.cached


def drop_from_cache(directory):
    """Drops the directory's files from the page cache, and checks that they are gone."""
    for path in files_under(directory):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            # A page that another CPU is about to add to its list stays at first.
            for _ in range(MAX_DROPS):
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                left = cached_pages(descriptor)
                if not left:
                    break
                time.sleep(0.01)
        finally:
            os.close(descriptor)
        if left:
            raise Failed(f"{left} pages of {path} stay in the page cache: who else has it mapped?")


def run_once(words, data, user):
    """One cold run: what it took, and the digest of what it printed."""
    drop_from_cache(data)
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        identity = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if user == "nobody" else {}
        begin = time.monotonic()
        child = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, cwd="/", **identity
        )
        # The usage of what the child waited for is in it too, so a governor and its program are one.
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.monotonic() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        printed = output.read()
        if child.returncode != 0:
            errors.seek(0)
            said = errors.read()[-2000:].decode(errors="replace")
            raise Failed(f"exit {child.returncode}: {shlex.join(words)}\n{said}")
    if not printed:
        raise Failed(f"printed nothing to check: {shlex.join(words)}")
    return {
        "seconds": round(seconds, 4),
        "bytes_read": usage.ru_inblock * SECTOR_BYTES,
        "major_faults": usage.ru_majflt,
        "minor_faults": usage.ru_minflt,
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 4),
    }, hashlib.sha256(printed).hexdigest()


@contextlib.contextmanager
def place(bench, program, read_ahead_kb):
    """Where the data is read from: its directory, or a copy on a loop device of its own."""
    data = bench.data_directory(program)
    if not data.exists():
        raise Failed(f"{program['name']} has no data: run.py prepare {program['name']}")
    if read_ahead_kb == "disk":
        yield data
        return
    size = sum(path.stat().st_size for path in files_under(data))
    image = bench.root / f"loop-{os.getpid()}.ext4"
    mounted = bench.root / f"loop-{os.getpid()}"
    device = None
    try:
        with open(image, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, size + size // 8 + (64 << 20))
        # No journal and nothing to initialise later: the device is read by the program alone.
        options = ["-m", "0", "-O", "^has_journal", "-E", "lazy_itable_init=0"]
        call(["mkfs.ext4", "-q", *options, str(image)])
        device = subprocess.run(
            ["losetup", "--find", "--show", "--direct-io=on", str(image)],
            check=True, capture_output=True, text=True,
        ).stdout.strip()
        queue = pathlib.Path("/sys/block") / pathlib.Path(device).name / "queue/read_ahead_kb"
        before = queue.read_text()
        queue.write_text(read_ahead_kb)
        mounted.mkdir()
        # Without noatime a read would be a write as well.
        call(["mount", "-o", "noatime", device, str(mounted)])
        copy = mounted / "data"
        shutil.copytree(data, copy)
        subprocess.run(["sync", "-f", str(mounted)], check=True)
        yield copy
    finally:
        if mounted.exists():
            subprocess.run(["umount", str(mounted)], stderr=subprocess.DEVNULL)
            mounted.rmdir()
        if device:
            queue.write_text(before)
            subprocess.run(["losetup", "--detach", device], check=True)
        image.unlink(missing_ok=True)


def measure(bench, arguments):
    ways = arguments.ways.split(",")
    if unknown := [way for way in ways if way not in WAYS]:
        raise Failed(f"no way {unknown[0]}; there are {', '.join(WAYS)}")
    if set(ways) - set(UNGOVERNED) and not arguments.filemap:
        raise Failed("governed runs need --filemap PATH, or leave them out: --ways plain,random")
    samples = []
    for program in bench.chosen(arguments.names, arguments.held_out):
        with place(bench, program, arguments.read_ahead_kb) as data:
            samples += measure_program(bench, program, data, ways, arguments)
    print_table(samples, arguments.format)


def measure_program(bench, program, data, ways, arguments):
    plain = bench.words(program["run"], data)
    # The first run warms what the program is made of, which is not what is measured.
    _, expected = run_once(plain, data, arguments.user)

    def run_way(way, memory):
        words = {"plain": plain, "random": [str(bench.wrapper()), *plain]}.get(way)
        words = words or [str(arguments.filemap), "govern", "--memory", memory, "--", *plain]
        sample, digest = run_once(words, data, arguments.user)
        if digest != expected:
            raise Failed(f"{program['name']}, {way}: printed something else than the first run")
        return sample

    with memory_directory(arguments.user) as kept:
        if "governed" in ways:
            # What this run remembers is what the governed runs begin with.
            run_way("first", kept)
        return run_in_turn(program, ways, kept, run_way, arguments)


@contextlib.contextmanager
def memory_directory(user):
    """An empty directory for what a governor remembers."""
    with tempfile.TemporaryDirectory(prefix="filemap-memory-") as memory:
        if user == "nobody":
            os.chown(memory, NOBODY, NOBODY)
        yield memory


def run_in_turn(program, ways, kept, run_way, arguments):
    samples = []
    for run in range(arguments.runs):
        # The order of the ways is another in each run, so that no way always follows the same one.
        for way in ways[run % len(ways):] + ways[: run % len(ways)]:
            with memory_directory(arguments.user) as empty:
                sample = run_way(way, empty if way == "first" else kept)
            samples.append({
                "program": program["name"], "kind": program["kind"], "way": way, "run": run,
                "read_ahead_kb": arguments.read_ahead_kb, "user": arguments.user,
                "held_out": program["held_out"], **sample,
            })
            if arguments.json:
                with open(arguments.json, "a") as file:
                    print(json.dumps(samples[-1]), file=file)
    return samples


def table(_bench, arguments):
    samples = []
    for name in arguments.files:
        with open(name) as file:
            samples += [json.loads(line) for line in file]
    print_table(samples, arguments.format)


def print_table(samples, form):
    rows = [("program", "kind", "read_ahead", "way", "runs", "median s", "min", "max", "ratio",
             "MiB read", "major faults")]
    ratios = {"first": [], "governed": []}
    groups = {}
    for sample in samples:
        group = groups.setdefault((sample["program"], sample["kind"], sample["read_ahead_kb"]), {})
        group.setdefault(sample["way"], []).append(sample)
    for (name, kind, read_ahead_kb), by_way in groups.items():
        medians = {way: median(of, "seconds") for way, of in by_way.items()}
        for way in [way for way in WAYS if way in by_way]:
            of = by_way[way]
            # A first run is to be as fast as plain, a later one as the better of the others.
            to_beat = {"first": ("plain",), "governed": UNGOVERNED}.get(way, ())
            others = [medians[other] for other in to_beat if other in medians]
            ratio = ""
            if others:
                ratios[way].append((medians[way] / min(others), name))
                ratio = f"{ratios[way][-1][0]:.2f}"
            seconds = [sample["seconds"] for sample in of]
            rows.append((
                name, kind, str(read_ahead_kb), way, str(len(of)), f"{medians[way]:.3f}",
                f"{min(seconds):.3f}", f"{max(seconds):.3f}", ratio,
                f"{median(of, 'bytes_read') / 2**20:.1f}", f"{median(of, 'major_faults'):.0f}",
            ))
    print_rows(rows, form)
    compared = {"first": "first over plain", "governed": "governed over the better of plain and random"}
    for way in [way for way in ratios if ratios[way]]:
        worst, name = max(ratios[way])
        middle = statistics.median(ratio for ratio, _ in ratios[way])
        print(f"\n{compared[way]}: median {middle:.2f}, worst {worst:.2f} ({name})")


def median(samples, key):
    return statistics.median(sample[key] for sample in samples)


def print_rows(rows, form):
    if form == "markdown":
        for at, row in enumerate(rows):
            print("| " + " | ".join(row) + " |")
            if at == 0:
                print("|" + " --- |" * len(row))
        return
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def show_list(bench, _arguments):
    rows = [("program", "kind", "language", "held out", "reads")]
    for program in bench.programs.values():
        held_out = "yes" if program["held_out"] else "no"
        rows.append((program["name"], program["kind"], program["language"], held_out, program["reads"]))
    print_rows(rows, "table")


def draw(bench, arguments):
    """Chooses half of each kind at random; programs.toml is then edited by hand to say so."""
    generator = random.Random(arguments.seed)
    kinds = {}
    for name, program in bench.programs.items():
        kinds.setdefault(program["kind"], []).append(name)
    held_out = []
    more = generator.random() < 0.5
    for kind in sorted(kinds):
        names = sorted(kinds[kind])
        count = len(names) // 2
        if len(names) % 2:
            count += more
            more = not more
        held_out += generator.sample(names, count)
    print("\n".join(sorted(held_out)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default="/var/tmp/filemap-programs", help="builds and data")
    commands = parser.add_subparsers(required=True)

    command = commands.add_parser("list", help="the programs")
    command.set_defaults(run=show_list)

    command = commands.add_parser("prepare", help="build the programs and make their data")
    command.add_argument("names", nargs="*")
    command.set_defaults(run=prepare)

    command = commands.add_parser("measure", help="run them cold, the ways in turn")
    command.add_argument("names", nargs="*")
    command.add_argument("--filemap", type=pathlib.Path, help="the filemap binary to govern with")
    command.add_argument("--runs", type=int, default=5)
    command.add_argument("--ways", default=",".join(WAYS))
    command.add_argument("--read-ahead-kb", default="disk", help="disk, or a size (as root)")
    command.add_argument("--user", choices=("own", "nobody"), default="own")
    command.add_argument("--held-out", choices=("with", "without", "only"), default="without")
    command.add_argument("--json", help="append each run to this file, one object a line")
    command.add_argument("--format", choices=("table", "markdown"), default="table")
    command.set_defaults(run=measure)

    command = commands.add_parser("table", help="the table of measurements written by --json")
    command.add_argument("files", nargs="+")
    command.add_argument("--format", choices=("table", "markdown"), default="table")
    command.set_defaults(run=table)

    command = commands.add_parser("draw", help="draw the half that is held out")
    command.add_argument("--seed", type=int, required=True)
    command.set_defaults(run=draw)

    arguments = parser.parse_args()
    try:
        arguments.run(Bench(arguments.root), arguments)
    except (Failed, OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"run.py: {error}")


if __name__ == "__main__":
    main()
