//! Victims: programs that verify their own results while advice is injected into them.

use std::arch::global_asm;
use std::fs::File;
use std::io::{Write, stdout};
use std::os::fd::AsRawFd;
use std::process::exit;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Tolerated delay of a timeout on a loaded machine.
const TOLERANCE: Duration = Duration::from_millis(1500);

/// Size of the file that each victim maps.
pub const FILE_BYTES: usize = 32 << 20;

static ENDS: AtomicBool = AtomicBool::new(false);

/// Tolerated number of EINTR results under killed injectors: a call that began to block just before
/// its thread stopped is repeated only if the injector survives.
const MOST_INTERRUPTED: u32 = 3;

/// Tolerated number of short transfers: on a busy machine an injector sometimes abandons a thread
/// that does not stop in time, and cannot complete its call.
const MOST_SHORT: u32 = 3;

/// Runs the named victim until end of file on standard input.
pub fn run(name: &str, file: &str) -> ! {
    map(file);
    let work: fn() = match name {
        "registers" => registers,
        "waits" => || waits(0),
        "killed-waits" => || waits(MOST_INTERRUPTED),
        "transfers" => || transfers(MOST_SHORT),
        "killed-transfers" => || transfers(u32::MAX),
        "signals" => signals,
        "blocked" => blocked,
        "threads" => threads,
        "vforks" => vforks,
        "filtered" => || filtered(libc::SECCOMP_RET_ERRNO | 1),
        "allowed" => || filtered(libc::SECCOMP_RET_ALLOW),
        _ => panic!("no victim {name}"),
    };
    println!("ready");
    stdout().flush().expect("a line out");
    thread::spawn(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).expect("standard input");
        ENDS.store(true, Ordering::Relaxed);
        thread::sleep(Duration::from_secs(60));
        fail("it does not end");
    });
    work();
    exit(0)
}

pub fn fail(what: &str) -> ! {
    eprintln!("victim: {what}: {}", std::io::Error::last_os_error());
    exit(9)
}

fn map(path: &str) {
    let file = File::open(path).expect("the mapped file");
    // SAFETY: a new mapping of a file that is not modified.
    let mapped = unsafe {
        let (read, shared) = (libc::PROT_READ, libc::MAP_SHARED);
        libc::mmap(null_mut(), FILE_BYTES, read, shared, file.as_raw_fd(), 0)
    };
    assert_ne!(mapped, libc::MAP_FAILED);
}

fn goes_on() -> bool {
    !ENDS.load(Ordering::Relaxed)
}

/// Register values that [`spin`] loads, and those it finds afterwards.
#[repr(C, align(64))]
struct Block {
    /// In the order rax, rbx, rcx, rdx, rsi, rdi, rbp, r8 to r15, flags.
    loaded: [u64; 16],
    vectors: [[u64; 4]; 16],
    found: [u64; 16],
    found_vectors: [[u64; 4]; 16],
}

unsafe extern "C" {
    fn spin(block: *mut Block);
}

// The loop changes no flags. It also checks words in the red zone below the stack pointer.
global_asm!(
    ".data",
    ".balign 8",
    "spin_block: .quad 0",
    "spin_rdi: .quad 0",
    ".text",
    "spin:",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov [rip + spin_block], rdi",
    "push qword ptr [rdi + 120]",
    "popfq",
    ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
    "vmovdqu ymm\\n, [rdi + 128 + 32 * \\n]",
    ".endr",
    "mov rax, [rdi]",
    "mov [rsp - 8], rax",
    "mov [rsp - 128], rax",
    "mov rbx, [rdi + 8]",
    "mov rcx, [rdi + 16]",
    "mov rdx, [rdi + 24]",
    "mov rsi, [rdi + 32]",
    "mov rbp, [rdi + 48]",
    "mov r8, [rdi + 56]",
    "mov r9, [rdi + 64]",
    "mov r10, [rdi + 72]",
    "mov r11, [rdi + 80]",
    "mov r12, [rdi + 88]",
    "mov r13, [rdi + 96]",
    "mov r14, [rdi + 104]",
    "mov r15, [rdi + 112]",
    "mov rdi, [rdi + 40]",
    "2: lea rcx, [rcx - 1]",
    "jrcxz 3f",
    "jmp 2b",
    "3: mov [rip + spin_rdi], rdi",
    "mov rdi, [rip + spin_block]",
    "mov [rdi + 640], rax",
    "mov rax, [rsp - 8]",
    "mov [rdi + 656], rax",
    "mov rax, [rsp - 128]",
    "mov [rdi + 680], rax",
    "pushfq",
    "pop qword ptr [rdi + 760]",
    "cld",
    "mov [rdi + 648], rbx",
    "mov [rdi + 664], rdx",
    "mov [rdi + 672], rsi",
    "mov rax, [rip + spin_rdi]",
    "mov [rdi + 632 + 56], rbp",
    "mov [rdi + 696], r8",
    "mov [rdi + 704], r9",
    "mov [rdi + 712], r10",
    "mov [rdi + 720], r11",
    "mov [rdi + 728], r12",
    "mov [rdi + 736], r13",
    "mov [rdi + 744], r14",
    "mov [rdi + 752], r15",
    ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
    "vmovdqu [rdi + 768 + 32 * \\n], ymm\\n",
    ".endr",
    "xor rax, [rdi + 40]",
    "or [rdi + 648], rax",
    "vzeroupper",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
);

