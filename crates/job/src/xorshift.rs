//! The generator of random accesses and of the seeds of repeated runs.

/// Default seed of random workloads.
pub const DEFAULT_SEED: u64 = 88172645463325252;

/// One step of xorshift64. Never returns 0 for a non-zero state.
pub const fn xorshift64(mut state: u64) -> u64 {
    state ^= state << 13;
    state ^= state >> 7;
    state ^ state << 17
}

/// Generator steps between consecutive seeds.
const STEPS_BETWEEN_SEEDS: u64 = 1000;

/// The seeds of `count` runs: `first`, then the generator's output after 1000, 2000 and so on steps
/// from it.
pub fn seeds(first: u64, count: u64) -> impl Iterator<Item = u64> {
    let later =
        |seed: &u64| Some((0..STEPS_BETWEEN_SEEDS).fold(*seed, |state, _| xorshift64(state)));
    std::iter::successors(Some(first), later).take(usize::try_from(count).unwrap_or(usize::MAX))
}
