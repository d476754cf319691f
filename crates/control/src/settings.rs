//! What is wanted of the library, as variables of the program's environment.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use crate::rule::{self, Rule};

/// Names of the variables.
pub mod variable {
    /// `off` switches the library off.
    pub const SWITCH: &str = "FILEMAP_GOVERN";
    /// Bytes of the smallest mapping that is governed, as `16m`.
    pub const MIN_SIZE: &str = "FILEMAP_GOVERN_MIN_SIZE";
    /// Bytes of the largest window that one fault asks for, as `16m`; 0 asks for none.
    pub const LARGEST_WINDOW: &str = "FILEMAP_GOVERN_LARGEST_WINDOW";
    /// Patterns of paths, separated by `:`. Only files that match one are governed.
    pub const INCLUDE: &str = "FILEMAP_GOVERN_INCLUDE";
    /// Patterns of paths, separated by `:`. Files that match one are left alone.
    pub const EXCLUDE: &str = "FILEMAP_GOVERN_EXCLUDE";
    /// The directory in which each governed process has its file of statistics.
    pub const STATISTICS: &str = "FILEMAP_GOVERN_STATISTICS";
    /// The directory in which each recorded process has its tape. Where it is set, the library
    /// records, and governs nothing.
    pub const RECORD: &str = "FILEMAP_RECORD";
    /// Bytes of the smallest file that is recorded, as `16k`.
    pub const RECORD_MIN_SIZE: &str = "FILEMAP_RECORD_MIN_SIZE";
    /// Patterns of paths, separated by `:`. Only files that match one are recorded.
    pub const RECORD_FILES: &str = "FILEMAP_RECORD_FILES";
    /// `all` has minor faults recorded too: somebody has set fault-around to one page. Nothing else
    /// can be said.
    pub const RECORD_FAULTS: &str = "FILEMAP_RECORD_FAULTS";
    /// `1` leaves files in the page cache that are recorded, where that hides no touches. Nothing
    /// else can be said.
    pub const RECORD_WARM: &str = "FILEMAP_RECORD_WARM";
    /// Advice for files, as [`crate::rule`] writes it. Where it is set, the library gives it in
    /// place of the program's own, and does nothing else.
    pub const ADVISE: &str = "FILEMAP_ADVISE";
    /// The file to which a line is added for each piece of that advice that was given.
    pub const ADVISED: &str = "FILEMAP_ADVISED";
    /// `1` records each change of page in place of first touches. Nothing else can be said.
    pub const RECORD_CHANGES: &str = "FILEMAP_RECORD_CHANGES";
    /// `1` leaves these files where they are when a process ends: somebody collects them. Nothing
    /// else can be said.
    pub const KEEP: &str = "FILEMAP_GOVERN_KEEP";
}

/// What the library is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It advises the program's file mappings.
    Govern,
    /// It tells what the program does with its files ([`crate::tape`]).
    Record,
    /// It gives the advice that it is told to give, in place of the program's own.
    Advise,
}

/// What is wanted of the library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What the library is there for.
    pub purpose: Purpose,
    /// Bytes of the smallest mapping that is governed, or of the smallest file that is recorded
    /// where it is mapped.
    pub min_bytes: u64,
    /// Bytes of the smallest file that is recorded where it is only read.
    pub min_read_bytes: u64,
    /// Bytes of the largest window that one fault asks for.
    pub largest_window_bytes: u64,
    /// Patterns of paths, as for fnmatch(3). Empty: all files.
    pub include: Vec<OsString>,
    /// Patterns of paths that are left alone.
    pub exclude: Vec<OsString>,
    /// Where the statistics go; nowhere where it is not said.
    pub statistics: Option<PathBuf>,
    /// The statistics stay when a process ends.
    pub keeps_statistics: bool,
    /// Where the tapes of processes are that are recorded.
    pub tapes: Option<PathBuf>,
    /// Minor faults are recorded too.
    pub all_faults: bool,
    /// Files that are recorded stay in the page cache, where they have no large folios there.
    pub is_warm: bool,
    /// The advice to give.
    pub rules: Vec<Rule>,
    /// Where it is told which of it was given: a line with the position of each in `rules`.
    pub given: Option<PathBuf>,
    /// Each change of page is recorded, and not only first touches.
    pub changes: bool,
}

/// Bytes of the smallest file that is recorded where it is mapped, if nothing else is said.
pub const SMALLEST_RECORDED: u64 = 16 << 10;

