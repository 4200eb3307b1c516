//! `byname site door`: programs that act for users whom they have authenticated.

use super::account::SiteArgs;
use super::session::SiteSession;
use super::user::{add_key, check_owner, print_key_of, read_certificate};
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use byname_catalog::{Command, Grant, KeyHolder, SetDoor};
use byname_profile::Paths;
use byname_site::Identity;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Doors of a site: programs (an XRootD server) that act for users whom they have authenticated.
///
/// A door has no rights of its own. What it may do for a user is what the user may do; for whom it
/// may speak is asked at each command.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname site door key xrd1 > xrd1.cert           on the machine of the door
  byname site door add xrd1 --key xrd1.cert --may-speak-for-group physics
  byname site door ls
  byname mkdir /lab/a --door xrd1 --user anna     tries it, on the machine of the door")]
pub(super) struct Args {
    #[command(subcommand)]
    command: DoorCommand,
}

#[derive(Debug, clap::Subcommand)]
enum DoorCommand {
    /// List doors, and for whom they may speak.
    Ls {
        #[command(flatten)]
        site: SiteArgs,
        /// One JSON object per door.
        #[arg(long)]
        json: bool,
    },
    /// Add a door, or say anew for whom one may speak.
    Add {
        /// The door's name.
        name: String,
        /// Certificate that `site door key` printed for the door.
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
        #[command(flatten)]
        grant: GrantArgs,
        #[command(flatten)]
        site: SiteArgs,
    },
    /// Print the certificate of a door whose key is here, making the key if there is none.
    Key {
        /// The door's name.
        name: String,
        #[command(flatten)]
        site: SiteArgs,
    },
    /// Remove a door: from its next command on it speaks for nobody. Without --yes this says which.
    Rm {
        /// The door's name.
        name: String,
        /// Do it.
        #[arg(long, short)]
        yes: bool,
        #[command(flatten)]
        site: SiteArgs,
    },
}

/// For whom a door may speak. What is given takes the place of all that was.
#[derive(Debug, clap::Args)]
struct GrantArgs {
    /// All users but operators.
    #[arg(long)]
    all: bool,
    /// A user, be it an operator (repeatable).
    #[arg(long, value_name = "USER")]
    may_speak_for: Vec<String>,
    /// Users that the site has in this group, but for operators (repeatable).
    #[arg(long, value_name = "GROUP")]
    may_speak_for_group: Vec<String>,
    /// A group that the door may say its users are in, though the site does not (repeatable).
    #[arg(long, value_name = "GROUP")]
    may_say_group: Vec<String>,
    /// Nobody any more.
    #[arg(long, conflicts_with_all = ["all", "may_speak_for", "may_speak_for_group",
        "may_say_group"])]
    nobody: bool,
}

impl GrantArgs {
    /// The grant; none if nothing is said about it.
    fn grant(&self) -> Option<Grant> {
        let Self { all, may_speak_for, may_speak_for_group, may_say_group, nobody } = self;
        let grant = Grant {
            is_for_all: *all,
            users: may_speak_for.clone(),
            groups: may_speak_for_group.clone(),
            asserted: may_say_group.clone(),
        };
        (*nobody || grant != Grant::default()).then_some(grant)
    }
}

pub(super) fn run(args: &Args, paths: &Paths) -> Outcome {
    match &args.command {
        DoorCommand::Ls { site, json } => list(&mut site.session(paths)?, *json),
        DoorCommand::Add { name, key, grant, site } => {
            let mut session = site.session(paths)?;
            let certificate = key.as_deref().map(read_certificate).transpose()?;
            if let Some(certificate) = &certificate {
                check_owner(&session, certificate, &Identity::Door(name.clone()))?;
            }
            let is_known = doors(&mut session)?.iter().any(|door| door["door"] == name.as_str());
            let grant = grant.grant();
            if grant.is_none() && !is_known {
                output::err_line(&format!(
                    "the door {name} may speak for nobody yet: --may-speak-for-group GROUP, \
                     --may-speak-for USER or --all"
                ));
            }
            if grant.is_some() || !is_known {
                let grant = grant.unwrap_or_default();
                session.run(Command::SetDoor(SetDoor { door: name.clone(), grant }))?;
            }
            match certificate {
                Some(certificate) => {
                    add_key(&mut session, KeyHolder::Door(name.clone()), &certificate)
                }
                None => Ok(()),
            }
        }
        DoorCommand::Key { name, site } => {
            let adding = format!("byname site door add {name} --key FILE --may-speak-for-group …");
            print_key_of(&site.site(paths)?.door(name), &adding, paths)
        }
        DoorCommand::Rm { name, yes, site } => {
            let mut session = site.session(paths)?;
            if !doors(&mut session)?.iter().any(|door| door["door"] == name.as_str()) {
                return Err(Failure::new(Code::NotFound, format!("the site has no door {name}"))
                    .hint("byname site door ls"));
            }
            if !yes {
                let text = format!("the door {name} was not removed");
                return Err(Failure::usage(text).hint("say --yes"));
            }
            Ok(session.run(Command::RemoveDoor { door: name.clone() }).map(drop)?)
        }
    }
}

/// The doors, each with all of its grant.
fn doors(session: &mut SiteSession) -> Outcome<Vec<Value>> {
    let mut doors: Vec<Value> = Vec::new();
    for line in session.query("doors")? {
        if let Some(all) = line.get("all") {
            let (users, groups, asserts) = (json!([]), json!([]), json!([]));
            doors.push(json!({
                "door": line["door"], "all": all,
                "users": users, "groups": groups, "asserts": asserts,
            }));
            continue;
        }
        let Some(door) = doors.last_mut() else { continue };
        for (key, list) in [("user", "users"), ("group", "groups"), ("asserts", "asserts")] {
            if let (Some(name), Some(names)) = (line.get(key), door[list].as_array_mut()) {
                names.push(name.clone());
            }
        }
    }
    Ok(doors)
}

fn list(session: &mut SiteSession, json: bool) -> Outcome {
    let doors = doors(session)?;
    if json {
        doors.into_iter().for_each(output::json_line);
        return Ok(());
    }
    let row = |door: &Value| {
        let names = |key: &str, sign: &str| -> Vec<String> {
            let names = door[key].as_array().map(Vec::as_slice).unwrap_or_default();
            let shown = |name: &Value| output::one_line(name.as_str().unwrap_or_default());
            names.iter().map(|name| format!("{sign}{}", shown(name))).collect()
        };
        let mut whom = if door["all"] == true { vec!["all users".to_owned()] } else { Vec::new() };
        whom.extend(names("users", ""));
        whom.extend(names("groups", "group "));
        if whom.is_empty() {
            whom.push("nobody".to_owned());
        }
        let name = output::one_line(door["door"].as_str().unwrap_or_default());
        vec![name, whom.join(", "), names("asserts", "").join(", ")]
    };
    let rows: Vec<_> = doors.iter().map(row).collect();
    output::table(&["DOOR", "SPEAKS FOR", "MAY SAY GROUPS"], &rows);
    Ok(())
}
