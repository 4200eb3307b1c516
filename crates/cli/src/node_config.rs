//! The forwarder's configuration: files, environment and flags together.
//!
//! Read at the start and again at each reload, by the same function, so that what a reload leads
//! to is what a restart would.

use crate::commands::reachable::host_name;
use crate::exit::{Code, Failure, Outcome};
use crate::settings;
use crate::typed::{endpoint, endpoints, name};
use byname_io::Endpoint;
use byname_node::file::AllowEntry;
use byname_node::{NodeConfig, StaticRoute};
use byname_packet::Name;
use byname_packet::mgmt::CommandVerifier;
use byname_profile::{Paths, Settings};
use byname_security::cert::Certificate;
use byname_security::command::AnchorVerifier;
use byname_security::key::KeyId;
use byname_security::trust::Anchor;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Values of the flags.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flags {
    pub(crate) config: Option<PathBuf>,
    pub(crate) listen: Vec<String>,
    pub(crate) route: Vec<String>,
    pub(crate) strategy: Vec<String>,
    pub(crate) allow_register: Vec<String>,
    pub(crate) allow_register_loopback: bool,
    pub(crate) cs_bytes: Option<u64>,
    pub(crate) cs_entries: Option<u64>,
    pub(crate) shards: Option<u64>,
    pub(crate) socket_group: Option<String>,
    pub(crate) metrics: Option<SocketAddr>,
}

/// Configuration of the forwarder command.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) node: NodeConfig,
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) allowed: Allowed,
}

/// Grants to register from other machines, and their verifier.
#[derive(Debug, Clone, Default)]
pub(crate) struct Allowed {
    grants: Vec<Grant>,
    verifier: Option<Arc<dyn CommandVerifier>>,
}

/// Somebody may register below a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Grant {
    prefix: Name,
    grantee: Grantee,
}

/// The key or certificate of somebody who may register.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Grantee {
    Key(KeyId),
    /// As it is on the wire.
    Certificate(Vec<u8>),
}

/// Default listeners of a forwarder: for programs of this machine, by a socket and
/// by shared memory.
pub(crate) fn own_endpoints(paths: &Paths) -> Outcome<[Endpoint; 2]> {
    let memory = Endpoint::Memif { path: paths.memory_socket()?, id: 0, role: None };
    Ok([Endpoint::Unix(paths.socket()?), memory])
}

/// Reads everything. The verifier of `before` remembers which commands it has seen, so it goes on
/// when nothing has changed about who is allowed what.
///
/// # Errors
/// The first mistake, with the file and line or the flag.
pub(crate) fn load(paths: &Paths, flags: &Flags, before: &Allowed) -> Outcome<Loaded> {
    let settings = match &flags.config {
        Some(file) => settings::load_only(file)?,
        None => settings::profile(paths)?.settings().clone(),
    };
    let mut node = from_settings(&settings)?;
    if !flags.listen.is_empty() {
        node.listen = endpoints(&flags.listen)?;
    }
    if node.listen.is_empty() {
        node.listen.extend(own_endpoints(paths)?);
    }
    for text in &flags.route {
        node.routes.push(route(text)?);
    }
    for text in &flags.strategy {
        node.strategies.push(strategy(text)?);
    }
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    node.forwarder.cs_bytes_max = flags.cs_bytes.map_or(node.forwarder.cs_bytes_max, size);
    node.shards = flags.shards.map_or(node.shards, size);
    node.forwarder.cs_entries_max = flags.cs_entries.map_or(node.forwarder.cs_entries_max, size);
    if let Some(group) = &flags.socket_group {
        node.socket_access.gid = Some(group_id(group)?);
        // A group that may not write cannot connect.
        node.socket_access.mode |= 0o060;
    }
    node.forwarder.allow_register_loopback |= flags.allow_register_loopback;
    let file = settings::forwarder(&settings)?;
    let mut entries = file.allow_register;
    for text in &flags.allow_register {
        entries.push(allow_register(text)?);
    }
    let grants = grants(&entries)?;
    let allowed = match grants == before.grants {
        true => before.clone(),
        false => Allowed { verifier: verifier(&grants)?, grants },
    };
    node.forwarder.command_verifier.clone_from(&allowed.verifier);
    Ok(Loaded { node, metrics: flags.metrics.or(file.metrics), allowed })
}

