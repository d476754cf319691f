//! Writes a recording block by block.

use std::io::Write;

use crate::block::Block;
use crate::error::{Error, Problem};
use crate::event::{Event, EventKind};
use crate::frame::{self, FrameKind, MAGIC};
use crate::header::{self, Header, VERSION};
use crate::references::ReferenceCheck;
use crate::wait::WaitEncoder;
use crate::wire::encode_number;

/// The totals of a recording, stored in its end frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Events, including touches.
    pub events: u64,
    /// Touches.
    pub touches: u64,
    /// Events lost while recording.
    pub lost: u64,
}

impl Totals {
    pub(crate) fn add(&mut self, event: &EventKind) {
        self.events += 1;
        match event {
            EventKind::Touch { .. } => self.touches += 1,
            EventKind::Lost { events } => self.lost = self.lost.saturating_add(*events),
            _ => {}
        }
    }

    /// The contents of the end frame.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        [self.events, self.touches, self.lost]
            .iter()
            .for_each(|count| encode_number(&mut bytes, *count));
        bytes
    }
}

/// Writes a recording as a stream. Keeps one block in memory, and a few bytes per thread and
/// mapping.
///
/// Without [`Writer::finish`] the recording ends after the last complete block, and readers report
/// it as truncated.
#[derive(Debug)]
pub struct Writer<W> {
    output: W,
    name: String,
    at: u64,
    references: ReferenceCheck,
    /// By thread: the encoder of its waits.
    wait_encoders: Vec<WaitEncoder>,
    block: Block,
    totals: Totals,
}

impl<W: Write> Writer<W> {
    /// Writes the header of a recording. Error messages call the file `name`.
    ///
    /// # Errors
    /// `output` cannot be written.
    pub fn new(output: W, name: &str, header: &Header) -> Result<Writer<W>, Error> {
        let mut writer = Writer {
            output,
            name: name.to_string(),
            at: 0,
            references: ReferenceCheck::new(header.page_size),
            wait_encoders: Vec::new(),
            block: Block::default(),
            totals: Totals::default(),
        };
        let begin = [&MAGIC[..], &VERSION.to_le_bytes()].concat();
        let written = writer.output.write_all(&begin);
        written.map_err(|error| writer.write_error(&error))?;
        writer.at = begin.len() as u64;
        writer.frame(FrameKind::Header, &header::encode(header))?;
        Ok(writer)
    }

    /// Adds `event`. Events are added in the order in which they happened.
    ///
    /// # Errors
    /// The event refers to an object that was not introduced before; the recording then lacks the
    /// event. Or a block cannot be written.
    pub fn write(&mut self, event: &Event) -> Result<(), Error> {
        let taken = self.references.check_event(event);
        taken.map_err(|problem| self.error(problem))?;
        let thread = event.thread as usize;
        let is_first = matches!(event.kind, EventKind::Process { .. } | EventKind::Thread { .. });
        if matches!(event.kind, EventKind::Thread { .. }) {
            self.wait_encoders.push(WaitEncoder::default());
        }
        let wait = match self.wait_encoders.get_mut(thread).filter(|_| !is_first) {
            Some(rest) => rest.encode(event.wait_ns),
            None => WaitEncoder::default().encode(event.wait_ns),
        };
        self.block.push(event, wait);
        self.totals.add(&event.kind);
        if self.block.is_full() { self.flush() } else { Ok(()) }
    }

    /// Writes the buffered events as a block, so that they survive a crash of the writer. Short
    /// blocks compress worse.
    ///
    /// # Errors
    /// The block cannot be written.
    pub fn flush(&mut self) -> Result<(), Error> {
        if !self.block.is_empty() {
            let contents = self.block.encode();
            self.block.clear();
            self.frame(FrameKind::Block, &contents)?;
        }
        self.output.flush().map_err(|error| self.write_error(&error))
    }

    /// Writes the buffered events and the end frame. Returns the output and the totals.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn finish(mut self) -> Result<(W, Totals), Error> {
        self.flush()?;
        self.frame(FrameKind::End, &self.totals.encode())?;
        self.output.flush().map_err(|error| self.write_error(&error))?;
        Ok((self.output, self.totals))
    }

    /// The totals of the events added so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    fn frame(&mut self, kind: FrameKind, contents: &[u8]) -> Result<(), Error> {
        let written = frame::write(&mut self.output, kind, contents);
        self.at += written.map_err(|error| self.write_error(&error))?;
        Ok(())
    }

    fn write_error(&self, error: &std::io::Error) -> Error {
        self.error(Problem::Write { reason: frame::reason(error) })
    }

    fn error(&self, problem: Problem) -> Error {
        Error { name: self.name.clone(), at: self.at, problem }
    }
}
