//! Filesystems whose files have no disk behind them.

/// The `f_type` of statfs(2) of tmpfs, ramfs and hugetlbfs (`linux/magic.h`). Nothing is read ahead
/// there, so that their files are neither governed nor recorded.
pub const IN_MEMORY: [i64; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];
