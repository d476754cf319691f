//! Storage of a file: device, filesystem and readahead size.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use filemap_job::Filesystem;
use rustix::fs::{major, minor};

use crate::{Error, page_size};

/// `RAMFS_MAGIC`, which libc does not have.
const RAMFS_MAGIC: libc::c_long = 0x8584_58f6;

/// Storage properties that a file's readahead and folios depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    /// The device as `mount` names it.
    pub device: String,
    /// Filesystem type, such as `ext4`.
    pub filesystem: String,
    /// Its mount point.
    pub mount_point: PathBuf,
    /// Options of the mount and of the filesystem.
    pub mount_options: String,
    /// Block size, or the page size if that is larger.
    pub block_bytes: u64,
    /// Readahead size of files there in KiB; `None` if no device has one.
    pub read_ahead_kb: Option<u64>,
}

impl Storage {
    /// Storage of `path`, a file or a directory.
    ///
    /// # Errors
    /// It does not exist.
    pub fn find(path: &Path) -> Result<Self, Error> {
        let metadata = fs::metadata(path).map_err(|error| Error::os("open", path, error))?;
        let device = (major(metadata.dev()), minor(metadata.dev()));
        let mounts = Path::new("/proc/self/mountinfo");
        let text = fs::read(mounts).map_err(|error| Error::os("read", mounts, error))?;
        let mounted = Storage::from_mountinfo(&String::from_utf8_lossy(&text), device, path);
        let mut storage = match mounted {
            Some(storage) => storage,
            None => Storage::from_statfs(path)?,
        };
        storage.read_ahead_kb = read_ahead_kb(device, &storage.device);
        let blocks = rustix::fs::statvfs(path)
            .map_err(|error| Error::os("read", path, std::io::Error::from(error)))?;
        storage.block_bytes = blocks.f_bsize.max(page_size());
        Ok(storage)
    }

    /// The storage of the mounted filesystem with device number `device` (`st_dev`); `None` if it
    /// is not mounted, or its readahead size is unknown.
    pub fn of_device(device: u64) -> Option<Storage> {
        let text = fs::read("/proc/self/mountinfo").ok()?;
        let device = (major(device), minor(device));
        let root = Path::new("/");
        let found = Storage::from_mountinfo(&String::from_utf8_lossy(&text), device, root)?;
        let read_ahead_kb = Some(read_ahead_kb(device, &found.device)?);
        Some(Storage { read_ahead_kb, ..found })
    }

    /// Why pages of files there cannot be dropped and counted, as in "a file that ..."; `None` if
    /// they can.
    pub fn unsuitable_reason(&self) -> Option<String> {
        match self.filesystem.as_str() {
            kind @ ("tmpfs" | "devtmpfs" | "ramfs" | "rootfs" | "hugetlbfs") => {
                Some(format!("lives in memory on {kind}"))
            }
            "overlay" => Some("has its pages in another file below overlay".to_owned()),
            _ => None,
        }
    }

    /// The folio sizes of the filesystem: ext4 has no large folios with `data=journal`.
    pub fn folios(&self) -> Filesystem {
        let journals_data = self.mount_options.split(',').any(|option| option == "data=journal");
        match self.filesystem.as_str() {
            "ext4" if !journals_data => Filesystem::Ext4,
            "xfs" => Filesystem::Xfs,
            _ => Filesystem::BasePages,
        }
    }

    /// Storage of a path whose mount is not visible, as in a chroot, by `f_type`.
    fn from_statfs(path: &Path) -> Result<Storage, Error> {
        let statfs = rustix::fs::statfs(path).map_err(|error| Error::os("open", path, error))?;
        let filesystem = match statfs.f_type {
            libc::EXT4_SUPER_MAGIC => "ext4",
            libc::XFS_SUPER_MAGIC => "xfs",
            libc::TMPFS_MAGIC => "tmpfs",
            RAMFS_MAGIC => "ramfs",
            libc::OVERLAYFS_SUPER_MAGIC => "overlay",
            libc::BTRFS_SUPER_MAGIC => "btrfs",
            _ => "unknown",
        };
        Ok(Storage {
            device: "unknown".to_owned(),
            filesystem: filesystem.to_owned(),
            mount_point: PathBuf::from("/"),
            mount_options: String::new(),
            block_bytes: page_size(),
            read_ahead_kb: None,
        })
    }

