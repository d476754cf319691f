//! The kernels that ran: build, image hash, and differing configuration options.

use filemap_job::{EngineKind, Record};
use filemap_report::Part;
use serde_json::Value;

use super::machine::text;
use crate::compare::trees::{DIFFERS, HASH, OPTIONS};

/// Digits to which hashes and commits are abbreviated.
const DIGITS: usize = 12;

/// The distinct kernels of `records`; empty if only the model ran.
pub(super) fn parts(records: &[&Record]) -> Vec<Part> {
    let mut kernels: Vec<&Record> = Vec::new();
    for record in records.iter().filter(|record| record.engine == EngineKind::Kernel.name()) {
        if kernels.iter().all(|known| name(known) != name(record)) {
            kernels.push(record);
        }
    }
    let Some((first, others)) = kernels.split_first() else { return Vec::new() };
    let mut items: Vec<String> = kernels.iter().map(|record| build_facts(record)).collect();
    let has_images = text(first, "image").is_some();
    items.extend(others.iter().filter(|_| has_images).map(|other| configured(first, other)));
    vec![Part::Paragraph("Kernels:".to_string()), Part::List(items)]
}

fn name(record: &Record) -> &str {
    text(record, "image").unwrap_or("the running kernel")
}

/// Release, commit, compiler and image hash of a kernel.
fn build_facts(record: &Record) -> String {
    let release = text(record, "kernel");
    let begin = |digits: &str| digits.chars().take(DIGITS).collect::<String>();
    let facts = [
        release.map(|release| format!("Linux {release}")),
        release.and_then(commit).map(|commit| format!("commit {}", begin(commit))),
        text(record, "build").map(|build| format!("uname -v '{build}'")),
        text(record, "compiler").map(|compiler| format!("built with {compiler}")),
        text(record, HASH).map(|digits| format!("image sha256 {}", begin(digits))),
    ];
    format!("{}: {}", name(record), facts.into_iter().flatten().collect::<Vec<_>>().join("; "))
}

/// The commit in a release string, as `setlocalversion` appends it: `6.12.0-rc1-00042-g0123abcd`.
fn commit(release: &str) -> Option<&str> {
    let is_commit = |part: &&str| {
        part.len() >= 7 && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    release.split('-').filter_map(|part| part.strip_prefix('g')).find(is_commit)
}

/// The configuration options in which `other` differs from `first`.
fn configured(first: &Record, other: &Record) -> String {
    let both = format!(".config of {} and {}", name(first), name(other));
    let Some(options) = other.environment.get(DIFFERS).and_then(Value::as_u64) else {
        return format!("{both}: not contained in the images (CONFIG_IKCONFIG)");
    };
    let differs = match options {
        0 => return format!("{both}: the same"),
        1 => "1 option differs".to_string(),
        many => format!("{many} options differ"),
    };
    let named = other.environment.get(OPTIONS).and_then(Value::as_array);
    let named = named.into_iter().flatten().filter_map(Value::as_str);
    let named: Vec<&str> = named.collect();
    let first = if options == named.len() as u64 { "" } else { ", the first" };
    format!("{both}: {differs}{first}: {}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_may_name_its_commit() {
        assert_eq!(commit("6.12.0-rc1-00042-g0123abcd"), Some("0123abcd"));
        assert_eq!(commit("7.1.0-next-g0123abcd-dirty"), Some("0123abcd"));
        assert_eq!(commit("6.12.117+deb12-generic-amd64"), None);
    }
}
