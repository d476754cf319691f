//! The frame that carries the guest's answer over a serial port.
//!
//! A header line (`filemap-result 1 ok|error LENGTH CHECKSUM`), the bytes, and an end line. A
//! byte that is lost or added on the way does not go unseen.

use super::Error;

const MAGIC: &str = "filemap-result 1";
const END: &str = "\nfilemap-end\n";

/// The answer as bytes for the port.
pub(super) fn encode(answer: &Result<String, String>) -> Vec<u8> {
    let (status, text) = match answer {
        Ok(text) => ("ok", text),
        Err(text) => ("error", text),
    };
    let (length, check) = (text.len(), checksum(text.as_bytes()));
    format!("{MAGIC} {status} {length} {check:016x}\n{text}{END}").into_bytes()
}

/// The answer in what came over the port; `None` when nothing did.
pub(super) fn decode(bytes: &[u8]) -> Option<Result<String, Error>> {
    if bytes.is_empty() {
        return None;
    }
    let answer = parse(bytes).map_err(|reason| Error::Damaged { reason: reason.to_owned() });
    Some(answer.and_then(|answer| answer.map_err(|text| Error::Guest(text.replace('\n', " ")))))
}

fn parse(bytes: &[u8]) -> Result<Result<String, String>, &'static str> {
    let end = bytes.iter().position(|&byte| byte == b'\n').ok_or("its header is cut short")?;
    let header = std::str::from_utf8(&bytes[..end]).map_err(|_| "its header is no text")?;
    let fields: Vec<_> = header
        .strip_prefix(MAGIC)
        .ok_or("it does not begin with a header")?
        .split_whitespace()
        .collect();
    let &[status, length, check] = &fields[..] else { return Err("its header is incomplete") };
    let length: usize = length.parse().map_err(|_| "its length is no number")?;
    let body = &bytes[end + 1..];
    if body.len() != length.saturating_add(END.len()) || !body.ends_with(END.as_bytes()) {
        return Err("its length does not fit");
    }
    let body = &body[..length];
    if u64::from_str_radix(check, 16) != Ok(checksum(body)) {
        return Err("its checksum does not fit");
    }
    let text = String::from_utf8(body.to_vec()).map_err(|_| "it is no text")?;
    match status {
        "ok" => Ok(Ok(text)),
        "error" => Ok(Err(text)),
        _ => Err("its status is unknown"),
    }
}

/// FNV-1a, 64 bits.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for text in ["", "{\"a\": 1}\n", "ä\r\n\0"] {
            let frame = encode(&Ok(text.into()));
            assert_eq!(decode(&frame).unwrap().unwrap(), text);
        }
        let error = decode(&encode(&Err("no\ndisk".into()))).unwrap().unwrap_err();
        assert_eq!(error.to_string(), "in the guest: no disk");
        assert!(decode(b"").is_none());
    }

    #[test]
    fn every_cut_and_every_flipped_byte_is_seen() {
        let frame = encode(&Ok("some record".into()));
        for at in 0..frame.len() {
            if at > 0 {
                assert!(decode(&frame[..at]).unwrap().is_err(), "cut at {at}");
            }
            let mut flipped = frame.clone();
            flipped[at] ^= 0x20;
            let answer = decode(&flipped).unwrap();
            assert!(answer.map_or(true, |text| text == "some record"), "flipped {at}");
        }
        assert!(decode(&[&frame[..], b"x"].concat()).unwrap().is_err());
    }

    #[test]
    fn checksum_of_a_known_text() {
        assert_eq!(checksum(b"a"), 0xaf63_dc4c_8601_ec8c);
    }
}
