//! The kernel modules that a guest needs, and what a kernel has built in.
//!
//! Dependencies are read from the modules themselves (`depends=` and `softdep=pre:` in their
//! `.modinfo`): a package that is unpacked but not installed has no `modules.dep`. Compressed
//! modules are unpacked on the host, so that the guest's kernel need not know the compression.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{DiskFilesystem, Error, elf};
use crate::child;

/// A module, ready for init_module(2).
pub(super) struct Module {
    /// Its name, with underscores.
    pub(super) name: String,
    /// The unpacked ELF file.
    pub(super) bytes: Vec<u8>,
}

/// The modules that a guest needs for a disk with `filesystem` and their dependencies, each after
/// the modules it depends on.
///
/// A name without a file is skipped: it is built in, or the kernel works without it. It is an error
/// if a required module, or a dependency of one, is known not to be built in.
pub(super) fn collect(
    dir: &Path,
    release: &str,
    filesystem: DiskFilesystem,
) -> Result<Vec<Module>, Error> {
    let fail = |reason: String| Error::Modules { dir: dir.to_owned(), reason };
    let root = find_release_dir(dir, release)
        .ok_or_else(|| fail(format!("it has nothing for release {release}")))?;
    let mut files = BTreeMap::new();
    index(&root, &mut files).map_err(|source| fail(source.to_string()))?;
    let built_in = read_builtin(&root);
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
        return Err(fail(format!("missing and not built in: {names}")));
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
    /// Built-in modules, if the directory lists them.
    built_in: Option<BTreeSet<String>>,
    seen: BTreeSet<String>,
    /// Required modules that are neither files nor built in.
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

/// Dependencies declared by a module.
struct ModuleInfo {
    release: String,
    /// Modules that it requires.
    depends: Vec<String>,
    /// Modules to load first, if available.
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

/// Options of the kernel configuration, and the modules that they become if set to `m`.
const OPTIONS: [(&str, &str); 5] = [
    ("CONFIG_VIRTIO_PCI", "virtio_pci"),
    ("CONFIG_VIRTIO_BLK", "virtio_blk"),
    ("CONFIG_BLK_DEV_NVME", "nvme"),
    ("CONFIG_EXT4_FS", "ext4"),
    ("CONFIG_XFS_FS", "xfs"),
];

/// Refuses the kernel at `path`, to be booted without modules, unless everything needed for a disk
/// with `filesystem` is built in. If neither a file next to it nor this machine's files for the
/// same release tell, the boot is attempted.
///
/// # Errors
/// The missing modules, and the directory that has them, if found.
pub(super) fn check_built_in(
    path: &Path,
    release: &str,
    filesystem: DiskFilesystem,
) -> Result<(), Error> {
    let beside = path.parent().unwrap_or(Path::new(""));
    let roots = [beside.join(".."), PathBuf::from("/")];
    let with_list = roots
        .iter()
        .find_map(|root| Some((Some(root), read_builtin(&find_release_dir(root, release)?)?)));
    let known = with_list.or_else(|| Some((None, configured(beside, release)?)));
    let Some((root, built_in)) = known else { return Ok(()) };
    let mut missing = filesystem.required_modules(&built_in);
    missing.retain(|&name| !built_in.contains(name));
    if missing.is_empty() {
        return Ok(());
    }
    let dir = root.map(|root| root.canonicalize().unwrap_or_else(|_| root.clone()));
    Err(Error::NeedsModules {
        path: path.to_owned(),
        names: missing.join(", "),
        dir: dir.map_or("DIR".to_owned(), |dir| dir.display().to_string()),
        release: release.to_owned(),
    })
}

/// What the configuration in the kernel's directory says.
fn configured(beside: &Path, release: &str) -> Option<BTreeSet<String>> {
    let text = std::fs::read_to_string(beside.join(format!("config-{release}"))).ok()?;
    let is_set = |option: &str| text.lines().any(|line| line == format!("{option}=y"));
    let set = OPTIONS.iter().filter(|(option, _)| is_set(option));
    Some(set.map(|(_, name)| (*name).to_owned()).collect())
}

/// The directory below `dir` with the modules of `release`.
pub(super) fn find_release_dir(dir: &Path, release: &str) -> Option<PathBuf> {
    let below = ["lib/modules", "usr/lib/modules", ""].map(|part| dir.join(part).join(release));
    let itself = [dir.to_owned()].into_iter().filter(|dir| dir.join("kernel").is_dir());
    below.into_iter().filter(|path| path.is_dir()).chain(itself).next()
}

/// The built-in modules listed in `root`, a `lib/modules/RELEASE`; `None` without a list.
pub(super) fn read_builtin(root: &Path) -> Option<BTreeSet<String>> {
    let text = std::fs::read_to_string(root.join("modules.builtin")).ok()?;
    let names = text.lines().filter_map(|line| line.rsplit('/').next()?.strip_suffix(".ko"));
    Some(names.map(|name| name.replace('-', "_")).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn parses_pre_softdeps() {
        let needs: Vec<_> = pre_softdeps("pre: crc32c a post: b").collect();
        assert_eq!(needs, ["crc32c", "a"]);
    }

    #[test]
    fn indexes_compressed_modules() {
        let dir = tempfile::tempdir().unwrap();
        let kernel = dir.path().join("lib/modules/6.1/kernel");
        fs::create_dir_all(&kernel).unwrap();
        for name in ["a-b.ko.xz", "c.ko", "d.ko.txt", "modules.order"] {
            fs::write(kernel.join(name), "").unwrap();
        }
        let root = find_release_dir(dir.path(), "6.1").unwrap();
        let mut files = BTreeMap::new();
        index(&root, &mut files).unwrap();
        assert_eq!(files.keys().collect::<Vec<_>>(), ["a_b", "c"]);
        assert_eq!(find_release_dir(&root, "6.1").unwrap(), root);
        assert_eq!(find_release_dir(dir.path(), "6.2"), None);
    }

    #[test]
    fn rejects_other_release_and_junk() {
        let dir = tempfile::tempdir().unwrap();
        let missing = collect(dir.path(), "6.2", DiskFilesystem::Ext4).err().unwrap().to_string();
        assert!(missing.contains("6.2") && !missing.contains('\n'), "{missing}");
        fs::create_dir_all(dir.path().join("6.2")).unwrap();
        fs::write(dir.path().join("6.2/ext4.ko"), "junk").unwrap();
        let junk = collect(dir.path(), "6.2", DiskFilesystem::Ext4).err().unwrap().to_string();
        assert!(junk.contains("ext4.ko") && !junk.contains('\n'), "{junk}");
    }

    #[test]
    fn names_missing_modules() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("lib/modules/6.2");
        fs::create_dir_all(&root).unwrap();
        let collect = || collect(dir.path(), "6.2", DiskFilesystem::Ext4);
        assert!(collect().is_ok(), "nobody says what is built in");
        let lists = [
            ("kernel/drivers/nvme/host/nvme.ko\n", "ext4"),
            ("kernel/drivers/virtio/virtio_pci.ko\n", "virtio_blk, ext4"),
            ("", "virtio_pci, virtio_blk, ext4"),
        ];
        for (list, names) in lists {
            fs::write(root.join("modules.builtin"), list).unwrap();
            let missing = collect().err().unwrap();
            assert!(missing.to_string().contains(&format!("built in: {names};")), "{missing}");
            assert!(missing.cannot_run_here());
        }
    }

    #[test]
    fn accepts_kernel_without_information() {
        let dir = tempfile::tempdir().unwrap();
        for path in [&dir.path().join("boot/vmlinuz"), Path::new("vmlinuz")] {
            assert!(check_built_in(path, "0.0.1-none", DiskFilesystem::Ext4).is_ok());
        }
    }

    #[test]
    fn names_drivers_that_are_not_built_in() {
        let dir = tempfile::tempdir().unwrap();
        let boot = dir.path().join("boot");
        fs::create_dir_all(&boot).unwrap();
        let config = boot.join("config-0.0.1-none");
        let refused = || {
            let refused = check_built_in(&boot.join("vmlinuz"), "0.0.1-none", DiskFilesystem::Ext4);
            refused.err().map_or(String::new(), |error| {
                assert!(error.cannot_run_here());
                error.to_string()
            })
        };
        fs::write(&config, "CONFIG_VIRTIO_PCI=y\nCONFIG_VIRTIO_BLK=m\nCONFIG_EXT4_FS=m\n").unwrap();
        let message = refused();
        assert!(message.contains("virtio_blk, ext4") && message.contains("--modules DIR"));
        fs::write(&config, "CONFIG_BLK_DEV_NVME=y\nCONFIG_EXT4_FS=m\n").unwrap();
        let message = refused();
        assert!(message.contains(", ext4;") && !message.contains("virtio"), "{message}");
        fs::write(&config, "CONFIG_BLK_DEV_NVME=y\nCONFIG_EXT4_FS=y\n").unwrap();
        assert_eq!(refused(), "");
        // The release's list takes precedence over a configuration, and shows where its modules
        // are.
        let modules = dir.path().join("lib/modules/0.0.1-none");
        fs::create_dir_all(&modules).unwrap();
        let listed = "kernel/drivers/virtio/virtio_pci.ko\nkernel/drivers/block/virtio-blk.ko\n";
        fs::write(modules.join("modules.builtin"), listed).unwrap();
        let message = refused();
        let root = dir.path().canonicalize().unwrap();
        assert!(
            message.contains(", ext4;") && message.contains(root.to_str().unwrap()),
            "{message}"
        );
        fs::write(modules.join("modules.builtin"), format!("{listed}kernel/fs/ext4/ext4.ko"))
            .unwrap();
        assert_eq!(refused(), "");
    }
}
