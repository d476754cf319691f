//! What is said to the library, as variables of the program's environment.

use std::ffi::OsString;
use std::path::Path;

use filemap_control::{Settings, variable};
use filemap_kernel::governor::{PRELOAD, preloaded};

use crate::error::Error;

/// What the flags ask for; what they do not say stays as the user's environment has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Bytes of the smallest mapping that is governed.
    pub min_bytes: Option<u64>,
    /// Bytes of the largest window that one fault asks for.
    pub largest_window_bytes: Option<u64>,
    /// Patterns of the paths that are governed, all of them where there is none.
    pub include: Vec<OsString>,
    /// Patterns of the paths that are left alone.
    pub exclude: Vec<OsString>,
}

/// Variables with their values.
pub type Variables = Vec<(&'static str, OsString)>;

impl Wanted {
    /// The variables that say so, with `library` to load, and `statistics` where the user does not
    /// name a directory for them.
    ///
    /// # Errors
    /// When the variables that the user has set make no sense.
    pub fn variables(&self, library: &Path, statistics: Option<&Path>) -> Result<Variables, Error> {
        let mut variables = self.said();
        let loaded = preloaded(library, std::env::var_os(PRELOAD).as_deref());
        variables.push((PRELOAD, loaded));
        let named = std::env::var_os(variable::STATISTICS).is_some_and(|name| !name.is_empty());
        if let Some(directory) = statistics.filter(|_| !named) {
            variables.push((variable::STATISTICS, directory.as_os_str().to_owned()));
        }
        let value = |name: &'static str| {
            let own = variables.iter().find(|(own, _)| *own == name);
            own.map(|(_, value)| value.clone()).or_else(|| std::env::var_os(name))
        };
        match Settings::from_environment(value) {
            Ok(_) => Ok(variables),
            Err(wrong) => Err(Error::Usage(format!("{wrong}; unset it, or give a flag instead"))),
        }
    }

    /// What the flags say.
    fn said(&self) -> Variables {
        let size = |bytes: u64| OsString::from(bytes.to_string());
        let list = |patterns: &[OsString]| {
            (!patterns.is_empty()).then(|| patterns.join(std::ffi::OsStr::new(":")))
        };
        let all = [
            (variable::MIN_SIZE, self.min_bytes.map(size)),
            (variable::LARGEST_WINDOW, self.largest_window_bytes.map(size)),
            (variable::INCLUDE, list(&self.include)),
            (variable::EXCLUDE, list(&self.exclude)),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// The variables of a program that gets the advice of the text `rules` by `library`, which tells in
/// the file `given` what of it was given.
pub fn advised(library: &Path, rules: OsString, given: &Path) -> Variables {
    vec![
        (PRELOAD, preloaded(library, std::env::var_os(PRELOAD).as_deref())),
        (variable::SWITCH, "on".into()),
        (variable::ADVISE, rules),
        (variable::ADVISED, given.as_os_str().to_owned()),
    ]
}

/// The variables of a program that is not governed, whoever governs its caller.
pub fn off() -> Variables {
    vec![(variable::SWITCH, "off".into())]
}

/// Sets `variables` in the environment of this process, which has one thread.
pub fn set(variables: &Variables) {
    for (name, value) in variables {
        // SAFETY: no other thread reads the environment meanwhile.
        unsafe { std::env::set_var(name, value) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_variables() {
        assert_eq!(Wanted::default().said(), []);
        let wanted = Wanted {
            min_bytes: Some(1 << 20),
            largest_window_bytes: Some(0),
            include: vec!["*.db".into(), "*.mdb".into()],
            exclude: Vec::new(),
        };
        let expected = [
            (variable::MIN_SIZE, "1048576"),
            (variable::LARGEST_WINDOW, "0"),
            (variable::INCLUDE, "*.db:*.mdb"),
        ];
        assert_eq!(wanted.said(), expected.map(|(name, value)| (name, OsString::from(value))));
    }
}
