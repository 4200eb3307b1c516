//! `byname trust`: whom to believe, for which names.

use super::key::key_id;
use crate::exit::{Code, Failure, Outcome};
use crate::failure::CUT_HINT;
use crate::output;
use crate::typed::name;
use byname_keychain::{Keychain, TrustStore};
use byname_packet::Name;
use byname_profile::link::may_be_cut;
use byname_profile::{Link, Paths, Remotes, SeenVersions};
use byname_security::key::KeyId;
use serde_json::json;

/// Manage whose signatures count.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname trust add byname:/lab,via=tcp://host:6363,key=SHA256:…
  byname trust list
  byname trust remove /lab
  byname trust revoke SHA256:…     never accept this key again, whoever vouches for it")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: TrustCommand,
}

#[derive(Debug, clap::Subcommand)]
enum TrustCommand {
    /// Trust the key of a link for the link's name.
    Add {
        /// The link; only its name and key count.
        link: String,
        /// Keep its addresses too, under this short name (`byname remote`).
        #[arg(long, value_name = "NAME")]
        remote: Option<String>,
    },
    /// List trusted and revoked keys.
    List {
        /// One JSON object per key.
        #[arg(long)]
        json: bool,
    },
    /// Trust no key for exactly this name any more.
    Remove {
        /// The name.
        name: String,
        /// Only this key.
        #[arg(long)]
        key: Option<String>,
    },
    /// Never accept a key again.
    Revoke {
        /// The key, SHA256:…
        key: String,
    },
    /// Take back `trust revoke`. What was trusted before has to be trusted anew.
    Unrevoke {
        /// The key, SHA256:…
        key: String,
    },
    /// Forget which version of a name was seen last, to accept an older one.
    Forget {
        /// The name.
        name: String,
    },
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let mut store = TrustStore::open(&paths.trust)?;
    match &args.command {
        TrustCommand::Add { link: text, remote } => {
            let link: Link = text.parse()?;
            let Some(key) = link.key else {
                let failure = Failure::usage("the link has no key=SHA256:… part");
                let is_cut = may_be_cut(text);
                return Err(if is_cut { failure.hint(CUT_HINT) } else { failure });
            };
            if store.revoked().any(|revoked| revoked == key) {
                return Err(revoked(key));
            }
            if let Some(remote) = remote {
                Remotes::new(&paths.remotes).add(remote, &link)?;
            }
            store.add_anchor(link.name.clone(), key)?;
            output::err_line(&format!(
                "{key} is trusted for {} and what is below",
                output::name(link.name.view())
            ));
            Ok(())
        }
        TrustCommand::List { json } => list(&store, paths, *json),
        TrustCommand::Remove { name: text, key } => {
            let key = key.as_deref().map(key_id).transpose()?;
            let removed = store.remove_anchors(name(text)?.view(), key)?;
            if removed.is_empty() {
                let message = format!("no key is trusted for exactly {text}");
                return Err(Failure::new(Code::NotFound, message).hint("byname trust list"));
            }
            for anchor in removed {
                output::err_line(&format!("{} is not trusted any more", anchor.key));
            }
            Ok(())
        }
        TrustCommand::Revoke { key } => {
            let key = key_id(key)?;
            store.revoke(key)?;
            output::err_line(&format!("{key} is refused from now on"));
            Ok(())
        }
        TrustCommand::Unrevoke { key } => {
            let key = key_id(key)?;
            if !store.unrevoke(key)? {
                let message = format!("{key} is not revoked here");
                return Err(Failure::new(Code::NotFound, message).hint("byname trust list"));
            }
            output::err_line(&format!("{key} may be trusted again: byname trust add LINK"));
            Ok(())
        }
        TrustCommand::Forget { name: text } => forget(paths, &name(text)?),
    }
}

/// What may be done about a key that was revoked here.
fn revoked(key: KeyId) -> Failure {
    let message = format!("{key} was revoked here: no signature of it counts");
    Failure::new(Code::NotVerified, message)
        .hint(format!("if that was a mistake: byname trust unrevoke {key}"))
}

fn forget(paths: &Paths, name: &Name) -> Outcome {
    if SeenVersions::new(&paths.state).forget(name)? > 0 {
        return Ok(());
    }
    let shown = output::name(name.view());
    Err(Failure::new(Code::NotFound, format!("no version of {shown} was seen")))
}

fn list(store: &TrustStore, paths: &Paths, json: bool) -> Outcome {
    let keychain = Keychain::open(&paths.keys)?;
    let mut rows: Vec<(Option<Name>, String, &str)> = Vec::new();
    for anchor in store.anchors() {
        rows.push((Some(anchor.prefix.clone()), anchor.key.to_string(), "anchor"));
    }
    for key in keychain.list()? {
        let kind = if key.is_revoked { "revoked" } else { "own" };
        rows.push((Some(key.identity), key.key_id.to_string(), kind));
    }
    for key in store.revoked() {
        rows.push((None, key.to_string(), "revoked"));
    }
    let prefix = |name: &Option<Name>| name.as_ref().map(|name| output::name(name.view()));
    if json {
        for (name, key, kind) in &rows {
            output::json_line(json!({ "prefix": prefix(name), "key": key, "kind": kind }));
        }
        return Ok(());
    }
    let cells = |(name, key, kind): &(Option<Name>, String, &str)| {
        vec![prefix(name).unwrap_or_else(|| "any".into()), key.clone(), (*kind).to_owned()]
    };
    let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
    output::table(&["NAMES UNDER", "KEY", "KIND"], &rows);
    Ok(())
}