/// The same where it is only read. Programs read many small files, such as modules of Python, of
/// which nobody asks how they are mapped.
pub const SMALLEST_READ_RECORDED: u64 = 1 << 20;

/// Pages of a process that are open at a time where each change of page is recorded: a touch of one
/// of them is not told.
pub const OPEN_PAGES: usize = 8;

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            purpose: Purpose::Govern,
            min_bytes: 16 << 20,
            min_read_bytes: SMALLEST_READ_RECORDED,
            largest_window_bytes: 16 << 20,
            include: Vec::new(),
            exclude: Vec::new(),
            statistics: None,
            keeps_statistics: false,
            tapes: None,
            all_faults: false,
            is_warm: false,
            rules: Vec::new(),
            given: None,
            changes: false,
        }
    }
}

/// A variable that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSetting {
    variable: &'static str,
    value: OsString,
    expected: &'static str,
}

impl fmt::Display for BadSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BadSetting { variable, value, expected } = self;
        write!(f, "{variable} is {value:?}, which is not {expected}")
    }
}

impl std::error::Error for BadSetting {}

impl BadSetting {
    /// `variable` has a `value` that is not what is `expected`.
    #[must_use]
    pub const fn new(
        variable: &'static str,
        value: OsString,
        expected: &'static str,
    ) -> BadSetting {
        BadSetting { variable, value, expected }
    }
}

impl Settings {
    /// The settings of an environment, of which `get` returns a variable; `None` where they switch
    /// the library off. A variable that is empty is not set.
    pub fn from_environment(
        get: impl Fn(&'static str) -> Option<OsString>,
    ) -> Result<Option<Settings>, BadSetting> {
        let set = |name| get(name).filter(|value| !value.is_empty());
        match set(variable::SWITCH) {
            Some(value) if value == "off" => return Ok(None),
            Some(value) if value != "on" => {
                return Err(BadSetting::new(variable::SWITCH, value, "on or off"));
            }
            _ => {}
        }
        let default = Settings::default();
        let size = |name, default| match set(name) {
            None => Ok(default),
            Some(value) => {
                let size = value.to_str().and_then(parse_size);
                size.ok_or(BadSetting::new(name, value, "a size such as 16m"))
            }
        };
        // The program may change its directory before anything is governed.
        let directory = |name| match set(name).map(PathBuf::from) {
            Some(path) if !path.is_absolute() => {
                Err(BadSetting::new(name, path.into(), "an absolute path"))
            }
            path => Ok(path),
        };
        let statistics = directory(variable::STATISTICS)?;
        let word = |name, word| match set(name) {
            Some(value) if value != word => Err(BadSetting::new(name, value, word)),
            value => Ok(value.is_some()),
        };
        let keeps_statistics = word(variable::KEEP, "1")?;
        let patterns = |name| set(name).map_or(Vec::new(), |value| split(&value));
        if let Some(text) = set(variable::ADVISE) {
            let expected = "lines of a kind, two parts of a file and a path";
            let wrong = || BadSetting::new(variable::ADVISE, text.clone(), expected);
            return Ok(Some(Settings {
                purpose: Purpose::Advise,
                rules: rule::rules(&text).ok_or_else(wrong)?,
                given: directory(variable::ADVISED)?,
                ..default
            }));
        }
        if let Some(tapes) = directory(variable::RECORD)? {
            return Ok(Some(Settings {
                purpose: Purpose::Record,
                min_bytes: size(variable::RECORD_MIN_SIZE, SMALLEST_RECORDED)?,
                min_read_bytes: size(variable::RECORD_MIN_SIZE, SMALLEST_READ_RECORDED)?,
                include: patterns(variable::RECORD_FILES),
                tapes: Some(tapes),
                all_faults: word(variable::RECORD_FAULTS, "all")?,
                is_warm: word(variable::RECORD_WARM, "1")?,
                changes: word(variable::RECORD_CHANGES, "1")?,
                ..default
            }));
        }
        Ok(Some(Settings {
            purpose: Purpose::Govern,
            min_bytes: size(variable::MIN_SIZE, default.min_bytes)?,
            min_read_bytes: default.min_read_bytes,
            largest_window_bytes: size(variable::LARGEST_WINDOW, default.largest_window_bytes)?,
            include: patterns(variable::INCLUDE),
            exclude: patterns(variable::EXCLUDE),
            statistics,
            keeps_statistics,
            ..default
        }))
    }

    /// The variables that say so, where the purpose is to govern. A pattern that contains `:`
    /// cannot be said.
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        let size = |bytes: u64| OsString::from(bytes.to_string());
        let mut variables = vec![
            (variable::SWITCH, OsString::from("on")),
            (variable::MIN_SIZE, size(self.min_bytes)),
            (variable::LARGEST_WINDOW, size(self.largest_window_bytes)),
            (variable::INCLUDE, self.include.join(OsStr::new(":"))),
            (variable::EXCLUDE, self.exclude.join(OsStr::new(":"))),
        ];
        let statistics = self.statistics.clone().unwrap_or_default();
        variables.push((variable::STATISTICS, statistics.into_os_string()));
        variables.push((variable::KEEP, if self.keeps_statistics { "1" } else { "" }.into()));
        variables
    }
}

