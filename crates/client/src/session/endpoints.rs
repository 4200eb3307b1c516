//! Where to look for a forwarder when nobody says: as other NDN software does.
//!
//! `NDN_CLIENT_TRANSPORT` decides alone; otherwise `transport=` in the first client.conf that has
//! it; otherwise the socket paths that NFD and other forwarders use.

use std::path::{Path, PathBuf};

use byname_io::Endpoint;

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

/// The endpoints to try, in this order. A text that is no URI is skipped: it may be meant for
/// software with other transports.
pub fn default_endpoints() -> Vec<Endpoint> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let variable = std::env::var(TRANSPORT_VARIABLE).ok();
    endpoints(variable.as_deref(), &config_paths(home.as_deref()))
}

/// As [`default_endpoints`], with `own` before the usual sockets.
pub fn default_endpoints_with(own: &Path) -> Vec<Endpoint> {
    let mut found = default_endpoints();
    if found.len() == SOCKETS.len() {
        found.insert(0, Endpoint::Unix(own.to_owned()));
    }
    found
}

fn config_paths(home: Option<&Path>) -> Vec<PathBuf> {
    let own = home.map(|home| home.join(".ndn/client.conf"));
    let shared = ["/usr/local/etc/ndn/client.conf", "/etc/ndn/client.conf"].map(PathBuf::from);
    own.into_iter().chain(shared).collect()
}

fn endpoints(variable: Option<&str>, configs: &[PathBuf]) -> Vec<Endpoint> {
    if let Some(endpoint) = variable.and_then(|uri| uri.trim().parse().ok()) {
        return vec![endpoint];
    }
    if let Some(endpoint) = configs.iter().find_map(|path| configured(path)) {
        return vec![endpoint];
    }
    SOCKETS.iter().map(|path| Endpoint::Unix(PathBuf::from(path))).collect()
}

fn configured(path: &Path) -> Option<Endpoint> {
    let text = std::fs::read(path).ok().filter(|text| text.len() <= CONFIG_BYTES_MAX)?;
    let text = String::from_utf8_lossy(&text);
    let value = text.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "transport").then(|| value.trim().to_owned())
    })?;
    value.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_wins_over_the_file_and_the_file_over_the_usual_sockets() {
        let directory = tempfile::tempdir().expect("a directory");
        let config = directory.path().join("client.conf");
        std::fs::write(&config, "; comment\npib=x\n transport = tcp://router:7000\n")
            .expect("disk");
        let missing = directory.path().join("missing.conf");
        let configs = [missing.clone(), config];
        let shown =
            |found: Vec<Endpoint>| found.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(shown(endpoints(Some("unix:///a.sock"), &configs)), ["unix:///a.sock"]);
        assert_eq!(shown(endpoints(None, &configs)), ["tcp://router:7000"]);
        assert_eq!(shown(endpoints(Some("udp4+dev://x"), &configs)), ["tcp://router:7000"]);
        let usual = shown(endpoints(None, &[missing]));
        assert_eq!(usual[0], "unix:///run/nfd/nfd.sock");
        assert_eq!(usual.len(), SOCKETS.len());
    }
}
