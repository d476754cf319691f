//! Tells the program the commit that it is built from.

use std::path::Path;
use std::process::Command;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    println!("cargo:rerun-if-changed=build.rs");
    // Outside of a checkout of its own, such as in a package, there is no revision.
    if !is_checkout(&root) {
        return;
    }
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&root, &["rev-parse", "--git-path", name]) {
            let path = root.join(path);
            if path.exists() {
                println!("cargo:rerun-if-changed={}", path.display());
            }
        }
    }
    // A changed source makes the revision dirty.
    println!("cargo:rerun-if-changed=..");
    println!("cargo:rerun-if-changed=../../data");
    let describe = ["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"];
    if let Some(revision) = git(&root, &describe) {
        println!("cargo:rustc-env=FILEMAP_REVISION={revision}");
    }
}

/// Whether `root` itself is the top of a checkout, and not a directory somewhere in one.
fn is_checkout(root: &Path) -> bool {
    let top = git(root, &["rev-parse", "--show-toplevel"]);
    let top = top.and_then(|top| Path::new(&top).canonicalize().ok());
    top.is_some() && top == root.canonicalize().ok()
}

/// What git prints; `None` where it is missing or fails.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    // Without locks, so that looking changes nothing that is looked at.
    let mut command = Command::new("git");
    let output = command.arg("-C").arg(root).arg("--no-optional-locks").args(arguments).output();
    let output = output.ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    Some(text.trim().to_string()).filter(|text| !text.is_empty())
}
