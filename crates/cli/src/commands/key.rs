//! `byname key`: one's own identities.

mod exchange;

use crate::exit::{Code, Failure, Outcome};
use crate::output;
use crate::typed::name;
use byname_io::Clock;
use byname_keychain::{KeyInfo, Keychain, KeychainError};
use byname_packet::signature::parse_iso;
use byname_profile::{Link, Paths};
use byname_security::key::{Algorithm, KeyId};
use serde_json::json;

/// Manage one's own keys.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname key list
  byname key rotate /lab/run7      a new key, vouched for by the old one
  byname key export SHA256:…       the certificate, for other NDN software
  byname key export /lab --format safebag --passphrase-file word > lab.safebag
  byname key import lab.safebag --passphrase-file word
  byname key import alice.key alice.cert                from NDNd")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: KeyCommand,
}

#[derive(Debug, clap::Subcommand)]
enum KeyCommand {
    /// List keys.
    List {
        /// One JSON object per key.
        #[arg(long)]
        json: bool,
    },
    /// Show the key of a name.
    Show {
        /// The name.
        name: String,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Make a key for a name, unless it has one.
    Generate {
        /// The name; the key may sign everything under it.
        name: String,
        /// Kind of key.
        #[arg(long, value_enum, default_value_t = AlgorithmArg::Ed25519)]
        algorithm: AlgorithmArg,
        /// First moment of its certificate, YYYYMMDDThhmmss in UTC. Default: an hour ago.
        #[arg(long, value_name = "TIME")]
        not_before: Option<String>,
        /// Last moment of its certificate. Default: in ten years.
        #[arg(long, value_name = "TIME")]
        not_after: Option<String>,
    },
    /// Give a name a new key, certified by the old one.
    Rotate {
        /// The name.
        name: String,
    },
    /// Never use a key again.
    Revoke {
        /// The key, SHA256:…
        key: String,
    },
    /// Take back `key revoke`, as long as the name has no other key.
    Unrevoke {
        /// The key, SHA256:…
        key: String,
    },
    /// Print a certificate, or a key with it, in the format of other NDN software.
    Export(exchange::ExportArgs),
    /// Take in keys of other NDN software, and certificates that somebody issued for our keys.
    Import(exchange::ImportArgs),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum AlgorithmArg {
    Ed25519,
    EcdsaP256,
    Rsa,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let keychain = Keychain::open(&paths.keys)?;
    let now_ns = Clock::new().unix_ns();
    match &args.command {
        KeyCommand::List { json } => print(&keychain.list()?, *json),
        KeyCommand::Show { name: text, json } => {
            let prefix = name(text)?;
            let mut keys = keychain.list()?;
            keys.retain(|key| key.identity == prefix);
            if keys.is_empty() {
                return Err(no_key(text));
            }
            print(&keys, *json)
        }
        KeyCommand::Generate { name: text, algorithm, not_before, not_after } => {
            let algorithm = match algorithm {
                AlgorithmArg::Ed25519 => Algorithm::Ed25519,
                AlgorithmArg::EcdsaP256 => Algorithm::EcdsaP256,
                AlgorithmArg::Rsa => Algorithm::Rsa,
            };
            let limits = Limits::parse(not_before.as_deref(), not_after.as_deref())?;
            let prefix = name(text)?;
            let mut validity = byname_keychain::default_validity(now_ns);
            validity.not_before_s = limits.not_before_s.unwrap_or(validity.not_before_s);
            validity.not_after_s = limits.not_after_s.unwrap_or(validity.not_after_s);
            if limits.not_before_s.is_none() {
                validity.not_before_s = validity.not_before_s.min(validity.not_after_s);
            }
            if limits.not_after_s.is_none() {
                validity.not_after_s = validity.not_after_s.max(validity.not_before_s);
            }
            let made = keychain.create_identity_with(prefix.view(), algorithm, validity, now_ns);
            output::out_line(&made?.certificate.key_id().to_string());
            Ok(())
        }
        KeyCommand::Rotate { name: text } => {
            let identity = keychain.rotate(name(text)?.view(), now_ns)?;
            output::out_line(&identity.certificate.key_id().to_string());
            output::err_line("restart what publishes under this name to use the new key");
            Ok(())
        }
        KeyCommand::Revoke { key } => {
            let info = keychain.revoke(key_id(key)?)?;
            let identity = output::name(info.identity.view());
            output::err_line(&format!("{} of {identity} is not used any more", info.key_id));
            for line in road_of_readers(&keychain, &info)? {
                output::err_line(&line);
            }
            Ok(())
        }
        KeyCommand::Unrevoke { key } => {
            let key = key_id(key)?;
            let Some(info) = keychain.unrevoke(key)? else {
                return Err(Failure::new(Code::NotFound, format!("{key} is not revoked")));
            };
            let identity = output::name(info.identity.view());
            output::err_line(&format!("{key} of {identity} may be used again"));
            output::err_line(&format!("readers who refuse it run: byname trust unrevoke {key}"));
            Ok(())
        }
        KeyCommand::Export(args) => exchange::export(&keychain, args),
        KeyCommand::Import(args) => exchange::import(&keychain, args),
    }
}

#[derive(Default)]
struct Limits {
    not_before_s: Option<u64>,
    not_after_s: Option<u64>,
}

impl Limits {
    fn parse(not_before: Option<&str>, not_after: Option<&str>) -> Outcome<Self> {
        let moment = |text: Option<&str>| match text {
            None => Ok(None),
            Some(text) => match parse_iso(text.as_bytes()) {
                Some(unix_s) => Ok(Some(unix_s)),
                None => Err(Failure::usage(format!("{text:?} is no time like 20270131T120000"))),
            },
        };
        Ok(Self { not_before_s: moment(not_before)?, not_after_s: moment(not_after)? })
    }
}

/// What readers have to do once a key is revoked.
fn road_of_readers(keychain: &Keychain, info: &KeyInfo) -> Outcome<Vec<String>> {
    let identity = output::name(info.identity.view());
    let mut lines = vec![
        "what your readers run, in this order:".to_owned(),
        format!("  byname trust revoke {}     the old key, whoever vouches for it", info.key_id),
    ];
    lines.push(match keychain.identity(info.identity.view())? {
        Some(now) => {
            let key = Some(now.certificate.key_id());
            let link = Link { key, ..Link::of_name(info.identity.clone()) };
            format!("  byname trust add {link}     the new key, which signs from now on")
        }
        None => "  byname trust add LINK     the new link".to_owned(),
    });
    if keychain.identity(info.identity.view())?.is_none() {
        lines.push(format!(
            "the next `byname up` or `serve` of {identity} makes a new key and prints that link"
        ));
    }
    lines.push(format!("if it was a mistake: byname key unrevoke {}", info.key_id));
    Ok(lines)
}

fn no_key(text: &str) -> Failure {
    Failure::new(crate::exit::Code::NotFound, format!("there is no key for {text}"))
        .hint(format!("byname key generate '{text}'"))
}

/// Reads a key id.
pub(crate) fn key_id(text: &str) -> Outcome<KeyId> {
    text.parse().map_err(|error: byname_security::key::ParseKeyIdError| Failure::usage(error))
}

fn print(keys: &[KeyInfo], json: bool) -> Outcome {
    let iso = byname_packet::signature::format_iso;
    let mut rows = Vec::new();
    for key in keys {
        let validity = key.certificates.last().map(|certificate| certificate.validity());
        let algorithm = match key.algorithm {
            Algorithm::Ed25519 => "ed25519",
            Algorithm::EcdsaP256 => "ecdsa-p256",
            Algorithm::Rsa => "rsa",
        };
        if json {
            output::json_line(json!({
                "name": output::name(key.identity.view()),
                "key": key.key_id.to_string(),
                "algorithm": algorithm,
                "not_before": validity.map(|v| iso(v.not_before_s)),
                "not_after": validity.map(|v| iso(v.not_after_s)),
                "default": key.is_current,
                "revoked": key.is_revoked,
            }));
            continue;
        }
        let state = match (key.is_revoked, key.is_current) {
            (true, _) => "revoked",
            (false, true) => "in use",
            (false, false) => "earlier",
        };
        rows.push(vec![
            output::name(key.identity.view()),
            key.key_id.to_string(),
            algorithm.to_owned(),
            validity
                .map(|v| {
                    output::time(
                        v.not_after_s.saturating_mul(1_000_000_000),
                        output::TimeArgs::default(),
                    )
                })
                .unwrap_or_default(),
            state.to_owned(),
        ]);
    }
    if !json {
        output::table(&["NAME", "KEY", "ALGORITHM", "VALID UNTIL", "STATE"], &rows);
    }
    Ok(())
}
