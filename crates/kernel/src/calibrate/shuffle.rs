//! An order in which no place is next to the one before.

/// A permutation of `0..count` that leaves no neighbours together.
pub(super) fn shuffled(number: u64, count: u64) -> u64 {
    let mut step = (count * 5 / 13).max(1);
    while common_divisor(step, count) > 1 {
        step += 1;
    }
    (u128::from(number) * u128::from(step) % u128::from(count)) as u64
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_has_every_number_once() {
        for count in [1, 2, 3, 4, 5, 13, 32, 128, 1000, 1024] {
            let mut numbers: Vec<u64> = (0..count).map(|n| shuffled(n, count)).collect();
            let close = numbers.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) == 1).count();
            assert!(count < 6 || close == 0, "{count}: {numbers:?}");
            numbers.sort_unstable();
            assert_eq!(numbers, (0..count).collect::<Vec<_>>());
        }
    }
}
