//! Extended attributes: what is known of a version and who vouches for it.

use std::fmt::Write;

use byname_client::TrustLevel;

use crate::attributes::Attributes;

/// Bytes of a version that are in the site cache.
pub(crate) const CACHED: &str = "user.byname.cached";

/// Whether the kernel reads an open version by itself.
pub(crate) const PASSED_THROUGH: &str = "user.byname.passed_through";

/// Values by name, in the order in which they are listed. Only those that are known.
pub(crate) fn all(attributes: &Attributes) -> Vec<(&'static str, String)> {
    let publisher = &attributes.publisher;
    let verified = match publisher.trust {
        TrustLevel::Anchored => "anchored",
        TrustLevel::FirstUse => "first-use",
        _ => "no",
    };
    let checksums = &attributes.checksums;
    let values = [
        ("user.byname.version", attributes.version.map(|version| version.to_string())),
        ("user.byname.root", attributes.root.map(|root| hex(&root))),
        ("user.byname.publisher", publisher.key.map(|key| key.to_string())),
        ("user.byname.verified", Some(verified.to_owned())),
        ("user.byname.adler32", checksums.adler32.map(|sum| hex(&sum))),
        ("user.byname.crc32", checksums.crc32.map(|sum| hex(&sum))),
        ("user.byname.crc32c", checksums.crc32c.map(|sum| hex(&sum))),
        ("user.byname.md5", checksums.md5.map(|sum| hex(&sum))),
        ("user.byname.sha256", checksums.sha256.map(|sum| hex(&sum))),
        // The name by which desktops and web servers know it.
        ("user.mime_type", attributes.media_type.as_deref().map(str::to_owned)),
    ];
    values.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The value of one name.
pub(crate) fn value(attributes: &Attributes, name: &[u8]) -> Option<String> {
    all(attributes).into_iter().find(|(known, _)| known.as_bytes() == name).map(|(_, value)| value)
}

/// All names, each with a zero behind it.
pub(crate) fn names(attributes: &Attributes, is_cacheable: bool) -> Vec<u8> {
    let mut names = Vec::new();
    let of_cache = [CACHED, PASSED_THROUGH].into_iter().filter(|_| is_cacheable);
    for name in all(attributes).into_iter().map(|(name, _)| name).chain(of_cache) {
        names.extend_from_slice(name.as_bytes());
        names.push(0);
    }
    names
}

fn hex(octets: &[u8]) -> String {
    octets.iter().fold(String::new(), |mut text, octet| {
        let _ = write!(text, "{octet:02x}");
        text
    })
}
