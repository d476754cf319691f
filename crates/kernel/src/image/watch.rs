//! Watches a machine from outside: what its console says, and whether it lives at all.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use super::console::{Complaint, Reader, Severity};

/// What a guest writes to its port each [`BEAT_EVERY`] while it lives.
pub(super) const BEAT: u8 = b'.';
pub(super) const BEAT_EVERY: Duration = Duration::from_millis(500);

/// A guest that lives has written to its port in so much of its time, even where its clock is slow
/// as it was set on a busy host.
const SILENT_AFTER: Duration = Duration::from_secs(5);

/// How many times as long it may take where there are several CPUs: which of them loops, the
/// kernel's own detectors say, and an interrupt does not. The time of a guest whose CPUs take turns
/// goes slower.
const SEVERAL_FACTOR: u32 = 2;
const TURNS_FACTOR: u32 = 5;

/// A complaint has come to its end that says nothing more for so long.
const WHOLE_AFTER: Duration = Duration::from_millis(700);

/// In so much of its time a guest has begun to answer to an interrupt that it cannot mask.
const ANSWERS_WITHIN: Duration = Duration::from_millis(1500);

/// A detector of the guest is believed where the guest had so much of the time that it speaks of,
/// and half of it. While it boots none is: the detectors are set after that, and a boot that takes
/// too long ends by its own limit.
const BELIEVED: Duration = Duration::from_secs(2);
const BELIEVED_PART: u32 = 2;

/// The time that a detector speaks of which does not say.
const UNSAID: Duration = Duration::from_secs(5);

/// Of so much time it is known how much the guest had.
const KNOWN: Duration = Duration::from_secs(120);

/// What is looked at less often says nothing of the time between.
const LONGEST_LOOK: Duration = Duration::from_secs(1);

/// How much is read of the console at once.
const PIECE_BYTES: usize = 64 << 10;

/// What is known of a machine.
#[derive(Debug)]
pub(super) struct Watch {
    reader: Reader,
    /// How much of the console has been read.
    read: u64,
    /// When it last said something.
    said_at: Instant,
    time: OwnTime,
    beats: u64,
    /// How much time the guest had when it last showed that it lives; `None` before the first.
    lived: Option<Duration>,
    silent_after: Duration,
    /// How much time it had when it was asked by an interrupt what it does.
    asked_at: Option<Duration>,
    is_over: bool,
}

impl Watch {
    /// Of the process `pid`, a machine with so many CPUs, which may take turns.
    pub(super) fn of(pid: u32, cpus: u32, takes_turns: bool) -> Self {
        let factor = match cpus {
            _ if takes_turns => TURNS_FACTOR,
            0 | 1 => 1,
            _ => SEVERAL_FACTOR,
        };
        Watch {
            reader: Reader::default(),
            read: 0,
            said_at: Instant::now(),
            time: OwnTime::of(pid),
            beats: 0,
            lived: None,
            silent_after: SILENT_AFTER * factor,
            asked_at: None,
            is_over: false,
        }
    }

    /// What is new, where `is_last` says that nothing comes after what is there. `ask` interrupts
    /// the guest, so that it says what it does.
    pub(super) fn look(
        &mut self,
        console: &File,
        port: &File,
        is_last: bool,
        ask: impl FnOnce(),
    ) -> Vec<Complaint> {
        self.time.look();
        self.read_on(console);
        let is_whole = self.said_at.elapsed() >= WHOLE_AFTER;
        if self.reader.is_within() && (is_last || is_whole) {
            self.reader.close();
        }
        let mut new = Vec::new();
        while let Some(mut complaint) = self.reader.next() {
            if self.asked_at.is_some() {
                complaint.lines.insert(0, self.silence());
            }
            let is_late = complaint.severity == Severity::Late;
            if !is_late || self.believes(complaint.seconds().unwrap_or(UNSAID)) {
                new.push(complaint);
            }
        }
        self.is_over |= new.iter().any(|complaint| complaint.severity != Severity::Warned);
        if !is_last && !self.is_over {
            new.extend(self.silent(port, ask));
        }
        new
    }

    /// Whether something took `time` that a detector speaks of, and not the machine.
    fn believes(&self, time: Duration) -> bool {
        let enough = BELIEVED.max(time / BELIEVED_PART);
        self.lived.is_some() && self.time.of_last(time) >= enough
    }

    /// Reads what the console has said since.
    fn read_on(&mut self, console: &File) {
        let mut piece = vec![0; PIECE_BYTES];
        while let Ok(bytes @ 1..) = console.read_at(&mut piece, self.read) {
            self.read += bytes as u64;
            self.said_at = Instant::now();
            self.reader.push(&piece[..bytes]);
        }
    }

