//! Access control lists of a site, by commands of its users.

use crate::sites::Site;
use crate::writing::{User, site_with_directory};

fn acl_of(user: &User<'_>, name: &str) -> serde_json::Value {
    let shown = user.run(&["getfacl", name, "--json"]).ok().stdout();
    serde_json::from_str(&shown).unwrap()
}

/// A directory of which one half is shut to one user, by name and by group, and the other is not.
#[test]
fn a_list_denies_half_a_tree() {
    let site = site_with_directory();
    let anna = User::new(&site, "anna", "physics");
    let bert = User::new(&site, "bert", "physics");
    let carl = User::new(&site, "carl", "cms");
    anna.run(&["mkdir", "-p", "/lab/physics/t/open/x", "/lab/physics/t/shut/x"]).ok();
    anna.run(&["chmod", "-R", "777", "/lab/physics/t"]).ok();
    anna.run(&["setfacl", "-R", "-m", "u:bert:-,g:cms:rX", "/lab/physics/t/shut"]).ok();
    let denied = "the modes do not allow it";
    for (user, name, shut) in [(&anna, "anna", 0), (&bert, "bert", 7), (&carl, "carl", 7)] {
        let words = if shut == 0 { "" } else { denied };
        for verb in ["mkdir", "touch"] {
            let make = |half: &str| format!("/lab/physics/t/{half}/x/{name}-{verb}");
            user.run(&[verb, &make("open")]).ok();
            user.run(&[verb, &make("shut")]).fails_with(shut, words);
        }
    }
    // Bert may not even look at the lists there; Carl may, by that of his group.
    bert.run(&["getfacl", "/lab/physics/t/shut/x"]).fails_with(7, denied);
    assert_eq!(
        acl_of(&carl, "/lab/physics/t/shut/x")["access"],
        "u::rwx,u:bert:---,g::rwx,g:cms:r-x,m::rwx,o::rwx"
    );
    bert.run(&["rm", "-r", "/lab/physics/t/shut"]).fails_with(7, denied);
    bert.run(&["rm", "-r", "/lab/physics/t/open"]).ok();

    // The list goes, and with it what it denied.
    bert.run(&["setfacl", "-b", "/lab/physics/t/shut"]).fails_with(7, "only the owner");
    anna.run(&["setfacl", "-R", "-b", "/lab/physics/t/shut"]).ok();
    bert.run(&["rm", "-r", "/lab/physics/t/shut"]).ok();
}

#[test]
fn lists_are_shown_changed_and_inherited_as_those_of_setfacl() {
    let site = site_with_directory();
    let anna = User::new(&site, "anna", "physics");
    let top = "/lab/physics/t";
    anna.run(&["mkdir", "-m", "750", top]).ok();
    anna.run(&["setfacl", "-m", "u:bert:rwx,d:g:cms:rwx,d:o:-", top]).ok();
    anna.run(&["chmod", "700", top]).ok();
    let shown = anna.run(&["getfacl", top]).ok().stdout();
    let wanted = "# file: /lab/physics/t\n# owner: anna\n# group: physics\nuser::rwx\n\
        user:bert:rwx  #effective:---\ngroup::r-x  #effective:---\nmask::---\nother::---\n\
        default:user::rwx\ndefault:group::r-x\ndefault:group:cms:rwx\ndefault:mask::rwx\n\
        default:other::---\n\n";
    assert_eq!(shown, wanted);
    anna.run(&["chmod", "750", top]).ok();
    anna.run(&["mkdir", "-m", "770", "/lab/physics/t/below"]).ok();
    let below = acl_of(&anna, "/lab/physics/t/below");
    assert_eq!(below["access"], "u::rwx,g::r-x,g:cms:rwx,m::rwx,o::---");
    assert_eq!(below["default"], "u::rwx,g::r-x,g:cms:rwx,m::rwx,o::---");
    let carl = User::new(&site, "carl", "cms");
    carl.run(&["mkdir", "/lab/physics/t/below/x"]).fails_with(7, "the modes do not allow it");
    anna.run(&["setfacl", "-m", "g:cms:x", top]).ok();
    carl.run(&["mkdir", "/lab/physics/t/below/x"]).ok();
    anna.run(&["setfacl", "-x", "g:cms,d:g:cms", top]).ok();
    anna.run(&["setfacl", "-k", top]).ok();
    assert_eq!(acl_of(&anna, top)["default"], serde_json::Value::Null);
    carl.run(&["mkdir", "/lab/physics/t/below/y"]).fails_with(7, "the modes do not allow it");

    anna.run(&["setfacl", top]).fails_with(2, "what?");
    anna.run(&["setfacl", "-m", "u:bert:rwz", top]).fails_with(2, "`u:bert:rwz` is no entry");
    anna.run(&["setfacl", "-m", "bert", top]).fails_with(2, "`bert` is no entry");
    anna.run(&["setfacl", "--set", "u::rwx,g::rx,o::-", top]).ok();
    assert_eq!(acl_of(&anna, top)["access"], "u::rwx,g::r-x,o::---");
}

/// What a group may do, who is in it may do: from the command after the one that says so.
#[test]
fn who_leaves_a_group_loses_its_rights_at_once() {
    let site: Site = site_with_directory();
    let anna = User::new(&site, "anna", "physics");
    anna.run(&["mkdir", "/lab/physics/a"]).ok();
    site.run(&["user", "group", "anna", "cms"]).ok();
    anna.run(&["mkdir", "/lab/physics/b"]).fails_with(7, "the modes do not allow it");
    let who = |args: &[&str]| anna.run(&[&["site", "user", "whoami"], args].concat());
    let own = who(&["--json"]).ok().stdout();
    assert!(own.contains("\"user\":\"anna\"") && own.contains("[\"cms\"]"), "{own}");
    who(&["--as", "op"]).fails_with(7, "only an operator");
    let asked = site.run(&["user", "whoami", "--as", "anna"]).ok().stdout();
    assert!(asked.contains("anna") && asked.contains("cms"), "{asked}");
    site.run(&["user", "whoami", "--as", "zoe"]).fails_with(6, "does not know this user");
    site.run(&["user", "group", "anna", "cms", "physics"]).ok();
    anna.run(&["mkdir", "/lab/physics/b"]).ok();
}
