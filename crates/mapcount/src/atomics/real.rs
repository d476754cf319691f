//! The processor's atomics.

use std::sync::atomic::{AtomicU32, AtomicU64};

use super::Atomics;
use crate::forward;

/// The standard library's atomics, without anything around them.
pub struct Real;

impl Atomics for Real {
    type Page = AtomicU32;
    type U32 = AtomicU32;
    type U64 = AtomicU64;
}

forward!(AtomicU32, u32, |it| it);
forward!(AtomicU64, u64, |it| it);
