//! The variants of a comparison: series and settings.
//!
//! ```text
//! variants = part { "," part }
//! part     = word { "+" word }
//! word     = "baseline" | series | "governor" | setting "=" value | "advice@" name "=" value
//! ```
//!
//! `advice` applies to all mappings of a program, and `advice@NAME` to the mappings called NAME or
//! to all mappings of the file NAME. `advice` is a set, and may be given several times in one
//! variant: `advice=random+advice=hugepage`.
//!
//! A part that starts with any other word continues the value list of the preceding setting: it
//! repeats the preceding part with that word as the value of its last setting, and adds its own
//! further words. So `read_ahead_kb=128,512+p1` means `read_ahead_kb=128` and
//! `read_ahead_kb=512+p1`. Blanks around `,`, `+` and `=` are ignored.

use std::str::FromStr;

use filemap_core::series::Series;
use filemap_job::{Flag, JobFlags, advice};

use crate::error::Error;

/// The only setting that may be repeated in a variant: advice is a set.
const ADVICE: &str = "advice";

/// Sets `key` to `value`; advice is added to the advice set before.
fn set(spec: &mut JobFlags, key: &str, value: &str) -> Result<(), filemap_job::Error> {
    match spec.advice.take() {
        Some(before) if key == ADVICE => spec.set(key, &format!("{before},{value}")),
        before => {
            spec.advice = before;
            spec.set(key, value)
        }
    }
}

/// The setting, and variant of the same name, in which the governor's policy reads ahead.
const GOVERNOR: &str = "governor";

/// A variant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    words: Vec<Word>,
    /// The word that was taken as a further value of a list, for error messages.
    continued: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    /// A series by one of its names, or `baseline`.
    Series(String),
    /// A key of a job, and its value.
    Setting(String, String),
    /// The name of a mapping or file, and its advice.
    AdviceAt(String, String),
    /// The governor, which is a variant by itself.
    Governor,
}

/// Parses a list of variants.
///
/// # Errors
/// One line that names the unknown series, the unknown setting or its invalid value.
pub fn parse(text: &str) -> Result<Vec<Variant>, Error> {
    if text.trim().is_empty() {
        let message = "--variants '' names no variant; give some, such as baseline,mmap-miss";
        return Err(Error::Usage(message.to_string()));
    }
    let mut variants: Vec<Variant> = Vec::new();
    for part in text.split(',') {
        let part = part.trim();
        if part.is_empty() {
            return Err(Error::Usage(format!(
                "--variants {}: a variant is missing beside a comma; a list with blanks needs \
                 quotes, as in \"baseline, p1\"",
                text.trim()
            )));
        }
        let variant = Variant::parse(part, variants.last());
        variants.push(variant.map_err(|reason| variant_error(part, reason))?);
    }
    Ok(variants)
}

/// Refuses advice for named mappings or files, which only programs have.
///
/// # Errors
/// Names the first variant with such advice.
pub fn check_one_file(variants: &[Variant]) -> Result<(), Error> {
    match variants.iter().find(|variant| !variant.advice_at().is_empty()) {
        Some(variant) => {
            let reason = "advice@NAME is for a program; give advice=VALUE".to_string();
            Err(variant_error(&variant.name(), reason))
        }
        None => Ok(()),
    }
}

fn variant_error(variant: &str, reason: String) -> Error {
    Error::InVariant { variant: variant.to_string(), error: Box::new(Error::Usage(reason)) }
}

impl Variant {
    /// The variant without series or settings.
    pub fn baseline() -> Self {
        Variant::series("baseline")
    }

    /// The variant with these series, joined by `+`.
    pub fn series(names: &str) -> Self {
        let words = names.split('+').map(|name| Word::Series(name.to_string())).collect();
        Variant { words, continued: None }
    }

    fn parse(part: &str, before: Option<&Variant>) -> Result<Self, String> {
        let mut texts = part.split('+').map(str::trim);
        let first = texts.next().unwrap_or_default();
        let mut variant = match (Word::parse(first), before.and_then(|before| before.with(first))) {
            (Err(_), Some(next)) if !first.contains('=') => next,
            (word, _) => Variant { words: vec![word?], continued: None },
        };
        for text in texts {
            variant.words.push(Word::parse(text)?);
        }
        variant.check()?;
        Ok(variant)
    }

