//! Keys that users have lent.

use byname_catalog::{Failure, Key, PAGE_ROWS_MAX, Reader, Refusal};
use byname_security::base64;
use byname_security::cert::Certificate;
use byname_site::SiteName;
use serde_json::{Value, json};

use super::lines::Lines;

/// What a user has lent, and until when: for that user, and for operators.
pub(super) fn of_user(
    reader: &Reader<'_>,
    site: &SiteName,
    (user, after): (&str, &str),
) -> Result<Vec<u8>, Failure> {
    let (own, _, is_operator) = reader.who();
    if user != own && !is_operator {
        return Err(Refusal::NotOperator.into());
    }
    let user = site.user(user);
    let keys = user.view();
    let mut from = match after {
        "" => keys.value().to_vec(),
        after => base64::decode_url(after).map_err(|_| Refusal::BadName)?,
    };
    let mut rows = Vec::new();
    loop {
        let page = reader.keys(&from, PAGE_ROWS_MAX)?;
        let is_last = page.len() < PAGE_ROWS_MAX;
        for (name, key) in page {
            if !name.starts_with(keys.value()) {
                return Ok(Lines::of(rows.into_iter()));
            }
            rows.extend(line(&name, &key).map(|line| (base64::encode_url(&name), line)));
            from = name;
        }
        if is_last {
            return Ok(Lines::of(rows.into_iter()));
        }
    }
}

fn line(name: &[u8], key: &Key) -> Option<Value> {
    let loan = key.loan.as_ref()?;
    let certificate = Certificate::decode(&key.certificate).ok();
    let digest = certificate.map(|certificate| certificate.key_id().to_string());
    let name = base64::encode_url(name);
    Some(json!({ "key": digest, "name": name, "until_ns": loan.expires_ns }))
}
