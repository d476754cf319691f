//! The rings of all CPUs, and the records in them in order of time.
//!
//! Each CPU has two, so that a storm of minor faults cannot crowd out what matters more: one for
//! mappings, processes and major faults, and one for minor faults.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{Timespec, epoll};

use crate::perf::{self, Attributes, Flag, Kind, Record, Ring, record_at};

/// An event that never happens, by its number in `linux/perf_event.h`.
const NOTHING: u64 = 9;

/// The calling thread, where a thread is asked for.
const OWN_THREAD: u32 = 0;

/// Room of both rings of a CPU, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct RingBytes {
    main: usize,
    minor: usize,
}

/// It fits what the kernel lets an ordinary user lock (`kernel.perf_event_mlock_kb`).
const OF_USER: RingBytes = RingBytes { main: 128 << 10, minor: 256 << 10 };

/// The most of root, as long as all CPUs together have no more than this.
const OF_ROOT: RingBytes = RingBytes { main: 1 << 20, minor: 2 << 20 };
const OF_ROOT_IN_ALL: usize = 64 << 20;

/// Faults of a thread at one address within so short a time are one that two events told: a thread
/// can have an event of its own and one that it inherited.
const SAME_FAULT_NS: u64 = 5_000;

#[derive(Debug)]
struct CpuRing {
    /// It never happens, so that the ring stays while other events come and go.
    event: OwnedFd,
    ring: Ring,
    is_minor: bool,
    /// The fault that was read last: its thread, address and time.
    last: (u32, u64, u64),
}

/// Both rings of a CPU that is on.
#[derive(Debug)]
struct Cpu {
    number: u32,
    rings: [CpuRing; 2],
}

/// Where a record is that was read, which is told when its time has come.
#[derive(Clone, Copy, Debug)]
struct Place {
    at_ns: u64,
    begin: u32,
    is_minor: bool,
}

#[derive(Debug)]
pub struct Rings {
    cpus: Vec<Cpu>,
    epoll: OwnedFd,
    /// Records that were read and not told yet, and the order in which they will be.
    records: Vec<u8>,
    places: Vec<Place>,
}

impl Rings {
    /// Maps them, as large as the kernel permits.
    pub fn open() -> io::Result<Rings> {
        let cpus = perf::online_cpus();
        let is_root = rustix::process::geteuid().is_root();
        let mut bytes = if is_root { OF_ROOT } else { OF_USER };
        while is_root && (bytes.main + bytes.minor) * cpus.len() > OF_ROOT_IN_ALL {
            bytes = bytes.halved();
        }
        loop {
            match Rings::of(&cpus, bytes) {
                // What is locked for this user is used up, by others or by more CPUs.
                Err(error) if is_too_much(&error) && bytes.main > rustix::param::page_size() => {
                    bytes = bytes.halved();
                }
                opened => return opened,
            }
        }
    }