/// Flags that user code can set: the arithmetic flags from carry to overflow and the direction
/// flag; plus the interrupt flag and the reserved bit, which are always set.
const FLAGS: u64 = 0xcd5 | 0x202;

fn registers() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    while goes_on() {
        let mut block = Block {
            loaded: std::array::from_fn(|_| random()),
            vectors: std::array::from_fn(|_| std::array::from_fn(|_| random())),
            found: [0; 16],
            found_vectors: [[0; 4]; 16],
        };
        block.loaded[2] = 20_000 + random() % 20_000;
        block.loaded[15] = 0x202 | random() & FLAGS;
        // SAFETY: the code reads and writes only `block`, its own statics and its red zone.
        unsafe { spin(&raw mut block) };
        let mut expected = block.loaded;
        // The slots of rcx, the loop counter, and rdi hold the words found in the red zone.
        (expected[2], expected[5]) = (expected[0], expected[0]);
        if block.found != expected || block.found_vectors != block.vectors {
            fail(&format!("registers {:x?} instead of {expected:x?}", block.found));
        }
    }
}

/// Threads that block briefly in each kind of system call, and must not see EINTR.
fn waits(most_interrupted: u32) {
    let interrupted = &AtomicU32::new(0);
    let kinds: [fn(Duration) -> bool; 9] =
        [poll, epoll, nanosleep, futex, signal_wait, semaphore, pipe, receive, read];
    thread::scope(|scope| {
        for (index, wait) in kinds.into_iter().enumerate() {
            scope.spawn(move || {
                let mut sum = index as u64;
                while goes_on() {
                    let limit = Duration::from_micros(1000 * (sum % 3));
                    let begin = Instant::now();
                    if !wait(limit) {
                        let before = interrupted.fetch_add(1, Ordering::Relaxed);
                        if errno() != libc::EINTR || before >= most_interrupted {
                            fail(&format!("wait {index} ended early"));
                        }
                        eprintln!("victim: wait {index} was interrupted as an injector was killed");
                        continue;
                    }
                    let took = begin.elapsed();
                    if took + Duration::from_micros(50) < limit || took > limit + TOLERANCE {
                        fail(&format!("wait {index} of {limit:?} took {took:?}"));
                    }
                    for step in 0..200_000_u64 {
                        sum = sum.wrapping_mul(6364136223846793005).wrapping_add(step);
                    }
                    sum >>= 32;
                }
            });
        }
    });
}

