//! Advice that the library gives in place of the program's own: which for which file. It is said
//! as text, a line for each rule.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// A piece of advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleKind {
    /// MADV_NORMAL for a mapping.
    Normal,
    /// MADV_RANDOM for a mapping.
    Random,
    /// MADV_SEQUENTIAL for a mapping.
    Sequential,
    /// MADV_WILLNEED, once a mapping is made.
    WillNeed,
    /// MADV_POPULATE_READ, once a mapping is made.
    Populate,
    /// POSIX_FADV_NORMAL for a file, before it is read.
    FileNormal,
    /// POSIX_FADV_RANDOM for a file, before it is read.
    FileRandom,
    /// POSIX_FADV_SEQUENTIAL for a file, before it is read.
    FileSequential,
}

impl RuleKind {
    /// Every one.
    pub const ALL: [RuleKind; 8] = [
        RuleKind::Normal,
        RuleKind::Random,
        RuleKind::Sequential,
        RuleKind::WillNeed,
        RuleKind::Populate,
        RuleKind::FileNormal,
        RuleKind::FileRandom,
        RuleKind::FileSequential,
    ];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            RuleKind::Normal => "normal",
            RuleKind::Random => "random",
            RuleKind::Sequential => "sequential",
            RuleKind::WillNeed => "willneed",
            RuleKind::Populate => "populate",
            RuleKind::FileNormal => "file-normal",
            RuleKind::FileRandom => "file-random",
            RuleKind::FileSequential => "file-sequential",
        }
    }

    /// Whether it is about an open file, and not about mappings.
    pub const fn is_of_file(self) -> bool {
        matches!(self, RuleKind::FileNormal | RuleKind::FileRandom | RuleKind::FileSequential)
    }

    /// Whether a mapping keeps it, so that the program's own advice of that kind is not given.
    pub const fn is_kept(self) -> bool {
        matches!(self, RuleKind::Normal | RuleKind::Random | RuleKind::Sequential)
    }
}

/// A part of a file, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    /// Where it begins.
    pub offset_bytes: u64,
    /// How long it is.
    pub length_bytes: u64,
}

/// Advice for one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What is advised.
    pub kind: RuleKind,
    /// The mappings that it is about: those that are made of exactly this part; of all where there
    /// is none.
    pub mapping: Option<Extent>,
    /// The part of the file that is advised; `None` is all of each mapping.
    pub part: Option<Extent>,
    /// The path of the file, as the kernel has it: absolute, without symbolic links.
    pub path: OsString,
}

/// The text of `rules`; `None` where a path has a line break, which ends a rule.
pub fn text(rules: &[Rule]) -> Option<OsString> {
    let mut text = Vec::new();
    for rule in rules {
        if rule.path.as_bytes().contains(&b'\n') {
            return None;
        }
        let [mapping, part] = [rule.mapping, rule.part].map(shown);
        text.extend(format!("{} {mapping} {part} ", rule.kind.name()).into_bytes());
        text.extend(rule.path.as_bytes());
        text.push(b'\n');
    }
    Some(OsString::from_vec(text))
}

fn shown(extent: Option<Extent>) -> String {
    match extent {
        Some(Extent { offset_bytes, length_bytes }) => format!("{offset_bytes}+{length_bytes}"),
        None => "*".to_string(),
    }
}

/// The rules of a [`text`]; `None` where it makes no sense.
pub fn rules(text: &OsStr) -> Option<Vec<Rule>> {
    let lines = text.as_bytes().split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines.map(rule).collect()
}

fn rule(line: &[u8]) -> Option<Rule> {
    let mut words = line.splitn(4, |&byte| byte == b' ');
    let mut word = || str::from_utf8(words.next()?).ok();
    let (kind, mapping, part) = (word()?, extent(word()?)?, extent(word()?)?);
    let kind = RuleKind::ALL.into_iter().find(|known| known.name() == kind)?;
    let path = words.next().filter(|path| path.starts_with(b"/"))?;
    Some(Rule { kind, mapping, part, path: OsStr::from_bytes(path).to_owned() })
}

/// What [`shown`] has written; the outer `None` is nothing of the kind.
fn extent(word: &str) -> Option<Option<Extent>> {
    if word == "*" {
        return Some(None);
    }
    let (offset, length) = word.split_once('+')?;
    let extent = Extent { offset_bytes: offset.parse().ok()?, length_bytes: length.parse().ok()? };
    extent.offset_bytes.checked_add(extent.length_bytes).map(|_| Some(extent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_understood_as_they_are_said() {
        let part = Some(Extent { offset_bytes: 4096, length_bytes: 1 << 40 });
        let all = RuleKind::ALL.into_iter().flat_map(|kind| {
            [(None, None), (part, None), (None, part), (part, part)].map(|(mapping, part)| {
                let path = OsString::from_vec(b"/a b/* \xff".to_vec());
                Rule { kind, mapping, part, path }
            })
        });
        let all: Vec<Rule> = all.collect();
        assert_eq!(rules(&text(&all).unwrap()), Some(all));
        assert_eq!(rules(OsStr::new("")), Some(Vec::new()));
    }

    #[test]
    fn what_makes_no_sense_is_no_rule() {
        let broken =
            Rule { kind: RuleKind::Random, mapping: None, part: None, path: "/a\nb".into() };
        assert_eq!(text(&[broken]), None);
        for wrong in [
            "random",
            "random * *",
            "random * * a",
            "often * * /a",
            "random 1 * /a",
            "random 1+ * /a",
            "random -1+1 * /a",
            "random 18446744073709551615+1 * /a",
            "random * * /a\nx",
        ] {
            assert_eq!(rules(OsStr::new(wrong)), None, "{wrong}");
        }
    }
}
