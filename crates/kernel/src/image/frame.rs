//! Frames that host and guest exchange.
//!
//! A frame is a header line (`filemap-frame 2 KIND JOB LENGTH CHECKSUM`) and the bytes after it.
//! The checksum includes the fields of the header, so lost and changed bytes are detected.

/// The 64-bit FNV-1a hash of no bytes.
pub(crate) const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// Continues the FNV-1a hash `hash` over `bytes`.
pub(crate) fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Prefix of a header.
const MAGIC: &str = "filemap-frame 2 ";

/// Maximum length of a header.
pub(super) const MAX_HEADER_BYTES: usize = 128;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameKind {
    /// To the guest: a job.
    Task,
    /// The guest has read the job and starts it.
    Begun,
    /// Bytes of the job's log.
    Log,
    /// The answer to the job.
    Answer,
    /// Why the job could not run.
    Error,
    /// The program panicked. The guest runs no further jobs.
    Panic,
    /// What the machine lacks to run any job.
    Lack,
}

impl FrameKind {
    const ALL: [FrameKind; 7] = [
        FrameKind::Task,
        FrameKind::Begun,
        FrameKind::Log,
        FrameKind::Answer,
        FrameKind::Error,
        FrameKind::Panic,
        FrameKind::Lack,
    ];

    fn name(self) -> &'static str {
        match self {
            FrameKind::Task => "task",
            FrameKind::Begun => "begun",
            FrameKind::Log => "log",
            FrameKind::Answer => "answer",
            FrameKind::Error => "error",
            FrameKind::Panic => "panic",
            FrameKind::Lack => "lack",
        }
    }
}

/// A frame: its kind, job and content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChannelFrame {
    pub(super) kind: FrameKind,
    /// The number of the job, from 0.
    pub(super) task: usize,
    pub(super) bytes: Vec<u8>,
}

impl ChannelFrame {
    /// The bytes as text.
    ///
    /// # Errors
    /// They are not UTF-8.
    pub(super) fn text(self) -> Result<String, &'static str> {
        String::from_utf8(self.bytes).map_err(|_| "it is no text")
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    pub(super) kind: FrameKind,
    pub(super) task: usize,
    /// Number of bytes after the header.
    pub(super) length: usize,
    check: u64,
}

impl FrameHeader {
    /// The header of a frame with `bytes`.
    pub(super) fn new(kind: FrameKind, task: usize, bytes: &[u8]) -> Self {
        let mut header = FrameHeader { kind, task, length: bytes.len(), check: 0 };
        header.check = header.checksum(bytes);
        header
    }

    /// The header as a line.
    pub(super) fn to_line(self) -> String {
        format!("{MAGIC}{} {:016x}\n", self.fields(), self.check)
    }

    /// Parses the header at the start of `bytes`, and its length; `None` if nothing has been
    /// written yet.
    ///
    /// # Errors
    /// The reason.
    pub(super) fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, &'static str> {
        let bytes = &bytes[..bytes.len().min(MAX_HEADER_BYTES)];
        if bytes.iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        let end = bytes.iter().position(|&byte| byte == b'\n').ok_or("its header is cut short")?;
        let line = std::str::from_utf8(&bytes[..end]).map_err(|_| "its header is not text")?;
        let fields = line.strip_prefix(MAGIC).ok_or("it does not begin with a header")?;
        let fields: Vec<_> = fields.split(' ').collect();
        let &[kind, task, length, check] = &fields[..] else {
            return Err("its header is incomplete");
        };
        let known = FrameKind::ALL.into_iter().find(|known| known.name() == kind);
        let header = FrameHeader {
            kind: known.ok_or("its kind is unknown")?,
            task: task.parse().map_err(|_| "its job is not a number")?,
            length: length.parse().map_err(|_| "its length is not a number")?,
            check: u64::from_str_radix(check, 16).map_err(|_| "its checksum is not a number")?,
        };
        Ok(Some((header, end + 1)))
    }

    /// The frame of this header and `bytes`.
    ///
    /// # Errors
    /// They do not match.
    pub(super) fn into_frame(self, bytes: Vec<u8>) -> Result<ChannelFrame, &'static str> {
        if bytes.len() != self.length {
            return Err("its length does not match");
        }
        if self.checksum(&bytes) != self.check {
            return Err("its checksum does not match");
        }
        Ok(ChannelFrame { kind: self.kind, task: self.task, bytes })
    }

    fn fields(&self) -> String {
        format!("{} {} {}", self.kind.name(), self.task, self.length)
    }

    fn checksum(&self, bytes: &[u8]) -> u64 {
        fnv1a(fnv1a(FNV_BASIS, self.fields().as_bytes()), bytes)
    }
}

/// Encodes a frame.
pub(super) fn encode(kind: FrameKind, task: usize, bytes: &[u8]) -> Vec<u8> {
    [FrameHeader::new(kind, task, bytes).to_line().as_bytes(), bytes].concat()
}

/// Parses the only frame in `bytes`; `None` if they are empty.
///
/// # Errors
/// The reason.
pub(super) fn decode(bytes: &[u8]) -> Result<Option<ChannelFrame>, &'static str> {
    let Some((header, length)) = FrameHeader::parse(bytes)? else { return Ok(None) };
    header.into_frame(bytes[length..].to_vec()).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv1a_of_a_known_text() {
        assert_eq!(fnv1a(FNV_BASIS, b"a"), 0xaf63_dc4c_8601_ec8c);
    }

    #[test]
    fn frames_round_trip() {
        for kind in FrameKind::ALL {
            for text in ["", "{\"a\": 1}\n", "ä\r\n\0"] {
                let frame = decode(&encode(kind, 3, text.as_bytes())).unwrap().unwrap();
                assert_eq!(frame, ChannelFrame { kind, task: 3, bytes: text.into() });
                assert_eq!(frame.text().unwrap(), text);
            }
        }
        let longest = FrameHeader::new(FrameKind::Answer, usize::MAX, &[]);
        assert!(longest.to_line().len() + "18446744073709551615".len() <= MAX_HEADER_BYTES);
        assert_eq!(decode(&[0; 512]), Ok(None));
        assert_eq!(decode(b""), Ok(None));
    }

    #[test]
    fn rejects_truncation_and_flipped_bytes() {
        let frame = encode(FrameKind::Log, 12, b"some record");
        for at in 0..frame.len() {
            assert!(at == 0 || decode(&frame[..at]).is_err(), "cut at {at}");
            let mut flipped = frame.clone();
            // Not the case bit: both cases are the same hexadecimal digit.
            flipped[at] ^= 0x01;
            assert!(decode(&flipped).is_err(), "flipped {at}");
        }
        assert!(decode(&[&frame[..], b"x"].concat()).is_err());
    }
}
