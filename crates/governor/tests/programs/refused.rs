//! Programs that the library cannot reach or help: they are unharmed, and hear one line at most.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::ptr;

use filemap_control::layout::{Observer, Reason};
use filemap_control::variable;
use libc::sock_filter;

use crate::support::bench::{Bench, Both, open_to_all};
use crate::support::mapping::Mapping;
use crate::support::outcome::End;
use crate::support::skip::skip;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const IS: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

const fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// A filter that does `then` with the calls of `numbers`, and `otherwise` with all others.
fn filter(numbers: &[i64], then: u32, otherwise: u32) -> Vec<sock_filter> {
    // The number of the call is the first word.
    let mut program = vec![instruction(LOAD, 0, 0, 0)];
    for &number in numbers {
        program.push(instruction(IS, 0, 1, number as u32));
        program.push(instruction(RETURN, 0, 0, then));
    }
    program.push(instruction(RETURN, 0, 0, otherwise));
    program
}

/// How a filter is put in force.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Prctl,
    Seccomp,
    /// By seccomp(2), for all threads that there are.
    AllThreads,
}

fn install(program: &mut [sock_filter], by: By) -> io::Result<()> {
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the filter is valid until the call has returned.
    let failed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if by == By::Prctl {
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program)
        } else {
            let how = libc::SECCOMP_SET_MODE_FILTER;
            let flags = if by == By::Seccomp { 0 } else { libc::SECCOMP_FILTER_FLAG_TSYNC };
            libc::syscall(libc::SYS_seccomp, how, flags, ptr::from_ref(&program)) as i32
        }
    };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn reader(bench: &Bench, path: &Path, pattern: &str) -> Command {
    bench.own("reader", &[path.to_str().expect("a plain name"), pattern, "none"])
}

/// Output and end are the same, but for one line of the library's; nothing was governed.
fn unharmed(both: &Both, data: &Path) {
    let Both { plain, governed, .. } = both;
    assert_eq!((plain.end, plain.stdout()), (governed.end, governed.stdout()), "{governed:?}");
    assert_eq!(plain.end, End::Exited(0), "{plain:?}");
    let stderr = governed.stderr();
    assert!(stderr.lines().count() <= 1, "{stderr}");
    assert!(stderr.is_empty() || stderr.starts_with("filemap"), "{stderr}");
    assert_eq!(both.faults(data), 0);
}

/// Has `command` run where perf events are refused with `errno`.
pub fn refuse_perf(command: &mut Command, errno: i32) {
    let then = libc::SECCOMP_RET_ERRNO | errno as u32;
    let mut program = filter(&[libc::SYS_perf_event_open], then, libc::SECCOMP_RET_ALLOW);
    // SAFETY: only system calls are made between fork and exec.
    unsafe { command.pre_exec(move || install(&mut program, By::Prctl)) };
}

pub fn without_perf(bench: &Bench) {
    let data = bench.data();
    for errno in [libc::EPERM, libc::EACCES, libc::ENOSYS] {
        let command = || {
            let mut command = reader(bench, &data, "random:200");
            refuse_perf(&mut command, errno);
            command
        };
        let both = bench.both(16 << 20, &[&data], command);
        unharmed(&both, &data);
        // What takes the place of perf events depends on the kernel.
        for of in &both.statistics {
            let is_replaced = of.observer == Observer::Pagemap;
            let is_said = matches!(of.reason, Reason::NoObserver | Reason::Seccomp);
            assert!(is_replaced || is_said, "{of:?}");
        }
        both.reads_as_much();
    }
}

