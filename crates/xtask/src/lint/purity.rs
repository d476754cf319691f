//! Crates that decide do not reach outside: no thread, clock, file, process or network, and in the
//! core and the governor's policy no order that could vary and no floating point either.
//!
//! Words in comments and strings do not count, and neither do tests.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::Finding;
use crate::repository::{File, Repository};

/// Sources that must not reach outside.
const INSIDE: [&str; 6] = [
    "crates/core/src/",
    "crates/job/src/",
    "crates/mapcount/src/",
    "crates/model/src/",
    "crates/policy/src/",
    "crates/report/src/",
];

/// Modules of the standard library that reach outside.
const OUTSIDE: [&str; 8] = ["env", "fs", "io", "net", "os", "process", "thread", "time"];

/// Names by which code reaches outside without naming a module.
const NAMES: [&str; 9] = [
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

/// Where decisions are made.
const CORE: [&str; 2] = ["crates/core/src/", "crates/policy/src/"];

/// What the core does not use besides.
const NOT_IN_CORE: [&str; 6] = ["HashMap", "HashSet", "f32", "f64", "thread_local", "static"];

pub fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for directory in INSIDE {
        for file in repository.under(directory, ".rs") {
            of_file(file, &mut findings);
        }
        let root = format!("{directory}lib.rs");
        let forbids = |text: &str| text.contains("#![forbid(unsafe_code)]");
        if repository.text(&root).is_some_and(|text| !forbids(text)) {
            findings.push(Finding::error(&root, 0, "does not forbid unsafe code".to_string()));
        }
    }
    findings
}

fn of_file(file: &File, findings: &mut Vec<Finding>) {
    let Ok(tokens) = file.text.parse::<TokenStream>() else {
        findings.push(Finding::error(&file.path, 0, "is no Rust".to_string()));
        return;
    };
    let mut found = Vec::new();
    let mut refused = NAMES.to_vec();
    if CORE.iter().any(|directory| file.path.starts_with(directory)) {
        refused.extend(NOT_IN_CORE);
    }
    look(&without_tests(tokens), &refused, &mut found);
    for (line, name) in found {
        let message = format!("'{name}' reaches outside of what a job says, or can vary");
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

/// Adds the names among `tokens` that are `refused`, each with its line.
fn look(tokens: &[TokenTree], refused: &[&str], found: &mut Vec<(usize, String)>) {
    for (index, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => {
                let inner: Vec<_> = group.stream().into_iter().collect();
                look(&inner, refused, found);
            }
            TokenTree::Ident(ident) => {
                let name = ident.to_string();
                let line = ident.span().start().line;
                // A lifetime is no item.
                let lifetime = index > 0 && is_punct(&tokens[index - 1], '\'');
                if refused.contains(&name.as_str()) && !lifetime {
                    found.push((line, name));
                } else if ["std", "core"].contains(&name.as_str()) {
                    modules(&tokens[index + 1..], line, found);
                }
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// Adds what the path or list of paths after `std` names of [`OUTSIDE`].
fn modules(behind: &[TokenTree], line: usize, found: &mut Vec<(usize, String)>) {
    let [first, second, what, ..] = behind else { return };
    if !is_punct(first, ':') || !is_punct(second, ':') {
        return;
    }
    let mut named = |token: &TokenTree| {
        if let TokenTree::Ident(ident) = token
            && OUTSIDE.contains(&ident.to_string().as_str())
        {
            found.push((line, format!("std::{ident}")));
        }
    };
    match what {
        TokenTree::Group(list) => {
            let inner: Vec<_> = list.stream().into_iter().collect();
            for path in inner.split(|token| is_punct(token, ',')) {
                path.first().into_iter().for_each(&mut named);
            }
        }
        token => named(token),
    }
}

fn is_punct(token: &TokenTree, character: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == character)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, code: &str) -> Vec<String> {
        check(&Repository::of(&[(path, code)])).iter().map(ToString::to_string).collect()
    }

    fn refused(path: &str, code: &str) -> bool {
        !messages(path, code).is_empty()
    }

    #[test]
    fn nothing_reaches_outside() {
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
            for directory in INSIDE {
                assert!(refused(&format!("{directory}a.rs"), code), "{code} in {directory}");
            }
            assert!(!refused("crates/kernel/src/a.rs", code), "{code}");
        }
        let found = messages("crates/model/src/a.rs", "\n\nuse std::net::TcpStream;");
        let message = "'std::net' reaches outside of what a job says, or can vary";
        assert_eq!(found, [format!("crates/model/src/a.rs:3: error: {message}")]);
    }

    #[test]
    fn the_core_has_one_order_and_whole_numbers() {
        for code in ["use std::collections::HashMap;", "fn f(x: f64) {}", "static mut X: u8 = 0;"] {
            assert!(refused("crates/core/src/a.rs", code), "{code}");
            assert!(refused("crates/policy/src/a.rs", code), "{code}");
            assert!(!refused("crates/report/src/a.rs", code), "{code}");
        }
    }

    #[test]
    fn words_and_tests_do_not_count() {
        for code in [
            "//! std::thread and f64\nfn f() {}",
            "/// std::fs\nconst TEXT: &str = \"std::fs\";",
            "#[cfg(test)]\nmod tests { use std::fs; }",
            "use std::fmt;\nuse std::collections::BTreeMap;",
            "fn f() -> &'static str { \"a\" }",
            "fn time(process: u8, env: u8) {}",
        ] {
            assert_eq!(messages("crates/core/src/a.rs", code), [""; 0], "{code}");
        }
        let later = "#[cfg(test)]\nuse a::b;\nuse std::fs;";
        assert!(refused("crates/core/src/a.rs", later));
    }

    #[test]
    fn unsafe_code_is_forbidden() {
        assert!(refused("crates/core/src/lib.rs", "pub mod a;"));
        assert!(!refused("crates/core/src/lib.rs", "#![forbid(unsafe_code)]\npub mod a;"));
        assert!(refused("crates/job/src/a.rs", "fn f() { unsafe { g() } }"));
    }
}