/// Configuration from the files and the environment.
pub(crate) fn from_settings(settings: &Settings) -> Outcome<NodeConfig> {
    let file = settings::forwarder(settings)?;
    let mut config = NodeConfig::default();
    let mib = settings.number("forwarder.content_store_mib");
    config.forwarder.cs_bytes_max = usize::try_from(mib << 20).unwrap_or(usize::MAX);
    config.forwarder.version = format!("byname {}", env!("CARGO_PKG_VERSION"));
    config.forwarder.node_name = host_name();
    file.apply(&mut config).map_err(Failure::usage)?;
    if let Some(group) = &file.socket_group {
        config.socket_access.gid = Some(group_id(group)?);
    }
    config.forwarder.command_verifier = verifier(&grants(&file.allow_register)?)?;
    if let Some(group) = &file.authorized_group {
        config.forwarder.authorized_gid = Some(group_id(group)?);
    }
    Ok(config)
}

/// `PREFIX=URI`.
fn route(text: &str) -> Outcome<StaticRoute> {
    // The URI begins behind the last '=' that is followed by a scheme: names may hold '=' too.
    let at = text.match_indices('=').map(|(at, _)| at).rfind(|at| text[at + 1..].contains("://"));
    let Some(at) = at else {
        let example = "for example --route /lab=tcp://lab.example.org";
        return Err(Failure::usage(format!("--route wants PREFIX=URI, not {text:?}")).hint(example));
    };
    Ok((name(&text[..at])?, endpoint(&text[at + 1..])?).into())
}

/// `PREFIX=NAME`; parameters of a strategy hold no '='.
fn strategy(text: &str) -> Outcome<(Name, String)> {
    let wrong = || {
        let example = "for example --strategy /lab=multicast";
        Failure::usage(format!("--strategy wants PREFIX=NAME, not {text:?}")).hint(example)
    };
    // A full name begins with a slash and may hold `v=5`; a label holds no slash.
    let at = match text.find("=/localhost/nfd/strategy/") {
        Some(at) => at,
        None => text.rfind('=').ok_or_else(wrong)?,
    };
    let strategy = &text[at + 1..];
    if !byname_node::is_strategy(strategy) {
        return Err(Failure::usage(format!("there is no strategy {strategy:?}"))
            .hint(format!("there are {}", byname_node::strategy_labels().join(", "))));
    }
    Ok((name(&text[..at])?, strategy.to_owned()))
}

/// `PREFIX=KEY`: a digest, or the file of a certificate.
fn allow_register(text: &str) -> Outcome<AllowEntry> {
    let at = text.find("=SHA256:").or_else(|| text.rfind('='));
    let Some(at) = at.filter(|at| at + 1 < text.len()) else {
        let wrong = format!("--allow-register wants PREFIX=KEY, not {text:?}");
        return Err(Failure::usage(wrong)
            .hint("KEY is what `byname key list` prints, SHA256:…, or the file of a certificate"));
    };
    let (prefix, key) = (name(&text[..at])?, &text[at + 1..]);
    if let Some(typed) = looks_typed(&text[..at]) {
        let message = format!("{} is the name of a file called {typed:?}", &text[..at]);
        return Err(Failure::usage(message).hint(format!(
            "--allow-register 'ndn:{}' is what you mean if {typed:?} is a component with a type",
            text
        )));
    }
    let is_digest = key.starts_with("SHA256:");
    Ok(AllowEntry {
        prefix: byname_node::file::Prefix(prefix),
        key: is_digest.then(|| key.to_owned()),
        certificate: (!is_digest).then(|| PathBuf::from(key)),
    })
}

/// A component of a path that would have a type if the name were an NDN URI, as those of a site's
/// users and disks do. Nobody allows a key for a file called so, and it would allow nothing else.
fn looks_typed(prefix: &str) -> Option<&str> {
    let is_typed = |component: &&str| {
        let digits = component.split_once('=').map_or("", |(digits, _)| digits);
        matches!(digits, "seg" | "off" | "v" | "t" | "seq")
            || !digits.is_empty() && digits.bytes().all(|octet| octet.is_ascii_digit())
    };
    let is_uri = prefix.starts_with("ndn:");
    prefix.split('/').find(is_typed).filter(|_| !is_uri)
}

/// Reads the keys and certificates that entries name.
fn grants(entries: &[AllowEntry]) -> Outcome<Vec<Grant>> {
    let grant = |entry: &AllowEntry| {
        let prefix = entry.prefix.0.clone();
        let grantee = match (&entry.key, &entry.certificate) {
            (Some(key), _) => Grantee::Key(key.parse().map_err(|error| {
                Failure::usage(format!("allow_register: {key:?} is no key: {error}"))
            })?),
            (None, Some(file)) => Grantee::Certificate(certificate(file)?),
            (None, None) => return Err(Failure::usage("allow_register: a key is wanted")),
        };
        Ok(Grant { prefix, grantee })
    };
    entries.iter().map(grant).collect()
}

