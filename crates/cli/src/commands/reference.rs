//! Reference of the command line: `filemap man`, `filemap completions` and `filemap schema`.

use std::fs;
use std::io;
use std::path::Path;

use clap::Command;
use clap_complete::{Shell, generate};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, roman};
use filemap_study::schema;

use crate::args::{CompletionsArgs, ManArgs, SchemaArgs};
use crate::error::{Error, reason};
use crate::output::OutputFile;
use crate::{Outcome, command, examples};

/// Exit codes and their meanings.
const EXIT_STATUS: [(&str, &str); 7] = [
    ("0", "Success."),
    ("1", "A check or a run failed, or an output could not be written."),
    ("2", "The command line, the job or an input file is invalid. The message names the value."),
    ("3", "A booted kernel crashed, hung or printed a warning. The message quotes its console."),
    (
        "4",
        "This machine lacks a requirement, or a kernel image cannot be booted. The message names \
         it and the remedy.",
    ),
    (
        "126, 127",
        "The program of record or govern cannot be executed, or does not exist. Otherwise they \
         exit with the status of the program.",
    ),
    ("128 + signal", "The command was ended by a signal, after undoing its changes."),
];

/// Environment variables and their meanings.
const ENVIRONMENT: [(&str, &str); 4] = [
    (
        "FILEMAP_STATE",
        "Directory of the journal, as an absolute path. It must belong to the user and must not \
         be writable by others.",
    ),
    (
        "TMPDIR",
        "Directory of temporary files. Runs on a kernel need space there for the file that they \
         read.",
    ),
    (
        "XDG_RUNTIME_DIR",
        "Location of govern's record of advised mappings, from which govern --release restores \
         them. Default: /dev/shm.",
    ),
    (
        "PATH",
        "Search path for the program of govern, and for mkfs.ext4, mkfs.xfs and QEMU when \
         required.",
    ),
];

/// Files and their contents.
const FILES: [(&str, &str); 1] = [(
    "/var/tmp/filemap-journal",
    "Journal of changes to this machine that have not been undone yet. The next command undoes \
     the changes left behind by a killed one. Users other than root have a directory with their \
     user ID appended to its name.",
)];

/// Shells that `cargo xtask install` installs completions for, and the names of their scripts.
const SHELLS: [(Shell, &str); 3] =
    [(Shell::Bash, "filemap.bash"), (Shell::Zsh, "_filemap"), (Shell::Fish, "filemap.fish")];

/// Prints a man page, or writes all of them to a directory.
pub fn man(args: &ManArgs) -> Result<Outcome, Error> {
    if let Some(directory) = &args.output {
        write_man_pages(Path::new(directory)).map_err(|error| not_written(directory, &error))?;
        return Ok(Outcome::Done);
    }
    let target = OutputFile::stdout()?;
    let root = build_command();
    let page = match &args.command {
        None => Some(&root),
        Some(name) => root.get_subcommands().find(|page| page.get_name() == name),
    };
    let page = page.ok_or_else(|| {
        let name = args.command.as_deref().unwrap_or_default();
        unknown("command", name, root.get_subcommands().map(Command::get_name))
    })?;
    let text = man_page(page, &root).map_err(|error| target.failed(&error))?;
    target.write(&text)?;
    Ok(Outcome::Done)
}

/// Prints the completion script of a shell.
pub fn completions(args: &CompletionsArgs) -> Result<Outcome, Error> {
    OutputFile::stdout()?.write(&script(args.shell))?;
    Ok(Outcome::Done)
}

/// Prints a JSON schema, or writes all of them to a directory.
pub fn schema(args: &SchemaArgs) -> Result<Outcome, Error> {
    let text = |schema| {
        let text = serde_json::to_string_pretty(schema).expect("a schema is JSON");
        text + "\n"
    };
    let schemas = schema::all_schemas();
    let Some(directory) = &args.output else {
        let name = args.name.as_deref().unwrap_or_default();
        let found = schemas.iter().find(|(known, _)| *known == name);
        let names = schemas.iter().map(|(name, _)| *name);
        let (_, schema) = found.ok_or_else(|| unknown("schema", name, names))?;
        OutputFile::stdout()?.write(text(schema).as_bytes())?;
        return Ok(Outcome::Done);
    };
    let written = fs::create_dir_all(directory).and_then(|()| {
        schemas.iter().try_for_each(|(name, schema)| {
            fs::write(Path::new(directory).join(format!("{name}.schema.json")), text(schema))
        })
    });
    written.map_err(|error| not_written(directory, &error))?;
    Ok(Outcome::Done)
}

fn unknown<'a>(category: &str, name: &str, known: impl Iterator<Item = &'a str>) -> Error {
    let known = known.collect::<Vec<_>>().join(", ");
    Error::Usage(format!("there is no {category} '{name}'; give one of {known}"))
}

fn not_written(directory: &str, error: &io::Error) -> Error {
    Error::Write { path: directory.to_string(), reason: reason(error) }
}

/// Writes a man page for the command and each of its subcommands to `directory`, which is created
/// if missing.
///
/// # Errors
/// If a file cannot be written.
pub fn write_man_pages(directory: &Path) -> io::Result<()> {
    let root = build_command();
    fs::create_dir_all(directory)?;
    [&root].into_iter().chain(root.get_subcommands()).try_for_each(|page| {
        let name = page.get_display_name().unwrap_or(page.get_name());
        fs::write(directory.join(format!("{name}.1")), man_page(page, &root)?)
    })
}

/// Writes completion scripts for bash, zsh and fish to `directory`, which is created if missing.
///
/// # Errors
/// If a file cannot be written.
pub fn write_completions(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    SHELLS.iter().try_for_each(|&(shell, name)| fs::write(directory.join(name), script(shell)))
}

fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    generate(shell, &mut command(), "filemap", &mut script);
    script
}

/// The command with full names of subcommands.
fn build_command() -> Command {
    let mut root = command().disable_help_subcommand(true);
    root.build();
    root
}

/// The man page for `command`, which is `root` or one of its subcommands.
fn man_page(command: &Command, root: &Command) -> io::Result<Vec<u8>> {
    // Examples have a separate section.
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

/// The examples of `command`; for `root`, the first one of each subcommand.
fn example_section(page: &mut Roff, command: &Command, root: &Command) {
    let shown: Vec<_> = if command.get_name() == root.get_name() {
        root.get_subcommands()
            .filter_map(|c| examples::examples_for(c.get_name()).into_iter().next())
            .collect()
    } else {
        examples::examples_for(command.get_name())
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
