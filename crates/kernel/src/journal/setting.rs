//! A setting of the machine that a run has changed, and that others may change too.

use std::fs;
use std::path::Path;

use super::undone::{UndoResult, is_missing};
use crate::Error;
use crate::chosen_word::selected_word;

/// Has the setting at `path` hold `value` again, as before the run that `set` another. What is
/// neither of the two somebody else has set since, so it stays.
///
/// # Errors
/// When the setting cannot be read or written.
pub(super) fn restore(path: &Path, value: &str, set: Option<&str>) -> Result<UndoResult, Error> {
    let found = match fs::read_to_string(path) {
        Ok(text) => setting_value(&text),
        Err(_) if is_missing(path) => return Ok(UndoResult::Gone),
        Err(source) => return Err(Error::os("read", path, source)),
    };
    if found == setting_value(value) {
        return Ok(UndoResult::Gone);
    }
    if set.is_some_and(|set| found != setting_value(set)) {
        return Ok(UndoResult::Kept { found });
    }
    fs::write(path, value).map_err(|source| Error::os("restore", path, source))?;
    Ok(UndoResult::Restored)
}

/// What a setting holds, by its text: of several words the one in brackets.
pub(super) fn setting_value(text: &str) -> String {
    selected_word(text).unwrap_or_else(|| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::tests::directory;
    use super::*;

    #[test]
    fn what_others_have_set_since_stays() {
        let directory = directory("setting");
        let path = directory.join("enabled");
        let back = |held: &str, set| {
            fs::write(&path, held).unwrap();
            let undone = restore(&path, "never\n", set).unwrap();
            (undone, fs::read_to_string(&path).unwrap())
        };
        let restored = (UndoResult::Restored, "never\n".to_owned());
        assert_eq!(back("always [madvise] never\n", Some("madvise")), restored);
        assert_eq!(back("madvise\n", Some("madvise")), restored);
        let held = "always madvise [never]";
        assert_eq!(back(held, Some("madvise")), (UndoResult::Gone, held.to_owned()));
        let others = "[always] madvise never\n";
        let left = UndoResult::Kept { found: "always".to_owned() };
        assert_eq!(back(others, Some("madvise")), (left, others.to_owned()));
        assert_eq!(back(others, None), restored, "an older version did not tell what it set");
        fs::remove_file(&path).unwrap();
        assert_eq!(restore(&path, "never", None).unwrap(), UndoResult::Gone);
        fs::remove_dir(&directory).unwrap();
    }
}