    /// The mount of `device` in the text of mountinfo; if there are several, the one that contains
    /// `path`.
    fn from_mountinfo(text: &str, device: (u32, u32), path: &Path) -> Option<Storage> {
        let number = format!("{}:{}", device.0, device.1);
        let mounts = text.lines().filter_map(|line| {
            let (mount, filesystem) = line.split_once(" - ")?;
            let mount: Vec<&str> = mount.split(' ').collect();
            let filesystem: Vec<&str> = filesystem.split(' ').collect();
            let (&[_, _, dev, _, point, options, ..], &[kind, source, ..]) =
                (mount.as_slice(), filesystem.as_slice())
            else {
                return None;
            };
            let of_filesystem = filesystem.get(2).copied().unwrap_or_default();
            (dev == number).then(|| Storage {
                device: unescape_octal(source),
                filesystem: kind.to_owned(),
                mount_point: unescape_octal(point).into(),
                mount_options: merge_options(options, of_filesystem),
                block_bytes: page_size(),
                read_ahead_kb: None,
            })
        });
        let absolute = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        mounts.max_by_key(|storage| {
            let point = &storage.mount_point;
            (absolute.starts_with(point), point.as_os_str().as_bytes().len())
        })
    }
}

/// The file below an overlay of this mount namespace that holds the pages of `path`; `None` if it
/// is on no overlay, or its layers are not visible here, as in a container.
pub fn layer_file(path: &Path) -> Option<PathBuf> {
    let mounts = fs::read("/proc/self/mountinfo").ok()?;
    let absolute = fs::canonicalize(path).ok()?;
    let data = fs::metadata(path).ok()?;
    overlay_layer_file(&String::from_utf8_lossy(&mounts), &absolute, &data)
}

/// The file below an overlay that holds the pages of the overlay's file `path`, whose metadata is
/// `data`. `mountinfo` shows the overlay, and the paths of its layers lead to them here. `None` if
/// `path` is on no overlay, or no layer has the file.
pub fn overlay_layer_file(mountinfo: &str, path: &Path, data: &fs::Metadata) -> Option<PathBuf> {
    let number = format!("{}:{}", major(data.dev()), minor(data.dev()));
    let layers = mountinfo.lines().flat_map(|line| overlay_layers(line, &number, path));
    let holds = |file: &PathBuf| {
        fs::metadata(file).is_ok_and(|layer| {
            let is_same = (layer.len(), layer.mtime()) == (data.len(), data.mtime());
            layer.is_file() && layer.dev() != data.dev() && is_same
        })
    };
    layers.into_iter().find(holds)
}

/// The places of the overlay's file `path` in the layers of the overlay with the given device
/// number, highest first, if that is what the line of mountinfo describes.
fn overlay_layers(line: &str, number: &str, path: &Path) -> Vec<PathBuf> {
    let fields = || {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mount: Vec<&str> = mount.split(' ').collect();
        let &[_, _, device, root, point, ..] = mount.as_slice() else { return None };
        let options = filesystem.strip_prefix("overlay ")?.rsplit_once(' ')?.1;
        let within = path.strip_prefix(unescape_octal(point)).ok()?;
        let below = Path::new(unescape_octal(root).trim_start_matches('/')).join(within);
        (device == number).then_some((options, below))
    };
    let Some((options, file)) = fields() else { return Vec::new() };
    let values = |name: &str| -> Vec<String> {
        let named = options.split(',').filter_map(|option| option.split_once('='));
        let named = named.filter(|(key, _)| key.trim_end_matches('+') == name);
        let paths = named.flat_map(|(_, value)| value.split(':'));
        paths.filter(|path| !path.is_empty()).map(unescape_octal).collect()
    };
    let layers = values("upperdir").into_iter().chain(values("lowerdir"));
    layers.map(|layer| Path::new(&layer).join(&file)).collect()
}

