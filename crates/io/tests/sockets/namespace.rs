//! Network namespaces of a test: two machines and a cable, as far as the kernel is concerned.

use std::fs::File;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::*;

/// Two namespaces, `10.9.0.1` and `10.9.0.2` (and `fd09::1`, `fd09::2`), and a veth pair between
/// them that is called `wire` in both. Gone when dropped.
pub(crate) struct Cable {
    names: [String; 2],
}

impl Cable {
    /// `None`, and a note, where this user may make no namespaces.
    pub(crate) fn new(test: &str, mtu_bytes: usize) -> Option<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = |end| format!("byname-io-{}-{number}{end}", std::process::id());
        let cable = Cable { names: [name('a'), name('b')] };
        let [near, far] = &cable.names;
        if !ip(&["netns", "add", near]) || !ip(&["netns", "add", far]) {
            // Past the runner's capture, so that `make test` counts it.
            let _ = writeln!(std::io::stderr(), "SKIPPED: {test}: no network namespaces here");
            return None;
        }
        let veth = ["link", "add", "wire", "netns", near, "type", "veth"];
        let peer = ["peer", "name", "wire", "netns", far];
        assert!(ip(&[&veth[..], &peer].concat()), "a veth pair");
        for (end, host) in [(near, "1"), (far, "2")] {
            let (v4, v6) = (format!("10.9.0.{host}/24"), format!("fd09::{host}/64"));
            let inside = |words: &[&str]| assert!(ip(&[&["-n", end][..], words].concat()));
            // The kernel's own link-local address would be of no use for its first second.
            inside(&["link", "set", "wire", "addrgenmode", "none"]);
            inside(&["addr", "add", &v4, "dev", "wire"]);
            for v6 in [&v6, &format!("fe80::{host}/64")] {
                inside(&["addr", "add", v6, "dev", "wire", "nodad"]);
            }
            inside(&["link", "set", "wire", "mtu", &mtu_bytes.to_string(), "up"]);
            inside(&["link", "set", "lo", "up"]);
        }
        cable.await_links();
        Some(cable)
    }

    /// IPv6 takes notice of a link that is up only after a while.
    fn await_links(&self) {
        let is_ready = |name: &String| {
            let arguments = ["-n", name, "-6", "route", "show", "table", "local", "dev", "wire"];
            let routes = Command::new("ip").args(arguments).output().unwrap().stdout;
            String::from_utf8_lossy(&routes).contains("multicast ff00::/8")
        };
        let deadline = Instant::now() + PATIENCE;
        while has_ipv6("await_links") && !self.names.iter().all(is_ready) {
            assert!(Instant::now() < deadline, "the link does not come up");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Result of `make` in the namespace of one end; sockets stay there.
    pub(crate) fn at<T: Send>(&self, end: usize, make: impl FnOnce() -> T + Send) -> T {
        let file = File::open(format!("/run/netns/{}", self.names[end])).unwrap();
        std::thread::scope(|scope| {
            let enter = || {
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
                make()
            };
            scope.spawn(enter).join().unwrap()
        })
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for name in &self.names {
            ip(&["netns", "del", name]);
        }
    }
}

fn ip(arguments: &[&str]) -> bool {
    let status = Command::new("ip").args(arguments).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
