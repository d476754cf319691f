//! Installs the command with its man pages and completions, and packs them for Debian.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::repository::root;

/// The profile of packages.
const PROFILE: &str = "dist";

/// Maximum size of the packaged binary.
const MAX_BINARY_BYTES: u64 = 16_000_000;

/// Where debuggers and backtraces look for the binary's debug information.
const DEBUG: &str = "bin/.debug";

/// Completions: the name of the generated file, and its path under the prefix.
const COMPLETIONS: [(&str, &str); 3] = [
    ("filemap.bash", "share/bash-completion/completions/filemap"),
    ("_filemap", "share/zsh/site-functions/_filemap"),
    ("filemap.fish", "share/fish/vendor_completions.d/filemap.fish"),
];

/// Licence files, in the repository's root.
const LICENCES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];

/// A file to install.
struct Item {
    from: PathBuf,
    /// Below the prefix.
    to: PathBuf,
    mode: u32,
}

/// Installs `binary` under `prefix`, with its debug information, man pages, completions and
/// licences. `destdir` stands for `/`. Returns the installed paths.
///
/// # Errors
/// When a file cannot be generated or written.
pub fn install(binary: &Path, prefix: &Path, destdir: Option<&Path>) -> Result<Vec<PathBuf>> {
    let base = base(prefix, destdir)?;
    let mut paths = Vec::new();
    for item in items(binary)? {
        let to = base.join(&item.to);
        install_item(&item, &to).with_context(|| {
            format!("{} cannot be written; give another --prefix", to.display())
        })?;
        paths.push(to);
    }
    Ok(paths)
}

/// Removes the files that [`install`] with the same arguments installs. Returns the removed paths.
///
/// # Errors
/// When a file cannot be removed.
pub fn uninstall(prefix: &Path, destdir: Option<&Path>) -> Result<Vec<PathBuf>> {
    let base = base(prefix, destdir)?;
    let mut paths = Vec::new();
    for item in items(Path::new(""))? {
        let path = base.join(&item.to);
        if path.symlink_metadata().is_ok() {
            fs::remove_file(&path).with_context(|| format!("{} stays", path.display()))?;
            paths.push(path);
        }
    }
    // The directories that only we create.
    for own in ["share/doc/filemap", DEBUG] {
        let _ = fs::remove_dir(base.join(own));
    }
    Ok(paths)
}

/// Builds a Debian package with `cargo deb` and returns its path.
///
/// # Errors
/// When `cargo deb` is not installed, or fails.
pub fn debian_package() -> Result<PathBuf> {
    generate()?;
    build_packaged()?;
    // Quiet: it warns of every asset in target that it does not build itself.
    let output = cargo()
        .args(["deb", "--package", "filemap-cli", "--profile", PROFILE, "--no-build", "--quiet"])
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .context("cargo does not start")?;
    // Cargo's exit code for an unknown subcommand.
    if output.status.code() == Some(101) && !has_cargo_deb() {
        bail!("cargo deb is not installed; run 'cargo install cargo-deb'");
    }
    ensure!(output.status.success(), "cargo deb failed ({})", output.status);
    let text = String::from_utf8_lossy(&output.stdout);
    let path = text.lines().rev().find(|line| line.ends_with(".deb"));
    Ok(path.context("cargo deb names no package")?.trim().into())
}

/// Builds `filemap` as packaged: stripped, with the debug information in a separate file next to
/// it. Returns the path of the binary.
///
/// # Errors
/// When it cannot be built, or is too large.
pub fn build_packaged() -> Result<PathBuf> {
    let whole = build(PROFILE)?;
    let directory = root().join("target/package");
    fs::create_dir_all(&directory)?;
    let (binary, debug) = (directory.join("filemap"), directory.join("filemap.debug"));
    let [from, to, debug_file] = [&whole, &binary, &debug].map(|path| path.as_os_str());
    objcopy(&["--only-keep-debug".as_ref(), from, debug_file])?;
    let mut link = OsString::from("--add-gnu-debuglink=");
    link.push(debug_file);
    objcopy(&["--strip-all".as_ref(), &link, from, to])?;
    let bytes = fs::metadata(&binary)?.len();
    ensure!(
        bytes <= MAX_BINARY_BYTES,
        "{} takes {bytes} bytes of {MAX_BINARY_BYTES}",
        binary.display()
    );
    Ok(binary)
}

