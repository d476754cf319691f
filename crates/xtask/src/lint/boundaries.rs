//! Deterministic crates use no threads, clocks, files, processes or network. Core and policy also
//! use no unordered iteration and no floating point, and core's modules depend on each other in one
//! direction.
//!
//! Comments, strings and tests are exempt.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::Finding;
use crate::repository::{File, Repository};

/// Crates without I/O.
const PURE: [&str; 6] = [
    "crates/core/src/",
    "crates/job/src/",
    "crates/mapcount/src/",
    "crates/model/src/",
    "crates/policy/src/",
    "crates/report/src/",
];

/// Modules of the standard library that do I/O.
const IO_MODULES: [&str; 8] = ["env", "fs", "io", "net", "os", "process", "thread", "time"];

/// Further names that do I/O, depend on the time, or are unsafe.
const IO_NAMES: [&str; 9] = [
    "Instant",
    "SystemTime",
    "RandomState",
    "println",
    "print",
    "eprintln",
    "eprint",
    "dbg",
    "unsafe",
];

const CORE: &str = "crates/core/src/";

/// Crates whose results must be the same on every machine.
const EXACT: [&str; 2] = [CORE, "crates/policy/src/"];

/// Names that these do not use.
const NOT_EXACT: [&str; 6] = ["HashMap", "HashSet", "f32", "f64", "thread_local", "static"];

/// The modules of core, each after the ones that it may use, as in docs/DESIGN.md.
const CORE_ORDER: [&str; 13] = [
    "units",
    "word",
    "series",
    "rules",
    "decision",
    "cache",
    "address",
    "lru",
    "readahead",
    "fault",
    "page_cache",
    "cold_or_pageout",
    "plain",
];

pub fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for directory in PURE {
        for file in repository.under(directory, ".rs") {
            names(file, &mut findings);
        }
        let root = format!("{directory}lib.rs");
        let forbids = |text: &str| text.contains("#![forbid(unsafe_code)]");
        if repository.text(&root).is_some_and(|text| !forbids(text)) {
            findings.push(Finding::error(&root, 0, "does not forbid unsafe code".to_string()));
        }
    }
    findings.extend(repository.under(CORE, ".rs").flat_map(module_order));
    findings
}

fn names(file: &File, findings: &mut Vec<Finding>) {
    let Ok(tokens) = file.text.parse::<TokenStream>() else {
        findings.push(Finding::error(&file.path, 0, "is no Rust".to_string()));
        return;
    };
    let mut found = Vec::new();
    let mut forbidden = IO_NAMES.to_vec();
    if EXACT.iter().any(|directory| file.path.starts_with(directory)) {
        forbidden.extend(NOT_EXACT);
    }
    collect(&without_tests(tokens), &forbidden, &mut found);
    for (line, name) in found {
        let message = format!("'{name}' does I/O or varies between runs");
        findings.push(Finding::error(&file.path, line, message));
    }
}

/// The tokens without the modules and functions after `#[cfg(test)]`.
fn without_tests(tokens: TokenStream) -> Vec<TokenTree> {
    let mut kept: Vec<TokenTree> = Vec::new();
    let mut tokens = tokens.into_iter();
    while let Some(token) = tokens.next() {
        let is_test = matches!(&token, TokenTree::Group(group)
            if group.delimiter() == Delimiter::Bracket
                && group.stream().to_string().replace(' ', "") == "cfg(test)");
        if is_test {
            // The item ends with its body, or with a semicolon.
            tokens.find(|token| match token {
                TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                TokenTree::Punct(punct) => punct.as_char() == ';',
                _ => false,
            });
        } else {
            kept.push(token);
        }
    }
    kept
}

