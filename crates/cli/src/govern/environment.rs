//! What is said to the library, as variables of the program's environment.

use std::ffi::OsString;
use std::path::Path;

use filemap_control::variable;
use filemap_kernel::governor::{PRELOAD, preloaded};

/// Variables with their values.
pub type Variables = Vec<(&'static str, OsString)>;

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