    /// A complaint about a guest that shows no life, after it was asked.
    fn silent(&mut self, port: &File, ask: impl FnOnce()) -> Option<Complaint> {
        let beats = port.metadata().map_or(0, |port| port.len());
        if beats > self.beats {
            (self.beats, self.lived, self.asked_at) = (beats, Some(self.time.had), None);
        }
        if self.time.had.saturating_sub(self.lived?) < self.silent_after {
            return None;
        }
        let asked_at = *self.asked_at.get_or_insert_with(|| {
            ask();
            self.time.had
        });
        if self.time.had - asked_at < ANSWERS_WITHIN || self.reader.is_within() {
            return None;
        }
        self.is_over = true;
        Some(Complaint {
            severity: Severity::Crashed,
            task: self.reader.task(),
            lines: vec![self.silence()],
        })
    }

    fn silence(&self) -> String {
        format!(
            "no sign of life in {} s: a CPU loops in the kernel, or all have stopped",
            self.silent_after.as_secs()
        )
    }
}

/// The time in which a process runs, or waits for nothing but itself. It leaves out when the
/// machine has no processor for it, or no page of its memory, and when somebody has stopped it.
#[derive(Debug)]
struct OwnTime {
    pid: u32,
    had: Duration,
    looked_at: Instant,
    threads: Vec<Thread>,
    /// When it had how much, for as long as a complaint is about.
    course: VecDeque<(Instant, Duration)>,
}

impl OwnTime {
    fn of(pid: u32) -> Self {
        let now = Instant::now();
        OwnTime {
            pid,
            had: Duration::ZERO,
            looked_at: now,
            threads: Vec::new(),
            course: VecDeque::from([(now, Duration::ZERO)]),
        }
    }

    fn look(&mut self) {
        let now = Instant::now();
        let passed = now - self.looked_at;
        let mut threads = threads(self.pid);
        let is_kept = threads.iter().any(|thread| thread.is_kept);
        let waited = threads.iter_mut().map(|thread| {
            let before = self.threads.iter().find(|before| before.name == thread.name);
            before.map_or(Duration::ZERO, |before| thread.waited_since(before, passed))
        });
        let waited = waited.max().unwrap_or(Duration::ZERO);
        // Whoever looks so late had no processor either.
        if passed <= LONGEST_LOOK && !is_kept {
            self.had += passed.saturating_sub(waited);
        }
        (self.looked_at, self.threads) = (now, threads);
        self.course.push_back((now, self.had));
        let is_old = |(at, _): &(Instant, Duration)| now - *at > KNOWN;
        while self.course.get(1).is_some_and(is_old) {
            self.course.pop_front();
        }
    }

    /// How much it had of the last `time`, as far as that is known.
    fn of_last(&self, time: Duration) -> Duration {
        let is_before = |(at, _): &&(Instant, Duration)| at.elapsed() > time;
        let before = self.course.iter().take_while(is_before).last().or(self.course.front());
        self.had - before.map_or(Duration::ZERO, |(_, had)| *had)
    }
}

/// A thread of a process.
#[derive(Debug)]
struct Thread {
    name: String,
    ran_ns: u64,
    /// How long it has waited for a processor, in waits that are over.
    waited_ns: u64,
    /// How much of the wait that it is in was counted.
    counted: Duration,
    /// Whether it would run if it had a processor.
    is_ready: bool,
    /// Whether it can do nothing now: it is stopped, or waits for a page or a disk.
    is_kept: bool,
}

impl Thread {
    /// How much of the time that `passed` since `before` it waited for a processor. The kernel
    /// counts a wait when it is over, which for a thread of a busy machine is many looks later.
    fn waited_since(&mut self, before: &Thread, passed: Duration) -> Duration {
        let over = Duration::from_nanos(self.waited_ns.saturating_sub(before.waited_ns));
        if over.is_zero() && self.is_ready && self.ran_ns == before.ran_ns {
            self.counted = before.counted + passed;
            return passed;
        }
        over.saturating_sub(before.counted)
    }
}