/// The verifier of commands from other machines.
fn verifier(grants: &[Grant]) -> Outcome<Option<Arc<dyn CommandVerifier>>> {
    if grants.is_empty() {
        return Ok(None);
    }
    let anchors = grants.iter().filter_map(|grant| match grant.grantee {
        Grantee::Key(key) => Some(Anchor { prefix: grant.prefix.clone(), key }),
        Grantee::Certificate(_) => None,
    });
    let verifier = AnchorVerifier::new(anchors);
    for grant in grants {
        if let Grantee::Certificate(wire) = &grant.grantee {
            let certificate = Certificate::decode(wire).map_err(Failure::usage)?;
            verifier.allow_certificate(grant.prefix.clone(), certificate);
        }
    }
    Ok(Some(Arc::new(verifier)))
}

/// A certificate as `byname key export` writes it.
pub(crate) fn certificate(file: &Path) -> Outcome<Vec<u8>> {
    let text = std::fs::read_to_string(file).map_err(|error| Failure::disk(file, error))?;
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("{}: {error}", file.display()))
            .hint("a certificate is wanted, as `byname key export` writes it")
    };
    let wire = byname_security::base64::decode_lines(&text).map_err(|error| wrong(&error))?;
    Certificate::decode(&wire).map_err(|error| wrong(&error))?;
    Ok(wire)
}

/// The number of a group, by name or as it is.
fn group_id(group: &str) -> Outcome<u32> {
    if let Ok(number) = group.parse() {
        return Ok(number);
    }
    let path = std::path::Path::new("/etc/group");
    let text = std::fs::read_to_string(path).map_err(|error| Failure::disk(path, error))?;
    find_group(&text, group).ok_or_else(|| {
        Failure::new(Code::Usage, format!("there is no group {group:?}"))
            .hint("groups of a directory service are named by their number")
    })
}

/// spec: group(5), `name:password:number:members`.
fn find_group(text: &str, group: &str) -> Option<u32> {
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(group)).then(|| fields.nth(1)?.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_strategies_and_keys_of_names_with_equals_signs() {
        let found = route("/lab/x=1=tcp://h:1").unwrap();
        assert_eq!(
            (found.prefix.view().to_user().as_str(), found.endpoint.to_string().as_str()),
            ("/lab/x=1", "tcp://h:1")
        );
        for bad in ["/lab", "/lab=", "lab=tcp://h", "/lab=gopher://h"] {
            assert!(route(bad).is_err(), "{bad}");
        }
        let (prefix, label) = strategy("/lab/x=1=multicast").unwrap();
        assert_eq!((prefix.view().to_user().as_str(), label.as_str()), ("/lab/x=1", "multicast"));
        assert!(strategy("/lab=/localhost/nfd/strategy/best-route/v=5").is_ok());
        for bad in ["/lab", "/lab=", "/lab=worst-route", "lab=multicast"] {
            assert!(strategy(bad).is_err(), "{bad}");
        }
        let entry = allow_register("/a=b=SHA256:x=").unwrap();
        assert_eq!(entry.prefix.0.view().to_user(), "/a=b");
        assert_eq!(entry.key.as_deref(), Some("SHA256:x="));
        for prefix in ["/lab/32=user/anna", "/lab/v=1"] {
            let refused = allow_register(&format!("{prefix}=SHA256:x=")).unwrap_err();
            assert!(format!("{refused:?}").contains("name of a file"), "{refused:?}");
            assert!(allow_register(&format!("ndn:{prefix}=SHA256:x=")).is_ok());
        }
        let entry = allow_register("/a=alice.cert").unwrap();
        assert_eq!(entry.certificate, Some(PathBuf::from("alice.cert")));
        assert!(allow_register("/a").is_err());
        assert!(grants(&[allow_register("/a=SHA256:short").unwrap()]).is_err());
        let key = "/a=SHA256:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU";
        let granted = grants(&[allow_register(key).unwrap()]).unwrap();
        assert!(verifier(&granted).unwrap().is_some() && verifier(&[]).unwrap().is_none());
        let missing = grants(&[allow_register("/a=no/such/file").unwrap()]).unwrap_err();
        assert_eq!(missing.code, Code::LocalDisk);
    }

    #[test]
    fn groups_by_name() {
        let text = "root:x:0:\nndn:x:993:alice,bob\nndn-admin:x:994:\n";
        assert_eq!(find_group(text, "ndn"), Some(993));
        assert_eq!(find_group(text, "ndn-admin"), Some(994));
        assert_eq!(find_group(text, "x"), None);
    }
}
