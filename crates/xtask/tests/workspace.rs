//! Which crate uses which: docs/DESIGN.md's directions, held by what cargo says.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Asks for features of libraries, and holds nothing: all others may use it.
const FEATURES: &str = "filemap-features";

/// Our crates, and those of them that each may use.
const MAY_USE: [(&str, &[&str]); 14] = [
    (FEATURES, &[]),
    ("filemap-policy", &[]),
    ("filemap-attach", &[]),
    ("filemap-core", &["filemap-policy"]),
    ("filemap-mapcount", &[]),
    ("filemap-job", &["filemap-core"]),
    (
        "filemap-govern",
        &["filemap-attach", "filemap-job", "filemap-kernel", "filemap-policy", "filemap-recording"],
    ),
    ("filemap-model", &["filemap-core", "filemap-job"]),
    ("filemap-kernel", &["filemap-core", "filemap-job"]),
    ("filemap-recording", &["filemap-job"]),
    ("filemap-report", &[]),
    (
        "filemap-study",
        &[
            "filemap-attach",
            "filemap-core",
            "filemap-govern",
            "filemap-job",
            "filemap-kernel",
            "filemap-mapcount",
            "filemap-model",
            "filemap-policy",
            "filemap-recording",
            "filemap-report",
        ],
    ),
    ("filemap-cli", &["*"]),
    ("xtask", &["*"]),
];

/// What their tests may use besides: live tests share what prepares the machine.
const TESTS_MAY_USE: [(&str, &[&str]); 1] = [("filemap-recording", &["filemap-model"])];

/// What a crate that decides may be built with: libraries that neither ask the operating system,
/// start a thread nor keep time of their own accord.
const INSIDE: [(&str, &[&str]); 6] = [
    ("filemap-policy", &[]),
    // Its values are sent to children of the kernel engine.
    ("filemap-core", &["schemars", "serde"]),
    ("filemap-mapcount", &[]),
    (
        "filemap-job",
        &[
            "object",
            "rand_core",
            "rand_distr",
            "schemars",
            "serde",
            "serde_json",
            "thiserror",
            "toml",
        ],
    ),
    ("filemap-model", &["serde", "serde_json", "smallvec", "thiserror", "toml"]),
    ("filemap-report", &["csv", "maud", "serde_json", "shlex"]),
];

struct Package {
    name: String,
    /// What it is built with, development left out.
    uses: Vec<String>,
    /// What its tests use.
    tests_use: Vec<String>,
}

fn metadata() -> Value {
    let cargo = std::env::var("CARGO").unwrap_or("cargo".to_string());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo prints JSON")
}

fn packages() -> Vec<Package> {
    let metadata = metadata();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let packages = metadata["packages"].as_array().expect("there are packages");
    let package = |package: &Value| {
        let name = text(&package["name"]);
        let of_kind = |dev: bool| {
            let all = package["dependencies"].as_array().expect("a list of dependencies");
            let uses = all.iter().filter(|used| (used["kind"] == "dev") == dev);
            uses.map(|used| text(&used["name"])).filter(|used| *used != name).collect()
        };
        Package { uses: of_kind(false), tests_use: of_kind(true), name }
    };
    let packages: Vec<Package> = packages.iter().map(package).collect();
    // Where cargo names none, nothing below would be looked at.
    assert!(packages.len() >= 7, "{} packages", packages.len());
    packages
}

fn is_ours(name: &str) -> bool {
    name.starts_with("filemap-") || name == "xtask"
}

#[test]
fn dependencies_point_one_way() {
    for package in packages() {
        let allowed = MAY_USE.iter().find(|(name, _)| *name == package.name);
        let (_, allowed) = allowed.unwrap_or_else(|| panic!("no rule for {}", package.name));
        let in_tests = TESTS_MAY_USE.iter().filter(|(name, _)| *name == package.name);
        let in_tests: Vec<&str> = in_tests.flat_map(|(_, used)| used.iter().copied()).collect();
        let may =
            |used: &str| used == FEATURES || allowed.contains(&"*") || allowed.contains(&used);
        for used in package.uses.iter().filter(|used| is_ours(used)) {
            assert!(may(used), "{} uses {used}; it may use {allowed:?}", package.name);
        }
        for used in package.tests_use.iter().filter(|used| is_ours(used)) {
            let may = may(used) || in_tests.contains(&used.as_str());
            assert!(may, "tests of {} use {used}; they may use {in_tests:?}", package.name);
        }
        assert!(package.name == "xtask" || !package.uses.contains(&"xtask".to_string()));
    }
}

/// A library by which the crate could reach outside, as far as is known.
fn outside(package: &Package) -> Option<&str> {
    let (_, allowed) = INSIDE.iter().find(|(name, _)| *name == package.name)?;
    let libraries = package.uses.iter().map(String::as_str).filter(|used| !is_ours(used));
    libraries.into_iter().find(|used| !allowed.contains(used))
}

