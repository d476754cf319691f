//! Threads and processes that the program starts.

use std::ffi::CString;
use std::io;
use std::ptr;
use std::thread;

use crate::events::set_of;
use crate::program::Program;
use crate::support::bench::AS;
use crate::support::draws::{Digest, Draws};
use crate::support::mapping::{Mapping, PAGE_BYTES};

/// Deeper processes start none.
const DEEPEST: u64 = 2;

impl Program {
    /// Threads that each map parts of a file and look at them; some block all signals.
    pub fn threads(&mut self) {
        let seeds: Vec<u64> = (0..4).map(|_| self.draws.next()).collect();
        let kept = &self.kept;
        let digests: Vec<u64> = thread::scope(|scope| {
            let threads: Vec<_> =
                seeds.iter().map(|&seed| scope.spawn(move || maps_and_looks(kept, seed))).collect();
            threads.into_iter().map(|of| of.join().expect("it ends")).collect()
        });
        digests.into_iter().for_each(|digest| self.digest.add(digest));
    }

    /// A child that goes on alone for a while. Its end tells what it saw.
    pub fn fork(&mut self) {
        if self.depth >= DEEPEST {
            return;
        }
        // SAFETY: no other thread runs.
        let child = unsafe { libc::fork() };
        if child == 0 {
            self.depth += 1;
            for _ in 0..15 {
                // What it did to files would depend on who comes first.
                self.step();
            }
            let code = (self.digest.0 ^ self.digest.0 >> 32) as i32 & 0x7f;
            // SAFETY: it ends this process only.
            unsafe { libc::_exit(code) };
        }
        self.wait(child);
    }

    fn wait(&mut self, child: i32) {
        let mut status = 0;
        // SAFETY: it is our child.
        let waited = unsafe { libc::waitpid(child, &mut status, 0) };
        self.told(if waited == child { 0 } else { -1 });
        self.digest.add(status as u64);
    }

    /// Another program of this kind, by posix_spawn(3).
    pub fn spawn(&mut self) {
        if self.depth >= DEEPEST {
            return;
        }
        let numbers = [self.draws.next() >> 44, 0, self.digest.0, self.depth + 1];
        let words = self.words(numbers[0], &numbers[1..]);
        let pointers = pointers(&words);
        let mut child = 0;
        // SAFETY: the lists end with null pointers; `environ` is the program's.
        let failed = unsafe {
            let environment = libc::environ.cast_const().cast();
            let (program, list) = (pointers[0], pointers.as_ptr().cast());
            libc::posix_spawn(&mut child, program, ptr::null(), ptr::null(), list, environment)
        };
        self.told(failed.into());
        if failed == 0 {
            self.wait(child);
        }
    }

    /// The words of the command by which this program is run again.
    fn words(&self, seed: u64, rest: &[u64]) -> Vec<CString> {
        let own = std::env::current_exe().expect("the test has a path");
        let name = |path: &std::path::Path| path.to_str().expect("a plain name").to_string();
        let mut words = vec![name(&own), AS.to_string(), seed.to_string(), name(&self.directory)];
        words.extend(rest.iter().map(ToString::to_string));
        words.into_iter().map(|word| CString::new(word).expect("no zero")).collect()
    }

    /// Becomes this program again, which goes on.
    pub fn exec(&mut self, seed: u64, done: u64) {
        let words = self.words(seed, &[done, self.digest.0, self.depth]);
        let pointers = pointers(&words);
        // SAFETY: the list ends with a null pointer.
        unsafe { libc::execv(pointers[0], pointers.as_ptr()) };
        panic!("{}", io::Error::last_os_error());
    }
}

fn pointers(words: &[CString]) -> Vec<*const libc::c_char> {
    words.iter().map(|word| word.as_ptr()).chain([ptr::null()]).collect()
}

fn maps_and_looks(file: &std::fs::File, seed: u64) -> u64 {
    let mut draws = Draws::new(seed);
    // Signals that the program counts go to its first thread.
    let signals: Vec<i32> = match draws.below(2) {
        0 => (1..32).collect(),
        _ => vec![libc::SIGALRM, libc::SIGCHLD, libc::SIGUSR1],
    };
    // SAFETY: the set is initialised.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set_of(&signals), ptr::null_mut()) };
    let mut digest = Digest::NEW;
    for _ in 0..6 {
        let first = draws.below(700) as usize;
        let pages = 1 + draws.below(300) as usize;
        let (offset, bytes) = (first * PAGE_BYTES, pages * PAGE_BYTES);
        let mapping = Mapping::with(file, offset, bytes, libc::MAP_SHARED).expect("a mapping");
        for _ in 0..6 {
            digest.add(mapping.word(draws.below(pages as u64)));
        }
    }
    digest.0
}
