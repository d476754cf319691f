//! Why a program cannot be governed.

use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, getxattr, statvfs};
use rustix::process::{getgid, getuid};
use rustix::thread::no_new_privs;

use super::executable::Executable;
use super::lookup::file_of;
use super::needed::needed;

/// How the names of the GNU C library's loaders begin.
const GLIBC_LOADER: &[u8] = b"ld-linux";

/// Older names of them, for this architecture among others.
const OTHER_GLIBC_LOADERS: [&[u8]; 2] = [b"ld64.so", b"ld.so"];

/// Runtimes of sanitizers that must be loaded before any other library, or take signals and memory
/// for themselves.
const SANITIZERS: [&[u8]; 4] = [b"asan", b"hwasan", b"lsan", b"tsan"];

/// Bits of a mode.
const SET_USER_ID: u32 = 0o4000;
const SET_GROUP_ID: u32 = 0o2000;
const GROUP_EXECUTES: u32 = 0o010;

/// Why the program at `path` cannot be governed, as the end of a sentence that names it; `None`
/// where nothing stands against it.
pub fn obstacle(path: &Path) -> Option<String> {
    let Executable::Script(interpreter, told) = Executable::of(path) else {
        return own_obstacle(path).map(|reason| format!("it {reason}"));
    };
    let interpreter = behind_env(&interpreter, told.as_deref()).unwrap_or(interpreter);
    let reason = own_obstacle(&interpreter)?;
    Some(format!("its interpreter '{}' {reason}", interpreter.display()))
}

/// The program that `env` as an interpreter looks for.
fn behind_env(interpreter: &Path, told: Option<&std::ffi::OsStr>) -> Option<PathBuf> {
    if interpreter.file_name()? != "env" {
        return None;
    }
    let words = told?.as_bytes().split(u8::is_ascii_whitespace);
    let is_name = |word: &&[u8]| !word.is_empty() && word[0] != b'-' && !word.contains(&b'=');
    let name = std::ffi::OsStr::from_bytes(words.into_iter().find(is_name)?);
    file_of(name, std::env::var_os("PATH").as_deref()).ok()
}

/// What the program at `path` gains that its caller does not have, as the end of a sentence that
/// names it; `None` where that is nothing.
pub fn gain(path: &Path) -> Option<&'static str> {
    fs::metadata(path).ok().and_then(|data| privilege(path, &data))
}

fn own_obstacle(path: &Path) -> Option<String> {
    if let Some(reason) = gain(path) {
        return Some(reason.to_string());
    }
    match Executable::of(path) {
        Executable::Elf { foreign: true, .. } => {
            Some("is for another kind of machine than filemap".to_string())
        }
        Executable::Elf { loader: None, .. } => Some("is statically linked".to_string()),
        Executable::Elf { loader: Some(loader), .. } if !is_glibc(&loader) => {
            Some(format!("is loaded by '{}', which is not the GNU C library's", loader.display()))
        }
        Executable::Elf { .. } => {
            let library = needed(path).into_iter().find(|name| is_sanitizer(Path::new(name)))?;
            Some(format!("needs '{}', the runtime of a sanitizer", library.display()))
        }
        _ => None,
    }
}

/// Whether `library` is the runtime of a sanitizer, as GCC or Clang name it.
fn is_sanitizer(library: &Path) -> bool {
    let name = library.file_name().map(OsStrExt::as_bytes).unwrap_or_default();
    let Some(name) = name.strip_prefix(b"lib") else { return false };
    let name = name.strip_prefix(b"clang_rt.").unwrap_or(name);
    SANITIZERS.iter().any(|own| {
        let rest = name.strip_prefix(*own);
        rest.and_then(<[u8]>::first).is_some_and(|byte| b".-_".contains(byte))
    })
}

fn is_glibc(loader: &Path) -> bool {
    let name = loader.file_name().map(OsStrExt::as_bytes).unwrap_or_default();
    name.starts_with(GLIBC_LOADER) || OTHER_GLIBC_LOADERS.iter().any(|own| name.starts_with(own))
}

/// What the program gains that its caller does not have. The kernel then keeps libraries of the
/// caller out of it.
fn privilege(path: &Path, data: &Metadata) -> Option<&'static str> {
    let mounted = statvfs(path).is_ok_and(|stat| stat.f_flag.contains(StatVfsMountFlags::NOSUID));
    if mounted || no_new_privs().unwrap_or(false) {
        return None;
    }
    if data.mode() & SET_USER_ID != 0 && data.uid() != getuid().as_raw() {
        return Some("runs with the rights of another user (set-user-ID)");
    }
    let sets_group = SET_GROUP_ID | GROUP_EXECUTES;
    if data.mode() & sets_group == sets_group && data.gid() != getgid().as_raw() {
        return Some("runs with the rights of another group (set-group-ID)");
    }
    let none: &mut [u8] = &mut [];
    let has_capabilities = getxattr(path, "security.capability", none).is_ok_and(|size| size > 0);
    match has_capabilities && !getuid().is_root() {
        true => Some("runs with capabilities of its file"),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_usual_program_can_be_governed() {
        assert_eq!(obstacle(Path::new("/proc/self/exe")), None);
        assert_eq!(obstacle(Path::new("/nowhere")), None);
        let scratch = tempfile::tempdir().unwrap();
        let script = scratch.path().join("script");
        fs::write(&script, "#!/usr/bin/env -S A=1 sh -e\n").unwrap();
        assert_eq!(obstacle(&script), None);
        let found = behind_env(Path::new("/usr/bin/env"), Some("-S A=1 sh -e".as_ref()));
        assert!(found.unwrap().ends_with("sh"));
    }

    #[test]
    fn another_library_is_named() {
        for (loader, is) in [
            ("/lib64/ld-linux-x86-64.so.2", true),
            ("/lib/ld-linux-aarch64.so.1", true),
            ("/lib/ld-musl-x86_64.so.1", false),
            ("/system/bin/linker64", false),
        ] {
            assert_eq!(is_glibc(Path::new(loader)), is, "{loader}");
        }
    }

    #[test]
    fn sanitizers_are_told_from_other_libraries() {
        for (library, is) in [
            ("libasan.so.8", true),
            ("/opt/lib/libtsan.so.2", true),
            ("libclang_rt.asan-x86_64.so", true),
            ("libubsan.so.1", false),
            ("libasanas.so.1", false),
            ("libc.so.6", false),
        ] {
            assert_eq!(is_sanitizer(Path::new(library)), is, "{library}");
        }
    }

    #[test]
    fn own_set_user_id_programs_gain_nothing() {
        let scratch = tempfile::tempdir().unwrap();
        let own = scratch.path().join("own");
        fs::copy("/proc/self/exe", &own).unwrap();
        fs::set_permissions(&own, fs::Permissions::from_mode(0o4755)).unwrap();
        assert_eq!(obstacle(&own), None);
    }
}
