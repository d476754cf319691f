//! The encoding of numbers and texts.

use crate::error::Problem;

/// Maximum length of a number, in bytes.
const MAX_NUMBER_BYTES: usize = 10;

/// Maximum length of a text, in bytes.
pub const MAX_TEXT_BYTES: usize = 1 << 16;

/// Appends `value` as LEB128: seven bits per byte, lowest first, the high bit set in all but the
/// last.
pub fn encode_number(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Appends the length of `text` and `text`, truncated to the maximum length.
pub fn encode_text(bytes: &mut Vec<u8>, text: &[u8]) {
    let text = &text[..text.len().min(MAX_TEXT_BYTES)];
    encode_number(bytes, text.len() as u64);
    bytes.extend(text);
}

/// Reads from the front of a byte slice.
#[derive(Clone, Copy, Debug)]
pub struct ByteReader<'a> {
    left: &'a [u8],
}

impl<'a> ByteReader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        ByteReader { left: bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    pub fn byte(&mut self) -> Result<u8, Problem> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Problem> {
        let bytes = self.take(N)?;
        Ok(bytes.try_into().expect("it has this length"))
    }

    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Problem> {
        let ends = || Problem::malformed("a block ends inside one of its parts");
        let (taken, left) = self.left.split_at_checked(count).ok_or_else(ends)?;
        self.left = left;
        Ok(taken)
    }

    pub fn number(&mut self) -> Result<u64, Problem> {
        let mut value = 0u64;
        for place in 0..MAX_NUMBER_BYTES {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte holds only the 64th bit.
            if place == MAX_NUMBER_BYTES - 1 && bits > 1 {
                break;
            }
            value |= bits << (7 * place);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Problem::malformed("a number is longer than 64 bits"))
    }

    /// A number that fits 32 bits; errors call it `name`.
    pub fn number_u32(&mut self, name: &str) -> Result<u32, Problem> {
        let number = self.number()?;
        let beyond = |_| Problem::malformed(format!("{name} is {number}"));
        u32::try_from(number).map_err(beyond)
    }

    /// A count of at most `most`; errors call the counted things `name`.
    pub fn count(&mut self, name: &str, most: usize) -> Result<usize, Problem> {
        let number = self.number()?;
        match usize::try_from(number) {
            Ok(count) if count <= most => Ok(count),
            _ => Err(Problem::malformed(format!("there are {number} {name}"))),
        }
    }

    pub fn text(&mut self) -> Result<&'a [u8], Problem> {
        let length = self.count("bytes in a text", MAX_TEXT_BYTES)?;
        self.take(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for value in [0, 1, 127, 128, 16383, 16384, u64::from(u32::MAX), 1 << 63, u64::MAX] {
            let mut bytes = Vec::new();
            encode_number(&mut bytes, value);
            let mut read = ByteReader::new(&bytes);
            assert_eq!(read.number(), Ok(value));
            assert!(read.is_empty());
            assert!(ByteReader::new(&bytes[..bytes.len() - 1]).number().is_err());
        }
        assert_eq!(ByteReader::new(&[0x80, 0x01]).number(), Ok(128));
        for longer in [[0xff; 10], [0x80; 10]] {
            assert!(ByteReader::new(&longer).number().is_err());
        }
        let mut beyond = [0xff; 10];
        beyond[9] = 2;
        assert!(ByteReader::new(&beyond).number().is_err());
    }
}
