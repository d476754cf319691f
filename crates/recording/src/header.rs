//! The header of a recording.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use crate::error::Problem;
use crate::wire::{ByteReader, encode_number, encode_text};

/// The version of the format.
pub const VERSION: u32 = 2;

/// Valid base page sizes in bytes; powers of two.
const PAGE_SIZES: std::ops::RangeInclusive<u64> = 4096..=65536;

/// Which touches a recording contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordingMode {
    /// The first touch of each page of a mapping, per process.
    FirstTouches,
    /// Every touch of another page than the thread's last one.
    Changes,
    /// The faults in a trace of another tool.
    Import,
    /// All faults, including minor ones.
    Faults,
}

impl RecordingMode {
    /// All modes.
    pub const ALL: [RecordingMode; 4] = [
        RecordingMode::FirstTouches,
        RecordingMode::Changes,
        RecordingMode::Import,
        RecordingMode::Faults,
    ];

    /// The name in the file and in messages.
    pub fn name(self) -> &'static str {
        match self {
            RecordingMode::FirstTouches => "first-touches",
            RecordingMode::Changes => "changes",
            RecordingMode::Import => "import",
            RecordingMode::Faults => "faults",
        }
    }
}

/// The clock name of a recording without waits.
pub const NO_CLOCK: &str = "none";

/// The header of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The program and its arguments; empty if unknown.
    pub command: Vec<OsString>,
    /// Which touches it contains.
    pub mode: RecordingMode,
    /// The sampling interval in nanoseconds, if touches were sampled; otherwise 0.
    pub resolution_ns: u64,
    /// With [`RecordingMode::Changes`]: a touch may be missing if its page is among the last this
    /// many pages that the process touched. Otherwise 0.
    pub open_pages: u64,
    /// Base page size in bytes.
    pub page_size: u64,
    /// The clock that waits are measured with, such as `CLOCK_MONOTONIC`, or [`NO_CLOCK`].
    pub clock: String,
    /// The kernel release (`uname -r`), such as `6.18.3-amd64`.
    pub kernel: String,
    /// The machine (`uname -m`).
    pub machine: String,
}

impl Header {
    /// A header with 4 KiB pages and no information about the host.
    pub fn new(mode: RecordingMode) -> Header {
        Header {
            command: Vec::new(),
            mode,
            resolution_ns: 0,
            open_pages: 0,
            page_size: 4096,
            clock: String::new(),
            kernel: String::new(),
            machine: String::new(),
        }
    }
}

const COMMAND: u64 = 1;
const MODE: u64 = 2;
const RESOLUTION: u64 = 3;
const PAGE_SIZE: u64 = 4;
const CLOCK: u64 = 5;
const KERNEL: u64 = 6;
const MACHINE: u64 = 7;
const OPEN_PAGES: u64 = 8;

/// Encodes `header` as fields, each a number and a text. Readers skip unknown fields.
pub fn encode(header: &Header) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut field = |number: u64, text: &[u8]| {
        encode_number(&mut bytes, number);
        encode_text(&mut bytes, text);
    };
    let number = |value: u64| {
        let mut bytes = Vec::new();
        encode_number(&mut bytes, value);
        bytes
    };
    header.command.iter().for_each(|word| field(COMMAND, word.as_bytes()));
    field(MODE, header.mode.name().as_bytes());
    field(RESOLUTION, &number(header.resolution_ns));
    field(PAGE_SIZE, &number(header.page_size));
    field(CLOCK, header.clock.as_bytes());
    field(KERNEL, header.kernel.as_bytes());
    field(MACHINE, header.machine.as_bytes());
    if header.open_pages > 0 {
        field(OPEN_PAGES, &number(header.open_pages));
    }
    bytes
}

/// Decodes a header that [`encode`] produced.
pub fn decode(bytes: &[u8]) -> Result<Header, Problem> {
    let mut header = Header::new(RecordingMode::FirstTouches);
    let mut mode = None;
    let mut bytes = ByteReader::new(bytes);
    while !bytes.is_empty() {
        let (field, text) = (bytes.number()?, bytes.text()?);
        let words = || String::from_utf8_lossy(text).into_owned();
        match field {
            COMMAND => header.command.push(OsStr::from_bytes(text).to_owned()),
            MODE => mode = Some(words()),
            RESOLUTION => header.resolution_ns = ByteReader::new(text).number()?,
            PAGE_SIZE => header.page_size = ByteReader::new(text).number()?,
            CLOCK => header.clock = words(),
            KERNEL => header.kernel = words(),
            MACHINE => header.machine = words(),
            OPEN_PAGES => header.open_pages = ByteReader::new(text).number()?,
            _ => {}
        }
    }
    let mode = mode.unwrap_or_default();
    let known = RecordingMode::ALL.into_iter().find(|known| known.name() == mode);
    let unknown = || {
        let shown: String = mode.chars().filter(|c| !c.is_control()).take(40).collect();
        Problem::malformed(format!("its mode is '{shown}'"))
    };
    header.mode = known.ok_or_else(unknown)?;
    let page_size = header.page_size;
    if !page_size.is_power_of_two() || !PAGE_SIZES.contains(&page_size) {
        return Err(Problem::malformed(format!("its pages have {page_size} bytes")));
    }
    Ok(header)
}
