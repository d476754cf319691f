//! The processes of a cgroup.

use crate::Error;

/// The processes of a cgroup and of those within it. It is named by its path, by its path below
/// `/sys/fs/cgroup`, or as a systemd unit, `x.service`.
pub fn processes(_name: &str) -> Result<Vec<u32>, Error> {
    todo!()
}
