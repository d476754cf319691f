//! The governor's policy on patterns of accesses.

mod bound;
mod cases;
mod patterns;
mod remembered;
mod support;
