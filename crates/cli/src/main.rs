//! The `filemap` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    filemap_cli::main()
}
