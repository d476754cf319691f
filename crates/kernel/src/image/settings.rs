//! What the host tells the guest: a JSON file at the root of the initramfs.

use serde_json::{Value, json};

use super::DiskFilesystem;

/// Path of the file. Its presence tells init that it is a guest of this program.
pub(super) const SETTINGS_PATH: &str = "/filemap-guest.json";

/// Orders for the guest.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct GuestSettings {
    /// Where on the disk between host and guest answers begin. `None`: there is no disk; only show
    /// that the machine runs.
    pub(super) answers_at: Option<u64>,
    /// Names of the modules to load, in this order.
    pub(super) modules: Vec<String>,
    /// Readahead of the scratch disk.
    pub(super) read_ahead_kb: Option<u64>,
    /// What is on the scratch disk.
    pub(super) filesystem: DiskFilesystem,
}

impl GuestSettings {
    pub(super) fn to_json(&self) -> String {
        json!({
            "answers_at": self.answers_at,
            "modules": self.modules,
            "read_ahead_kb": self.read_ahead_kb,
            "filesystem": self.filesystem.name(),
        })
        .to_string()
    }

    pub(super) fn from_json(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let modules = value["modules"].as_array()?.iter();
        Some(Self {
            answers_at: value["answers_at"].as_u64(),
            modules: modules.map(|name| name.as_str().map(str::to_owned)).collect::<Option<_>>()?,
            read_ahead_kb: value["read_ahead_kb"].as_u64(),
            filesystem: DiskFilesystem::from_name(value["filesystem"].as_str()?)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let settings = GuestSettings {
            answers_at: Some(8192),
            modules: vec!["virtio_blk".into()],
            read_ahead_kb: Some(8192),
            filesystem: DiskFilesystem::Xfs { block_bytes: 4096 },
        };
        assert_eq!(GuestSettings::from_json(&settings.to_json()), Some(settings.clone()));
        let probe = GuestSettings { answers_at: None, read_ahead_kb: None, ..settings };
        assert_eq!(GuestSettings::from_json(&probe.to_json()), Some(probe));
        assert_eq!(GuestSettings::from_json("{}"), None);
    }
}
