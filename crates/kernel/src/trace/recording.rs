//! The recording of one traced run of a job.

use std::path::PathBuf;

use filemap_job::ShownKinds;
use filemap_job::program::Job;

use super::decisions::{TracedThread, decisions};
use super::event::{TraceEvent, Tracepoint};
use super::observer::Observation;
use super::packed::{EventReader, PackedEvents, write_number, write_optional};
use crate::image::{FNV_BASIS, Incident, fnv1a};
use crate::probe::ProbeProcess;
use crate::{Error, engine};

/// Prefix of a recording; the digit is the version.
const MAGIC: &[u8] = b"filemap-events 1\n";

/// The recorded events of one run. A guest sends it to the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// What this kernel shows.
    pub(super) shown: ShownKinds,
    /// The traced thread.
    pub(super) pid: u32,
    /// Addresses of its mappings.
    pub(super) addresses: Vec<u64>,
    /// Number of files.
    pub(super) files: usize,
    /// When the run began, if other processes had brought pages back.
    pub(super) warm_at_ns: Option<u64>,
    /// Bytes read from storage on its behalf, if the kernel accounts them.
    pub(super) read_bytes: Option<u64>,
    /// Duration of the accesses.
    pub(super) elapsed_ns: u64,
    /// Runs discarded before this one.
    pub(super) repeated: u32,
    pub(super) events: PackedEvents,
    /// Kernel warnings of a booted kernel, added by the host.
    pub(crate) warnings: Vec<Incident>,
}

impl Recording {
    /// The kinds of lines that the recorded kernel shows.
    pub fn shown_kinds(&self) -> ShownKinds {
        self.shown
    }

    /// Number of events.
    pub fn events(&self) -> u64 {
        self.events.len()
    }

    /// The decisions of `program`, which may have run on another machine.
    ///
    /// # Errors
    /// The recording belongs to another program.
    pub fn observation(&self, program: &Job) -> Result<Observation, Error> {
        // Files are identified by their order, not by path.
        let paths = vec![PathBuf::from("file"); program.files.len()];
        let process = engine::process(program, &paths)?;
        let is_of_it = self.files == paths.len() && self.addresses.len() == process.mappings.len();
        if !is_of_it {
            let reason = "it belongs to a job with other files or mappings";
            return Err(damaged(reason).into());
        }
        Ok(self.process_observation(program, &process))
    }

    /// The decisions of `program`, which ran as `process`.
    pub(super) fn process_observation(&self, program: &Job, process: &ProbeProcess) -> Observation {
        let (rules, pmd_order) = (&program.rules, program.machine.arch.pmd_order());
        let (pid, addresses) = (self.pid, self.addresses.as_slice());
        let child = TracedThread { pid, process, addresses, rules, pmd_order, shown: self.shown };
        Observation {
            shown: self.shown,
            decisions: decisions(self.events.iter(), &child),
            read_bytes: self.read_bytes,
            elapsed_ns: self.elapsed_ns,
            evicted_by_others: self.evicted_by_others(),
            repeated: self.repeated,
            warnings: self.warnings.clone(),
        }
    }

    /// When other processes last added or removed pages of the files, if they did.
    pub(super) fn disturbed_at_ns(&self) -> Option<u64> {
        let is_of_others = |event: &TraceEvent| {
            let moves =
                matches!(event.tracepoint, Tracepoint::Removed { .. } | Tracepoint::Added { .. });
            moves && event.pid != self.pid
        };
        let of_others = self.events.iter().filter(is_of_others).last();
        of_others.map(|event| event.at_ns).or(self.warm_at_ns)
    }

    /// Pages that other processes evicted.
    pub(super) fn evicted_by_others(&self) -> u64 {
        let evicted = self.events.iter().map(|event| match event.tracepoint {
            Tracepoint::Removed { order, .. } if event.pid != self.pid => order.pages(),
            _ => 0,
        });
        evicted.sum()
    }

