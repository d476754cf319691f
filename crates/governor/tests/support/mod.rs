//! What the tests of the library share.
#![allow(dead_code, reason = "each test uses a part")]

pub mod bench;
pub mod data;
pub mod draws;
pub mod library;
pub mod mapping;
pub mod outcome;
pub mod reader;
#[path = "../../../kernel/tests/support/skip.rs"]
pub mod skip;
pub mod tapes;