/// A path by which this process finds the file that a process in another mount namespace or root
/// directory has at `path`, with the metadata `data`: by a mount here that shows the same part of
/// its filesystem. `mountinfo` is the process's. `None` if no mount here shows it.
pub fn path_of_namespace(mountinfo: &str, path: &Path, data: &fs::Metadata) -> Option<PathBuf> {
    let is_it = |candidate: &Path| {
        fs::metadata(candidate)
            .is_ok_and(|found| (found.dev(), found.ino()) == (data.dev(), data.ino()))
    };
    if is_it(path) {
        return Some(path.to_owned());
    }
    let number = format!("{}:{}", major(data.dev()), minor(data.dev()));
    let own = fs::read("/proc/self/mountinfo").ok()?;
    let own = String::from_utf8_lossy(&own);
    let of_filesystem = |text: &str| -> Vec<(PathBuf, PathBuf)> {
        let fields = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let of_device = fields.filter(|fields| fields.get(2) == Some(&number.as_str()));
        let places = of_device.filter_map(|fields| {
            Some((unescape_octal(fields.get(3)?).into(), unescape_octal(fields.get(4)?).into()))
        });
        places.collect()
    };
    let inside = of_filesystem(mountinfo).into_iter().filter_map(|(root, point)| {
        let within = path.strip_prefix(point).ok()?;
        Some(root.join(within))
    });
    let inside: Vec<PathBuf> = inside.collect();
    let mounts = of_filesystem(&own).into_iter();
    let mut here = mounts.flat_map(|(root, point)| {
        let within = inside.iter().filter_map(move |file| file.strip_prefix(&root).ok());
        within.map(move |within| point.join(within)).collect::<Vec<_>>()
    });
    here.find(|candidate| is_it(candidate))
}

/// Readahead size of a filesystem: from its BDI, or from the device below it.
fn read_ahead_kb(filesystem: (u32, u32), source: &str) -> Option<u64> {
    let mut files = read_ahead_files(filesystem, source);
    files.find_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok())
}

/// Files of sysfs that may have the readahead size of a filesystem, most specific first.
fn read_ahead_files(filesystem: (u32, u32), source: &str) -> impl Iterator<Item = String> {
    let of_source = fs::metadata(source).ok().map(|data| (major(data.rdev()), minor(data.rdev())));
    [Some(filesystem), of_source].into_iter().flatten().flat_map(|(major, minor)| {
        let block = format!("/sys/dev/block/{major}:{minor}");
        [
            format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb"),
            format!("{block}/queue/read_ahead_kb"),
            // A partition shares the queue of its disk.
            format!("{block}/../queue/read_ahead_kb"),
        ]
    })
}

/// Where the readahead size of a device is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadAheadSetting {
    /// The disk, such as `vda`, or the filesystem if it has a readahead size of its own.
    pub device: String,
    /// The file of sysfs.
    pub path: PathBuf,
}

/// Where the readahead size of the device of the file at `path` is set; `None` if it has none.
pub fn read_ahead_setting(path: &Path) -> Option<ReadAheadSetting> {
    let device = fs::metadata(path).ok()?.dev();
    let number = (major(device), minor(device));
    let source = Storage::find(path).ok()?.device;
    let file = read_ahead_files(number, &source).find(|file| Path::new(file).exists())?;
    // `.../block/vda/queue` for a disk and its partitions, `.../virtual/bdi/254:0` for a BDI.
    let of_disk = |directory: &str| {
        let directory = fs::canonicalize(directory).ok()?;
        let disk =
            if directory.join("partition").exists() { directory.parent()? } else { &directory };
        let name = disk.file_name()?.to_str()?.to_string();
        let path = Path::new("/sys/block").join(&name).join("queue/read_ahead_kb");
        path.exists().then_some(ReadAheadSetting { device: name, path })
    };
    let number = file.strip_prefix("/sys/class/bdi/").or(file.strip_prefix("/sys/dev/block/"))?;
    let number = number.split('/').next()?;
    of_disk(&format!("/sys/dev/block/{number}"))
        .or_else(|| Some(ReadAheadSetting { device: source, path: file.into() }))
}

/// The options of a mount, followed by other options of its filesystem.
fn merge_options(of_mount: &str, of_filesystem: &str) -> String {
    let mut all: Vec<&str> = of_mount.split(',').collect();
    let others = of_filesystem.split(',').filter(|option| !option.is_empty());
    others.for_each(|option| {
        if !all.contains(&option) {
            all.push(option)
        }
    });
    all.join(",")
}

