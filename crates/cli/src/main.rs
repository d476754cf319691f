//! The `filemap` command.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: filemap_cli::OrExit = filemap_cli::OrExit;

fn main() -> ExitCode {
    filemap_cli::main()
}
