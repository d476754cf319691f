//! An undo step as a line of a journal.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use super::undo::Undo;

impl Undo {
    /// Encodes the step as words without blanks or line ends, separated by blanks.
    pub(crate) fn encode(&self) -> String {
        let (name, words): (&str, Vec<&OsStr>) = match self {
            Undo::Unmount(path) => ("unmount", vec![path.as_os_str()]),
            Undo::RemoveFile(path) => ("file", vec![path.as_os_str()]),
            Undo::RemoveDir(path) => ("dir", vec![path.as_os_str()]),
            Undo::DetachLoop { device, backing } => {
                ("loop", vec![device.as_os_str(), backing.as_os_str()])
            }
            Undo::RemoveCgroup(path) => ("cgroup", vec![path.as_os_str()]),
            Undo::RemoveTraceInstance(path) => ("trace", vec![path.as_os_str()]),
            Undo::Restore { path, value, set } => {
                ("restore", vec![path.as_os_str(), OsStr::new(value), OsStr::new(set)])
            }
            Undo::RestoreReadAhead { device, backing, value } => {
                ("read-ahead", vec![device.as_os_str(), backing.as_os_str(), OsStr::new(value)])
            }
            Undo::DropPages(path) => ("pages", vec![path.as_os_str()]),
        };
        words.iter().fold(name.to_owned(), |line, word| line + " " + &escape(word))
    }

    /// The inverse of [`Undo::encode`]; `None` for a line truncated by a crash.
    pub(crate) fn decode(line: &str) -> Option<Undo> {
        let mut words = line.split(' ');
        let name = words.next()?;
        let args = words.map(unescape).collect::<Option<Vec<OsString>>>()?;
        let path = PathBuf::from(args.first()?);
        let text = |word: &OsString| word.to_str().map(str::to_owned);
        Some(match (name, &args[1..]) {
            ("unmount", []) => Undo::Unmount(path),
            ("file", []) => Undo::RemoveFile(path),
            ("dir", []) => Undo::RemoveDir(path),
            ("loop", [backing]) => Undo::DetachLoop { device: path, backing: backing.into() },
            ("cgroup", []) => Undo::RemoveCgroup(path),
            ("trace", []) => Undo::RemoveTraceInstance(path),
            ("restore", [value, set]) => {
                Undo::Restore { path, value: text(value)?, set: text(set)? }
            }
            ("read-ahead", [backing, value]) => {
                let backing = backing.into();
                Undo::RestoreReadAhead { device: path, backing, value: text(value)? }
            }
            ("pages", []) => Undo::DropPages(path),
            _ => return None,
        })
    }
}

fn escape(word: &OsStr) -> String {
    word.as_bytes().iter().fold(String::new(), |mut text, &byte| {
        if byte.is_ascii_graphic() && byte != b'%' {
            text.push(byte as char);
        } else {
            text.push_str(&format!("%{byte:02x}"));
        }
        text
    })
}

fn unescape(word: &str) -> Option<OsString> {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        if byte == b'%' {
            let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(byte);
            rest = tail;
        }
    }
    Some(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_round_trips() {
        let odd = PathBuf::from(OsString::from_vec(b"/tmp/a b%\n\xff".to_vec()));
        for undo in [
            Undo::Unmount(odd.clone()),
            Undo::RemoveFile(odd.clone()),
            Undo::RemoveDir(odd.clone()),
            Undo::DetachLoop { device: "/dev/loop3".into(), backing: odd.clone() },
            Undo::RemoveCgroup(odd.clone()),
            Undo::RemoveTraceInstance(odd.clone()),
            Undo::Restore { path: odd.clone(), value: "64\n".into(), set: "4 k".into() },
            Undo::RestoreReadAhead {
                device: "/dev/loop3".into(),
                backing: odd.clone(),
                value: "128\n".into(),
            },
            Undo::DropPages(odd),
        ] {
            let line = undo.encode();
            assert!(!line.contains('\n'));
            assert_eq!(Undo::decode(&line), Some(undo));
        }
    }

    #[test]
    fn rejects_truncated_lines() {
        for line in ["", "unmount", "loop /dev/loop3", "file /tmp/a%2", "reboot /", "dir /a /b"] {
            assert_eq!(Undo::decode(line), None, "{line:?}");
        }
    }
}
