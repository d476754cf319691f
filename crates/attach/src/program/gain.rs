//! What a program gains that its caller does not have: nobody else may follow it then.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{StatVfsMountFlags, getxattr, statvfs};
use rustix::process::{getgid, getuid};
use rustix::thread::no_new_privs;

/// Bits of a mode.
const SET_USER_ID: u32 = 0o4000;
const SET_GROUP_ID: u32 = 0o2000;
const GROUP_EXECUTES: u32 = 0o010;

/// What the program at `path` gains that its caller does not have, as the end of a sentence that
/// names it; `None` where that is nothing.
pub fn gain(path: &Path) -> Option<&'static str> {
    fs::metadata(path).ok().and_then(|data| privilege(path, &data))
}

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
    if has_capabilities && !getuid().is_root() {
        Some("runs with capabilities of its file")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_usual_program_gains_nothing() {
        assert_eq!(gain(Path::new("/proc/self/exe")), None);
        assert_eq!(gain(Path::new("/nowhere")), None);
    }

    #[test]
    fn own_set_user_id_programs_gain_nothing() {
        let scratch = tempfile::tempdir().unwrap();
        let own = scratch.path().join("own");
        fs::copy("/proc/self/exe", &own).unwrap();
        fs::set_permissions(&own, fs::Permissions::from_mode(0o4755)).unwrap();
        assert_eq!(gain(&own), None);
    }
}
