//! One cache for a machine: a mirror of it is a holder for the programs of all users, who trust
//! the publisher alone.

use crate::harness::{Home, Up, free_port, noise, wait_for, write};
use crate::scene::{Scene, is_root, sh, try_sh};
use std::process::Output;

/// A user with a home of their own.
struct User {
    name: &'static str,
    home: Home,
}

impl User {
    fn new(name: &'static str) -> Self {
        let home = Home::new();
        sh(&format!("chmod 755 \"$1\" && chown -R {name} \"$1\""), &[home.path()]);
        sh(&format!("cp {} \"$1/byname\"", env!("CARGO_BIN_EXE_byname")), &[home.path()]);
        User { name, home }
    }

    fn cat(&self, up: &Up, holder: &str, key: &str) -> Output {
        let publisher = up.uri();
        let line = format!(
            "cd \"$1\" && BYNAME_HOME=\"$1/home\" setpriv --reuid={} --clear-groups ./byname cat \
             'byname:/lab/tree/large,via={publisher},key={key}' --connect {holder} \
             --connect {publisher}",
            self.name
        );
        try_sh(&line, &[self.home.path()])
    }
}

#[test]
fn programs_of_several_users_read_the_cache_of_a_machine() {
    if !is_root("programs_of_several_users_read_the_cache_of_a_machine") {
        return;
    }
    let content = noise(3_000_000, 4);
    let mut scene = Scene::unmounted(&[], |source| write(&source.join("large"), &content));
    scene.reader.run(&["cache", "warm", &scene.up.link]).ok();
    let holder = format!("tcp://127.0.0.1:{}", free_port());
    let tree = scene.reader.path().join("home/cache/tree/lab");
    let system = Home::new();
    let args = ["serve", "--mirror", tree.to_str().unwrap(), "--name", "/lab", "--listen", &holder];
    let mirror = system.start(&args, "byname:/");
    scene.up.daemon.kill();
    let key = scene.up.link.split("key=").nth(1).unwrap().to_owned();
    let users = [User::new("nobody"), User::new("daemon")];
    for user in &users {
        let is_read = || {
            let output = user.cat(&scene.up, &holder, &key);
            output.status.success() && output.stdout == content
        };
        wait_for(user.name, is_read, || mirror.log());
    }
    // Whoever trusts another key takes nothing from it.
    let other = format!("SHA256:{}", "A".repeat(43));
    let refused = users[0].cat(&scene.up, &holder, &other);
    assert_eq!((refused.status.code(), refused.stdout), (Some(6), Vec::new()));
}