/// Adds the `forbidden` names among `tokens`, each with its line.
fn collect(tokens: &[TokenTree], forbidden: &[&str], found: &mut Vec<(usize, String)>) {
    for (index, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => {
                let inner: Vec<_> = group.stream().into_iter().collect();
                collect(&inner, forbidden, found);
            }
            TokenTree::Ident(ident) => {
                let name = ident.to_string();
                let line = ident.span().start().line;
                let is_lifetime = index > 0 && is_punct(&tokens[index - 1], '\'');
                if forbidden.contains(&name.as_str()) && !is_lifetime {
                    found.push((line, name));
                } else if ["std", "core"].contains(&name.as_str()) {
                    modules(&tokens[index + 1..], line, found);
                }
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// Adds the [`IO_MODULES`] named by the path or list of paths after `std`.
fn modules(path: &[TokenTree], line: usize, found: &mut Vec<(usize, String)>) {
    let [first, second, next, ..] = path else { return };
    if !is_punct(first, ':') || !is_punct(second, ':') {
        return;
    }
    let mut check = |token: &TokenTree| {
        if let TokenTree::Ident(ident) = token
            && IO_MODULES.contains(&ident.to_string().as_str())
        {
            found.push((line, format!("std::{ident}")));
        }
    };
    match next {
        TokenTree::Group(list) => {
            let inner: Vec<_> = list.stream().into_iter().collect();
            for path in inner.split(|token| is_punct(token, ',')) {
                path.first().into_iter().for_each(&mut check);
            }
        }
        token => check(token),
    }
}

fn is_punct(token: &TokenTree, character: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == character)
}

/// Uses of a module that comes after the one of `file` in [`CORE_ORDER`], or is not in it.
fn module_order(file: &File) -> Vec<Finding> {
    let place = |module: &str| CORE_ORDER.iter().position(|known| *known == module);
    let module = file.path.trim_start_matches(CORE).trim_end_matches(".rs");
    let module = module.split('/').next().unwrap_or_default();
    if module == "lib" {
        return Vec::new();
    }
    let Some(own) = place(module) else {
        let message = format!("{module} is not in the lint's order of modules");
        return vec![Finding::error(&file.path, 0, message)];
    };
    let lines = file.text.lines().enumerate();
    let uses = lines.filter_map(|(number, line)| {
        let used = line.strip_prefix("use crate::").or(line.strip_prefix("pub use crate::"))?;
        let used = used.split([':', ';']).next().unwrap_or_default();
        let allowed = place(used).is_some_and(|used| used <= own);
        let message = format!("{module} uses {used}, which comes after it");
        (!allowed).then(|| Finding::error(&file.path, number + 1, message))
    });
    uses.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, code: &str) -> Vec<String> {
        check(&Repository::from_files(&[(path, code)])).iter().map(ToString::to_string).collect()
    }

    fn is_refused(path: &str, code: &str) -> bool {
        !messages(path, code).is_empty()
    }

    #[test]
    fn refuses_io_in_pure_crates() {
        for code in [
            "use std::thread;",
            "use std::{fmt, fs::File};",
            "use std::collections::VecDeque; use std::{\n    io,\n};",
            "fn f() { std::process::exit(1) }",
            "fn f() { println!(\"x\") }",
            "fn f() -> Instant { clock() }",
            "macro_rules! m { () => { std::env::var(\"X\") } }",
            "use core::time::Duration;",
        ] {
            for directory in PURE {
                assert!(is_refused(&format!("{directory}units.rs"), code), "{code} in {directory}");
            }
            assert!(!is_refused("crates/kernel/src/units.rs", code), "{code}");
        }
        let found = messages("crates/model/src/units.rs", "\n\nuse std::net::TcpStream;");
        let message = "'std::net' does I/O or varies between runs";
        assert_eq!(found, [format!("crates/model/src/units.rs:3: error: {message}")]);
    }

    #[test]
    fn refuses_unordered_and_floating_point_in_exact_crates() {
        for code in ["use std::collections::HashMap;", "fn f(x: f64) {}", "static mut X: u8 = 0;"] {
            assert!(is_refused("crates/core/src/units.rs", code), "{code}");
            assert!(is_refused("crates/policy/src/units.rs", code), "{code}");
            assert!(!is_refused("crates/report/src/units.rs", code), "{code}");
        }
    }

    #[test]
    fn ignores_comments_strings_and_tests() {
        for code in [
            "//! std::thread and f64\nfn f() {}",
            "/// std::fs\nconst TEXT: &str = \"std::fs\";",
            "#[cfg(test)]\nmod tests { use std::fs; }",
            "use std::fmt;\nuse std::collections::BTreeMap;",
            "fn f() -> &'static str { \"a\" }",
            "fn time(process: u8, env: u8) {}",
        ] {
            assert_eq!(messages("crates/core/src/units.rs", code), [""; 0], "{code}");
        }
        let later = "#[cfg(test)]\nuse a::b;\nuse std::fs;";
        assert!(is_refused("crates/core/src/units.rs", later));
    }

    #[test]
    fn requires_forbid_unsafe_code() {
        assert!(is_refused("crates/core/src/lib.rs", "pub mod a;"));
        assert!(!is_refused("crates/core/src/lib.rs", "#![forbid(unsafe_code)]\npub mod a;"));
        assert!(is_refused("crates/job/src/units.rs", "fn f() { unsafe { g() } }"));
    }

    fn core_messages(path: &str, text: &str) -> Vec<String> {
        let path = format!("{CORE}{path}");
        let findings = check(&Repository::from_files(&[(&path, text)]));
        findings.iter().map(|finding| finding.message.clone()).collect()
    }

    #[test]
    fn core_modules_depend_in_one_direction() {
        let text = "use crate::units::Order;\nuse super::map;\n";
        assert_eq!(core_messages("fault/around.rs", text), [""; 0]);
        let text = "use crate::cache::Folio;\nuse crate::fault::View;\n";
        assert_eq!(
            core_messages("readahead/sync.rs", text),
            ["readahead uses fault, which comes after it"]
        );
        assert_eq!(core_messages("helper.rs", "").len(), 1);
    }
}
