//! Finds the kernel modules that a guest needs, and the modules that those depend on.
//!
//! Dependencies are read from the modules themselves (`depends=` and `softdep=pre:` in their
//! `.modinfo`), because a package that is only unpacked has no `modules.dep` yet. Compressed
//! modules are unpacked here, so that the guest's kernel need not know the compression.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{DiskFilesystem, Error, elf, release_dir};
use crate::child;

/// A module, ready to be given to init_module(2).
pub(super) struct Module {
    /// Its name, with underscores.
    pub(super) name: String,
    /// The unpacked ELF file.
    pub(super) bytes: Vec<u8>,
}

/// The modules that a guest wants for a disk with `filesystem` and all that they need, each after
/// what it depends on.
///
/// A name that has no file is left out: the kernel has it built in, or does without it. What it
/// cannot do without is refused where the directory says that it is not built in; so is what that
/// depends on.
pub(super) fn collect(
    dir: &Path,
    release: &str,
    filesystem: DiskFilesystem,
) -> Result<Vec<Module>, Error> {
    let fail = |reason: String| Error::Modules { dir: dir.to_owned(), reason };
    let root = release_dir::find(dir, release)
        .ok_or_else(|| fail(format!("it has nothing for release {release}")))?;
    let mut files = BTreeMap::new();
    index(&root, &mut files).map_err(|source| fail(source.to_string()))?;
    let built_in = release_dir::built_in(&root);
    let required = built_in.as_ref().map(|names| filesystem.required_modules(names));
    let required = required.unwrap_or_default();
    let mut search = ModuleSearch {
        files,
        release,
        built_in,
        seen: BTreeSet::new(),
        missing: Vec::new(),
        found: Vec::new(),
        fail: &fail,
    };
    for name in filesystem.modules() {
        search.add(name, required.contains(name))?;
    }
    if !search.missing.is_empty() {
        let names = search.missing.join(", ");
        return Err(fail(format!("not there and not built in: {names}")));
    }
    Ok(search.found)
}

/// Every module file below `dir`, by module name.
fn index(dir: &Path, files: &mut BTreeMap<String, PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            index(&path, files)?;
        } else if let Some((stem, "" | ".xz" | ".zst" | ".gz")) =
            entry.file_name().to_str().and_then(|name| name.rsplit_once(".ko"))
        {
            files.insert(stem.replace('-', "_"), path);
        }
    }
    Ok(())
}

struct ModuleSearch<'a> {
    files: BTreeMap<String, PathBuf>,
    release: &'a str,
    /// What the kernel has built in, where the directory says so.
    built_in: Option<BTreeSet<String>>,
    seen: BTreeSet<String>,
    /// What is needed and neither a file nor built in.
    missing: Vec<String>,
    found: Vec<Module>,
    fail: &'a dyn Fn(String) -> Error,
}

impl ModuleSearch<'_> {
    fn add(&mut self, name: &str, required: bool) -> Result<(), Error> {
        let name = name.replace('-', "_");
        if !self.seen.insert(name.clone()) {
            return Ok(());
        }
        let Some(path) = self.files.get(&name).cloned() else {
            let known = self.built_in.as_ref().filter(|_| required);
            if known.is_some_and(|built_in| !built_in.contains(&name)) {
                self.missing.push(name);
            }
            return Ok(());
        };
        let bytes = unpack(&path)?;
        let info = ModuleInfo::parse(&bytes)
            .ok_or_else(|| (self.fail)(format!("{} is no kernel module", path.display())))?;
        if info.release != self.release {
            let (built, kernel) = (&info.release, self.release);
            return Err((self.fail)(format!("{name} is for {built}, the kernel is {kernel}")));
        }
        for needed in &info.depends {
            self.add(needed, required)?;
        }
        for wished in &info.softdeps {
            self.add(wished, false)?;
        }
        self.found.push(Module { name, bytes });
        Ok(())
    }
}

/// What a module says of itself.
struct ModuleInfo {
    release: String,
    /// What it does not load without.
    depends: Vec<String>,
    /// What it wants loaded before, if it is there.
    softdeps: Vec<String>,
}