#[test]
fn decision_crates_do_no_io() {
    for package in packages() {
        let remedy = "see that it reaches neither system nor thread, then add it here";
        assert_eq!(outside(&package), None, "of {}: {remedy}", package.name);
    }
}

#[test]
fn finds_library_with_io() {
    let package = |name: &str, uses: &[&str]| Package {
        name: name.to_string(),
        uses: uses.iter().map(ToString::to_string).collect(),
        tests_use: Vec::new(),
    };
    assert_eq!(outside(&package("filemap-core", &["serde", "rand"])), Some("rand"));
    assert_eq!(outside(&package("filemap-model", &["filemap-core", "rayon"])), Some("rayon"));
    assert_eq!(outside(&package("filemap-model", &["filemap-core", "serde"])), None);
    assert_eq!(outside(&package("filemap-kernel", &["libc"])), None);
}

#[test]
fn building_without_a_name_builds_the_command() {
    let metadata = metadata();
    let built = metadata["workspace_default_members"].as_array().expect("cargo 1.71 or later");
    let built: Vec<&str> = built.iter().filter_map(Value::as_str).collect();
    assert!(built.iter().any(|id| id.contains("crates/cli")), "{built:?}");
    assert_eq!(built.len(), 1, "{built:?}");
}

/// Each library has its reason in docs/DESIGN.md.
#[test]
fn every_library_has_a_reason() {
    let design = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/DESIGN.md");
    let design = std::fs::read_to_string(design).expect("docs/DESIGN.md can be read");
    let packages = packages().into_iter();
    for package in packages.filter(|package| package.name != FEATURES) {
        for used in package.uses.iter().chain(&package.tests_use).filter(|used| !is_ours(used)) {
            let row =
                design.lines().any(|l| l.starts_with('|') && l.contains(&format!("`{used}`")));
            assert!(row, "{} uses {used}, which no row of docs/DESIGN.md names", package.name);
        }
    }
}

/// Whichever crates are built, libraries have the same features, so that nothing is built again for
/// others.
#[test]
fn one_set_of_features_is_built() {
    let of_all = features(&["--workspace"]);
    for package in packages() {
        for (library, features) in features(&["--package", &package.name]) {
            if FOR_TESTS_ALONE.iter().any(|name| library.starts_with(&format!("{name} v"))) {
                continue;
            }
            let of_all = &of_all[&library];
            let remedy = "add what is missing to crates/features/Cargo.toml";
            assert!(features.is_subset(of_all), "{}: {library}: {remedy}", package.name);
        }
    }
}

/// Of benches, and of libraries that tests alone use: they are built twice, and nothing of ours.
const FOR_TESTS_ALONE: [&str; 4] = ["regex", "regex-automata", "regex-syntax", "zerocopy"];

/// The libraries that `chosen` crates and their tests are built with, and the sets of features
/// that each has.
fn features(chosen: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let cargo = std::env::var("CARGO").unwrap_or("cargo".to_string());
    let output = Command::new(cargo)
        .args(["tree", "--offline", "--locked", "--edges", "normal,build,dev", "--prefix", "none"])
        .args(["--no-dedupe", "--format", "{p}|{f}"])
        .args(chosen)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut found = BTreeMap::<String, BTreeSet<String>>::new();
    // A line that is empty parts two packages.
    for line in String::from_utf8_lossy(&output.stdout).lines().filter(|line| !line.is_empty()) {
        let (library, features) = line.split_once('|').expect("the format has one");
        let library = library.replace(" (proc-macro)", "");
        found.entry(library).or_default().insert(features.replace(" (*)", ""));
    }
    found
}

/// Entries of "Where to look" in docs/DESIGN.md name a function and its file.
#[test]
fn where_to_look_names_existing_functions() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let design = std::fs::read_to_string(root.join("docs/DESIGN.md")).unwrap();
    let section = design.split("## Where to look").nth(1).expect("a section");
    let section = section.split("\n## ").next().unwrap().replace('\n', " ");
    // Texts at odd places are in backquotes.
    let quoted: Vec<&str> = section.split('`').skip(1).step_by(2).collect();
    let mut names: Vec<&str> = Vec::new();
    let mut checked = 0;
    for text in quoted {
        if !text.contains('/') {
            names.push(text.rsplit("::").next().unwrap());
            continue;
        }
        let path = root.join("crates").join(text);
        let source = std::fs::read_to_string(&path).unwrap_or_else(|error| {
            panic!("docs/DESIGN.md names {text}: {error}");
        });
        // A name belongs to the file after it, or is a test in the file before.
        for name in names.drain(..) {
            assert!(source.contains(&format!("fn {name}")), "{text} has no function {name}");
            checked += 1;
        }
    }
    assert!(checked >= 6, "{checked} functions");
}
