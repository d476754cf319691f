//! Does nothing. Cargo counts features of libraries that a build needs where there is one.

fn main() {}