    /// Encodes the recording: a few million events take some ten million bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.push(self.shown.bits());
        write_number(&mut bytes, u64::from(self.pid));
        write_number(&mut bytes, self.addresses.len() as u64);
        self.addresses.iter().for_each(|address| write_number(&mut bytes, *address));
        write_number(&mut bytes, self.files as u64);
        write_optional(&mut bytes, self.warm_at_ns);
        write_optional(&mut bytes, self.read_bytes);
        write_number(&mut bytes, self.elapsed_ns);
        write_number(&mut bytes, u64::from(self.repeated));
        write_number(&mut bytes, self.events.len());
        bytes.extend_from_slice(self.events.bytes());
        let check = fnv1a(FNV_BASIS, &bytes);
        bytes.extend_from_slice(&check.to_le_bytes());
        bytes
    }

    /// Decodes a recording.
    ///
    /// # Errors
    /// The bytes are truncated, damaged, or of another version.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(damaged("it begins with no known header"))?;
        let (_, check) = rest.split_last_chunk().ok_or(damaged("it is cut short"))?;
        let checked = &bytes[..bytes.len() - check.len()];
        if fnv1a(FNV_BASIS, checked) != u64::from_le_bytes(*check) {
            return Err(damaged("its checksum does not match").into());
        }
        let read = Self::read(&checked[MAGIC.len()..]);
        Ok(read.ok_or(damaged("it was not written by this version"))?)
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = EventReader::new(bytes);
        let seen = ShownKinds::from_bits(reader.byte()?);
        let pid = reader.number()?.try_into().ok()?;
        let addresses = (0..reader.number()?).map(|_| reader.number()).collect::<Option<_>>()?;
        let files = reader.number()?.try_into().ok()?;
        let warm_at_ns = reader.optional()?;
        let read_bytes = reader.optional()?;
        let elapsed_ns = reader.number()?;
        let repeated = reader.number()?.try_into().ok()?;
        let count = reader.number()?;
        let events = PackedEvents::from_bytes(reader.rest().to_vec(), count, files)?;
        Some(Recording {
            shown: seen,
            pid,
            addresses,
            files,
            warm_at_ns,
            read_bytes,
            elapsed_ns,
            repeated,
            events,
            warnings: Vec::new(),
        })
    }
}

fn damaged(reason: &str) -> crate::image::Error {
    crate::image::Error::Damaged { reason: format!("of its recording: {reason}") }
}

#[cfg(test)]
mod tests {
    use filemap_core::decision::ReadaheadSnapshot;
    use filemap_core::units::{Order, PageCount, PageIndex};
    use filemap_job::random::Rng;

    use super::*;

    /// A number of any length.
    fn any(rng: &mut Rng) -> u64 {
        let bits = rng.below(65) as u32;
        if bits == 0 { 0 } else { rng.next() >> (64 - bits) }
    }

    fn any_tracepoint(rng: &mut Rng) -> Tracepoint {
        let start = PageIndex(any(rng));
        let order = Order(rng.next() as u8);
        let (size, async_size) = (PageCount(any(rng)), PageCount(any(rng)));
        let last = PageIndex(any(rng));
        match rng.below(10) {
            kind @ 0..2 => {
                let found = ReadaheadSnapshot {
                    index: start,
                    req: PageCount(any(rng)),
                    order,
                    size,
                    async_size,
                    mmap_miss: rng.next() as u16,
                    previous_end: rng.chance(50).then(|| any(rng)),
                };
                match kind {
                    0 => Tracepoint::SyncReadahead(found),
                    _ => Tracepoint::AsyncReadahead(found),
                }
            }
            2 => {
                let ra_pages = PageCount(any(rng));
                Tracepoint::Window { start, order, size, async_size, ra_pages }
            }
            3 => Tracepoint::BasePages { start, size, async_size },
            4 => Tracepoint::Added { start, order },
            5 => Tracepoint::Removed { start, order },
            6 => Tracepoint::Fault { index: start },
            7 => Tracepoint::MapPages { from: start, last },
            8 => Tracepoint::Read { from: start, last },
            _ => Tracepoint::UserFault { address: any(rng) },
        }
    }

