//! The repository's own tasks.

mod command_line;
mod install;
mod lint;
mod workspace;
