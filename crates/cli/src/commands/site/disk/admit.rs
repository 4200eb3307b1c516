//! `byname site disk admit`: a directory of another machine becomes a disk of the site.

use super::disk_of;
use crate::commands::site::join::exchange::{Admission, JoinRequest};
use crate::commands::site::session::SiteSession;
use crate::commands::site::user::add_key;
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use byname_catalog::{AddDisk, KeyHolder};
use byname_packet::NameRef;
use byname_security::base64;
use byname_security::cert::{Certificate, KEY_COMPONENT};
use byname_site::DiskName;
use std::path::Path;

/// Adds the disk of a request, and prints the admission for the machine that asks. Whoever sends a
/// request once more, or has lost the admission, is no other disk: he gets what he had.
pub(super) fn run(session: &mut SiteSession, file: &Path) -> Outcome {
    let JoinRequest { site, disk, certificate } = JoinRequest::read(file)?;
    check(session, site.view(), certificate.identity())?;
    let (size, server) = (output::size(disk.capacity_bytes), output::one_line(&disk.server));
    let space = output::one_line(&disk.space);
    let certificate = match admitted(session, &certificate)? {
        Some(before) => before,
        None => add(session, disk, &certificate)?,
    };
    let site_certificate = session.site_certificate()?;
    let shown = output::name(certificate.identity());
    output::err_line(&format!("{shown}: {size}, server {server}, space {space}"));
    let allow = format!("--allow-register '{shown}={}'", certificate.key_id());
    output::err_line(&format!("a forwarder takes it in from another machine by {allow}"));
    output::err_line("the machine that asked: byname site join SITE DIR --admitted FILE");
    output::json_line(Admission { certificate, site_certificate }.to_json());
    Ok(())
}

/// Adds a disk and certifies its key.
fn add(session: &mut SiteSession, disk: AddDisk, request: &Certificate) -> Outcome<Certificate> {
    let place = disk.label.clone();
    let id = disk_of(session, disk)?;
    let prefix = session.site().disk(&DiskName { place, id });
    let key_name = prefix.with_generic(KEY_COMPONENT);
    let key_name = key_name.with_generic(request.key_component().value);
    let certificate = session.certify(key_name.view(), request)?;
    add_key(session, KeyHolder::Disk(id), &certificate)?;
    Ok(certificate)
}

/// The certificate of the disk that this key was admitted as before.
fn admitted(session: &mut SiteSession, request: &Certificate) -> Outcome<Option<Certificate>> {
    let found = session.query(&format!("disk-of-key {}", request.key_id()))?;
    let Some(disk) = found.first() else { return Ok(None) };
    let wire = disk["certificate"].as_str().and_then(|text| base64::decode_url(text).ok());
    let certificate = wire.and_then(|wire| Certificate::decode(&wire).ok());
    let malformed = || Failure::new(Code::Other, "the head answered something else");
    let certificate = certificate.ok_or_else(malformed)?;
    output::err_line(&format!("it was admitted before, as disk {}", disk["disk"]));
    Ok(Some(certificate))
}

/// The request has to be for this site, with a key that nobody has yet.
fn check(session: &SiteSession, site: NameRef<'_>, identity: NameRef<'_>) -> Outcome {
    let own = session.site();
    if site == own.view() && own.is_applicant(identity) {
        return Ok(());
    }
    let (wanted, own) = (output::name(site), output::name(own.view()));
    let text = format!("the request is for {wanted}, not for a new disk of {own}");
    Err(Failure::new(Code::Usage, text))
}