/// Reads, allows itself a few calls from then on, and reads again.
pub fn filtered_program(arguments: &[String]) {
    let [path, how] = arguments else { panic!("a path and a way are needed") };
    let file = fs::File::open(path).expect("the file can be opened");
    let mapping = Mapping::of(&file);
    let look = |first: u64| {
        (first..first + 50).fold(0_u64, |sum, n| sum.wrapping_add(mapping.word(n * 97 % 16_000)))
    };
    println!("{:x}", look(0));
    let allowed = [libc::SYS_write, libc::SYS_exit_group];
    let mut program = filter(&allowed, libc::SECCOMP_RET_ALLOW, libc::SECCOMP_RET_KILL_PROCESS);
    match how.as_str() {
        "by prctl" => install(&mut program, By::Prctl).expect("a filter is allowed"),
        "by seccomp" => install(&mut program, By::Seccomp).expect("a filter is allowed"),
        "for all" => install(&mut program, By::AllThreads).expect("a filter is allowed"),
        _ => {
            // SAFETY: from here on the program only writes and ends.
            unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_STRICT) };
        }
    }
    let text = format!("{:x}\n", look(100));
    // SAFETY: the text is valid; the process ends without further calls.
    unsafe {
        libc::write(1, text.as_ptr().cast(), text.len());
        if how == "strictly" {
            libc::syscall(libc::SYS_exit, 7);
        }
        libc::_exit(7);
    }
}

pub fn own_filter(bench: &Bench) {
    let data = bench.data();
    let path = data.to_str().expect("a plain name");
    for how in ["by prctl", "by seccomp", "for all", "strictly"] {
        let both = bench.both(16 << 20, &[&data], || bench.own("filtered", &[path, how]));
        let both = both.alike().governs(&data);
        assert_eq!(both.plain.end, End::Exited(7), "{how}: {:?}", both.plain);
        // A thread scans page tables then.
        let command = || {
            let mut command = bench.own("filtered", &[path, how]);
            refuse_perf(&mut command, libc::EACCES);
            command
        };
        let both = bench.both(16 << 20, &[&data], command).alike();
        assert_eq!(both.plain.end, End::Exited(7), "{how}: {:?}", both.plain);
    }
}

/// What a preload does not reach.
const STATIC_READER: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
int main(int argc, char **argv) {
    long bytes = 64 << 20, sum = 0;
    char *start = mmap(0, bytes, PROT_READ, MAP_SHARED, open(argv[1], O_RDONLY), 0);
    for (long place = 0; place < bytes; place += 1 << 20)
        sum += *(volatile long *)(start + place);
    printf("%lx\n", sum);
    return argc;
}
"#;

pub fn static_program(bench: &Bench) {
    let source = bench.directory.join("static.c");
    let program = bench.directory.join("static");
    fs::write(&source, STATIC_READER).expect("there is room");
    let compiled =
        Command::new("cc").args(["-static", "-O1", "-o"]).args([&program, &source]).output();
    match compiled {
        Ok(output) if output.status.success() => {}
        _ => return skip("no C compiler makes a static program"),
    }
    let data = bench.data();
    let command = || {
        let mut command = Command::new(&program);
        command.arg(&data);
        command
    };
    let both = bench.both(16 << 20, &[&data], command).alike();
    assert!(both.statistics.is_empty(), "{:?}", both.statistics);
    both.reads_as_much();
}

/// Somebody who is not root, and owns nothing.
const NOBODY: u32 = 65534;

fn is_root() -> bool {
    // SAFETY: geteuid(2) cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    if !is_root {
        skip("it needs root");
    }
    is_root
}

/// A copy of this program that everybody can run. Those below the home of a user can be hidden.
fn copy(bench: &Bench, name: &str, mode: u32) -> std::path::PathBuf {
    let path = bench.directory.join(name);
    fs::copy(std::env::current_exe().expect("the test has a path"), &path).expect("there is room");
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it is ours");
    path
}

/// A reader that nobody runs, from a copy of this program.
fn as_nobody(bench: &Bench, program: &Path, data: &Path) -> Command {
    let mut command = reader(bench, data, "random:200");
    let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    command = Command::new(program);
    command.args(arguments).uid(NOBODY).gid(NOBODY);
    command
}

pub fn set_uid_program(bench: &Bench) {
    if !is_root() {
        return;
    }
    let data = bench.data();
    let program = copy(bench, "set-uid", 0o4755);
    let both = bench.both(16 << 20, &[&data], || as_nobody(bench, &program, &data)).alike().well();
    // Nobody's environment has no say in what root runs.
    assert!(both.statistics.is_empty(), "{:?}", both.statistics);
}