    /// A copy with `value` for its last setting; `None` without settings.
    fn with(&self, value: &str) -> Option<Variant> {
        let mut next = self.clone();
        let last = next.words.iter_mut().rev().find_map(|word| match word {
            Word::Setting(_, value) | Word::AdviceAt(_, value) => Some(value),
            Word::Series(_) | Word::Governor => None,
        })?;
        *last = value.to_string();
        next.continued = Some(value.to_string());
        Some(next)
    }

    /// Refuses repeated settings and invalid values.
    fn check(&self) -> Result<(), String> {
        let mut spec = JobFlags::default();
        let mut seen: Vec<&str> = Vec::new();
        for (key, value) in self.settings() {
            if seen.contains(&key) && key != ADVICE {
                return Err(format!("{key} is given twice; give it once"));
            }
            seen.push(key);
            set(&mut spec, key, value)
                .map_err(|error| self.explain_error(format!("{key}: {error}")))?;
        }
        for (name, advice) in self.advice_at() {
            advice::parse(&advice)
                .map_err(|error| self.explain_error(format!("{ADVICE}@{name}: {error}")))?;
        }
        match spec.advice.filter(|advice| advice.contains(',')) {
            Some(advice) => advice::parse(&advice)
                .map(|_| ())
                .map_err(|error| self.explain_error(format!("{ADVICE}: {error}"))),
            None => Ok(()),
        }
    }

    /// Adds to `message` why a word was taken for a value of the list, if one was.
    fn explain_error(&self, message: String) -> String {
        match &self.continued {
            None => message,
            Some(word) => {
                format!("{message} ('{word}' is no series, so it goes on with the list before it)")
            }
        }
    }

    fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        self.words.iter().filter_map(|word| match word {
            Word::Setting(key, value) => Some((key.as_str(), value.as_str())),
            Word::Governor => Some((GOVERNOR, "true")),
            Word::Series(_) | Word::AdviceAt(..) => None,
        })
    }

    /// The named mappings and files, each with its comma-separated advice.
    pub fn advice_at(&self) -> Vec<(&str, String)> {
        let mut all: Vec<(&str, String)> = Vec::new();
        for word in &self.words {
            let Word::AdviceAt(name, advice) = word else { continue };
            match all.iter_mut().find(|(own, _)| own == name) {
                Some((_, before)) => *before = format!("{before},{advice}"),
                None => all.push((name, advice.clone())),
            }
        }
        all
    }

    /// The variant as written on the command line, with value lists expanded.
    pub fn name(&self) -> String {
        let text = |word: &Word| match word {
            Word::Series(name) => name.clone(),
            Word::Setting(key, value) => format!("{key}={value}"),
            Word::AdviceAt(name, advice) => format!("{ADVICE}@{name}={advice}"),
            Word::Governor => GOVERNOR.to_string(),
        };
        self.words.iter().map(text).collect::<Vec<_>>().join("+")
    }

    /// The value of `key`, if the variant sets it.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.settings().find(|(own, _)| *own == key).map(|(_, value)| value)
    }

    /// Whether it sets `key`.
    pub fn sets(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// Whether it sets anything.
    pub fn has_settings(&self) -> bool {
        self.settings().next().is_some() || !self.advice_at().is_empty()
    }

    /// The variant without its series, for a kernel that has the series it was built with.
    pub fn without_series(&self) -> Variant {
        let is_setting = |word: &&Word| !matches!(word, Word::Series(_));
        let words: Vec<Word> = self.words.iter().filter(is_setting).cloned().collect();
        if words.is_empty() {
            Variant::baseline()
        } else {
            Variant { words, continued: self.continued.clone() }
        }
    }

    /// `spec` with the series and settings of this variant.
    pub fn apply_to(&self, spec: &JobFlags) -> JobFlags {
        let mut own = JobFlags::default();
        for (key, value) in self.settings() {
            set(&mut own, key, value).expect("it was checked when it was read");
        }
        let names = self.words.iter().filter_map(|word| match word {
            Word::Series(name) => Some(name.as_str()),
            Word::Setting(..) | Word::AdviceAt(..) | Word::Governor => None,
        });
        let names: Vec<&str> = names.collect();
        own.with = Some(if names.is_empty() { "baseline".to_string() } else { names.join("+") });
        spec.clone().overlay(own)
    }

    /// Adds the variant's name to `error` if its series or settings may be the cause.
    pub fn error(&self, error: Error) -> Error {
        if let Error::Job(filemap_job::Error::Flag { flag: "with", error }) = error {
            return variant_error(&self.name(), error.to_string());
        }
        if !self.has_settings() {
            return error;
        }
        let error = match (&self.continued, error) {
            (Some(_), error @ Error::Job(_)) => Error::Usage(self.explain_error(error.to_string())),
            (_, error) => error,
        };
        Error::InVariant { variant: self.name(), error: Box::new(error) }
    }
}

