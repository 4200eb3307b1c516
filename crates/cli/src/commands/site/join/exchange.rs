//! What a new disk's machine and an operator give each other, as files of one JSON object.

use crate::exit::{Code, Failure, Outcome};
use byname_catalog::AddDisk;
use byname_packet::Name;
use byname_security::base64;
use byname_security::cert::Certificate;
use serde_json::{Value, json};
use std::io::Read;
use std::path::Path;

/// No file of these is longer.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// A machine asks that its directory becomes a disk.
pub(in crate::commands::site) struct JoinRequest {
    /// The site.
    pub(in crate::commands::site) site: Name,
    /// What it offers.
    pub(in crate::commands::site) disk: AddDisk,
    /// Its key, certified by itself: whoever asks has it.
    pub(in crate::commands::site) certificate: Certificate,
}

/// An operator has added the disk.
pub(in crate::commands::site) struct Admission {
    /// The certificate of the key in the request for the disk's name.
    pub(in crate::commands::site) certificate: Certificate,
    /// That of the site's key, whose orders the disk obeys.
    pub(in crate::commands::site) site_certificate: Certificate,
}

impl JoinRequest {
    pub(in crate::commands::site) fn to_json(&self) -> Value {
        let AddDisk { space, server, label, capacity_bytes } = &self.disk;
        json!({
            "request": "disk",
            "site": self.site.to_string(),
            "server": server,
            "place": label,
            "space": space,
            "capacity_bytes": capacity_bytes,
            "certificate": encoded(&self.certificate),
        })
    }

    /// Reads a request, and checks that whoever made it has the key.
    pub(in crate::commands::site) fn read(file: &Path) -> Outcome<Self> {
        let fields = Fields::read(file, "request", "byname site join LINK DIR")?;
        let certificate = fields.certificate("certificate")?;
        let is_own = certificate.is_self_signed()
            && certificate.verify_signed_by(certificate.public_key()).is_ok();
        if !is_own {
            let text = format!("{}: the request is not signed with its key", file.display());
            return Err(Failure::new(Code::NotVerified, text));
        }
        let site = fields.text("site")?.parse().map_err(|_| fields.malformed("site"))?;
        let disk = AddDisk {
            space: fields.text("space")?.to_owned(),
            server: fields.text("server")?.to_owned(),
            label: fields.text("place")?.to_owned(),
            capacity_bytes: fields.number("capacity_bytes")?,
        };
        Ok(Self { site, disk, certificate })
    }
}

impl Admission {
    pub(in crate::commands::site) fn to_json(&self) -> Value {
        json!({
            "admission": "disk",
            "disk": self.certificate.identity().to_string(),
            "certificate": encoded(&self.certificate),
            "site_certificate": encoded(&self.site_certificate),
        })
    }

    /// Reads an admission. Nothing is verified.
    pub(in crate::commands::site) fn read(file: &Path) -> Outcome<Self> {
        let fields = Fields::read(file, "admission", "byname site disk admit FILE")?;
        Ok(Self {
            certificate: fields.certificate("certificate")?,
            site_certificate: fields.certificate("site_certificate")?,
        })
    }
}

fn encoded(certificate: &Certificate) -> String {
    base64::encode_url(certificate.wire())
}

/// The object of a file.
struct Fields<'a> {
    file: &'a Path,
    object: Value,
}

impl<'a> Fields<'a> {
    /// Reads a file of a kind, which a command prints.
    fn read(file: &'a Path, kind: &str, printed_by: &str) -> Outcome<Self> {
        let failed = |error: std::io::Error| Failure::disk(file, error);
        let mut text = Vec::new();
        let opened = std::fs::File::open(file).map_err(failed)?;
        opened.take(FILE_BYTES_MAX).read_to_end(&mut text).map_err(failed)?;
        let object: Value = serde_json::from_slice(&text).unwrap_or_default();
        if object[kind] != "disk" {
            let text = format!("{}: no {kind} of a disk", file.display());
            return Err(Failure::new(Code::LocalDisk, text).hint(format!("{printed_by} prints it")));
        }
        Ok(Self { file, object })
    }

    fn malformed(&self, key: &str) -> Failure {
        let text = format!("{}: {key} is missing or malformed", self.file.display());
        Failure::new(Code::LocalDisk, text)
    }

    fn text(&self, key: &str) -> Outcome<&str> {
        self.object[key].as_str().ok_or_else(|| self.malformed(key))
    }

    fn number(&self, key: &str) -> Outcome<u64> {
        self.object[key].as_u64().ok_or_else(|| self.malformed(key))
    }

    fn certificate(&self, key: &str) -> Outcome<Certificate> {
        let wire = base64::decode_url(self.text(key)?).map_err(|_| self.malformed(key))?;
        Certificate::decode(&wire).map_err(|_| self.malformed(key))
    }
}