/// Those of the process `pid`. None where the kernel does not tell.
fn threads(pid: u32) -> Vec<Thread> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let thread = threads.filter_map(|thread| {
        let read = |name: &str| fs::read_to_string(thread.path().join(name)).ok();
        let state = read("stat")?.rsplit_once(") ")?.1.chars().next()?;
        let times = read("schedstat")?;
        let mut times = times.split(' ').map(str::parse);
        Some(Thread {
            name: thread.file_name().into_string().ok()?,
            ran_ns: times.next()?.ok()?,
            waited_ns: times.next()?.ok()?,
            counted: Duration::ZERO,
            is_ready: state == 'R',
            is_kept: ['D', 'T', 't'].contains(&state),
        })
    });
    thread.collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::thread::sleep;

    use super::*;

    struct Guest {
        watch: Watch,
        console: File,
        port: File,
        asked: u32,
    }

    impl Guest {
        fn new() -> Guest {
            let mut watch = Watch::of(std::process::id(), 1, false);
            watch.silent_after = Duration::from_millis(100);
            let file = || tempfile::tempfile().unwrap();
            Guest { watch, console: file(), port: file(), asked: 0 }
        }

        fn look(&mut self, is_last: bool) -> Vec<Complaint> {
            let ask = || self.asked += 1;
            self.watch.look(&self.console, &self.port, is_last, ask)
        }

        /// Looks until there is something, for a time in which a loaded machine gives some.
        fn look_long(&mut self) -> Vec<Complaint> {
            for _ in 0..1000 {
                let found = self.look(false);
                if !found.is_empty() {
                    return found;
                }
                sleep(Duration::from_millis(10));
            }
            Vec::new()
        }
    }

    #[test]
    fn a_guest_that_is_silent_is_asked_and_told() {
        let mut guest = Guest::new();
        sleep(Duration::from_millis(200));
        assert_eq!(guest.look(false), [], "it boots");
        guest.port.write_all(&[BEAT]).unwrap();
        let found = guest.look_long();
        assert_eq!((found.len(), guest.asked), (1, 1));
        assert!(found[0].lines[0].starts_with("no sign of life"), "{found:?}");
    }

    #[test]
    fn what_a_silent_guest_says_it_does_is_told() {
        let mut guest = Guest::new();
        guest.port.write_all(&[BEAT]).unwrap();
        while guest.asked == 0 {
            assert_eq!(guest.look(false), []);
            sleep(Duration::from_millis(10));
        }
        guest.console.write_all(b"Kernel panic - not syncing: NMI\n").unwrap();
        assert_eq!(guest.look(false), [], "more may come");
        let found = guest.look_long();
        assert_eq!(found[0].lines[1], "Kernel panic - not syncing: NMI");
        assert!(found[0].lines[0].starts_with("no sign of life"), "{found:?}");
    }

    #[test]
    fn a_wait_for_a_processor_is_counted_once_and_while_it_lasts() {
        let thread = |ran_ns, waited_ns| Thread {
            name: "7".into(),
            ran_ns,
            waited_ns,
            counted: Duration::ZERO,
            is_ready: true,
            is_kept: false,
        };
        let look = Duration::from_nanos(100);
        let first = thread(50, 20);
        let mut second = thread(50, 20);
        assert_eq!(second.waited_since(&first, look), look, "it has not run");
        let mut third = thread(50, 20);
        assert_eq!(third.waited_since(&second, look), look);
        let mut fourth = thread(70, 20 + 230);
        assert_eq!(fourth.waited_since(&third, look), Duration::from_nanos(30));
        let mut fifth = thread(170, 250);
        assert_eq!(fifth.waited_since(&fourth, look), Duration::ZERO);
        let mut asleep = Thread { is_ready: false, ..thread(170, 250) };
        assert_eq!(asleep.waited_since(&fifth, look), Duration::ZERO);
    }

    #[test]
    fn a_detector_is_not_believed_of_a_guest_that_had_no_time() {
        let mut guest = Guest::new();
        let stuck = b"watchdog: BUG: soft lockup - CPU#0 stuck for 4s! [init:71]\n";
        let long = b"watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [swapper/0:1]\n";
        guest.watch.time.had += BELIEVED;
        guest.console.write_all(stuck).unwrap();
        assert_eq!(guest.look(true), [], "it boots");
        guest.port.write_all(&[BEAT]).unwrap();
        assert_eq!(guest.look(false), []);
        guest.watch.time.had = Duration::ZERO;
        guest.watch.time.course = VecDeque::from([(Instant::now(), Duration::ZERO)]);
        guest.console.write_all(stuck).unwrap();
        assert_eq!(guest.look(true), []);
        guest.watch.time.had += BELIEVED;
        guest.console.write_all(long).unwrap();
        assert_eq!(guest.look(true), [], "it had 2 s of 22");
        guest.console.write_all(stuck).unwrap();
        assert_eq!(guest.look(true)[0].severity, Severity::Late);
    }
}
