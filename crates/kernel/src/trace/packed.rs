//! Packed events: a few bytes each instead of a hundred. They are stored, and sent by a guest, in
//! this form.
//!
//! An event is a byte with the tracepoint and flags for an unchanged CPU, thread and file; then
//! those that changed; the time; and the fields. Numbers are LEB128. Times and pages are deltas to
//! the previous event.

use filemap_core::decision::ReadaheadSnapshot;
use filemap_core::units::{Order, PageCount, PageIndex};

use super::event::{TraceEvent, Tracepoint};

const SAME_CPU: u8 = 1 << 5;
const SAME_PID: u8 = 1 << 6;
const SAME_FILE: u8 = 1 << 7;

/// The bits of the first byte that encode the tracepoint.
const KIND: u8 = SAME_CPU - 1;

/// Events in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PackedEvents {
    bytes: Vec<u8>,
    count: u64,
    last: PreviousEvent,
}

/// The previous event, to which the next one is a delta.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PreviousEvent {
    at_ns: u64,
    cpu: u32,
    pid: u32,
    file: usize,
    page: u64,
}

impl PackedEvents {
    /// Adds an event.
    pub(super) fn push(&mut self, event: &TraceEvent) {
        let TraceEvent { at_ns, cpu, pid, file, tracepoint } = *event;
        let last = self.last;
        let same = |is_same: bool, bit: u8| if is_same { bit } else { 0 };
        self.bytes.push(
            kind(&tracepoint)
                | same(cpu == last.cpu, SAME_CPU)
                | same(pid == last.pid, SAME_PID)
                | same(file == last.file, SAME_FILE),
        );
        if cpu != last.cpu {
            write_number(&mut self.bytes, u64::from(cpu));
        }
        if pid != last.pid {
            write_number(&mut self.bytes, u64::from(pid));
        }
        if file != last.file {
            write_number(&mut self.bytes, file as u64);
        }
        write_number(&mut self.bytes, difference(at_ns, last.at_ns));
        let page = write_fields(&mut self.bytes, &tracepoint, last.page);
        self.last = PreviousEvent { at_ns, cpu, pid, file, page };
        self.count += 1;
    }

    /// Number of events.
    pub(super) fn len(&self) -> u64 {
        self.count
    }

    /// The packed bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Parses `count` events about `files` files; `None` if `bytes` are invalid.
    pub(super) fn from_bytes(bytes: Vec<u8>, count: u64, files: usize) -> Option<Self> {
        let mut reader = EventReader { bytes: &bytes, last: PreviousEvent::default() };
        let mut read = 0;
        while !reader.bytes.is_empty() {
            let event = reader.event()?;
            if event.file >= files {
                return None;
            }
            read += 1;
        }
        let last = reader.last;
        (read == count).then_some(PackedEvents { bytes, count, last })
    }

    /// The events in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = TraceEvent> {
        let mut reader = EventReader { bytes: &self.bytes, last: PreviousEvent::default() };
        std::iter::from_fn(move || reader.event())
    }
}

/// Decodes what [`PackedEvents::push`] encodes.
pub(super) struct EventReader<'a> {
    bytes: &'a [u8],
    last: PreviousEvent,
}

