//! `byname site user`: users of a site, their groups and keys.

use super::account::SiteArgs;
use super::loans;
use super::session::SiteSession;
use super::whoami;
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use byname_catalog::{AddKey, Command, KeyHolder};
use byname_io::Clock;
use byname_keychain::Keychain;
use byname_packet::Name;
use byname_profile::Paths;
use byname_security::cert::Certificate;
use byname_security::foreign;
use byname_security::key::Algorithm;
use byname_site::{Identity, SiteName};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Users of a site, their groups and keys.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: UserCommand,
}

#[derive(Debug, clap::Subcommand)]
enum UserCommand {
    /// List users.
    Ls {
        #[command(flatten)]
        site: SiteArgs,
        /// One JSON object per user.
        #[arg(long)]
        json: bool,
    },
    Whoami(whoami::Args),
    /// Add a user, or change one.
    Add {
        /// The user's name.
        name: String,
        /// A group; the first is that of new files (repeatable). Default: a user's groups stay,
        /// and a new one is in `users`.
        #[arg(long, value_name = "GROUP")]
        group: Vec<String>,
        /// An operator of the site: modes do not bind him.
        #[arg(long)]
        operator: bool,
        /// Certificate that `site join` or `site user key` printed for the user.
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
        #[command(flatten)]
        site: SiteArgs,
    },
    /// Print one's own certificate for a site, making the key if there is none.
    Key {
        #[command(flatten)]
        site: SiteArgs,
    },
    #[command(flatten)]
    Loan(loans::LoanCommand),
    /// Set the groups of a user.
    Group {
        /// The user's name.
        name: String,
        /// The groups; the first is that of new files.
        #[arg(required = true)]
        groups: Vec<String>,
        #[command(flatten)]
        site: SiteArgs,
    },
    /// Take a key from its user: what it signs counts no more. Without --yes this says which.
    Revoke {
        /// Certificate of the key, as `site user key` printed it.
        key: PathBuf,
        /// Do it.
        #[arg(long, short)]
        yes: bool,
        #[command(flatten)]
        site: SiteArgs,
    },
}

pub(super) fn run(args: &Args, paths: &Paths) -> Outcome {
    match &args.command {
        UserCommand::Ls { site, json } => list(&mut site.session(paths)?, *json),
        UserCommand::Whoami(args) => whoami::run(args, paths),
        UserCommand::Add { name, group, operator, key, site } => {
            let mut session = site.session(paths)?;
            let certificate = key.as_deref().map(read_certificate).transpose()?;
            if let Some(certificate) = &certificate {
                check_owner(&session, certificate, &Identity::User(name.clone()))?;
            }
            set(&mut session, name, group, operator.then_some(true))?;
            match certificate {
                Some(certificate) => {
                    add_key(&mut session, KeyHolder::User(name.clone()), &certificate)
                }
                None => Ok(()),
            }
        }
        UserCommand::Key { site } => own_key(site, paths),
        UserCommand::Loan(command) => loans::run(command, paths),
        UserCommand::Group { name, groups, site } => {
            let mut session = site.session(paths)?;
            // A name that was mistyped makes none.
            if !is_user(&mut session, name)? {
                let message = format!("the site has no user {name}");
                return Err(Failure::new(Code::NotFound, message)
                    .hint(format!("byname site user add {name}")));
            }
            set(&mut session, name, groups, None)
        }
        UserCommand::Revoke { key, yes, site } => {
            let certificate = read_certificate(key)?;
            let shown = output::name(certificate.key_name());
            if !yes {
                let text = format!("{shown}: the key was not taken from its user");
                return Err(Failure::usage(text).hint("say --yes"));
            }
            let name = certificate.key_name().value().to_vec();
            Ok(site.session(paths)?.run(Command::RemoveKey { name }).map(drop)?)
        }
    }
}

fn list(session: &mut SiteSession, json: bool) -> Outcome {
    show(session.query("users")?, json)
}

pub(super) fn show(users: Vec<Value>, json: bool) -> Outcome {
    if json {
        users.into_iter().for_each(output::json_line);
        return Ok(());
    }
    let row = |user: &Value| {
        let role = if user["operator"] == true { "operator" } else { "" };
        vec![text(&user["user"]), groups_of(user).join(","), role.to_owned()]
    };
    output::table(&["USER", "GROUPS", ""], &users.iter().map(row).collect::<Vec<_>>());
    Ok(())
}

