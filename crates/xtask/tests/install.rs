//! What is installed is all there, and all of it goes again.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use xtask::install::{install, uninstall};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn uninstall_removes_installed_files() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("install");
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    let binary = directory.join("binary");
    fs::write(&binary, "first").unwrap();
    fs::write(binary.with_extension("debug"), "").unwrap();
    let destdir = directory.join("root");
    let place = (Path::new("/opt/x"), Some(destdir.as_path()));

    let installed = install(&binary, place.0, place.1).unwrap();
    let base = destdir.join("opt/x");
    for (path, expected) in [
        ("bin/filemap", 0o755),
        ("bin/.debug/filemap.debug", 0o644),
        ("share/man/man1/filemap.1", 0o644),
        ("share/man/man1/filemap-run.1", 0o644),
        ("share/bash-completion/completions/filemap", 0o644),
        ("share/zsh/site-functions/_filemap", 0o644),
        ("share/fish/vendor_completions.d/filemap.fish", 0o644),
        ("share/doc/filemap/LICENSE-MIT", 0o644),
    ] {
        assert!(installed.contains(&base.join(path)), "{path} is not listed");
        assert_eq!(mode(&base.join(path)), expected, "{path}");
    }
    let mut found = files(&destdir);
    found.sort();
    let mut listed = installed.clone();
    listed.sort();
    assert_eq!(found, listed, "nothing else is there");

    // A second time, over the first.
    fs::write(&binary, "second").unwrap();
    install(&binary, place.0, place.1).unwrap();
    assert_eq!(fs::read_to_string(base.join("bin/filemap")).unwrap(), "second");

    fs::write(base.join("bin/other"), "").unwrap();
    assert_eq!(uninstall(place.0, place.1).unwrap().len(), installed.len());
    assert_eq!(files(&destdir), [base.join("bin/other")]);
    assert!(uninstall(place.0, place.1).unwrap().is_empty());
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_relative_prefix_is_refused() {
    let error = install(Path::new(""), Path::new("local"), None).unwrap_err().to_string();
    assert_eq!(error, "--prefix local: give an absolute path");
}
