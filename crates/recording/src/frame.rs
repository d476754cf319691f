//! Frames, the units of the file: each with its kind, length and checksums.

use std::io::{self, Read, Write};

use crate::error::Problem;

/// The first bytes of a recording.
pub const MAGIC: [u8; 8] = *b"\x89FMREC\r\n";

/// Maximum size of the contents of a frame, in bytes.
pub const MAX_BYTES: usize = 16 << 20;

/// Size of the frame header: kind (1 byte), length (4), CRC-32 of the contents (4), CRC-32 of the
/// preceding 9 bytes (4); little-endian.
const HEAD_BYTES: usize = 13;

/// The contents of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    Header,
    Block,
    End,
}

impl FrameKind {
    const ALL: [FrameKind; 3] = [FrameKind::Header, FrameKind::Block, FrameKind::End];

    fn byte(self) -> u8 {
        match self {
            FrameKind::Header => b'H',
            FrameKind::Block => b'B',
            FrameKind::End => b'E',
        }
    }
}

/// Writes a frame. Returns its length in bytes, including the frame header.
pub fn write(output: &mut impl Write, kind: FrameKind, contents: &[u8]) -> io::Result<u64> {
    let mut head = [0; HEAD_BYTES];
    head[0] = kind.byte();
    head[1..5].copy_from_slice(&(contents.len() as u32).to_le_bytes());
    head[5..9].copy_from_slice(&crc32fast::hash(contents).to_le_bytes());
    let of_head = crc32fast::hash(&head[..9]);
    head[9..].copy_from_slice(&of_head.to_le_bytes());
    output.write_all(&head)?;
    output.write_all(contents)?;
    Ok((HEAD_BYTES + contents.len()) as u64)
}

/// A frame that was read; `bytes` is its length including the frame header.
#[derive(Debug)]
pub struct Frame {
    pub kind: FrameKind,
    pub contents: Vec<u8>,
    pub bytes: u64,
}

/// Reads the next frame; `None` if the file ends before or inside it.
pub fn read(input: &mut impl Read) -> Result<Option<Frame>, Problem> {
    let Some(head) = take(input, HEAD_BYTES)? else { return Ok(None) };
    let number =
        |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("it is four bytes"));
    if crc32fast::hash(&head[..9]) != number(9) {
        return Err(Problem::Damaged);
    }
    let kind = FrameKind::ALL.into_iter().find(|kind| kind.byte() == head[0]);
    let kind = kind.ok_or_else(|| Problem::malformed(format!("a part has kind {}", head[0])))?;
    let length = number(1) as usize;
    if length > MAX_BYTES {
        return Err(Problem::malformed(format!("a part has {length} bytes")));
    }
    let Some(contents) = take(input, length)? else { return Ok(None) };
    if crc32fast::hash(&contents) != number(5) {
        return Err(Problem::Damaged);
    }
    Ok(Some(Frame { kind, contents, bytes: (HEAD_BYTES + length) as u64 }))
}

/// Reads `count` bytes; `None` if the file has fewer. Allocates no more than the file has, whatever
/// `count` claims.
pub fn take(input: &mut impl Read, count: usize) -> Result<Option<Vec<u8>>, Problem> {
    let mut bytes = Vec::new();
    let read = input.take(count as u64).read_to_end(&mut bytes);
    read.map_err(|error| Problem::Read { reason: reason(&error) })?;
    Ok((bytes.len() == count).then_some(bytes))
}

/// The message of an I/O error, without the error number.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_lowercase()
}
