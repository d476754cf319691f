//! Mapcounts of large folios: against a map, in every order of threads, and what they cost.

mod address_spaces;
mod against_a_map;
mod anon_cow;
mod atomic_operations;
mod every_history;
mod exact_sums;
mod interleavings;
mod misuse;
mod mm_ids;
mod support;
