//! Blocks: batches of events, compressed column by column.

use miniz_oxide::deflate::core::{
    CompressionStrategy, CompressorOxide, TDEFLFlush, TDEFLStatus, compress,
    create_comp_flags_from_zip_params,
};
use miniz_oxide::inflate::decompress_to_vec_with_limit;

use crate::columns::{self, EncodedTouch, PageCoding, PageColumnHeader, TouchColumns};
use crate::error::Problem;
use crate::event::{Event, EventKind};
use crate::events;
use crate::wait;
use crate::wire::{ByteReader, encode_number};

/// Maximum touches per block.
pub const MAX_TOUCHES: usize = 1 << 16;

/// Maximum other events per block.
pub const MAX_OTHERS: usize = 1 << 16;

/// A block is also full when its other events take this many bytes uncompressed.
pub const MAX_OTHER_BYTES: usize = 1 << 20;

/// Maximum uncompressed size of a part of a block, in bytes. Limits what a reader allocates.
const MAX_PART_BYTES: usize = 4 << 20;

/// Touches that are encoded on trial to choose the page coding of a block.
const SAMPLED_TOUCHES: usize = 4096;

/// Compression level: the fastest with match search. Columns have few long matches.
const LEVEL: i32 = 1;

/// Window bits: raw deflate (negative) with a 32 KiB window, no zlib header or checksum.
const RAW: i32 = -15;

/// A block under construction.
#[derive(Debug, Default)]
pub struct Block {
    touches: Vec<EncodedTouch>,
    /// The other events, encoded, and their number.
    others: Vec<u8>,
    other_count: usize,
    /// Number of touches before the last other event: positions are stored as differences.
    before_last: usize,
}

impl Block {
    pub fn is_empty(&self) -> bool {
        self.touches.is_empty() && self.other_count == 0
    }

    pub fn is_full(&self) -> bool {
        self.touches.len() >= MAX_TOUCHES
            || self.other_count >= MAX_OTHERS
            || self.others.len() >= MAX_OTHER_BYTES
    }

    /// Adds an event; `wait` is its encoded wait.
    pub fn push(&mut self, event: &Event, wait: u8) {
        if let EventKind::Touch { mapping, page, is_write } = event.kind {
            self.touches.push(EncodedTouch { thread: event.thread, mapping, page, is_write, wait });
            return;
        }
        encode_number(&mut self.others, (self.touches.len() - self.before_last) as u64);
        encode_number(&mut self.others, u64::from(event.thread));
        self.others.push(wait);
        events::encode(&mut self.others, &event.kind);
        self.other_count += 1;
        self.before_last = self.touches.len();
    }

    /// The contents of the frame.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_number(&mut bytes, self.touches.len() as u64);
        encode_number(&mut bytes, self.other_count as u64);
        encode_part(&mut bytes, &self.others);
        let columns = columns::encode(&self.touches, self.best_coding());
        encode_part(&mut bytes, &columns.threads);
        encode_part(&mut bytes, &columns.mappings);
        columns.pages.head.encode(&mut bytes);
        columns.pages.parts.iter().for_each(|part| encode_part(&mut bytes, part));
        encode_part(&mut bytes, &columns.waits);
        encode_part(&mut bytes, &columns.writes);
        bytes
    }

    pub fn clear(&mut self) {
        self.touches.clear();
        self.others.clear();
        (self.other_count, self.before_last) = (0, 0);
    }

    /// The page coding with the shortest result on a sample from the middle of the block.
    fn best_coding(&self) -> PageCoding {
        let start = self.touches.len().saturating_sub(SAMPLED_TOUCHES) / 2;
        let some = &self.touches[start..(start + SAMPLED_TOUCHES).min(self.touches.len())];
        let length = |coding: &PageCoding| {
            let mut bytes = Vec::new();
            let pages = columns::encode_pages(some, *coding);
            pages.parts.iter().for_each(|part| encode_part(&mut bytes, part));
            bytes.len()
        };
        PageCoding::ALL.into_iter().min_by_key(length).expect("there are codings")
    }
}

