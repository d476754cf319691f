//! The machine profiles of data/machines: they are valid, and each constant has an origin.

use std::fs;
use std::path::Path;

use filemap_model::Profile;

/// Words, one of which marks the origin of a constant.
const ORIGINS: [&str; 5] = ["source:", "measured:", "assumed", "chosen:", "by definition:"];

fn profiles() -> Vec<(String, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/machines");
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    files
        .map(|file| {
            let name = file.file_name().into_string().unwrap();
            (name, fs::read_to_string(file.path()).unwrap())
        })
        .collect()
}

#[test]
fn the_default_profile_is_that_of_its_file() {
    let profiles = profiles();
    let (_, text) = profiles.iter().find(|(name, _)| name == "default.toml").unwrap();
    assert_eq!(Profile::parse(text).unwrap(), Profile::DEFAULT);
}

#[test]
fn a_ring_has_an_entry() {
    let of_ring = |entries: u32| {
        let mut profile = Profile::DEFAULT;
        profile.device.ring_entries = Some(entries);
        Profile::parse(&toml::to_string(&profile).unwrap())
    };
    assert_eq!(of_ring(1).unwrap().device.ring_entries, Some(1));
    let error = of_ring(0).unwrap_err().to_string();
    assert_eq!(error, "machine profile: 'ring_entries' is 0; give 1 or more");
}

#[test]
fn every_constant_says_where_it_comes_from() {
    let profiles = profiles();
    assert!(profiles.len() >= 3);
    for (name, text) in profiles {
        Profile::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let constants = text.lines().filter(|line| {
            let key = line.split(" = ").next().unwrap();
            line.contains(" = ") && key.chars().all(|c| c.is_ascii_lowercase() || c == '_')
        });
        let mut seen = 0;
        for line in constants.filter(|line| !line.contains(" = true")) {
            let origin = line.split_once(" # ").map_or("", |(_, origin)| origin);
            assert!(ORIGINS.iter().any(|word| origin.starts_with(word)), "{name}: {line}");
            seen += 1;
        }
        assert!(seen >= 18, "{name}: {seen}");
    }
}

#[test]
fn a_measured_profile_has_its_date() {
    let text = toml::to_string(&Profile::DEFAULT).unwrap();
    let dated = |date: &str| Profile::parse(&format!("measured = '{date}'\n{text}"));
    let profile = dated("2026-11-29").unwrap();
    assert_eq!(profile.measured.unwrap().to_string(), "2026-11-29");
    assert_eq!(Profile::parse(&toml::to_string(&profile).unwrap()).unwrap(), profile);
    for other in ["29.11.2026", "2026-13-01", "2026-11", ""] {
        assert!(dated(other).unwrap_err().to_string().contains("not a date"), "{other}");
    }
}