    fn of(cpus: &[u32], bytes: RingBytes) -> io::Result<Rings> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut opened = Vec::new();
        for number in cpus {
            match Cpu::open(*number, bytes) {
                Ok(cpu) => opened.push(cpu),
                // It was switched off meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
                Err(error) => return Err(error),
            }
        }
        for ring in opened.iter().flat_map(|cpu| &cpu.rings) {
            let data = epoll::EventData::new_u64(0);
            epoll::add(&epoll, &ring.event, data, epoll::EventFlags::IN)?;
        }
        Ok(Rings { cpus: opened, epoll, records: Vec::new(), places: Vec::new() })
    }

    /// The numbers of the CPUs, each with the events whose rings are for major faults and all that
    /// is no fault, and for minor faults.
    pub fn targets(&self) -> impl Iterator<Item = (u32, [&OwnedFd; 2])> {
        self.cpus.iter().map(|cpu| (cpu.number, cpu.rings.each_ref().map(|ring| &ring.event)))
    }

    pub fn has_records(&self) -> bool {
        let mut rings = self.cpus.iter().flat_map(|cpu| &cpu.rings);
        !self.places.is_empty() || rings.any(|ring| !ring.ring.is_empty())
    }

    /// Waits until a ring has something that matters, or for `timeout`. Returns whether the kernel
    /// said so.
    pub fn wait(&self, timeout: Duration) -> io::Result<bool> {
        let mut ready = Vec::with_capacity(1);
        let timeout = Timespec {
            tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut ready), Some(&timeout)) {
            Ok(count) => Ok(count > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Reads all that is there, and tells `take` what is not later than `until_ns`: of what is
    /// later, something earlier may not be in its ring yet.
    pub fn read(&mut self, until_ns: u64, mut take: impl FnMut(Record<'_>, bool)) {
        for ring in self.cpus.iter_mut().flat_map(|cpu| &mut cpu.rings) {
            ring.read(&mut self.records, &mut self.places);
        }
        // Each ring is in order already, for which this sort is made.
        self.places.sort_by_key(|place| place.at_ns);
        let count = self.places.partition_point(|place| place.at_ns <= until_ns);
        for place in &self.places[..count] {
            if let Some((record, _)) = record_at(&self.records[place.begin as usize..]) {
                take(record, place.is_minor);
            }
        }
        self.keep_from(count);
    }

    /// Forgets the places before `count`, and all records but those of the others.
    fn keep_from(&mut self, count: usize) {
        self.places.drain(..count);
        let mut kept = Vec::new();
        for place in &mut self.places {
            let bytes = &self.records[place.begin as usize..];
            let length = record_at(bytes).map_or(0, |(_, length)| length);
            place.begin = kept.len() as u32;
            kept.extend_from_slice(&bytes[..length]);
        }
        self.records.clear();
        self.records.extend_from_slice(&kept);
    }
}

impl RingBytes {
    fn halved(self) -> RingBytes {
        RingBytes { main: self.main / 2, minor: self.minor / 2 }
    }
}

fn is_too_much(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOMEM))
}

impl Cpu {
    fn open(number: u32, bytes: RingBytes) -> io::Result<Cpu> {
        let open = |bytes: usize, wake_bytes: usize, is_minor| {
            let nothing = Attributes::new(Attributes::SOFTWARE, NOTHING)
                .with(&[Flag::Disabled, Flag::ExcludeKernel])
                .waking_after(wake_bytes as u32);
            let event = perf::open(&nothing, OWN_THREAD, number)?;
            let ring = Ring::map(&event, bytes)?;
            Ok::<_, io::Error>(CpuRing { event, ring, is_minor, last: (0, 0, 0) })
        };
        // The first record wakes who waits; of minor faults those that begin to fill the ring do.
        let main = open(bytes.main, 1, false)?;
        let minor = open(bytes.minor, bytes.minor / 8, true)?;
        Ok(Cpu { number, rings: [main, minor] })
    }
}

impl CpuRing {
    fn read(&mut self, records: &mut Vec<u8>, places: &mut Vec<Place>) {
        let mut begin = records.len();
        self.ring.drain(records);
        while let Some((record, length)) = record_at(&records[begin..]) {
            let at_ns = record.origin().at_ns;
            if !(record.kind == Kind::Sample && self.is_told(&record)) {
                places.push(Place { at_ns, begin: begin as u32, is_minor: self.is_minor });
            }
            begin += length;
        }
    }

    /// Whether a fault is the last that was read, told by another event.
    fn is_told(&mut self, sample: &Record<'_>) -> bool {
        let origin = sample.origin();
        let (tid, address, at_ns) = self.last;
        self.last = (origin.tid, sample.address().unwrap_or(0), origin.at_ns);
        (tid, address) == (self.last.0, self.last.1)
            && origin.at_ns.saturating_sub(at_ns) < SAME_FAULT_NS
    }
}
