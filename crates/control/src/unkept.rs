//! What the library says of a process whose statistics cannot be kept, to the command that collects
//! them: a datagram. It arrives where no file can be made, since the process runs as another user,
//! has reached a limit, or there is no room.

/// The most bytes of a name, which the kernel limits to 107.
const NAME_BYTES: usize = 100;

/// The name of the abstract socket at which datagrams on `directory` are received.
pub fn socket_name(directory: &[u8]) -> &[u8] {
    let from = directory.len().saturating_sub(NAME_BYTES);
    directory.get(from..).unwrap_or_default()
}

/// A process whose statistics cannot be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unkept {
    /// The process.
    pub pid: u32,
    /// The error number of what failed, `EFBIG` for a limit of file sizes.
    pub errno: u32,
}

impl Unkept {
    /// Bytes of a datagram.
    pub const BYTES: usize = 8;

    /// What is sent.
    pub fn to_bytes(self) -> [u8; Unkept::BYTES] {
        (u64::from(self.pid) << 32 | u64::from(self.errno)).to_ne_bytes()
    }

    /// What was sent as `bytes`, if that makes sense.
    pub fn of_bytes(bytes: &[u8]) -> Option<Unkept> {
        let word = u64::from_ne_bytes(bytes.try_into().ok()?);
        Some(Unkept { pid: (word >> 32) as u32, errno: word as u32 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_received() {
        let sent = Unkept { pid: 4711, errno: 13 };
        assert_eq!(Unkept::of_bytes(&sent.to_bytes()), Some(sent));
        assert_eq!(Unkept::of_bytes(b"1234567"), None);
        assert_eq!(Unkept::of_bytes(b"123456789"), None);
    }

    #[test]
    fn a_name_is_the_end_of_the_path() {
        assert_eq!(socket_name(b"/run/a"), b"/run/a");
        let long = [b'x'; 300];
        assert_eq!(socket_name(&long).len(), NAME_BYTES);
    }
}
