//! One site cache for all users of a machine: `byname cached`, and two users who read through it.

use crate::harness::{Home, noise, wait_for};
use crate::scene::{Scene, can_mount, is_root, sh, try_sh};
use std::path::{Path, PathBuf};

const SIZE: usize = 3_000_001;

/// A service of its own, as `nobody`, and two homes.
struct Machine {
    scene: Scene,
    keeper: Home,
    guest: Home,
}

impl Machine {
    fn new() -> Self {
        let scene = Scene::unmounted(&[], |source| {
            std::fs::write(source.join("shared"), noise(SIZE, 3)).unwrap();
        });
        let (keeper, guest) = (Home::new(), Home::new());
        for home in [&keeper, &guest] {
            sh("chmod 755 \"$1\" && chown -R nobody \"$1\"", &[home.path()]);
        }
        // Where nobody may run it.
        sh("cp \"$2\" \"$1/byname\" && chmod 755 \"$1/byname\"", &[guest.path(), program()]);
        Machine { scene, keeper, guest }
    }

    fn socket(&self) -> PathBuf {
        self.keeper.path().join("socket")
    }

    /// Starts the service and returns its process.
    fn serve(&self) -> u32 {
        let line = "cd \"$1\" && export BYNAME_HOME=\"$1/home\" BYNAME_CACHE_FREE_MIB=0 && \
            setpriv --reuid=nobody --regid=nogroup --clear-groups \
            \"$2/byname\" cached --socket \"$1/socket\" >log 2>&1 & echo $!";
        let pid = sh(line, &[self.keeper.path(), self.guest.path()]);
        let log = || std::fs::read_to_string(self.keeper.path().join("log")).unwrap_or_default();
        wait_for("the service", || log().contains("is served at"), log);
        pid.trim().parse().unwrap()
    }

    /// What `cat` of the shared file prints, for root or for nobody.
    fn cat(&self, is_guest: bool, more: &str) -> Vec<u8> {
        let home = if is_guest { self.guest.path() } else { self.scene.reader.path() };
        let who = match is_guest {
            true => "setpriv --reuid=nobody --regid=nogroup --clear-groups",
            false => "",
        };
        let line = format!(
            "cd \"$1\" && BYNAME_HOME=\"$1/home\" BYNAME_CACHE=1 BYNAME_CACHE_SERVICE=\"$2\" \
             {who} \"$3/byname\" cat '{}' {more}",
            self.scene.up.link_to("shared"),
        );
        let output = try_sh(&line, &[home, &self.socket(), self.guest.path()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    /// Bytes of all data files that the service has.
    fn held_bytes(&self) -> u64 {
        let line = "find \"$1\" -name data -printf '%b\\n' | \
            awk '{sum += $1 * 512} END {print sum + 0}'";
        sh(line, &[self.keeper.path()]).trim().parse().unwrap()
    }

    /// Reads until the service has all of the file.
    fn fill(&self) {
        let is_full = || {
            assert!(self.cat(true, "") == noise(SIZE, 3));
            self.held_bytes() >= SIZE as u64
        };
        wait_for("all of the file in the cache", is_full, || format!("{}", self.held_bytes()));
    }
}

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_byname"))
}

#[test]
fn two_users_share_the_machines_cache_and_outlive_it() {
    let test = "two_users_share_the_machines_cache_and_outlive_it";
    if !can_mount(test) || !is_root(test) {
        return;
    }
    let mut machine = Machine::new();
    let service = machine.serve();
    machine.fill();
    assert!(!machine.guest.path().join("home/cache").exists(), "none of the user's own");
    // Stopped, killed and started again: readers go on.
    crate::harness::signal(service, "STOP");
    assert!(machine.cat(false, "") == noise(SIZE, 3));
    crate::harness::signal(service, "KILL");
    assert!(machine.cat(false, "") == noise(SIZE, 3));
    let service = machine.serve();
    // What nobody has fetched root reads when there is no publisher any more.
    let at = machine.scene.mount.clone();
    let mut mount = machine.scene.reader.byname();
    mount.args(["mount", &machine.scene.up.link, at.to_str().unwrap()]);
    let mounted = mount.env("BYNAME_CACHE_SERVICE", machine.socket()).status().unwrap();
    assert!(mounted.success());
    let open = std::fs::File::open(at.join("shared")).unwrap();
    machine.scene.up.daemon.kill();
    let mut read = Vec::new();
    std::io::Read::read_to_end(&mut &open, &mut read).unwrap();
    assert!(read == noise(SIZE, 3));
    drop(open);
    crate::harness::signal(service, "TERM");
    let is_gone = || !machine.socket().exists();
    wait_for("the end of the service", is_gone, || machine.scene.log());
}

#[test]
fn what_is_read_insecurely_stays_out_of_the_machines_cache() {
    let test = "what_is_read_insecurely_stays_out_of_the_machines_cache";
    if !is_root(test) {
        return;
    }
    let machine = Machine::new();
    let service = machine.serve();
    assert!(machine.cat(true, "--insecure") == noise(SIZE, 3));
    assert_eq!(machine.held_bytes(), 0);
    // It is there for whoever checks a signature.
    machine.fill();
    crate::harness::signal(service, "TERM");
}