fn objcopy(args: &[&OsStr]) -> Result<()> {
    let status = Command::new("objcopy").args(args).status();
    let status = status.context("objcopy is not installed; install the package binutils")?;
    ensure!(status.success(), "objcopy failed ({status})");
    Ok(())
}

/// Builds `filemap` with `profile`, and returns its path.
///
/// # Errors
/// When it cannot be built.
pub fn build(profile: &str) -> Result<PathBuf> {
    let output = cargo()
        .args(["build", "--profile", profile, "--quiet", "--package", "filemap-cli"])
        .args(["--features", "parquet"])
        .args(["--message-format", "json-render-diagnostics"])
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .context("cargo does not start")?;
    ensure!(output.status.success(), "filemap cannot be built ({})", output.status);
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut paths = messages.filter_map(|message| Some(message["executable"].as_str()?.into()));
    paths.next_back().context("cargo names no binary")
}

fn cargo() -> Command {
    Command::new(std::env::var("CARGO").unwrap_or("cargo".to_string()))
}

fn has_cargo_deb() -> bool {
    let version = cargo().args(["deb", "--version"]).stderr(Stdio::null()).output();
    version.is_ok_and(|output| output.status.success())
}

/// Generates man pages and completions in `target`, from where cargo-deb packages them.
fn generate() -> Result<(PathBuf, PathBuf)> {
    let (pages, scripts) = (root().join("target/man"), root().join("target/completions"));
    // Pages of removed commands must not be installed.
    if pages.exists() {
        fs::remove_dir_all(&pages).with_context(|| format!("{} stays", pages.display()))?;
    }
    filemap_cli::write_man_pages(&pages)
        .with_context(|| format!("no man page can be written to {}", pages.display()))?;
    filemap_cli::write_completions(&scripts)
        .with_context(|| format!("no completions can be written to {}", scripts.display()))?;
    Ok((pages, scripts))
}

fn items(binary: &Path) -> Result<Vec<Item>> {
    let (pages, scripts) = generate()?;
    let file = |from: PathBuf, to: PathBuf| Item { from, to, mode: 0o644 };
    let mut items = vec![
        Item { from: binary.into(), to: "bin/filemap".into(), mode: 0o755 },
        file(binary.with_extension("debug"), Path::new(DEBUG).join("filemap.debug")),
    ];
    let mut names =
        fs::read_dir(&pages)?.map(|entry| Ok(entry?.file_name())).collect::<Result<Vec<_>>>()?;
    names.sort();
    let page = |name| file(pages.join(&name), Path::new("share/man/man1").join(&name));
    items.extend(names.into_iter().map(page));
    items.extend(COMPLETIONS.map(|(from, to)| file(scripts.join(from), to.into())));
    items.extend(
        LICENCES.map(|name| file(root().join(name), Path::new("share/doc/filemap").join(name))),
    );
    Ok(items)
}

/// The directory below which items are installed.
fn base(prefix: &Path, destdir: Option<&Path>) -> Result<PathBuf> {
    ensure!(prefix.is_absolute(), "--prefix {}: give an absolute path", prefix.display());
    Ok(match destdir {
        Some(directory) => directory.join(prefix.strip_prefix("/")?),
        None => prefix.to_path_buf(),
    })
}

/// Replaces `to` atomically; a running binary cannot be written to.
fn install_item(item: &Item, to: &Path) -> Result<()> {
    let directory = to.parent().context("it lies in a directory")?;
    fs::create_dir_all(directory)?;
    let temporary = to.with_extension(format!("new-{}", std::process::id()));
    let done = fs::copy(&item.from, &temporary)
        .and_then(|_| fs::set_permissions(&temporary, fs::Permissions::from_mode(item.mode)))
        .and_then(|()| fs::rename(&temporary, to));
    if done.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    Ok(done?)
}