/// A user who is not root is governed where the machine permits it, or hears why not.
pub fn ordinary_user(bench: &Bench) {
    if !is_root() {
        return;
    }
    let data = bench.data();
    let program = copy(bench, "ordinary", 0o755);
    // The library has to be where that user can read it.
    let library = bench.directory.join("library.so");
    fs::copy(bench.library.path(), &library).expect("there is room");
    let command = || as_nobody(bench, &program, &data);
    let library = crate::support::library::Library::at(library);
    let both = bench.both_with(&library, 16 << 20, &[&data], || (), command);
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if level.trim().parse::<i32>().is_ok_and(|level| level <= 2) {
        both.alike().well().governs(&data).reads_less(4);
    } else {
        unharmed(&both, &data);
    }
}

/// Statistics that cannot be written cost the program nothing.
pub fn no_room_for_statistics(bench: &Bench) {
    let data = bench.data();
    let missing = bench.directory.join("missing").join("too");
    let mut places = vec![missing];
    let full = bench.directory.join("full");
    if is_root() {
        fs::create_dir(&full).expect("there is room");
        open_to_all(&full);
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=4k,mode=777", "filemap-test"])
            .arg(&full)
            .status();
        if mounted.is_ok_and(|status| status.success()) {
            // One page, which is taken.
            fs::write(full.join("taken"), [1; 4096]).expect("there is room for that");
            places.push(full.clone());
        } else {
            skip("no tmpfs can be mounted");
        }
    }
    let _mounted = Mounted(&full);
    for place in &places {
        let plain = bench.plain(reader(bench, &data, "random:200"));
        filemap_kernel::cold::drop_file(&data).expect("the file can be dropped");
        let mut command = reader(bench, &data, "random:200");
        bench.library.govern(&mut command, 16 << 20, place);
        let governed = bench.plain(command);
        assert_eq!(plain.stdout(), governed.stdout());
        assert!(governed.stderr().lines().count() <= 1, "{}", governed.stderr());
        let read = governed.read_bytes;
        let most = 4 << 20;
        assert!(!crate::support::bench::has_observer() || read < most, "{read} bytes were read");
    }
}

/// Unmounts what the test has mounted, also on a panic.
struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).output();
    }
}

/// Switched off it does nothing at all.
pub fn switched_off(bench: &Bench) {
    let data = bench.data();
    let switch = variable::SWITCH;
    for (name, value, lines) in [
        (switch, "off", 0),
        (switch, "maybe", 1),
        (variable::KEEP, "0", 1),
        (variable::STATISTICS, "here", 1),
    ] {
        let statistics = bench.directory.join(format!("switched-{name}-{value}"));
        fs::create_dir(&statistics).expect("there is room");
        let plain = bench.plain(reader(bench, &data, "random:100"));
        let mut command = reader(bench, &data, "random:100");
        bench.library.govern(&mut command, 16 << 20, &statistics);
        command.env(name, value);
        let governed = bench.plain(command);
        assert_eq!(plain.stdout(), governed.stdout());
        let stderr = governed.stderr();
        assert_eq!(stderr.lines().count(), lines, "{stderr}");
        let all = crate::support::library::statistics(&statistics);
        assert!(all.iter().all(|of| of.mappings.is_empty()), "{all:?}");
    }
}

/// Statistics cannot be kept in what is no directory. One line says so, of two programs that one
/// started after the other, and both are governed.
pub fn no_directory(bench: &Bench) {
    let data = bench.data();
    let mut command = Command::new("/bin/sh");
    let again = reader(bench, &data, "random:200");
    command.arg("-c").arg("\"$@\"; exit $?").arg("sh").arg(again.get_program());
    command.args(again.get_args());
    filemap_kernel::cold::drop_file(&data).expect("the file can be dropped");
    bench.library.govern(&mut command, 16 << 20, Path::new("/dev/null"));
    let governed = bench.plain(command);
    let stderr = governed.stderr();
    assert!(stderr.starts_with("filemap: no statistics are kept: "), "{stderr}");
    assert!(stderr.lines().count() == 1 && stderr.contains("/dev/null"), "{stderr}");
    let read = governed.read_bytes;
    assert!(!crate::support::bench::has_observer() || read < 4 << 20, "{read} bytes were read");
}
