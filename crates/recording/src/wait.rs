//! Encodes each wait as one byte.
//!
//! Waits below 8 ns are exact. Above, each power of two has four logarithmic steps: byte 8 + 4 (e -
//! 3) + q stands for (4 + q) x 2^(e - 2) ns, with e from 3 and q from 0 to 3, so rounding to the
//! nearest step is off by at most an eighth. The rounding error is carried over to the next wait of
//! the thread, by at most an eighth of that wait, so that sums over many waits are accurate.

/// Waits below this are exact.
const EXACT_BELOW_NS: u64 = 8;

/// Maximum wait, 2^62 ns; longer ones are clamped.
const MAX_WAIT_NS: u64 = 1 << 62;

/// The byte of the maximum wait.
const MAX_BYTE: u8 = 8 + 4 * (62 - 3);

/// The byte of the step nearest to `wait_ns`.
fn nearest_byte(wait_ns: u64) -> u8 {
    let wait_ns = wait_ns.min(MAX_WAIT_NS);
    if wait_ns < EXACT_BELOW_NS {
        return wait_ns as u8;
    }
    let power = wait_ns.ilog2();
    // From 4 to 8: rounding up may reach the first step of the next power of two.
    let step = (wait_ns + (1 << (power - 3))) >> (power - 2);
    ((8 + 4 * (power - 3)) as u64 + step - 4) as u8
}

/// The wait that `byte` encodes, in nanoseconds; `None` if the byte is invalid.
pub fn decode(byte: u8) -> Option<u64> {
    let byte = u64::from(byte);
    if byte < EXACT_BELOW_NS {
        return Some(byte);
    }
    if byte > u64::from(MAX_BYTE) {
        return None;
    }
    let (power, step) = (3 + (byte - 8) / 4, 4 + (byte - 8) % 4);
    Some(step << (power - 2))
}

/// The accumulated rounding error of one thread's waits, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct WaitEncoder {
    ns: i64,
}

impl WaitEncoder {
    /// Encodes the next wait, corrected by the carried error.
    pub fn encode(&mut self, wait_ns: u64) -> u8 {
        let wait = wait_ns.min(MAX_WAIT_NS) as i64;
        let most = wait / 8;
        let wanted = wait + self.ns.clamp(-most, most);
        let byte = nearest_byte(wanted as u64);
        self.ns = wanted - decode(byte).expect("it is the byte of a wait") as i64;
        byte
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_is_the_nearest_to_its_wait() {
        let mut before = None;
        for byte in 0..=MAX_BYTE {
            let wait = decode(byte).unwrap();
            assert_eq!(nearest_byte(wait), byte);
            assert!(before < Some(wait), "{byte}");
            before = Some(wait);
        }
        assert_eq!(decode(MAX_BYTE), Some(MAX_WAIT_NS));
        assert_eq!(decode(MAX_BYTE + 1), None);
        assert_eq!(nearest_byte(u64::MAX), MAX_BYTE);
        // 9 is halfway between 8 and 10, 15 halfway between 14 and 16: ties round up.
        assert_eq!([8, 9, 10, 15].map(|wait| decode(nearest_byte(wait)).unwrap()), [8, 10, 10, 16]);
    }

    #[test]
    fn waits_are_near_and_their_sum_is_nearer() {
        for wait in [1u64, 9, 37, 1100, 123_456_789, 1 << 40, (1 << 62) - 1] {
            let mut rest = WaitEncoder::default();
            let kept: Vec<u64> = (0..1000).map(|_| decode(rest.encode(wait)).unwrap()).collect();
            let near = |kept: &u64| kept.abs_diff(wait) <= wait / 4;
            assert!(kept.iter().all(near), "{wait}: {kept:?}");
            let sum: u128 = kept.iter().map(|kept| u128::from(*kept)).sum();
            let expected = u128::from(wait) * 1000;
            assert!(sum.abs_diff(expected) <= u128::from(wait), "{wait}: {sum}");
        }
    }
}
