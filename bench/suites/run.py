#!/usr/bin/env python3
"""Runs test suites of others plain and under a wrapper, and compares the outcome of each test.

    run.py cpython go bbolt ripgrep bash -- target/release/filemap govern --

Needs Python 3.11 or later with its `test` package, Go and Cargo. Exit status 1: an outcome differs.
"""

import argparse
import json
import os
import pathlib
import pty
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree

CPYTHON_TESTS = ["test_mmap", "test_signal", "test_subprocess", "test_threading", "test_fork1"]
GO_TESTS = ["os/exec", "syscall"]
BBOLT = "go.etcd.io/bbolt@v1.4.0"
RIPGREP = "14.1.1"


class Failed(Exception):
    """What stops the run, in one line."""


def run(words, directory, environment=None, log=None):
    """The standard output. A failed test is no error here: its outcome is in the output."""
    directory.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        words, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})}, text=True, errors="replace",
    )
    if log:
        log.write_text(done.stdout)
    return done.stdout


def prepare(words, directory):
    directory.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(words, cwd=directory, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise Failed(f"exit {done.returncode}: {shlex.join(words)}")
    return done.stdout


def cpython(wrapper, root, log):
    report = root / "cpython.xml"
    report.unlink(missing_ok=True)
    words = [sys.executable, "-m", "test", "--junit-xml", str(report), *CPYTHON_TESTS]
    run([*wrapper, *words], root / "cpython", log=log)
    if not report.exists():
        raise Failed(f"CPython's tests left no report; see {log}")
    outcomes = {}
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        worse = [tag for tag in ("error", "failure", "skipped") if case.find(tag) is not None]
        # What is skipped is in an attribute in some versions, in an element in others.
        outcomes[case.get("name")] = worse[0] if worse else case.get("result", "passed")
    return outcomes


def go_outcomes(output):
    outcomes = {}
    for line in output.splitlines():
        if not line.startswith("{"):
            continue
        event = json.loads(line)
        if event["Action"] in ("pass", "fail", "skip"):
            outcomes[f"{event.get('Package')} {event.get('Test', '(all)')}"] = event["Action"]
    return outcomes


def go_test(wrapper, arguments, directory, log):
    words = ["go", "test", "-json", "-count=1"]
    if wrapper:
        words += ["-exec", shlex.join(wrapper)]
    return go_outcomes(run([*words, *arguments], directory, log=log))


def go(wrapper, root, log):
    return go_test(wrapper, GO_TESTS, root / "go", log)


def go_runtime(wrapper, root, log):
    return go_test(wrapper, ["-short", "-timeout=20m", "runtime"], root / "go", log)


def bbolt(wrapper, root, log):
    source = root / "bbolt"
    if not source.exists():
        found = json.loads(prepare(["go", "mod", "download", "-json", BBOLT], root))
        shutil.copytree(found["Dir"], source)
        subprocess.run(["chmod", "-R", "u+w", str(source)], check=True)
    # Its simulations of a power failure need devices of their own.
    packages = [".", "./internal/common", "./internal/freelist", "./internal/tests/..."]
    return go_test(wrapper, ["-short", "-timeout=20m", *packages], source, log)


def ripgrep(wrapper, root, log):
    source = root / "ripgrep"
    if not source.exists():
        fetch = root / "fetch"
        (fetch / "src").mkdir(parents=True, exist_ok=True)
        (fetch / "src/lib.rs").touch()
        (fetch / "Cargo.toml").write_text(
            "[workspace]\n[package]\nname = 'fetch'\nversion = '0.1.0'\nedition = '2021'\n"
            f"[dependencies]\nripgrep = '={RIPGREP}'\n"
        )
        prepare(["cargo", "vendor", "-q", str(root / "all-crates")], fetch)
        shutil.copytree(root / "all-crates/ripgrep", source)
    triple = re.search(r"host: (\S+)", prepare(["rustc", "-vV"], root))[1]
    environment = {"CARGO_TARGET_DIR": str(root / "ripgrep-target")}
    prepare(["env", f"CARGO_TARGET_DIR={root}/ripgrep-target", "cargo", "test", "-q", "--no-run"], source)
    if wrapper:
        runner = f"CARGO_TARGET_{triple.upper().replace('-', '_')}_RUNNER"
        environment[runner] = shlex.join(wrapper)
    output = run(["cargo", "test", "--no-fail-fast"], source, environment, log)
    return dict(re.findall(r"^test (\S+) \.\.\. (\w+)", output, re.MULTILINE))


class Terminal:
    """A program on a terminal of its own, written to and waited for as a person would."""

    def __init__(self, words):
        self.child, self.master = pty.fork()
        if self.child == 0:
            os.environ.update(PS1="ready> ", TERM="dumb")
            os.execvp(words[0], words)
        self.seen = ""

    def expect(self, pattern, seconds=10):
        """Whether the pattern comes; what came before it is gone then."""
        end = time.monotonic() + seconds
        while True:
            if found := re.search(pattern, self.seen):
                self.seen = self.seen[found.end():]
                return True
            ready, _, _ = select.select([self.master], [], [], max(0, end - time.monotonic()))
            if not ready:
                return False
            try:
                self.seen += os.read(self.master, 4096).decode(errors="replace")
            except OSError:  # the other end is closed
                return bool(re.search(pattern, self.seen))

    def send(self, text):
        """What was printed until now is forgotten, so that only an answer is waited for."""
        # A signal from the terminal throws its input away: nothing is typed until it has acted.
        time.sleep(0.3)
        while select.select([self.master], [], [], 0)[0]:
            os.read(self.master, 4096)
        self.seen = ""
        os.write(self.master, text.encode())

    def close(self):
        try:
            os.kill(self.child, signal.SIGHUP)
        except ProcessLookupError:
            pass
        os.close(self.master)
        os.waitpid(self.child, 0)


JOB_CONTROL = [
    # what is sent, what must come, the name of the step
    ("sleep 1000\n", None, "a job in the foreground"),
    ("\x1a", r"Stopped +sleep 1000", "Ctrl-Z stops it"),
    ("jobs\n", r"\[1\]\+ +Stopped", "jobs lists it as stopped"),
    ("bg\n", r"\[1\]\+ sleep 1000 &", "bg lets it go on"),
    ("jobs\n", r"\[1\]\+ +Running", "jobs lists it as running"),
    ("fg\n", r"sleep 1000", "fg brings it back"),
    ("\x03", r"ready> ", "Ctrl-C ends it"),
    ("echo status=$?\n", r"status=130", "its status is that of an interrupt"),
    ("cat\n", None, "a reader of the terminal"),
    ("\x1a", r"Stopped +cat", "Ctrl-Z stops the reader"),
    ("fg\n", r"cat", "fg brings the reader back"),
    ("echoed\n", r"echoed\r\nechoed", "the reader reads the terminal again"),
    ("\x04", r"ready> ", "Ctrl-D ends the reader"),
    ("echo status=$?\n", r"status=0", "its status is 0"),
    ("cat &\n", r"\[1\] \d+", "a reader in the background"),
    ("sleep 0.5; jobs\n", r"\[1\]\+ +Stopped +cat", "it is stopped as it reads the terminal"),
    ("kill %1; fg\n", r"ready> ", "it is ended"),
    ("sleep 1000 & kill -STOP $!; sleep 0.3; jobs\n", r"Stopped +sleep 1000", "SIGSTOP stops a job"),
    ("kill -CONT $!; sleep 0.3; jobs\n", r"Running +sleep 1000", "SIGCONT lets it go on"),
    ("kill -TERM $!; wait $!; echo status=$?\n", r"status=143", "SIGTERM ends it"),
    ("trap 'echo trapped' USR1; kill -USR1 $$\n", r"\ntrapped", "a trap runs"),
    ("sleep 0.2 | cat; echo status=${PIPESTATUS[*]}\n", r"status=0 0", "a pipeline ends"),
]


def talk(terminal, prefix):
    outcomes = {}
    outcomes[prefix + "a prompt comes"] = str(terminal.expect(r"ready> "))
    for text, pattern, step in JOB_CONTROL:
        terminal.send(text)
        if pattern is None:
            time.sleep(1.0)
        else:
            outcomes[prefix + step] = str(terminal.expect(pattern))
    return outcomes


def bash(wrapper, root, log):
    """A shell that is wrapped, and a wrapped command that is a job of a shell which is not."""
    terminal = Terminal([*wrapper, "bash", "--norc", "--noprofile", "--noediting", "-i"])
    outcomes = talk(terminal, "shell: ")
    terminal.close()
    terminal = Terminal(["bash", "--norc", "--noprofile", "--noediting", "-i"])
    outcomes["job: a prompt comes"] = str(terminal.expect(r"ready> "))
    for text, pattern, step in [
        (shlex.join([*wrapper, "cat"]) + "\n", None, "a reader of the terminal"),
        ("first\n", r"first\r\nfirst", "it reads"),
        ("\x1a", r"Stopped", "Ctrl-Z stops it"),
        ("fg\n", r"cat", "fg brings it back"),
        ("second\n", r"second\r\nsecond", "it reads again"),
        ("\x03", r"ready> ", "Ctrl-C ends it"),
        ("echo status=$?\n", r"status=130", "its status is that of an interrupt"),
        (shlex.join([*wrapper, "sleep", "1000"]) + " &\n", r"\[1\] \d+", "a job in the background"),
        ("kill %1; wait %1; echo status=$?\n", r"status=143", "SIGTERM ends it"),
        (shlex.join([*wrapper, "sh", "-c", "exit 7"]) + "; echo status=$?\n", r"status=7", "a status"),
    ]:
        terminal.send(text)
        if pattern is None:
            time.sleep(1.0)
        else:
            outcomes["job: " + step] = str(terminal.expect(pattern))
    terminal.close()
    log.write_text("\n".join(f"{step}: {came}" for step, came in outcomes.items()))
    return outcomes


SUITES = {
    "cpython": cpython, "go": go, "go-runtime": go_runtime, "bbolt": bbolt, "ripgrep": ripgrep,
    "bash": bash,
}


def compare(name, plain, wrapped):
    """Prints each test whose outcome differs, and says whether there is none."""
    different = [test for test in sorted(plain.keys() | wrapped.keys()) if plain.get(test) != wrapped.get(test)]
    counts = {}
    for outcome in plain.values():
        counts[outcome] = counts.get(outcome, 0) + 1
    summary = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
    print(f"{name}: {len(plain)} tests ({summary}), {len(different)} differ", flush=True)
    for test in different:
        print(f"  {test}: plain {plain.get(test)}, wrapped {wrapped.get(test)}")
    return not different


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default="/var/tmp/filemap-suites")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(SUITES)}; all of them by default")
    before, wrapper = sys.argv[1:], []
    if "--" in before:
        at = before.index("--")
        before, wrapper = before[:at], before[at + 1 :]
    arguments = parser.parse_args(before)
    names = arguments.names or list(SUITES)
    if unknown := [name for name in names if name not in SUITES]:
        parser.error(f"no suite {unknown[0]}; there are {', '.join(SUITES)}")
    if wrapper:
        # The suites run in directories of their own.
        found = shutil.which(wrapper[0])
        if found is None:
            parser.error(f"no program {wrapper[0]}")
        wrapper[0] = str(pathlib.Path(found).absolute())
    root = arguments.root.absolute()
    root.mkdir(parents=True, exist_ok=True)
    # A shell ignores these for what it starts in the background, and the tests would inherit that.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    same = True
    try:
        for name in names:
            plain = SUITES[name]([], root, root / f"{name}.plain.log")
            if not plain:
                raise Failed(f"{name}: no test ran; see {root}/{name}.plain.log")
            wrapped = SUITES[name](wrapper, root, root / f"{name}.wrapped.log") if wrapper else plain
            same &= compare(name, plain, wrapped)
    except Failed as error:
        sys.exit(f"run.py: {error}")
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