fn time_of(limit: Duration) -> libc::timespec {
    libc::timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

fn poll(limit: Duration) -> bool {
    // SAFETY: no descriptors are passed.
    unsafe { libc::poll(null_mut(), 0, limit.as_millis() as i32) == 0 }
}

fn epoll(limit: Duration) -> bool {
    // SAFETY: the event outlives the call; the descriptor is closed once.
    unsafe {
        let epoll = libc::epoll_create1(0);
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        let got = libc::epoll_wait(epoll, &raw mut event, 1, limit.as_millis() as i32);
        libc::close(epoll);
        got == 0
    }
}

fn nanosleep(limit: Duration) -> bool {
    let time = time_of(limit);
    // SAFETY: the time outlives the call.
    unsafe { libc::nanosleep(&raw const time, null_mut()) == 0 }
}

fn futex(limit: Duration) -> bool {
    let word = 7_u32;
    let time = time_of(limit);
    // SAFETY: word and time outlive the call.
    let answer = unsafe {
        let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
        libc::syscall(libc::SYS_futex, &raw const word, wait, 7, &raw const time)
    };
    answer == -1 && errno() == libc::ETIMEDOUT
}

fn signal_wait(limit: Duration) -> bool {
    let time = time_of(limit);
    // SAFETY: set and time outlive the call.
    let answer = unsafe {
        let mut set = std::mem::zeroed();
        libc::sigaddset(&raw mut set, libc::SIGUSR2);
        libc::syscall(libc::SYS_rt_sigtimedwait, &raw const set, 0_usize, &raw const time, 8_usize)
    };
    answer == -1 && errno() == libc::EAGAIN
}

fn semaphore(limit: Duration) -> bool {
    static SEMAPHORE: AtomicU64 = AtomicU64::new(u64::MAX);
    let time = time_of(limit);
    // SAFETY: the operation and the time outlive the call.
    unsafe {
        if SEMAPHORE.load(Ordering::Relaxed) == u64::MAX {
            let made = libc::semget(libc::IPC_PRIVATE, 1, 0o600);
            SEMAPHORE.store(made as u64, Ordering::Relaxed);
        }
        let semaphore = SEMAPHORE.load(Ordering::Relaxed) as i32;
        let mut take = libc::sembuf { sem_num: 0, sem_op: -1, sem_flg: 0 };
        let answer =
            libc::syscall(libc::SYS_semtimedop, semaphore, &raw mut take, 1, &raw const time);
        let was_late = answer == -1 && errno() == libc::EAGAIN;
        if !goes_on() {
            libc::semctl(semaphore, 0, libc::IPC_RMID);
        }
        was_late || !goes_on()
    }
}

/// Reads a byte that another thread writes after `limit`.
fn pipe(limit: Duration) -> bool {
    let mut ends = [0; 2];
    // SAFETY: the descriptors are closed once, after the writer has ended.
    unsafe {
        libc::pipe(ends.as_mut_ptr());
        let writer = thread::spawn(move || {
            thread::sleep(limit);
            libc::write(ends[1], [7_u8].as_ptr().cast(), 1)
        });
        let mut byte = [0_u8];
        let got = libc::read(ends[0], byte.as_mut_ptr().cast(), 1);
        let wrote = writer.join().unwrap_or(0);
        libc::close(ends[0]);
        libc::close(ends[1]);
        got == 1 && wrote == 1 && byte == [7]
    }
}

/// Receives on a socket with SO_RCVTIMEO: such calls are never restarted.
fn receive(limit: Duration) -> bool {
    // SAFETY: the byte outlives the call.
    times_out(limit, |end, byte| unsafe { libc::recv(end, (&raw mut *byte).cast(), 1, 0) })
}

fn read(limit: Duration) -> bool {
    // SAFETY: the byte outlives the call.
    times_out(limit, |end, byte| unsafe { libc::read(end, (&raw mut *byte).cast(), 1) })
}

fn times_out(limit: Duration, receive: impl Fn(i32, &mut u8) -> isize) -> bool {
    let mut ends = [0; 2];
    let limit = limit.max(Duration::from_millis(1));
    let time = libc::timeval { tv_sec: 0, tv_usec: limit.as_micros() as i64 };
    // SAFETY: all buffers outlive the calls; the descriptors are closed once.
    unsafe {
        libc::socketpair(libc::AF_UNIX, libc::SOCK_DGRAM, 0, ends.as_mut_ptr());
        let (level, name, size) = (libc::SOL_SOCKET, libc::SO_RCVTIMEO, size_of_val(&time) as u32);
        libc::setsockopt(ends[0], level, name, (&raw const time).cast(), size);
        let got = receive(ends[0], &mut 0);
        let was_late = got == -1 && errno() == libc::EAGAIN;
        libc::close(ends[0]);
        libc::close(ends[1]);
        was_late
    }
}

/// Bytes that one call transfers: more than a pipe or socket buffer holds.
const TRANSFER_BYTES: usize = 1 << 20;

/// Maximum bytes per call on the other end.
const PIECE_BYTES: usize = 5000;

/// Contents of the stream from `position` on. They repeat with period 251, so that a shifted or
/// repeated part is detected.
fn contents(position: u64, length_bytes: usize) -> Vec<u8> {
    (position..).take(length_bytes).map(|at| (at % 251) as u8).collect()
}

/// Threads with large transfers, which return short only if a signal arrives, and none does. A
/// transfer cut short by a killed injector must still have moved the right bytes.
fn transfers(most_short: u32) {
    let pipe = || -> [i32; 2] {
        let mut ends = [0; 2];
        // SAFETY: the call fills `ends`.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        ends
    };
    let sockets = || -> [i32; 2] {
        let mut ends = [0; 2];
        // SAFETY: the call fills `ends`.
        let made =
            unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, ends.as_mut_ptr()) };
        assert_eq!(made, 0);
        ends
    };
    let ([read, write], [to, from], [into, out]) = (pipe(), sockets(), sockets());
    thread::scope(|scope| {
        scope.spawn(move || {
            give("write", most_short, write, |end, bytes| {
                // SAFETY: the bytes outlive the call.
                unsafe { libc::write(end, bytes.as_ptr().cast(), bytes.len()) }
            })
        });
        scope.spawn(move || take_pieces(read));
        scope.spawn(move || {
            give("send", most_short, to, |end, bytes| {
                // SAFETY: the bytes outlive the call.
                unsafe { libc::send(end, bytes.as_ptr().cast(), bytes.len(), 0) }
            })
        });
        scope.spawn(move || take_pieces(from));
        scope.spawn(move || take_all(most_short, out));
        scope.spawn(move || give_pieces(into));
        scope.spawn(move || random(most_short));
    });
}

