//! `byname site join`: a machine becomes part of a site that is made elsewhere.
//!
//! Nothing goes over the network. The link says which key is the site's. A user gets a key, whose
//! certificate an operator adds. A disk gets a key and a request; the operator gives it a number
//! and certifies the key for the disk's name, and with that admission the directory becomes the
//! disk. No key leaves its machine, and the machine of a disk needs no operator's.

pub(super) mod exchange;

use super::defaults::own_user;
use super::disk::{PLACE, Properties, SPACE};
use super::user;
use crate::exit::{Code, Failure, Outcome, chain};
use crate::{output, settings};
use byname_disk::{DiskDirectory, Label};
use byname_io::Clock;
use byname_keychain::{Import, Keychain, TrustStore};
use byname_packet::Name;
use byname_profile::{Link, Paths};
use byname_security::cert::Certificate;
use byname_security::key::{Algorithm, KeyId, KeyPair};
use byname_site::SiteName;
use exchange::{Admission, JoinRequest};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Make this machine part of a site that is made elsewhere: as a user's, or with a disk.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname site join byname:/lab,via=tcp://host,key=SHA256:… > anna.cert
  byname site join byname:/lab,via=tcp://host,key=SHA256:… /disks/2 > disk.request

A user gives the operator what is printed: `byname site user add NAME --key FILE`.
A disk: `byname site disk admit FILE` prints an admission for its request, and with this

  byname site join /lab /disks/2 --admitted disk.admission

the directory is a disk that `byname disk` serves. docs/site.md.")]
pub(super) struct Args {
    /// The site's link; its key is trusted for the site from now on. A name, if one is already.
    #[arg(value_name = "LINK")]
    link: String,
    /// An empty directory that shall be a disk.
    dir: Option<PathBuf>,
    /// Make the directory the disk that an operator admitted in this file.
    #[arg(long, value_name = "FILE", requires = "dir")]
    admitted: Option<PathBuf>,
    /// The user's name in the site. Default: the user who runs this.
    #[arg(long, value_name = "USER", conflicts_with = "dir")]
    user: Option<String>,
    /// Octets that content may take, such as 500G or 4T. Default: what the file system has.
    #[arg(long, value_name = "SIZE", requires = "dir", conflicts_with = "admitted")]
    capacity: Option<String>,
    /// Disk server it is in; replicas go to different ones. Default: this machine's name.
    #[arg(long, value_name = "NAME", requires = "dir", conflicts_with = "admitted")]
    server: Option<String>,
    /// Rack, room or other place; replicas go to different ones if servers leave a choice.
    #[arg(long, value_name = "NAME", requires = "dir", conflicts_with = "admitted",
        default_value = PLACE)]
    place: String,
    /// Space it belongs to.
    #[arg(long, value_name = "NAME", requires = "dir", conflicts_with = "admitted",
        default_value = SPACE)]
    space: String,
}

pub(super) fn run(args: &Args, paths: &Paths) -> Outcome {
    let link = settings::profile(paths)?.link(&args.link)?;
    let site = SiteName::new(link.name.clone()).ok_or_else(|| {
        Failure::usage(format!("{} is no name of a site", output::name(link.name.view())))
    })?;
    let key = trust(&link, paths)?;
    match (&args.dir, &args.admitted) {
        (None, _) => join_user(args, &site, paths),
        (Some(dir), None) => request(args, (&site, dir), paths),
        (Some(dir), Some(file)) => {
            let admission = Admission::read(file)?;
            check_site(&admission.site_certificate, &site, key)?;
            let name = become_disk(&admission, (&site, dir), paths)?;
            let connect = link.via.first().map(|via| format!(" --connect {via}"));
            let connect = connect.unwrap_or_default();
            let shown = output::name(name.view());
            output::err_line(&format!("{} is {shown}", dir.display()));
            output::err_line(&format!("serve it with: byname disk {}{connect}", dir.display()));
            Ok(())
        }
    }
}

