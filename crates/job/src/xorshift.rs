//! The generator of random accesses, and of the seeds of several runs.

/// Seed of the random workloads where none is given.
pub const DEFAULT_SEED: u64 = 88172645463325252;

/// One step of the xorshift64 generator. Never 0 from a state that is not.
pub const fn xorshift64(mut state: u64) -> u64 {
    state ^= state << 13;
    state ^= state >> 7;
    state ^ state << 17
}

/// Steps of the generator between two seeds of a series of seeds.
const STEPS_BETWEEN_SEEDS: u64 = 1000;

/// The seeds of `count` runs that begin with seed `first`: that one, then the generator's output
/// after 1000, 2000 and so on steps from it.
pub fn seeds(first: u64, count: u64) -> impl Iterator<Item = u64> {
    let later =
        |seed: &u64| Some((0..STEPS_BETWEEN_SEEDS).fold(*seed, |state, _| xorshift64(state)));
    std::iter::successors(Some(first), later).take(usize::try_from(count).unwrap_or(usize::MAX))
}
