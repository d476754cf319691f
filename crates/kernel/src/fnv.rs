//! The checksum of what a guest sends: FNV-1a, 64 bits.

/// That of nothing.
pub(crate) const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// That of `bytes` after those of which `hash` is it.
pub(crate) fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_of_a_known_text() {
        assert_eq!(fnv(BASIS, b"a"), 0xaf63_dc4c_8601_ec8c);
    }
}
