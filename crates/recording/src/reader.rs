//! Reads a recording block by block.

use std::io::Read;

use crate::block::{self, BlockEvents};
use crate::error::{Error, Problem};
use crate::event::{Event, EventKind};
use crate::frame::{self, FrameKind, MAGIC};
use crate::header::{self, Header, VERSION};
use crate::references::ReferenceCheck;
use crate::wait;
use crate::writer::Totals;

/// A recording without an end frame: its writer was killed, or the file was truncated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated {
    /// The end of the last complete frame, in bytes.
    pub at: u64,
    /// Number of events in complete blocks.
    pub events: u64,
}

/// Iterator over the events of a recording. Keeps one block in memory, and a few bytes per mapping.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    name: String,
    /// Bytes read so far.
    at: u64,
    /// Offset of the current block, in bytes.
    block_at: u64,
    header: Header,
    references: ReferenceCheck,
    events: BlockEvents,
    /// Numbers of touches and of other events of the block that were returned.
    position: (usize, usize),
    totals: Totals,
    truncated: Option<Truncated>,
    is_over: bool,
}

impl<R: Read> Reader<R> {
    /// Reads the header of a recording. Error messages call the file `name`.
    ///
    /// # Errors
    /// The file is not a recording, has another version, or cannot be read.
    pub fn new(mut input: R, name: &str) -> Result<Reader<R>, Error> {
        let error = |at, problem| Error { name: name.to_string(), at, problem };
        let start_error = |problem| error(0, problem);
        let magic = frame::take(&mut input, MAGIC.len()).map_err(start_error)?;
        if magic.as_deref() != Some(&MAGIC) {
            return Err(error(0, Problem::Foreign));
        }
        let mut at = MAGIC.len() as u64;
        let version = frame::take(&mut input, 4).map_err(|problem| error(at, problem))?;
        let version = version.ok_or_else(|| error(at, Problem::NoHeader))?;
        let version = u32::from_le_bytes(version.try_into().expect("it is four bytes"));
        // Version 1 has fewer kinds of events.
        if !(1..=VERSION).contains(&version) {
            return Err(error(at, Problem::Version { version }));
        }
        at += 4;
        let frame = frame::read(&mut input).map_err(|problem| error(at, problem))?;
        let frame = frame.ok_or_else(|| error(at, Problem::NoHeader))?;
        if frame.kind != FrameKind::Header {
            return Err(error(at, Problem::malformed("no header stands first")));
        }
        let header = header::decode(&frame.contents).map_err(|problem| error(at, problem))?;
        Ok(Reader {
            input,
            name: name.to_string(),
            at: at + frame.bytes,
            block_at: at,
            references: ReferenceCheck::new(header.page_size),
            header,
            events: BlockEvents::default(),
            position: (0, 0),
            totals: Totals::default(),
            truncated: None,
            is_over: false,
        })
    }

    /// The header of the recording.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The totals of the events returned so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Where the recording is truncated; known once all events were read.
    pub fn truncated(&self) -> Option<Truncated> {
        self.truncated
    }

    /// An error at the current offset.
    pub(crate) fn error(&self, problem: Problem) -> Error {
        Error { name: self.name.clone(), at: self.at, problem }
    }

    /// The next event of the current block.
    fn next_in_block(&mut self) -> Option<Event> {
        let (touches, others) = self.position;
        if let Some((before, event)) = self.events.others.get(others)
            && *before == touches
        {
            self.position.1 += 1;
            return Some(event.clone());
        }
        let touch = self.events.touches.get(touches)?;
        self.position.0 += 1;
        Some(Event {
            thread: touch.thread,
            wait_ns: wait::decode(touch.wait).expect("the block was checked"),
            kind: EventKind::Touch {
                mapping: touch.mapping,
                page: touch.page,
                is_write: touch.is_write,
            },
        })
    }

    /// Reads the next block. Returns `false` after the last one.
    fn read_block(&mut self) -> Result<bool, Problem> {
        let Some(frame) = frame::read(&mut self.input)? else {
            self.truncated = Some(Truncated { at: self.at, events: self.totals.events });
            return Ok(false);
        };
        match frame.kind {
            FrameKind::Header => return Err(Problem::malformed("there is a second header")),
            FrameKind::End if frame.contents != self.totals.encode() => {
                return Err(Problem::malformed("its end frame counts other events than it has"));
            }
            FrameKind::End => {
                self.at += frame.bytes;
                return match frame::take(&mut self.input, 1)? {
                    None => Ok(false),
                    Some(_) => Err(Problem::Behind),
                };
            }
            FrameKind::Block => self.events = block::decode(&frame.contents)?,
        }
        self.position = (0, 0);
        self.block_at = self.at;
        self.at += frame.bytes;
        Ok(true)
    }

    fn next_event(&mut self) -> Result<Option<Event>, Error> {
        let error = |reader: &Self, at, problem| Error { name: reader.name.clone(), at, problem };
        while !self.is_over {
            if let Some(event) = self.next_in_block() {
                let taken = self.references.check_event(&event);
                taken.map_err(|problem| error(self, self.block_at, problem))?;
                self.totals.add(&event.kind);
                return Ok(Some(event));
            }
            let read = self.read_block();
            self.is_over = !read.map_err(|problem| error(self, self.at, problem))?;
        }
        Ok(None)
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Event, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_event();
        self.is_over |= next.is_err();
        next.transpose()
    }
}