/// A decoded block: its touches, and the other events, each with the number of touches before it.
#[derive(Debug, Default)]
pub struct BlockEvents {
    pub touches: Vec<EncodedTouch>,
    pub others: Vec<(usize, Event)>,
}

/// Decodes the contents of a frame that [`Block::encode`] produced.
pub fn decode(bytes: &[u8]) -> Result<BlockEvents, Problem> {
    let mut bytes = ByteReader::new(bytes);
    let touch_count = bytes.count("touches in a block", MAX_TOUCHES)?;
    let other_count = bytes.count("other events in a block", MAX_OTHERS)?;
    let others = decode_part(&mut bytes)?;
    let (threads, mappings) = (decode_part(&mut bytes)?, decode_part(&mut bytes)?);
    let head = PageColumnHeader::decode(&mut bytes)?;
    let parts = (0..head.parts()).map(|_| decode_part(&mut bytes)).collect::<Result<_, _>>()?;
    let (waits, writes) = (decode_part(&mut bytes)?, decode_part(&mut bytes)?);
    let pages = columns::PageColumn { head, parts };
    let columns = TouchColumns { threads, mappings, pages, waits, writes };
    if !bytes.is_empty() {
        return Err(Problem::malformed("a block is longer than its parts"));
    }
    let touches = columns::decode(&columns, touch_count)?;
    Ok(BlockEvents { touches, others: decode_others(&others, touch_count, other_count)? })
}

fn decode_others(
    bytes: &[u8],
    touches: usize,
    count: usize,
) -> Result<Vec<(usize, Event)>, Problem> {
    let mut bytes = ByteReader::new(bytes);
    let mut before = 0;
    let mut others = Vec::new();
    for _ in 0..count {
        before += bytes.count("touches before an event", touches - before)?;
        let thread = bytes.number_u32("a thread")?;
        let wait = bytes.byte()?;
        let unknown = || Problem::malformed(format!("a wait is written as {wait}"));
        let wait_ns = wait::decode(wait).ok_or_else(unknown)?;
        others.push((before, Event { thread, wait_ns, kind: events::decode(&mut bytes)? }));
    }
    if bytes.is_empty() {
        Ok(others)
    } else {
        Err(Problem::malformed("a block has more events than its header says"))
    }
}

/// Appends a part: its uncompressed length, its stored length, and its bytes, compressed if that is
/// shorter. Equal lengths mean uncompressed.
fn encode_part(bytes: &mut Vec<u8>, part: &[u8]) {
    let ways = [CompressionStrategy::Default, CompressionStrategy::HuffmanOnly];
    let packed = ways.into_iter().filter_map(|way| compress_part(part, way));
    let packed = packed.min_by_key(Vec::len);
    let stands = packed.as_deref().unwrap_or(part);
    encode_number(bytes, part.len() as u64);
    encode_number(bytes, stands.len() as u64);
    bytes.extend(stands);
}

/// `part` compressed with a strategy; `None` if that is not shorter. Huffman coding alone wins on
/// columns with few distinct values and no repeating sequences.
fn compress_part(part: &[u8], way: CompressionStrategy) -> Option<Vec<u8>> {
    let flags = create_comp_flags_from_zip_params(LEVEL, RAW, way as i32);
    let mut packed = vec![0; part.len()];
    let (status, _, length) =
        compress(&mut CompressorOxide::new(flags), part, &mut packed, TDEFLFlush::Finish);
    packed.truncate(length);
    (status == TDEFLStatus::Done && length < part.len()).then_some(packed)
}

fn decode_part(bytes: &mut ByteReader<'_>) -> Result<Vec<u8>, Problem> {
    let length = bytes.count("bytes in a part of a block", MAX_PART_BYTES)?;
    let stands = bytes.count("bytes in a part of a block", length)?;
    let stands = bytes.take(stands)?;
    if stands.len() == length {
        return Ok(stands.to_vec());
    }
    match decompress_to_vec_with_limit(stands, length) {
        Ok(part) if part.len() == length => Ok(part),
        _ => Err(Problem::malformed("a part of a block differs from its stated length")),
    }
}