/// Checks the result of a transfer: complete, or one of the tolerated short ones. Returns the bytes
/// moved.
fn check_transfer(name: &str, most_short: u32, moved: isize) -> usize {
    static SHORT: AtomicU32 = AtomicU32::new(0);
    let all = TRANSFER_BYTES as isize;
    if moved != all {
        let before = SHORT.fetch_add(1, Ordering::Relaxed);
        if !(1..all).contains(&moved) || before >= most_short {
            fail(&format!("{name} moved {moved} bytes of {all}"));
        }
    }
    moved as usize
}

/// Spends time in user mode.
fn compute() {
    let mut sum = 0_u64;
    for step in 0..200_000_u64 {
        sum = std::hint::black_box(sum.wrapping_mul(6364136223846793005).wrapping_add(step));
    }
}

fn close(end: i32) {
    // SAFETY: each end is closed once, by the thread that owns it.
    unsafe { libc::close(end) };
}

fn give(name: &str, most_short: u32, end: i32, give: impl Fn(i32, &[u8]) -> isize) {
    let mut position = 0;
    while goes_on() {
        let moved = give(end, &contents(position, TRANSFER_BYTES));
        position += check_transfer(name, most_short, moved) as u64;
        compute();
    }
    close(end);
}

fn take_all(most_short: u32, end: i32) {
    let (mut position, mut bytes) = (0, vec![0; TRANSFER_BYTES]);
    while goes_on() {
        // SAFETY: the bytes outlive the call.
        let moved =
            unsafe { libc::recv(end, bytes.as_mut_ptr().cast(), bytes.len(), libc::MSG_WAITALL) };
        let moved = check_transfer("recv", most_short, moved);
        if bytes[..moved] != contents(position, moved) {
            fail("something else was received");
        }
        position += moved as u64;
        compute();
    }
    close(end);
}

fn give_pieces(end: i32) {
    let mut position = 0;
    loop {
        let bytes = contents(position, PIECE_BYTES);
        // SAFETY: the bytes outlive the call.
        match unsafe { libc::write(end, bytes.as_ptr().cast(), bytes.len()) } {
            // The other end has been closed.
            ..=0 => return close(end),
            moved => position += moved as u64,
        }
    }
}

fn take_pieces(end: i32) {
    let (mut position, mut bytes) = (0, [0; PIECE_BYTES]);
    loop {
        // SAFETY: the bytes outlive the call.
        match unsafe { libc::read(end, bytes.as_mut_ptr().cast(), bytes.len()) } {
            ..=0 => return close(end),
            moved => {
                if bytes[..moved as usize] != contents(position, moved as usize) {
                    fail("something else was written");
                }
                position += moved as u64;
            }
        }
    }
}

