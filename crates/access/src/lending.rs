//! Lending at a site: keys are made, lent for longer, asked for and recalled.

use std::time::Duration;

use byname_catalog::{Command, LOAN_NS_MAX, LendKey};
use byname_client::Stop;
use byname_io::Clock;
use byname_packet::ValidityPeriod;
use byname_security::base64::decode_url;
use byname_security::cert::Certificate;
use byname_security::key::Algorithm;

use crate::account::Account;
use crate::error::AccessError;
use crate::head::HeadSession;
use crate::loan::Loan;

const SECOND_NS: u64 = 1_000_000_000;
/// Certificates begin so long before they are made: clocks differ.
const BACKDATE_S: u64 = 3600;

/// Makes a key and lends it. The lender's key signs its certificate: who admits the lender, as a
/// forwarder does, admits the lent key until the certificate ends.
///
/// # Errors
/// [`AccessError`]: of a head that does not answer, or says no.
pub fn lend_new(account: &Account, time: Duration, stop: Stop) -> Result<Loan, AccessError> {
    let mut session = HeadSession::open(account)?.stopped_by(stop);
    // Asked first: the site's key is known when it has answered.
    session.query("whoami")?;
    let site_key = session.site_certificate()?.key_id();
    let (now_ns, algorithm) = (Clock::new().unix_ns(), Algorithm::default());
    let end_ns = now_ns.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    let validity = ValidityPeriod {
        not_before_s: (now_ns / SECOND_NS).saturating_sub(BACKDATE_S),
        not_after_s: end_ns.min(now_ns.saturating_add(LOAN_NS_MAX)).div_ceil(SECOND_NS),
    };
    let (site, user) = (account.site.clone(), account.user.clone());
    let identity = account.identity.issue(algorithm, validity, now_ns)?;
    let until_ns = lend(&mut session, &identity.certificate, time)?;
    Ok(Loan { site, site_key, user, until_ns, identity })
}

/// Lends a key of the user's, or lends it for longer. Returns the end.
///
/// # Errors
/// [`AccessError`].
pub fn lend(
    session: &mut HeadSession,
    certificate: &Certificate,
    time: Duration,
) -> Result<u64, AccessError> {
    let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let expires_ns = Clock::new().unix_ns().saturating_add(time_ns);
    let lend = LendKey {
        lender: Vec::new(),
        name: certificate.key_name().value().to_vec(),
        certificate: certificate.wire().to_vec(),
        expires_ns,
    };
    session.run(Command::LendKey(lend))?;
    Ok(expires_ns)
}

/// Until when a key of a user's is lent; `None` if it is not, or no longer.
///
/// # Errors
/// [`AccessError`].
pub fn lent_until(
    session: &mut HeadSession,
    user: &str,
    key: &str,
) -> Result<Option<u64>, AccessError> {
    Ok(find(session, user, key)?.and_then(|loan| loan["until_ns"].as_u64()))
}

/// Ends the loan of a key of a user's. False if there is none.
///
/// # Errors
/// [`AccessError`].
pub fn recall(session: &mut HeadSession, user: &str, key: &str) -> Result<bool, AccessError> {
    let loan = find(session, user, key)?;
    let name = loan.as_ref().and_then(|loan| loan["name"].as_str());
    let Some(name) = name.and_then(|name| decode_url(name).ok()) else { return Ok(false) };
    session.run(Command::RecallKey { name })?;
    Ok(true)
}

fn find(
    session: &mut HeadSession,
    user: &str,
    key: &str,
) -> Result<Option<serde_json::Value>, AccessError> {
    let loans = session.query(&format!("loans {user}"))?;
    Ok(loans.into_iter().find(|loan| loan["key"] == key))
}
