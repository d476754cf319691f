//! The best answers of `filemap advise`, run for real.

mod advising;
pub mod check;
mod writes;
