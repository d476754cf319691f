//! The directory of a kernel's modules, `lib/modules/RELEASE`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Where below `dir` the modules of `release` are.
pub(super) fn find(dir: &Path, release: &str) -> Option<PathBuf> {
    let below = ["lib/modules", "usr/lib/modules", ""].map(|part| dir.join(part).join(release));
    let itself = [dir.to_owned()].into_iter().filter(|dir| dir.join("kernel").is_dir());
    below.into_iter().filter(|path| path.is_dir()).chain(itself).next()
}

/// The modules that the list in `root`, a `lib/modules/RELEASE`, calls built in; `None` where it
/// has no list.
pub(super) fn built_in(root: &Path) -> Option<BTreeSet<String>> {
    let text = std::fs::read_to_string(root.join("modules.builtin")).ok()?;
    let names = text.lines().filter_map(|line| line.rsplit('/').next()?.strip_suffix(".ko"));
    Some(names.map(|name| name.replace('-', "_")).collect())
}
