//! Readiness notification of the service manager, with the protocol of sd_notify(3).

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Environment variable with the address of the notification socket.
const SOCKET_VARIABLE: &str = "NOTIFY_SOCKET";

/// Sends `READY=1` to the service manager; without effect if it passed no socket.
///
/// # Errors
/// The socket cannot be reached.
pub fn notify() -> io::Result<()> {
    std::env::var_os(SOCKET_VARIABLE).map_or(Ok(()), |name| notify_socket(&name))
}

/// Sends `READY=1` to the socket `name`: a path, or `@` and an abstract address.
fn notify_socket(name: &OsStr) -> io::Result<()> {
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    UnixDatagram::unbound()?.send_to_addr(b"READY=1", &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifies_path_and_abstract_sockets() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let name = format!("filemap-test-{}", std::process::id());
        let abstract_name = format!("@{name}");
        for (address, name) in [
            (SocketAddr::from_pathname(&path).unwrap(), path.as_os_str()),
            (SocketAddr::from_abstract_name(&name).unwrap(), OsStr::new(&abstract_name)),
        ] {
            let socket = UnixDatagram::bind_addr(&address).unwrap();
            notify_socket(name).unwrap();
            let mut heard = [0; 16];
            let length = socket.recv(&mut heard).unwrap();
            assert_eq!(heard[..length], *b"READY=1");
        }
        assert!(notify_socket(OsStr::new("/no/such/socket")).is_err());
    }
}