impl<'a> EventReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        EventReader { bytes, last: PreviousEvent::default() }
    }

    /// The remaining bytes.
    pub(super) fn rest(self) -> &'a [u8] {
        self.bytes
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*byte)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    pub(super) fn optional(&mut self) -> Option<Option<u64>> {
        match self.byte()? {
            0 => Some(None),
            1 => Some(Some(self.number()?)),
            _ => None,
        }
    }

    fn delta(&mut self, before: u64) -> Option<u64> {
        let number = self.number()?;
        // The lowest bit is the sign.
        let change = (number >> 1) as i64 ^ -((number & 1) as i64);
        Some(before.wrapping_add_signed(change))
    }

    fn order(&mut self) -> Option<Order> {
        Some(Order(u8::try_from(self.number()?).ok()?))
    }

    fn pages(&mut self) -> Option<PageCount> {
        Some(PageCount(self.number()?))
    }

    fn event(&mut self) -> Option<TraceEvent> {
        let first = self.byte()?;
        let last = self.last;
        let is_same = |bit: u8| first & bit != 0;
        let cpu = if is_same(SAME_CPU) { last.cpu } else { self.number()?.try_into().ok()? };
        let pid = if is_same(SAME_PID) { last.pid } else { self.number()?.try_into().ok()? };
        let file = if is_same(SAME_FILE) { last.file } else { self.number()?.try_into().ok()? };
        let at_ns = self.delta(last.at_ns)?;
        let (tracepoint, page) = self.fields(first & KIND, last.page)?;
        self.last = PreviousEvent { at_ns, cpu, pid, file, page };
        Some(TraceEvent { at_ns, cpu, pid, file, tracepoint })
    }

    /// The fields of a tracepoint of this kind, and its page, relative to the page `before`.
    fn fields(&mut self, kind: u8, before: u64) -> Option<(Tracepoint, u64)> {
        let page = self.delta(before)?;
        let start = PageIndex(page);
        let tracepoint = match kind {
            0 => Tracepoint::SyncReadahead(self.found(start)?),
            1 => Tracepoint::AsyncReadahead(self.found(start)?),
            2 => Tracepoint::Window {
                start,
                order: self.order()?,
                size: self.pages()?,
                async_size: self.pages()?,
                ra_pages: self.pages()?,
            },
            3 => Tracepoint::BasePages { start, size: self.pages()?, async_size: self.pages()? },
            4 => Tracepoint::Added { start, order: self.order()? },
            5 => Tracepoint::Removed { start, order: self.order()? },
            6 => Tracepoint::Fault { index: start },
            7 => Tracepoint::MapPages { from: start, last: PageIndex(self.delta(page)?) },
            8 => Tracepoint::Read { from: start, last: PageIndex(self.delta(page)?) },
            // The next page is relative to the last file page, not to this address.
            9 => return Some((Tracepoint::UserFault { address: page }, before)),
            _ => return None,
        };
        Some((tracepoint, page))
    }

    fn found(&mut self, index: PageIndex) -> Option<ReadaheadSnapshot> {
        Some(ReadaheadSnapshot {
            index,
            req: self.pages()?,
            order: self.order()?,
            size: self.pages()?,
            async_size: self.pages()?,
            mmap_miss: self.number()?.try_into().ok()?,
            previous_end: self.optional()?,
        })
    }
}

/// The number of the tracepoint.
fn kind(tracepoint: &Tracepoint) -> u8 {
    match tracepoint {
        Tracepoint::SyncReadahead(_) => 0,
        Tracepoint::AsyncReadahead(_) => 1,
        Tracepoint::Window { .. } => 2,
        Tracepoint::BasePages { .. } => 3,
        Tracepoint::Added { .. } => 4,
        Tracepoint::Removed { .. } => 5,
        Tracepoint::Fault { .. } => 6,
        Tracepoint::MapPages { .. } => 7,
        Tracepoint::Read { .. } => 8,
        Tracepoint::UserFault { .. } => 9,
    }
}

/// Writes the fields of `tracepoint`, with its page relative to `before`. Returns its page.
fn write_fields(out: &mut Vec<u8>, tracepoint: &Tracepoint, before: u64) -> u64 {
    let (page, fields) = match *tracepoint {
        Tracepoint::SyncReadahead(found) | Tracepoint::AsyncReadahead(found) => {
            write_number(out, difference(found.index.0, before));
            write_found(out, &found);
            return found.index.0;
        }
        Tracepoint::Window { start, order, size, async_size, ra_pages } => {
            (start.0, vec![u64::from(order.0), size.0, async_size.0, ra_pages.0])
        }
        Tracepoint::BasePages { start, size, async_size } => (start.0, vec![size.0, async_size.0]),
        Tracepoint::Added { start, order } | Tracepoint::Removed { start, order } => {
            (start.0, vec![u64::from(order.0)])
        }
        Tracepoint::Fault { index } => (index.0, Vec::new()),
        Tracepoint::MapPages { from, last } | Tracepoint::Read { from, last } => {
            (from.0, vec![difference(last.0, from.0)])
        }
        Tracepoint::UserFault { address } => {
            write_number(out, difference(address, before));
            return before;
        }
    };
    write_number(out, difference(page, before));
    fields.into_iter().for_each(|field| write_number(out, field));
    page
}

fn write_found(out: &mut Vec<u8>, found: &ReadaheadSnapshot) {
    let ReadaheadSnapshot { index: _, req, order, size, async_size, mmap_miss, previous_end } =
        *found;
    let fields = [req.0, u64::from(order.0), size.0, async_size.0, u64::from(mmap_miss)];
    fields.into_iter().for_each(|field| write_number(out, field));
    write_optional(out, previous_end);
}

/// Writes a number.
pub(super) fn write_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Writes an optional number.
pub(super) fn write_optional(out: &mut Vec<u8>, number: Option<u64>) {
    out.push(u8::from(number.is_some()));
    if let Some(number) = number {
        write_number(out, number);
    }
}

/// The zigzag-encoded difference of `number` and `before`, small if they are close.
fn difference(number: u64, before: u64) -> u64 {
    let change = number.wrapping_sub(before) as i64;
    (change << 1 ^ change >> 63) as u64
}
