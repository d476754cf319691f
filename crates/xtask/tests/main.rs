//! The repository's own tasks.

mod install;
mod lint;
mod workspace;
