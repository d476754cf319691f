//! Tests of the recording format, of error handling, and of the conversion to jobs.

mod another_reader;
mod convert;
mod damaged;
mod import;
mod round_trip;
mod sizes;
mod support;