    fn any_recording(rng: &mut Rng, count: u64) -> (Recording, Vec<TraceEvent>) {
        let files = 1 + rng.below(5) as usize;
        let event = |rng: &mut Rng| TraceEvent {
            at_ns: any(rng),
            cpu: rng.next() as u32,
            pid: if rng.chance(50) { 7 } else { rng.next() as u32 },
            file: rng.below(files as u64) as usize,
            tracepoint: any_tracepoint(rng),
        };
        let events: Vec<TraceEvent> = (0..count).map(|_| event(rng)).collect();
        let mut packed = PackedEvents::default();
        events.iter().for_each(|event| packed.push(event));
        let recording = Recording {
            shown: ShownKinds::from_bits(rng.next() as u8),
            pid: rng.next() as u32,
            addresses: (0..rng.below(4)).map(|_| any(rng)).collect(),
            files,
            warm_at_ns: rng.chance(50).then(|| any(rng)),
            read_bytes: rng.chance(50).then(|| any(rng)),
            elapsed_ns: any(rng),
            repeated: rng.next() as u32,
            events: packed,
            warnings: Vec::new(),
        };
        (recording, events)
    }

    #[test]
    fn random_recordings_round_trip() {
        for seed in 1..200 {
            let mut rng = Rng(seed);
            let count = rng.below(300);
            let (recording, events) = any_recording(&mut rng, count);
            let back = Recording::decode(&recording.encode());
            let back = back.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert_eq!(back, recording, "seed {seed}");
            assert!(back.events.iter().eq(events), "seed {seed}");
            assert_eq!(back.events(), count, "seed {seed}");
        }
    }

    #[test]
    fn rejects_truncation_and_flipped_bits() {
        let (recording, _) = any_recording(&mut Rng(3), 40);
        let bytes = recording.encode();
        for at in 0..bytes.len() {
            assert!(Recording::decode(&bytes[..at]).is_err(), "cut at {at}");
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                assert!(Recording::decode(&damaged).is_err(), "bit {bit} of byte {at}");
            }
        }
        assert!(Recording::decode(&[bytes.as_slice(), &[0]].concat()).is_err());
    }

    /// Invalid content with a valid checksum must not cause an out-of-bounds index.
    #[test]
    fn rejects_invalid_content_with_valid_checksum() {
        let checked = |body: &[u8]| {
            let bytes = [MAGIC, body].concat();
            let check = fnv1a(FNV_BASIS, &bytes).to_le_bytes();
            Recording::decode(&[bytes.as_slice(), &check].concat())
        };
        // Shown bits, PID, no addresses, one file, no times, no bytes, 0 ns, not repeated.
        let head = [0xff, 7, 0, 1, 0, 0, 0, 0];
        let with = |rest: &[u8]| checked(&[&head[..], rest].concat());
        let fault = |file: u8| [6 | 1 << 5 | 1 << 6, file, 0, 0];
        assert!(with(&[0]).is_ok());
        assert!(with(&[&[1][..], &fault(0)].concat()).is_ok());
        assert!(with(&[&[1][..], &fault(1)].concat()).is_err(), "a file that there is none of");
        assert!(with(&[&[2][..], &fault(0)].concat()).is_err(), "fewer events than it says");
        assert!(with(&[1, 0x1f, 0, 0]).is_err(), "an unknown tracepoint");
        assert!(with(&[1, 6 | 1 << 5 | 1 << 6 | 1 << 7, 0, 0x80]).is_err(), "half a number");
        let too_large = [0xff; 9].into_iter().chain([2]).collect::<Vec<u8>>();
        assert!(with(&too_large).is_err(), "a number of 65 bits");
        assert!(checked(&[0xff, 7, 0xff, 0xff, 0xff, 0xff, 0x0f]).is_err(), "no such addresses");
    }

    #[test]
    fn packs_events_into_few_bytes() {
        let mut packed = PackedEvents::default();
        for page in 0..1000 {
            let tracepoint = Tracepoint::Added { start: PageIndex(page), order: Order(0) };
            let at_ns = 2_616_303_942_000 + page * 3000;
            packed.push(&TraceEvent { at_ns, cpu: 0, pid: 80, file: 0, tracepoint });
        }
        assert!(packed.bytes().len() < 5100, "{}", packed.bytes().len());
    }
}
