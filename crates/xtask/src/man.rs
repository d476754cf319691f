//! Man pages: what the definition of the command line says, and what it cannot say.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context, Result};
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};
use filemap_cli::{command, examples};

/// Exit codes, and what each says.
const EXIT_STATUS: [(&str, &str); 7] = [
    ("0", "The command did its work."),
    ("1", "A check failed, a run failed, or an output could not be written."),
    ("2", "The command line, the job or an input file is wrong. The message names the value."),
    (
        "3",
        "A kernel that was booted crashed, hangs, or warned of itself. The message has what its \
         console says.",
    ),
    ("4", "This machine lacks something. The message names it, and the remedy."),
    (
        "126, 127",
        "The program of govern cannot be executed, or there is none. Once it runs, govern ends as \
         the program does.",
    ),
    ("128 + signal", "A signal ended the command, which first undid what it had changed."),
];

/// Environment variables, and what each does.
const ENVIRONMENT: [(&str, &str); 4] = [
    (
        "FILEMAP_STATE",
        "The directory of the journal, by its whole path. It has to belong to the user, and others \
         must not be able to write to it.",
    ),
    (
        "TMPDIR",
        "The directory of temporary files. Runs on a kernel need room there for the file that \
         they read.",
    ),
    (
        "XDG_RUNTIME_DIR",
        "Where govern keeps in a directory what it has advised, so that govern --release can \
         restore it. Without it the directory is in /dev/shm.",
    ),
    (
        "PATH",
        "Where the program of govern is looked for, and mkfs.ext4, mkfs.xfs and QEMU, where \
         a command needs them.",
    ),
];

/// Files, and what is in each.
const FILES: [(&str, &str); 1] = [(
    "/var/tmp/filemap-journal",
    "What runs have changed on this machine and not yet undone. The next command undoes what a \
     killed one left. Users other than root have a directory of their own, whose name ends in \
     their user ID.",
)];

/// Writes a page for the command and each of its subcommands into `directory`.
///
/// # Errors
/// When a file cannot be written.
pub fn write(directory: &Path) -> Result<()> {
    let mut command = command().disable_help_subcommand(true);
    command.build();
    let shown = || format!("no man page can be written to {}", directory.display());
    fs::create_dir_all(directory).with_context(shown)?;
    for page in [&command].into_iter().chain(command.get_subcommands()) {
        let name = page.get_display_name().unwrap_or(page.get_name());
        let text = page_of(page, &command).with_context(shown)?;
        fs::write(directory.join(format!("{name}.1")), text).with_context(shown)?;
    }
    Ok(())
}

/// The page of `command`, which is `root` or one of its subcommands.
fn page_of(command: &Command, root: &Command) -> io::Result<Vec<u8>> {
    // Examples have a section of their own.
    let man = Man::new(command.clone().after_long_help(None))
        .source(format!("filemap {}", root.get_version().unwrap_or_default()))
        .manual("filemap manual");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut rest = Roff::new();
    section(&mut rest, "EXIT STATUS", &EXIT_STATUS);
    section(&mut rest, "ENVIRONMENT", &ENVIRONMENT);
    section(&mut rest, "FILES", &FILES);
    example_section(&mut rest, command, root);
    see_also(&mut rest, command, root);
    rest.to_writer(&mut page)?;
    Ok(page)
}

fn section(page: &mut Roff, title: &str, entries: &[(&str, &str)]) {
    page.control("SH", [title]);
    for &(name, text) in entries {
        page.control("TP", []);
        page.text([bold(name)]);
        page.text([roman(text)]);
    }
}

/// The examples of `command`; of `root`, the first of each subcommand.
fn example_section(page: &mut Roff, command: &Command, root: &Command) {
    let shown: Vec<_> = if command.get_name() == root.get_name() {
        root.get_subcommands()
            .filter_map(|c| examples::of(c.get_name()).into_iter().next())
            .collect()
    } else {
        examples::of(command.get_name())
    };
    page.control("SH", ["EXAMPLES"]);
    for example in shown {
        page.control("PP", []);
        page.text([roman(example.does)]);
        page.control("PP", []);
        page.control("RS", ["4"]);
        page.control("nf", []);
        page.text([bold(example.command)]);
        page.control("fi", []);
        page.control("RE", []);
    }
}

fn see_also(page: &mut Roff, command: &Command, root: &Command) {
    let name = |page: &Command| page.get_display_name().unwrap_or(page.get_name()).to_string();
    let others = [root].into_iter().chain(root.get_subcommands()).map(name);
    let others: Vec<String> = others.filter(|other| *other != name(command)).collect();
    let mut words: Vec<Inline> = Vec::new();
    for (index, other) in others.iter().enumerate() {
        words.extend([
            bold(other.clone()),
            roman(if index + 1 < others.len() { "(1), " } else { "(1)" }),
        ]);
    }
    page.control("SH", ["SEE ALSO"]);
    page.text(words);
}