/// The key that is the site's: the link's, which is trusted from now on, or one that is already.
fn trust(link: &Link, paths: &Paths) -> Outcome<KeyId> {
    let mut store = TrustStore::open(&paths.trust)?;
    let name = output::name(link.name.view());
    let Some(key) = link.key else {
        let known = store.anchors().find(|anchor| anchor.prefix == link.name);
        return known.map(|anchor| anchor.key).ok_or_else(|| {
            Failure::usage(format!("no key is trusted for {name}"))
                .hint("give the link of the site, as `byname catalog` prints it")
        });
    };
    if store.revoked().any(|revoked| revoked == key) {
        let text = format!("{key} was revoked here: no signature of it counts");
        return Err(Failure::new(Code::NotVerified, text));
    }
    if store.add_anchor(link.name.clone(), key)? {
        output::err_line(&format!("{key} is trusted for {name} and what is below"));
    }
    Ok(key)
}

fn join_user(args: &Args, site: &SiteName, paths: &Paths) -> Outcome {
    let name = args.user.clone().unwrap_or_else(own_user);
    user::print_key(site, &name, paths)
}

/// Makes a key for a directory and prints the request.
fn request(args: &Args, (site, dir): (&SiteName, &Path), paths: &Paths) -> Outcome {
    DiskDirectory::prepare(dir)?;
    let (capacity, server) = (args.capacity.as_deref(), args.server.as_deref());
    let properties = Properties { capacity, server, place: &args.place, space: &args.space };
    let disk = properties.in_directory(dir)?;
    let (keychain, now_ns) = (Keychain::open(&paths.keys)?, Clock::new().unix_ns());
    let applicant = applicant(site, dir)?;
    let identity = keychain.create_identity(applicant.view(), Algorithm::default(), now_ns)?;
    let (site, certificate) = (site.view().to_name(), identity.certificate);
    let shown = output::name(site.view());
    let request = JoinRequest { site, disk, certificate };
    output::err_line("an operator admits it with: byname site disk admit FILE > ADMISSION");
    let dir = dir.display();
    output::err_line(&format!("then: byname site join {shown} {dir} --admitted ADMISSION"));
    output::json_line(request.to_json());
    Ok(())
}

/// The namespace of the key of a directory that is no disk yet.
fn applicant(site: &SiteName, dir: &Path) -> Outcome<Name> {
    let path = dir.canonicalize().map_err(|error| Failure::disk(dir, error))?;
    Ok(site.applicant(path.as_os_str().as_bytes()))
}

/// The certificate that a disk will obey has to be that of the trusted key.
fn check_site(certificate: &Certificate, site: &SiteName, key: KeyId) -> Outcome {
    if certificate.identity() == site.view() && certificate.key_id() == key {
        return Ok(());
    }
    let shown = output::name(site.view());
    let text = format!("the admission is of another key than the one that is trusted for {shown}");
    Err(Failure::new(Code::NotVerified, text))
}

/// Makes the directory the disk of an admission; its name.
fn become_disk(
    admission: &Admission,
    (site, dir): (&SiteName, &Path),
    paths: &Paths,
) -> Outcome<Name> {
    let Admission { certificate, site_certificate } = admission;
    let shown = output::name(certificate.identity());
    let disk = site.parse_disk(certificate.identity());
    let disk = disk.ok_or_else(|| Failure::usage(format!("{shown} is no disk of the site")))?;
    DiskDirectory::prepare(dir)?;
    let keychain = Keychain::open(&paths.keys)?;
    let asked = keychain.identity(applicant(site, dir)?.view())?;
    let asked = asked.filter(|asked| asked.certificate.key_id() == certificate.key_id());
    let asked = asked.ok_or_else(|| {
        let text = format!("the key that was admitted is not that of {}", dir.display());
        Failure::new(Code::UnknownKey, text)
            .hint("an admission is for the directory, machine and user that asked for it")
    })?;
    let key = asked.signer.key().to_pkcs8().and_then(|der| KeyPair::from_pkcs8(&der));
    let key = key.map_err(|error| Failure::new(Code::Other, chain(&error)))?;
    let import = Import {
        certificates: vec![certificate.clone()],
        keys: vec![(None, key)],
        ..Import::default()
    };
    keychain.import(import, Clock::new().unix_ns())?;
    let name = site.disk(&disk);
    let label =
        Label { site: site.view().to_name(), place: disk.place, disk: disk.id, generation: 1 };
    DiskDirectory::format(dir, &label, site_certificate.wire())?;
    Ok(name)
}
