//! Truncated, corrupted and forged recordings.

use filemap_recording::{Event, MAGIC, Reader};
use proptest::prelude::*;

use crate::support::{begin, drafts, events, written};

/// The result of reading `bytes`: the events before an error, the error, and whether the recording
/// is truncated.
fn read(bytes: &[u8]) -> (Vec<Event>, Option<String>, bool) {
    let mut events = Vec::new();
    let mut reader = match Reader::new(bytes, "some/file") {
        Ok(reader) => reader,
        Err(error) => return (events, Some(error.to_string()), false),
    };
    let mut error = None;
    for event in reader.by_ref() {
        match event {
            Ok(event) => events.push(event),
            Err(said) => error = Some(said.to_string()),
        }
    }
    assert!(reader.next().is_none(), "nothing comes behind the end");
    let truncated = reader.truncated();
    if let Some(truncated) = truncated {
        assert_eq!(truncated.events, events.len() as u64);
        assert!(truncated.at <= bytes.len() as u64);
    }
    (events, error, truncated.is_some())
}

fn check_line(error: &str) {
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.starts_with("recording 'some/file', byte "), "{error}");
    assert!(error.contains("; "), "{error}: no remedy");
}

proptest! {
    /// A truncated recording yields its complete blocks and is reported as truncated.
    #[test]
    fn what_is_cut_off_is_read_up_to_its_last_block(drafts in drafts(60), cut in any::<u64>()) {
        let events = events(&drafts);
        let bytes = written(&events, 10);
        let cut = (cut % bytes.len() as u64) as usize;
        let (read, error, is_truncated) = read(&bytes[..cut]);
        match error {
            // Cut inside the header.
            Some(error) => {
                check_line(&error);
                prop_assert!(read.is_empty());
            }
            None => {
                prop_assert!(is_truncated);
                prop_assert!(read.len() % 10 == 0 || read.len() == events.len());
                prop_assert!(read.iter().zip(&events).all(|(read, event)| read.kind == event.kind));
            }
        }
    }

    /// A corrupted byte is detected: a reader returns no event that was not written.
    #[test]
    fn a_changed_byte_is_found(drafts in drafts(60), at in any::<u64>(), flip in 1u8..=255) {
        let events = events(&drafts);
        let mut bytes = written(&events, 10);
        let at = (at % bytes.len() as u64) as usize;
        bytes[at] ^= flip;
        let (read, error, _) = read(&bytes);
        check_line(&error.expect("it is found"));
        prop_assert!(read.iter().zip(&events).all(|(read, event)| read.kind == event.kind));
    }

    /// Random contents with valid checksums.
    #[test]
    fn made_up_contents_are_refused_or_read(
        contents in proptest::collection::vec(any::<u8>(), 0..200),
        kind in prop_oneof![Just(b'H'), Just(b'B'), Just(b'E'), any::<u8>()],
        with_header in any::<bool>(),
    ) {
        let whole = written(&[], 1);
        let header_ends = 12 + 13 + u32::from_le_bytes(whole[13..17].try_into().unwrap()) as usize;
        let mut bytes = whole[..if with_header { header_ends } else { 12 }].to_vec();
        bytes.extend(frame(kind, &contents));
        if let Some(error) = read(&bytes).1 {
            check_line(&error);
        }
    }

    /// A block with some bytes changed and valid checksums.
    #[test]
    fn changed_contents_are_refused_or_read(
        drafts in drafts(60),
        changes in proptest::collection::vec((any::<u64>(), any::<u8>()), 1..4),
    ) {
        let bytes = written(&events(&drafts), usize::MAX);
        let block = 12 + 13 + u32::from_le_bytes(bytes[13..17].try_into().unwrap()) as usize;
        prop_assume!(bytes[block] == b'B');
        let length = u32::from_le_bytes(bytes[block + 1..block + 5].try_into().unwrap()) as usize;
        let mut contents = bytes[block + 13..block + 13 + length].to_vec();
        for (at, value) in changes {
            let at = (at % length as u64) as usize;
            contents[at] = value;
        }
        let bytes = [&bytes[..block], &frame(b'B', &contents)].concat();
        if let Some(error) = read(&bytes).1 {
            check_line(&error);
        }
    }
}

/// An independent implementation of the frame format.
fn frame(kind: u8, contents: &[u8]) -> Vec<u8> {
    let mut head = vec![kind];
    head.extend((contents.len() as u32).to_le_bytes());
    head.extend(crc32(contents).to_le_bytes());
    head.extend(crc32(&head).to_le_bytes());
    [&head[..], contents].concat()
}

/// Bitwise CRC-32.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = !0u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

#[test]
fn foreign_files_are_told() {
    let whole = written(&[], 1);
    let mut newer = whole.clone();
    newer[8] = 3;
    for (bytes, words) in [
        (&b""[..], "byte 0: it is no recording"),
        (b"[[file]]\nname = 'data'\n", "byte 0: it is no recording"),
        (&MAGIC, "byte 8: it ends inside its header"),
        (&whole[..20], "byte 12: it ends inside its header"),
        (&newer, "byte 8: its format has version 3, and this filemap reads version 1 to 2"),
    ] {
        let error = read(bytes).1.expect("it is refused");
        check_line(&error);
        assert!(error.contains(words), "{error}");
    }
}

/// Bytes after the end frame are an error: a concatenated second recording would be ignored
/// silently otherwise.
#[test]
fn what_is_behind_the_end_is_told() {
    let whole = written(&begin(16), 10);
    for more in [&whole[..], b"x"] {
        let (events, error, _) = read(&[&whole[..], more].concat());
        let error = error.expect("it is refused");
        check_line(&error);
        assert!(
            error.contains(&format!("byte {}: the recording ends there", whole.len())),
            "{error}"
        );
        assert_eq!(events.len(), begin(16).len());
    }
}

/// A length field larger than the file allocates nothing: a few bytes cannot claim a gigabyte.
#[test]
fn promised_lengths_take_no_memory() {
    let whole = written(&[], 1);
    let header_ends = 12 + 13 + u32::from_le_bytes(whole[13..17].try_into().unwrap()) as usize;
    let mut head = vec![b'B'];
    head.extend(u32::MAX.to_le_bytes());
    head.extend([0; 4]);
    head.extend(crc32(&head).to_le_bytes());
    let bytes = [&whole[..header_ends], &head].concat();
    let error = read(&bytes).1.expect("it is refused");
    assert!(error.contains("a part has 4294967295 bytes"), "{error}");
    // In a block: 65,536 touches with a column of a gigabyte.
    let contents = [&[0x80, 0x80, 0x04, 0][..], &[0x80, 0x80, 0x80, 0x80, 0x04, 0]].concat();
    let bytes = [&whole[..header_ends], &frame(b'B', &contents)].concat();
    let error = read(&bytes).1.expect("it is refused");
    assert!(error.contains("bytes in a part of a block"), "{error}");
}
