//! Waits as one byte each.
//!
//! Below 8 ns the byte is the wait. From there on each power of two has four steps: byte 8 + 4 (e -
//! 3) + q stands for (4 + q) x 2^(e - 2) ns, with e from 3 and q from 0 to 3. A wait is thus
//! within an eighth of the next step. What a wait is off is added to the next one of its thread, as
//! far as that is an eighth of it, so that the sum of many comes out.

/// Waits that are kept as they are.
const EXACT_BELOW_NS: u64 = 8;

/// Longest wait that is told from longer ones: 2^62 ns.
const MAX_WAIT_NS: u64 = 1 << 62;

/// The byte of the longest wait.
const MAX_BYTE: u8 = 8 + 4 * (62 - 3);

/// The byte that comes nearest to `wait_ns`.
fn nearest_byte(wait_ns: u64) -> u8 {
    let wait_ns = wait_ns.min(MAX_WAIT_NS);
    if wait_ns < EXACT_BELOW_NS {
        return wait_ns as u8;
    }
    let power = wait_ns.ilog2();
    // Four to eight, as the next power of two begins with its first step.
    let step = (wait_ns + (1 << (power - 3))) >> (power - 2);
    ((8 + 4 * (power - 3)) as u64 + step - 4) as u8
}

/// The wait that `byte` stands for, in nanoseconds; `None` where it stands for none.
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

/// What the waits of one thread were off.
#[derive(Clone, Copy, Debug, Default)]
pub struct WaitEncoder {
    ns: i64,
}

impl WaitEncoder {
    /// The byte of the next wait.
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
        // 9 lies in the middle of 8 and 10, 15 beyond the middle of 14 and 16.
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
