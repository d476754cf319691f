//! Recordings: their format, damaged ones, and the jobs that they become.

mod another_reader;
mod convert;
mod damaged;
mod import;
mod round_trip;
mod sizes;
mod support;