/// Sets a user; what is not given stays as it is.
fn set(
    session: &mut SiteSession,
    name: &str,
    groups: &[String],
    is_operator: Option<bool>,
) -> Outcome {
    let users = session.query("users")?;
    let old = users.iter().find(|user| user["user"] == name);
    let old_groups = old.map_or_else(|| vec!["users".to_owned()], groups_of);
    let groups = if groups.is_empty() { old_groups } else { groups.to_vec() };
    let was_operator = old.is_some_and(|user| user["operator"] == true);
    let is_operator = is_operator.unwrap_or(was_operator);
    let command = Command::SetUser { user: name.to_owned(), groups, is_operator };
    Ok(session.run(command).map(drop)?)
}

/// Whether the site has such a user.
pub(super) fn is_user(session: &mut SiteSession, name: &str) -> Outcome<bool> {
    Ok(session.query("users")?.iter().any(|user| user["user"] == name))
}

fn own_key(args: &SiteArgs, paths: &Paths) -> Outcome {
    let keychain = Keychain::open(&paths.keys)?;
    let site = args.site(paths)?;
    let user = args.user(&site, &keychain)?;
    print_key(&site, &user, paths)
}

/// Prints the certificate of a user's key, which is made if there is none.
pub(super) fn print_key(site: &SiteName, user: &str, paths: &Paths) -> Outcome {
    let adding = format!("byname site user add {user} --key FILE");
    print_key_of(&site.user(user), &adding, paths)
}

/// Prints the certificate of the key of a namespace, which is made if there is none.
pub(super) fn print_key_of(namespace: &Name, adding: &str, paths: &Paths) -> Outcome {
    let keychain = Keychain::open(&paths.keys)?;
    let now_ns = Clock::new().unix_ns();
    let identity = keychain.create_identity(namespace.view(), Algorithm::default(), now_ns)?;
    let certificate = keychain.export_certificate(identity.certificate.key_id())?;
    output::err_line(&format!("an operator adds it with: {adding}"));
    output::out_line(certificate.trim_end());
    Ok(())
}

/// Lets a key sign for a user, door or disk.
pub(super) fn add_key(
    session: &mut SiteSession,
    holder: KeyHolder,
    certificate: &Certificate,
) -> Outcome {
    let add = AddKey {
        holder,
        name: certificate.key_name().value().to_vec(),
        certificate: certificate.wire().to_vec(),
    };
    Ok(session.run(Command::AddKey(add)).map(drop)?)
}

/// The certificate in a file.
pub(super) fn read_certificate(file: &Path) -> Outcome<Certificate> {
    let octets = std::fs::read(file).map_err(|error| Failure::disk(file, error))?;
    let items = foreign::read(&octets).map_err(|error| Failure::disk(file, error))?;
    let certificate = items.into_iter().find_map(|item| match item {
        foreign::Item::Certificate(certificate) => Some(certificate),
        _ => None,
    });
    let none =
        || Failure::new(Code::LocalDisk, format!("{}: no certificate in it", file.display()));
    certificate.ok_or_else(none)
}

/// The name in a certificate has to be that of whoever shall have the key.
pub(super) fn check_owner(
    session: &SiteSession,
    certificate: &Certificate,
    owner: &Identity,
) -> Outcome {
    if session.site().identity(certificate.identity()).as_ref() == Some(owner) {
        return Ok(());
    }
    let namespace = output::name(certificate.identity());
    let owner = match owner {
        Identity::Door(door) => format!("the door {door}"),
        Identity::User(user) => user.clone(),
        Identity::Site | Identity::Disk(_) | Identity::Writer(_) => "this".to_owned(),
    };
    Err(Failure::usage(format!("the key is for {namespace}, not for {owner} of this site")))
}

fn groups_of(user: &Value) -> Vec<String> {
    let groups = user["groups"].as_array();
    groups.map_or_else(Vec::new, |groups| groups.iter().map(text).collect())
}

fn text(value: &Value) -> String {
    output::one_line(value.as_str().unwrap_or_default())
}