/// Unescapes a field of mountinfo, in which blanks and some other characters are octal escapes.
fn unescape_octal(field: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = field.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let octal = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.filter(|_| byte == b'\\').and_then(|o| u8::from_str_radix(o, 8).ok()) {
            Some(escaped) => {
                bytes.push(escaped);
                rest = &tail[3..];
            }
            None => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Maximum request size of the device of `path`, in bytes.
///
/// # Errors
/// It is not on a block device.
pub fn io_bytes(path: &Path) -> Result<u64, Error> {
    let metadata = fs::metadata(path).map_err(|error| Error::os("open", path, error))?;
    let block = format!("/sys/dev/block/{}:{}", major(metadata.dev()), minor(metadata.dev()));
    // A partition shares the queue of its disk.
    let queues = [format!("{block}/queue"), format!("{block}/../queue")];
    let kib = queues.iter().find_map(|queue| {
        fs::read_to_string(format!("{queue}/max_sectors_kb")).ok()?.trim().parse::<u64>().ok()
    });
    kib.map(|kib| kib << 10).ok_or_else(|| {
        Error::unavailable(
            format!("the request size of the device of '{}'", path.display()),
            "give a --file on a block device",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n\
        30 27 254:0 /a /mnt/with\\040blank ro - ext4 /dev/vda rw\n\
        31 27 0:31 / /tmp rw shared:1 - tmpfs tmpfs rw\n";

    #[test]
    fn finds_mount_of_path() {
        let mount =
            |device, path: &str| Storage::from_mountinfo(MOUNTS, device, Path::new(path)).unwrap();
        let root = mount((254, 0), "/no-such-file");
        assert_eq!((root.device.as_str(), root.filesystem.as_str()), ("/dev/vda", "ext4"));
        assert_eq!(root.mount_point, Path::new("/"));
        assert_eq!(root.mount_options, "rw,relatime,discard");
        assert_eq!(root.unsuitable_reason(), None);
        assert_eq!(mount((254, 0), "/mnt/with blank/x").mount_options, "ro,rw");
        assert_eq!(
            mount((0, 31), "/tmp/x").unsuitable_reason().unwrap(),
            "lives in memory on tmpfs"
        );
        assert_eq!(Storage::from_mountinfo(MOUNTS, (1, 1), Path::new("/")), None);
        assert_eq!(root.folios(), Filesystem::Ext4);
        assert_eq!(mount((0, 31), "/tmp/x").folios(), Filesystem::BasePages);
        let journal = Storage { mount_options: "rw,data=journal".into(), ..root };
        assert_eq!(journal.folios(), Filesystem::BasePages);
    }

    #[test]
    fn finds_layers_of_overlay() {
        let overlay = "45 27 0:39 / /var/m\\040nt rw - overlay overlay \
                       rw,lowerdir=/lo\\0401:/lo2,upperdir=/up,workdir=/wk,uuid=on";
        let places = |line, number, path: &str| overlay_layers(line, number, Path::new(path));
        let all = places(overlay, "0:39", "/var/m nt/a/data");
        assert_eq!(all, ["/up/a/data", "/lo 1/a/data", "/lo2/a/data"].map(PathBuf::from));
        assert!(places(overlay, "0:40", "/var/m nt/a/data").is_empty());
        assert!(places(overlay, "0:39", "/var/data").is_empty());
        let added = "45 27 0:39 /sub / rw - overlay none rw,lowerdir+=/a,lowerdir+=/b";
        assert_eq!(places(added, "0:39", "/x"), ["/a/sub/x", "/b/sub/x"].map(PathBuf::from));
        assert!(MOUNTS.lines().all(|line| places(line, "254:0", "/x").is_empty()));
    }

    #[test]
    fn finds_storage_of_this_program() {
        let program = std::env::current_exe().unwrap();
        let storage = Storage::find(&program).unwrap();
        assert!(!storage.filesystem.is_empty());
        // The same by `f_type`, if that is known.
        let unseen = Storage::from_statfs(&program).unwrap();
        assert!(
            [&storage.filesystem, "unknown"].contains(&unseen.filesystem.as_str()),
            "{unseen:?}"
        );
    }
}
