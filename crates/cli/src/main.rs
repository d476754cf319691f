//! The filemap command.
fn main() {}
