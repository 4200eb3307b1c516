//! Places of a forwarder when neither a caller nor a link names one.
//!
//! `NDN_CLIENT_TRANSPORT` decides alone, as for other NDN software; otherwise `transport=` in the
//! first client.conf that has it; otherwise byname's own socket and the paths that NFD and other
//! forwarders use.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use byname_io::Endpoint;

use crate::environment::Environment;
use crate::paths::{Paths, PathsError};

/// The variable that names the forwarder for all NDN software of a user.
pub const TRANSPORT_VARIABLE: &str = "NDN_CLIENT_TRANSPORT";

const SOCKETS: [&str; 5] = [
    "/run/nfd/nfd.sock",
    "/var/run/nfd/nfd.sock",
    "/run/nfd.sock",
    "/var/run/nfd.sock",
    "/run/ndn/nfd.sock",
];
const CONFIG_BYTES_MAX: usize = 64 << 10;

/// The endpoints to try, in this order. With `is_bulk` a forwarder of this user or of root is
/// asked by shared memory first, which is worth its setting up when much is read.
///
/// A text that is no URI is skipped: it may be meant for software with other transports.
///
/// # Errors
/// [`PathsError`] if byname's own socket would be tried and lies where others could have put it.
pub fn usual(
    environment: &Environment,
    paths: &Paths,
    is_bulk: bool,
) -> Result<Vec<Endpoint>, PathsError> {
    if let Some(endpoint) = configured(environment) {
        return Ok(vec![endpoint]);
    }
    let memory = paths.memory_socket()?;
    let by_memory = (is_bulk && is_trusted_socket(&memory)).then_some(Endpoint::Memif {
        path: memory,
        id: 0,
        role: None,
    });
    let own = Endpoint::Unix(paths.socket()?);
    let others = SOCKETS.iter().map(|path| Endpoint::Unix(PathBuf::from(path)));
    Ok(by_memory.into_iter().chain([own]).chain(others).collect())
}

/// The endpoint that the conventions of NDN software name.
fn configured(environment: &Environment) -> Option<Endpoint> {
    let variable = environment.value(TRANSPORT_VARIABLE).and_then(|uri| uri.to_str());
    let home = environment.path("HOME");
    variable
        .and_then(|uri| uri.trim().parse().ok())
        .or_else(|| config_paths(home.as_deref()).iter().find_map(|path| from_file(path)))
}

fn config_paths(home: Option<&Path>) -> Vec<PathBuf> {
    let own = home.map(|home| home.join(".ndn/client.conf"));
    let shared = ["/usr/local/etc/ndn/client.conf", "/etc/ndn/client.conf"].map(PathBuf::from);
    own.into_iter().chain(shared).collect()
}

fn from_file(path: &Path) -> Option<Endpoint> {
    let text = std::fs::read(path).ok().filter(|text| text.len() <= CONFIG_BYTES_MAX)?;
    let text = String::from_utf8_lossy(&text);
    let value = text.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "transport").then(|| value.trim().to_owned())
    })?;
    value.parse().ok()
}

/// True if a socket is there that others cannot have made.
fn is_trusted_socket(path: &Path) -> bool {
    let own_uid = rustix::process::geteuid().as_raw();
    std::fs::symlink_metadata(path).is_ok_and(|found| {
        found.file_type().is_socket() && (found.uid() == own_uid || found.uid() == 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(home: &Path, variables: &[(&str, &str)], is_bulk: bool) -> Vec<String> {
        let home_text = home.to_str().unwrap();
        let variables = variables.iter().copied().chain([("HOME", home_text)]);
        let found = usual(&Environment::of(variables), &Paths::below(home), is_bulk).unwrap();
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_variable_wins_over_the_file_and_the_file_over_the_usual_sockets() {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path();
        let usual = shown(home, &[], false);
        assert_eq!(usual[0], format!("unix://{}/run/nfd.sock", home.display()));
        assert_eq!(usual[1], "unix:///run/nfd/nfd.sock");
        assert_eq!(usual.len(), 1 + SOCKETS.len());
        std::fs::create_dir(home.join(".ndn")).unwrap();
        let text = "; comment\npib=x\n transport = tcp://router:7000\n";
        std::fs::write(home.join(".ndn/client.conf"), text).unwrap();
        let variable = |uri| shown(home, &[(TRANSPORT_VARIABLE, uri)], true);
        assert_eq!(variable("unix:///a.sock"), ["unix:///a.sock"]);
        assert_eq!(variable("udp4+dev://x"), ["tcp://router:7000"]);
        assert_eq!(shown(home, &[], false), ["tcp://router:7000"]);
    }

    #[test]
    fn shared_memory_comes_first_for_bulk_if_its_socket_is_the_users() {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path();
        std::fs::create_dir(home.join("run")).unwrap();
        let memory = home.join("run/memif.sock");
        std::fs::write(&memory, b"no socket").unwrap();
        assert!(shown(home, &[], true)[0].starts_with("unix://"));
        std::fs::remove_file(&memory).unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(&memory).unwrap();
        assert!(shown(home, &[], true)[0].starts_with("memif://"));
        assert!(shown(home, &[], false)[0].starts_with("unix://"));
    }
}