fn random(most_short: u32) {
    let mut bytes = vec![0; TRANSFER_BYTES];
    while goes_on() {
        // SAFETY: the bytes outlive the call.
        let moved = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        check_transfer("getrandom", most_short, moved);
        compute();
    }
}

static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(signal: i32) {
    if signal == libc::SIGUSR1 {
        HANDLED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Handles 10,000 timer signals per second, raises further ones, and checks that none is lost and
/// that no signal state has changed.
fn signals() {
    // SAFETY: the structures outlive the calls; the handler only counts.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = count as extern "C" fn(i32) as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGALRM, &raw const action, null_mut());
        action.sa_flags = 0;
        libc::sigaction(libc::SIGUSR1, &raw const action, null_mut());
        libc::signal(libc::SIGTRAP, libc::SIG_IGN);
        let every = libc::timeval { tv_sec: 0, tv_usec: 100 };
        let timer = libc::itimerval { it_interval: every, it_value: every };
        libc::setitimer(libc::ITIMER_REAL, &raw const timer, null_mut());
        let mut blocked: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&raw mut blocked, libc::SIGTRAP);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const blocked, null_mut());
    }
    let mut sum = 0_u64;
    while goes_on() {
        // SAFETY: the signal goes to this thread, which handles it before the call returns.
        unsafe {
            let before = HANDLED.load(Ordering::Relaxed);
            libc::raise(libc::SIGUSR1);
            if HANDLED.load(Ordering::Relaxed) != before + 1 {
                fail("a signal was lost");
            }
        }
        let mut expected = 0_u64;
        for step in 0..100_000_u64 {
            sum = sum.wrapping_add(std::hint::black_box(step));
            expected = expected.wrapping_add(std::hint::black_box(1));
        }
        if expected != 100_000 || sum != 4_999_950_000 {
            fail("a wrong sum");
        }
        sum = 0;
    }
    // SAFETY: the structures outlive the calls.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGTRAP, null_mut(), &raw mut action);
        let mut mask: libc::sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_BLOCK, null_mut(), &raw mut mask);
        let is_blocked = libc::sigismember(&raw const mask, libc::SIGTRAP) == 1;
        let others = (1..32).filter(|signal| libc::sigismember(&raw const mask, *signal) == 1);
        if action.sa_sigaction != libc::SIG_IGN || !is_blocked || others.count() != 1 {
            fail("what was set for signals has changed");
        }
    }
}

/// Blocks in a single system call until the end.
fn blocked() {
    let (mut ends, mut byte) = ([0; 2], [0_u8]);
    // SAFETY: the buffers outlive the calls.
    unsafe {
        libc::pipe(ends.as_mut_ptr());
        thread::spawn(move || {
            while goes_on() {
                thread::sleep(Duration::from_millis(5));
            }
            libc::write(ends[1], [7_u8].as_ptr().cast(), 1);
        });
        if libc::read(ends[0], byte.as_mut_ptr().cast(), 1) != 1 {
            fail("a read ended early");
        }
    }
}

/// Starts and ends threads continuously.
fn threads() {
    while goes_on() {
        let sums: Vec<_> = (0..4_u64)
            .map(|index| thread::spawn(move || (0..50_000).fold(index, |sum, step| sum ^ step)))
            .collect();
        for (index, sum) in sums.into_iter().enumerate() {
            let expected = (0..50_000).fold(index as u64, |sum, step| sum ^ step);
            if sum.join().ok() != Some(expected) {
                fail("a thread's sum is wrong");
            }
        }
    }
}

/// Starts programs continuously, by vfork as posix_spawn(3) does.
fn vforks() {
    while goes_on() {
        let ended = std::process::Command::new("/bin/true").status();
        if !ended.is_ok_and(|status| status.success()) {
            fail("a program that was started failed");
        }
    }
}

/// Spins under a seccomp filter that returns `answer` for madvise(2) and allows everything else.
fn filtered(answer: u32) {
    let instruction = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let filter = [
        instruction(0x20, 0, 0, 0),
        instruction(0x15, 0, 1, libc::SYS_madvise as u32),
        instruction(0x06, 0, 0, answer),
        instruction(0x06, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the program outlives the call.
    let set = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
    };
    if set != 0 {
        fail("no filter");
    }
    registers();
}