impl ModuleInfo {
    fn parse(module: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(elf::section(module, ".modinfo")?).into_owned();
        let mut info = Self { release: String::new(), depends: Vec::new(), softdeps: Vec::new() };
        for (key, value) in text.split('\0').filter_map(|field| field.split_once('=')) {
            match key {
                "vermagic" => {
                    info.release = value.split(' ').next().unwrap_or_default().to_owned();
                }
                "depends" => info
                    .depends
                    .extend(value.split(',').filter(|name| !name.is_empty()).map(str::to_owned)),
                "softdep" => info.softdeps.extend(pre_softdeps(value)),
                _ => {}
            }
        }
        Some(info)
    }
}

/// The names between `pre:` and `post:`.
fn pre_softdeps(value: &str) -> impl Iterator<Item = String> + '_ {
    let mut before = false;
    value.split_whitespace().filter_map(move |word| {
        if word.ends_with(':') {
            before = word == "pre:";
            return None;
        }
        before.then(|| word.to_owned())
    })
}

fn unpack(path: &Path) -> Result<Vec<u8>, Error> {
    let (program, package) = match path.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => ("xz", "xz-utils"),
        Some("zst") => ("zstd", "zstd"),
        Some("gz") => ("gzip", "gzip"),
        _ => {
            return std::fs::read(path)
                .map_err(|source| Error::io(format!("read {}", path.display()), source));
        }
    };
    let output = child::output(Command::new(program).args(["-d", "-c", "--"]).arg(path))
        .map_err(|source| Error::from_spawn(program, package, source))?;
    if !output.status.success() {
        let line = String::from_utf8_lossy(&output.stderr).trim().replace('\n', " ");
        return Err(Error::Tool { program, line });
    }
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soft_needs_are_those_before() {
        let needs: Vec<_> = pre_softdeps("pre: crc32c a post: b").collect();
        assert_eq!(needs, ["crc32c", "a"]);
    }

    #[test]
    fn names_are_folded_and_compressions_known() {
        let dir = tempfile::tempdir().unwrap();
        let kernel = dir.path().join("lib/modules/6.1/kernel");
        std::fs::create_dir_all(&kernel).unwrap();
        for name in ["a-b.ko.xz", "c.ko", "d.ko.txt", "modules.order"] {
            std::fs::write(kernel.join(name), "").unwrap();
        }
        let root = release_dir::find(dir.path(), "6.1").unwrap();
        let mut files = BTreeMap::new();
        index(&root, &mut files).unwrap();
        assert_eq!(files.keys().collect::<Vec<_>>(), ["a_b", "c"]);
        assert_eq!(release_dir::find(&root, "6.1").unwrap(), root);
        assert_eq!(release_dir::find(dir.path(), "6.2"), None);
    }

    #[test]
    fn other_release_and_junk_are_refused_in_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let missing = collect(dir.path(), "6.2", DiskFilesystem::Ext4).err().unwrap().to_string();
        assert!(missing.contains("6.2") && !missing.contains('\n'), "{missing}");
        std::fs::create_dir_all(dir.path().join("6.2")).unwrap();
        std::fs::write(dir.path().join("6.2/ext4.ko"), "junk").unwrap();
        let junk = collect(dir.path(), "6.2", DiskFilesystem::Ext4).err().unwrap().to_string();
        assert!(junk.contains("ext4.ko") && !junk.contains('\n'), "{junk}");
    }

    #[test]
    fn what_is_neither_there_nor_built_in_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("lib/modules/6.2");
        std::fs::create_dir_all(&root).unwrap();
        let collect = || collect(dir.path(), "6.2", DiskFilesystem::Ext4);
        assert!(collect().is_ok(), "nobody says what is built in");
        let lists = [
            ("kernel/drivers/nvme/host/nvme.ko\n", "ext4"),
            ("kernel/drivers/virtio/virtio_pci.ko\n", "virtio_blk, ext4"),
            ("", "virtio_pci, virtio_blk, ext4"),
        ];
        for (list, names) in lists {
            std::fs::write(root.join("modules.builtin"), list).unwrap();
            let missing = collect().err().unwrap();
            assert!(missing.to_string().contains(&format!("built in: {names};")), "{missing}");
            assert!(missing.cannot_run_here());
        }
    }
}
