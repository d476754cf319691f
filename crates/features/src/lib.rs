//! Nothing but what `Cargo.toml` asks for: the features of libraries.
