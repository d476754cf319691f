//! Calls that hand several parts of a mapping to the kernel.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use libc::iovec;

use crate::support::bench::{Bench, DATA_BYTES};
use crate::support::draws::Digest;
use crate::support::mapping::Mapping;
use crate::support::outcome::End;

/// Bytes of one part.
const PART_BYTES: usize = 256 << 10;

/// Sends a file from its mapping in parts by one of the calls, and takes the time.
pub fn program(arguments: &[String]) {
    let [path, how] = arguments else { panic!("a path and a call are needed") };
    let mapping = Mapping::of(&File::open(path).expect("the file can be opened"));
    let (sender, receiver) = UnixStream::pair().expect("two sockets");
    let begun = Instant::now();
    let received = thread::spawn(move || receive(receiver));
    // SAFETY: the name ends with a zero.
    let file = unsafe { OwnedFd::from_raw_fd(libc::memfd_create(c"target".as_ptr(), 0)) };
    let mut done = 0;
    while done < mapping.bytes() {
        let left = mapping.bytes() - done;
        let from = mapping.start().wrapping_add(done);
        done += send(how, (sender.as_raw_fd(), file.as_raw_fd()), from, left.min(PART_BYTES));
    }
    drop(sender);
    let (bytes, digest) = received.join().expect("it ends");
    eprintln!("{}", begun.elapsed().as_micros());
    println!("{done} {bytes} {digest:x}");
}

fn receive(mut from: UnixStream) -> (u64, u64) {
    let (mut bytes, mut digest) = (0, Digest::NEW);
    let mut block = vec![0; PART_BYTES];
    loop {
        let read = from.read(&mut block).expect("the sender is there");
        if read == 0 {
            return (bytes, digest.0);
        }
        bytes += read as u64;
        block[..read].iter().for_each(|byte| digest.add(u64::from(*byte)));
    }
}

/// One call. Returns how much it has taken.
fn send(how: &str, (socket, file): (i32, i32), from: *mut u8, bytes: usize) -> usize {
    let mut part = iovec { iov_base: from.cast(), iov_len: bytes };
    // SAFETY: all of it may be zero.
    let mut one: libc::mmsghdr = unsafe { std::mem::zeroed() };
    one.msg_hdr.msg_iov = &raw mut part;
    one.msg_hdr.msg_iovlen = 1;
    // SAFETY: the part is inside the mapping, and the message has no more.
    let taken = unsafe {
        match how {
            "sendmsg" => libc::sendmsg(socket, &raw const one.msg_hdr, 0),
            "sendmmsg" => match libc::sendmmsg(socket, &raw mut one, 1, 0) {
                1 => one.msg_len as isize,
                failed => failed as isize,
            },
            "pwritev2" => libc::pwritev2(file, &raw const part, 1, 0, 0),
            _ => panic!("{how} is no call"),
        }
    };
    assert!(taken > 0, "{}", io::Error::last_os_error());
    taken as usize
}

/// They are as fast as without the library, or nearly.
pub fn sends(bench: &Bench) {
    let data = bench.data();
    let path = data.to_str().expect("a plain name");
    for how in ["sendmsg", "sendmmsg", "pwritev2"] {
        let both = bench.both(16 << 20, &[&data], || bench.own("sends", &[path, how]));
        assert_eq!(both.plain.stdout(), both.governed.stdout(), "{how}");
        assert_eq!(both.governed.end, End::Exited(0), "{how}: {:?}", both.governed);
        assert!(both.plain.stdout().starts_with(&DATA_BYTES.to_string()), "{how}");
        let [plain, governed] = [&both.plain, &both.governed].map(|of| {
            let micros = of.stderr().trim().parse();
            Duration::from_micros(micros.unwrap_or_else(|_| panic!("{how}: {}", of.stderr())))
        });
        println!("programs: {how} takes {plain:.1?}, {governed:.1?} when governed");
        // Recording is slower, as METHOD says.
        let is_quick = governed < plain * 2 + Duration::from_millis(100);
        assert!(is_quick || bench.records(), "{how}: {governed:?}");
        both.reads_as_much();
    }
}

/// Writes a vector of many parts in a thread that has little stack, where the memory is mapped and
/// where it is not.
pub fn small_stack_program(arguments: &[String]) {
    let [path] = arguments else { panic!("a path is needed") };
    let mapping = Mapping::of(&File::open(path).expect("the file can be opened"));
    let own = vec![7_u8; 1 << 20];
    for start in [own.as_ptr().addr(), mapping.start().addr()] {
        let writing = thread::Builder::new().stack_size(64 << 10).spawn(move || {
            let parts: Vec<iovec> = (0..1024)
                .map(|number| iovec {
                    iov_base: std::ptr::with_exposed_provenance_mut(start + number * 1000),
                    iov_len: 1000,
                })
                .collect();
            // SAFETY: the name ends with a zero, and all parts are in memory.
            unsafe {
                let target = libc::memfd_create(c"target".as_ptr(), 0);
                libc::writev(target, parts.as_ptr(), 1024)
            }
        });
        println!("{}", writing.expect("a thread").join().expect("it ends"));
    }
}

pub fn small_stack(bench: &Bench) {
    let data = bench.data();
    let path = data.to_str().expect("a plain name");
    bench.both(16 << 20, &[&data], || bench.own("small stack", &[path])).alike().well();
}

/// A library that cannot say why it does nothing does not end the program for it.
pub fn nobody_listens(bench: &Bench) {
    let (reader, writer) = io::pipe().expect("a pipe");
    drop(reader);
    let statistics = bench.directory.join("nobody-listens");
    let mut command = Command::new("/bin/true");
    bench.library.govern(&mut command, 16 << 20, &statistics);
    command.env(filemap_control::variable::SWITCH, "maybe").stderr(Stdio::from(writer));
    let status = command.status().expect("it starts");
    assert!(status.success(), "{status}");
}
