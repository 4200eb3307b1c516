//! `byname site init`: the site's key, its first operator, its catalog.

use super::defaults::{directory, own_user};
use crate::exit::{Failure, Outcome};
use crate::output;
use crate::typed::name;
use byname_catalog::Policy;
use byname_head::{EngineAddress, Head, HeadError, NewSite};
use byname_io::Clock;
use byname_keychain::Keychain;
use byname_packet::Name;
use byname_profile::{Link, Paths};
use byname_security::key::{Algorithm, KeyId};
use byname_site::SiteName;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Group of the first operator, unless another is given.
pub(super) const GROUP: &str = "operators";

/// Make a site in a directory of this machine.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname site init /lab --engine 'postgres:host=/run/postgresql dbname=lab'

With a database several machines can have a head each; docs/site.md.")]
pub(super) struct Args {
    /// Its name, for example /lab.
    name: String,
    /// Where its catalog is kept. Default: a directory of the user's state.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Where its rows are: a file in that directory, or a PostgreSQL database, as in
    /// 'postgres:host=/run/postgresql dbname=lab'.
    #[arg(long, value_name = "ENGINE", default_value = "embedded")]
    engine: EngineAddress,
    /// Its first operator. Default: the user who runs this.
    #[arg(long, value_name = "USER")]
    operator: Option<String>,
    /// The operator's group.
    #[arg(long, value_name = "GROUP", default_value = GROUP)]
    group: String,
    /// Replicas of each file, unless a directory says otherwise.
    #[arg(long, value_name = "COUNT", default_value_t = 1,
        value_parser = clap::value_parser!(u8).range(1..=16))]
    replicas: u8,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

/// What a new site begins with.
pub(super) struct Begin<'a> {
    pub(super) operator: &'a str,
    pub(super) group: &'a str,
    pub(super) replicas: u8,
    pub(super) engine: &'a EngineAddress,
}

/// A site that was made.
pub(super) struct Made {
    pub(super) name: Name,
    pub(super) key: KeyId,
}

/// Makes a site: its keys, its catalog, and its first operator with his group.
pub(super) fn make(text: &str, dir: &Path, begin: &Begin<'_>, paths: &Paths) -> Outcome<Made> {
    let Begin { operator, group, replicas, engine } = *begin;
    let site_name = name(text)?;
    let site = SiteName::new(site_name.clone())
        .ok_or_else(|| Failure::usage(format!("{text} cannot be the name of a site")))?;
    // Before any key is made for it.
    match Head::open(dir) {
        Ok(_) => return Err(HeadError::SiteExists { directory: dir.to_owned() }.into()),
        Err(HeadError::NoSite { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    byname_head::refuse_site((dir, engine))?;
    let keychain = Keychain::open(&paths.keys)?;
    let now_ns = Clock::new().unix_ns();
    let own = keychain.create_identity(site.view(), Algorithm::default(), now_ns)?;
    let user = site.user(operator);
    let of_user = keychain.create_identity(user.view(), Algorithm::default(), now_ns)?;
    let new = NewSite {
        name: site_name.clone(),
        operator: (operator.to_owned(), group.to_owned()),
        operator_key: (
            of_user.certificate.key_name().to_name(),
            of_user.certificate.wire().to_vec(),
        ),
        policy: Policy {
            space: "main".to_owned(),
            replica_count: replicas,
            receipt_count: replicas,
        },
    };
    byname_head::init((dir, engine), &new, now_ns)?;
    Ok(Made { name: site_name, key: own.certificate.key_id() })
}

pub(super) fn run(args: &Args, paths: &Paths) -> Outcome {
    let dir = directory(Some(&args.name), args.dir.as_deref(), paths)?;
    let operator = args.operator.clone().unwrap_or_else(own_user);
    let (group, engine) = (&args.group, &args.engine);
    let begin = Begin { operator: &operator, group, replicas: args.replicas, engine };
    let Made { name: site_name, key } = make(&args.name, &dir, &begin, paths)?;
    let link = Link { key: Some(key), ..Link::of_name(site_name.clone()) }.to_string();
    let shown = output::name(site_name.view());
    if args.json {
        output::json_line(json!({
            "site": shown,
            "directory": dir.display().to_string(),
            "operator": operator,
            "key": key.to_string(),
            "link": link,
        }));
        return Ok(());
    }
    output::err_line(&format!("made the site {shown} in {}", dir.display()));
    output::err_line(&format!(
        "its operator is {operator}; both keys are in {}",
        paths.keys.display()
    ));
    let dir_flag =
        args.dir.as_ref().map_or_else(String::new, |dir| format!(" --dir {}", dir.display()));
    output::err_line(&format!("serve it with: byname catalog {shown}{dir_flag}"));
    output::out_line(&link);
    Ok(())
}