fn split(patterns: &OsStr) -> Vec<OsString> {
    let parts = patterns.as_bytes().split(|&byte| byte == b':').filter(|part| !part.is_empty());
    parts.map(|part| OsString::from_vec(part.to_vec())).collect()
}

/// A size in bytes, or with the suffix k, m, g or t (powers of 1024).
fn parse_size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.char_indices().next_back()? {
        (end, 'k' | 'K') => (&text[..end], 10),
        (end, 'm' | 'M') => (&text[..end], 20),
        (end, 'g' | 'G') => (&text[..end], 30),
        (end, 't' | 'T') => (&text[..end], 40),
        _ => (text, 0),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn of(pairs: &[(&'static str, &str)]) -> Result<Option<Settings>, BadSetting> {
        let map: BTreeMap<_, _> = pairs.iter().map(|&(k, v)| (k, OsString::from(v))).collect();
        Settings::from_environment(|name| map.get(name).cloned())
    }

    #[test]
    fn what_is_said_is_understood() {
        let settings = Settings {
            purpose: Purpose::Govern,
            min_bytes: 1 << 20,
            min_read_bytes: SMALLEST_READ_RECORDED,
            largest_window_bytes: 0,
            include: vec!["*.db".into(), "/a b/?".into()],
            exclude: vec!["/tmp/*".into()],
            statistics: Some("/run/x".into()),
            keeps_statistics: true,
            ..Settings::default()
        };
        for settings in [settings, Settings::default()] {
            let said: BTreeMap<_, _> = settings.environment().into_iter().collect();
            let heard = Settings::from_environment(|name| said.get(name).cloned());
            assert_eq!(heard, Ok(Some(settings)));
        }
        assert_eq!(of(&[]), Ok(Some(Settings::default())));
        assert_eq!(of(&[(variable::SWITCH, "off")]), Ok(None));
    }

    #[test]
    fn sizes_have_suffixes_and_wrong_values_are_named() {
        let size = |text| of(&[(variable::MIN_SIZE, text)]).map(|s| s.unwrap().min_bytes);
        assert_eq!(size("64k"), Ok(64 << 10));
        assert_eq!(size("2G"), Ok(2 << 30));
        assert_eq!(size("7"), Ok(7));
        for wrong in ["x", "-1", "+1", "1.5m", "m", "99999999999999999999", "20000000t", "1 m"] {
            let message = size(wrong).unwrap_err().to_string();
            assert!(message.contains(wrong) && message.contains("16m"), "{message}");
        }
        for (name, wrong) in [
            (variable::SWITCH, "maybe"),
            (variable::KEEP, "yes"),
            (variable::KEEP, "0"),
            (variable::STATISTICS, "here"),
            (variable::STATISTICS, "./here"),
            (variable::RECORD, "here"),
            (variable::ADVISE, "random * * here"),
        ] {
            let message = of(&[(name, wrong)]).unwrap_err().to_string();
            assert!(message.contains(name) && message.contains(wrong), "{message}");
        }
    }

    #[test]
    fn minor_faults_of_cached_files_are_recorded_where_both_is_said() {
        let of = |name, value| {
            let said = of(&[(variable::RECORD, "/run/x"), (name, value)]);
            said.map(|settings| settings.unwrap()).map(|said| (said.all_faults, said.is_warm))
        };
        assert_eq!(of(variable::RECORD_FAULTS, "all"), Ok((true, false)));
        assert_eq!(of(variable::RECORD_WARM, "1"), Ok((false, true)));
        assert_eq!(of(variable::RECORD_WARM, ""), Ok((false, false)));
        for (name, wrong) in [(variable::RECORD_FAULTS, "1"), (variable::RECORD_WARM, "0")] {
            let message = of(name, wrong).unwrap_err().to_string();
            assert!(message.contains(name) && message.contains(wrong), "{message}");
        }
    }
}
