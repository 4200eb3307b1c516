//! Telling systemd how the service stands, when there is one that wants to know.
//!
//! A datagram to the socket that `NOTIFY_SOCKET` names, as sd_notify(3) describes. Nothing is sent
//! when the variable is absent, and a failure to send is only logged.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The service can be reached.
pub(crate) fn ready(status: &str) {
    notify(&format!("READY=1\nSTATUS={}", one_line(status)));
}

/// The service is not ready yet, for this reason.
pub(crate) fn preparing(status: &str) {
    notify(&format!("STATUS={}", one_line(status)));
}

/// The configuration is read anew; [`ready`] follows.
pub(crate) fn reloading(now_ns: u64) {
    notify(&format!("RELOADING=1\nMONOTONIC_USEC={}", now_ns / 1000));
}

/// The service ends.
pub(crate) fn stopping() {
    notify("STOPPING=1");
}

fn notify(message: &str) {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let path = path.as_encoded_bytes();
    let address = match path.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(std::path::Path::new(&*String::from_utf8_lossy(path))),
    };
    let sent = address
        .and_then(|address| UnixDatagram::unbound()?.send_to_addr(message.as_bytes(), &address));
    if let Err(error) = sent {
        tracing::debug!(%error, "the service manager was not notified");
    }
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}