impl Word {
    fn parse(text: &str) -> Result<Self, String> {
        let Some((key, value)) = text.split_once('=') else {
            if text == GOVERNOR {
                return Ok(Word::Governor);
            }
            if Flag::all().any(|flag| flag.is_setting && flag.key == text.replace('-', "_")) {
                return Err(format!("{text} has no value; give {text}=VALUE"));
            }
            // Only validated here: the variant keeps the names, and the job parses them.
            return match Series::from_str(text) {
                Ok(_) => Ok(Word::Series(text.to_string())),
                Err(error) => {
                    Err(format!("{error}; or {GOVERNOR}, or a setting such as advice=random"))
                }
            };
        };
        let value = value.trim();
        if let Some((ADVICE, name)) = key.trim().trim_start_matches("--").split_once('@') {
            return Ok(Word::AdviceAt(name.trim().to_string(), value.to_string()));
        }
        let key = key.trim().trim_start_matches("--").replace('-', "_");
        let settings = Flag::all().filter(|flag| flag.is_setting).map(|flag| flag.key);
        let settings: Vec<&str> = settings.collect();
        if !settings.contains(&key.as_str()) {
            return Err(format!("unknown setting '{key}'; known: {}", settings.join(", ")));
        }
        if value.is_empty() {
            return Err(format!("{key} has no value; give {key}=VALUE"));
        }
        if key == GOVERNOR && value == "true" {
            return Ok(Word::Governor);
        }
        Ok(Word::Setting(key, value.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        parse(text).unwrap().iter().map(Variant::name).collect()
    }

    #[test]
    fn expands_lists() {
        for (text, expected) in [
            ("baseline", &["baseline"][..]),
            ("baseline,p1", &["baseline", "p1"]),
            ("baseline, p1", &["baseline", "p1"]),
            (" p1 + p2 ,baseline ", &["p1+p2", "baseline"]),
            ("advice=random", &["advice=random"]),
            ("advice=random+advice=hugepage", &["advice=random+advice=hugepage"]),
            ("advice = random", &["advice=random"]),
            (
                "baseline,read_ahead_kb=128,512,8192,p1",
                &["baseline", "read_ahead_kb=128", "read_ahead_kb=512", "read_ahead_kb=8192", "p1"],
            ),
            ("read-ahead-kb=128, 512", &["read_ahead_kb=128", "read_ahead_kb=512"]),
            ("read_ahead_kb=128+p1,512", &["read_ahead_kb=128+p1", "read_ahead_kb=512+p1"]),
            ("p1+read_ahead_kb=128,512", &["p1+read_ahead_kb=128", "p1+read_ahead_kb=512"]),
            ("read_ahead_kb=128,512+p1", &["read_ahead_kb=128", "read_ahead_kb=512+p1"]),
            (
                "read_ahead_kb=128,512,advice=random,normal",
                &["read_ahead_kb=128", "read_ahead_kb=512", "advice=random", "advice=normal"],
            ),
            (
                "advice=random+read_ahead_kb=16,32",
                &["advice=random+read_ahead_kb=16", "advice=random+read_ahead_kb=32"],
            ),
            ("kernel=6.12,6.18", &["kernel=6.12", "kernel=6.18"]),
            ("baseline,mmap-miss,governor", &["baseline", "mmap-miss", "governor"]),
            ("governor=true,governor=false", &["governor", "governor=false"]),
            (
                "read_ahead_kb=128+governor,8192,governor",
                &["read_ahead_kb=128+governor", "read_ahead_kb=8192+governor", "governor"],
            ),
            (
                "split=16+split_prot=write,exec",
                &["split=16+split_prot=write", "split=16+split_prot=exec"],
            ),
            ("exec=true,false", &["exec=true", "exec=false"]),
            ("--advice@ x = random+advice@x=hugepage", &["advice@x=random+advice@x=hugepage"]),
            (
                "advice@data.mdb=random,normal",
                &["advice@data.mdb=random", "advice@data.mdb=normal"],
            ),
            ("file_size=1g,2g,vma-bound", &["file_size=1g", "file_size=2g", "vma-bound"]),
        ] {
            assert_eq!(names(text), expected, "{text}");
            let written = names(text).join(",");
            assert_eq!(names(&written), expected, "{text}: what is written reads the same");
        }
    }

    #[test]
    fn invalid_variant_is_a_one_line_error() {
        for (text, words) in [
            ("nothing", &["--variants nothing: unknown series 'nothing'", "advice=random"][..]),
            ("baseline,nothing", &["--variants nothing: unknown series 'nothing'"]),
            ("read_ahead_kb", &["read_ahead_kb has no value; give read_ahead_kb=VALUE"]),
            ("", &["'' names no variant", "baseline,mmap-miss"]),
            ("baseline,", &["a variant is missing beside a comma", "quotes"]),
            ("p1,,p2", &["a variant is missing"]),
            ("p1+", &["unknown series ''"]),
            ("+p1", &["unknown series ''"]),
            (
                "speed=3",
                &["--variants speed=3: unknown setting 'speed'; known: kernel,", " advice,"],
            ),
            ("with=p1", &["unknown setting 'with'"]),
            ("on=kernel", &["unknown setting 'on'"]),
            ("advice=", &["advice has no value; give advice=VALUE"]),
            ("read_ahead_kb=x", &["read_ahead_kb: 'x' is no whole number"]),
            ("read_ahead_kb=128,p9", &["'p9' is no series, so it goes on with the list"]),
            ("exec=yes", &["exec: unknown value 'yes'; known: true, false"]),
            ("ram=1g+ram=2g", &["ram is given twice"]),
            ("advice=random+advice=normal", &["advice: 'normal' does not go with 'random'"]),
            ("advice=random+advice=some", &["advice: unknown advice 'some'; known: normal"]),
            ("fraction=a", &["fraction: 'a' is no number"]),
        ] {
            let error = parse(text).unwrap_err();
            let line = error.to_string();
            assert!(words.iter().all(|word| line.contains(word)), "{text}: {line}");
            assert!(!line.contains('\n') && error.exit_code() == 2, "{line}");
        }
    }

    /// Applying a variant equals giving its settings and series as flags.
    #[test]
    fn a_variant_is_a_job_with_its_flags() {
        let spec = JobFlags::from_toml("workload = 'random'\nfile_size = '1g'\nfraction = 0.5");
        let spec = spec.unwrap();
        for (variant, keys) in [
            ("baseline", "with = 'baseline'"),
            ("p1+p2", "with = 'p1+p2'"),
            ("advice=random+p1", "with = 'p1'\nadvice = 'random'"),
            ("advice=random+advice=hugepage", "with = 'baseline'\nadvice = 'random,hugepage'"),
            ("accesses=7+ram=2g", "with = 'baseline'\naccesses = 7\nram = '2g'"),
            ("governor+p1", "with = 'p1'\ngovernor = true"),
            ("exec=true+split=16", "with = 'baseline'\nexec = true\nsplit = 16"),
        ] {
            let applied = parse(variant).unwrap()[0].apply_to(&spec);
            let flags = JobFlags::from_toml(keys).unwrap();
            assert_eq!(applied, spec.clone().overlay(flags), "{variant}");
        }
    }

    #[test]
    fn a_booted_kernel_has_its_own_series() {
        let left = |text: &str| parse(text).unwrap()[0].without_series().name();
        assert_eq!(left("p1+p2"), "baseline");
        assert_eq!(left("p1+advice=random"), "advice=random");
    }
}
