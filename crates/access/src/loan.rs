//! Keys that a user lends for a while, for jobs elsewhere.
//!
//! A [`Loan`] is all that a job needs to act as the user: a key of its own with a certificate that
//! is valid for as long, and the key of the site. As a text it is handed from program to program,
//! and is in nobody's key directory. Who has the text acts as the user: nothing here prints it.
//!
//! The sum at its end finds what was truncated or altered by mistake. It keeps nobody from changing
//! it; what the key may do is what the head says.

use std::fmt;

use byname_io::Clock;
use byname_keychain::{Identity, KeychainError};
use byname_packet::sha256;
use byname_security::base64::{decode_url, encode_url};
use byname_security::cert::{Certificate, format_time};
use byname_security::key::{KeyId, KeyPair};
use byname_site::{Identity as Who, SiteName};

/// Octets of the text of a loan at most.
pub const LOAN_TEXT_BYTES_MAX: usize = 8191;

const MAGIC: &str = "byname-loan";
const VERSION: &str = "1";
const SUM_BYTES: usize = 16;
const SECOND_NS: u64 = 1_000_000_000;

/// A text that is no loan, or one that does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoanError {
    /// It is something else.
    #[error("this is no lent key of byname's")]
    NotLoan,
    /// A later version of byname has made it.
    #[error("the lent key has a form of a later version of byname")]
    Version,
    /// Its sum is not that of what it says.
    #[error("the lent key was altered, or is not whole")]
    Altered,
    /// Its parts do not belong together.
    #[error("the lent key is not that of a user of the site that it names")]
    Mismatch,
    /// Its time is over.
    #[error("the key of {user} at {} was lent until {}", site.view().to_user(), time(*until_ns))]
    Over {
        /// The site.
        site: SiteName,
        /// The user.
        user: String,
        /// The end, since the Unix epoch.
        until_ns: u64,
    },
    /// The link, or what this machine trusts, says another key of the site's.
    #[error(
        "the lent key is for a site {} whose key is {lent}, and the link says, or this machine \
         trusts, {said}",
        site.view().to_user()
    )]
    OtherKey {
        /// The site.
        site: SiteName,
        /// Its key, by who has lent.
        lent: KeyId,
        /// Its key, by the link.
        said: KeyId,
    },
    /// Another user should act.
    #[error("the lent key is {user}'s, and not {wanted}'s")]
    OfAnother {
        /// The user whose it is.
        user: String,
        /// The user who should act.
        wanted: String,
    },
}

/// A key that signs for a user for a while.
#[derive(Clone)]
pub struct Loan {
    /// The site.
    pub site: SiteName,
    /// The key that signs what the site says.
    pub site_key: KeyId,
    /// The user.
    pub user: String,
    /// The end, since the Unix epoch.
    pub until_ns: u64,
    /// The key and its certificate.
    pub identity: Identity,
}

impl fmt::Debug for Loan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { site, user, until_ns, .. } = self;
        write!(f, "Loan({user} at {}, {}, until {})", site.view(), self.key_id(), time(*until_ns))
    }
}

impl Loan {
    /// Digest of the lent key.
    pub fn key_id(&self) -> KeyId {
        self.identity.certificate.key_id()
    }

    /// The text that is handed over: a secret.
    ///
    /// # Errors
    /// [`KeychainError`] if the key cannot be taken out.
    pub fn encode(&self) -> Result<String, KeychainError> {
        let key = self.identity.signer.key().to_pkcs8()?;
        let said = format!(
            "{MAGIC} {VERSION} {} {} {} {} {}",
            self.site.view(),
            self.site_key,
            self.until_ns,
            encode_url(self.identity.certificate.wire()),
            encode_url(&key),
        );
        let sum = sum(&said);
        Ok(format!("{said} {sum}"))
    }

    /// The loan that a text is.
    ///
    /// # Errors
    /// [`LoanError`]; the text is not in it.
    pub fn decode(text: &str) -> Result<Self, LoanError> {
        let text = text.trim_end();
        let version = text.strip_prefix(MAGIC).and_then(|rest| rest.strip_prefix(' '));
        let version = version.ok_or(LoanError::NotLoan)?.split(' ').next();
        if version.is_some_and(|version| !version.is_empty() && version != VERSION) {
            return Err(LoanError::Version);
        }
        let (said, given) = text.rsplit_once(' ').ok_or(LoanError::Altered)?;
        if text.len() > LOAN_TEXT_BYTES_MAX || sum(said) != given {
            return Err(LoanError::Altered);
        }
        let fields: Vec<&str> = said.split(' ').skip(2).collect();
        match fields.as_slice() {
            [site, site_key, until_ns, certificate, key] => {
                Self::of_fields((site, site_key), until_ns, (certificate, key))
            }
            _ => None,
        }
        .ok_or(LoanError::Mismatch)
    }

    fn of_fields(
        (site, site_key): (&str, &str),
        until_ns: &str,
        (certificate, key): (&str, &str),
    ) -> Option<Self> {
        let site = SiteName::new(site.parse().ok()?)?;
        let certificate = Certificate::decode(&decode_url(certificate).ok()?).ok()?;
        let key = KeyPair::from_pkcs8(&decode_url(key).ok()?).ok()?;
        let identity = Identity::of_key(key, certificate).ok()?;
        let Some(Who::User(user)) = site.identity(identity.prefix.view()) else { return None };
        let (site_key, until_ns) = (site_key.parse().ok()?, until_ns.parse().ok()?);
        Some(Self { site, site_key, user, until_ns, identity })
    }

    /// Whether its time is not over, by the clock of this machine.
    ///
    /// # Errors
    /// [`LoanError::Over`].
    pub fn check_time(&self) -> Result<(), LoanError> {
        if Clock::new().unix_ns() < self.until_ns {
            return Ok(());
        }
        let (site, user) = (self.site.clone(), self.user.clone());
        Err(LoanError::Over { site, user, until_ns: self.until_ns })
    }
}

fn sum(said: &str) -> String {
    encode_url(&sha256(&[said.as_bytes()])[..SUM_BYTES])
}

fn time(unix_ns: u64) -> String {
    format_time(unix_ns / SECOND_NS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use byname_packet::ValidityPeriod;
    use byname_security::key::Algorithm;

    fn loan(user: &str) -> Loan {
        let site = SiteName::new("/lab".parse().unwrap()).unwrap();
        let validity = ValidityPeriod { not_before_s: 1_000_000, not_after_s: 4_000_000_000 };
        let prefix = site.user(user);
        let identity = Identity::generate(prefix.view(), Algorithm::default(), validity, 1);
        let (site_key, until_ns) = (KeyId([7; 32]), 5 * SECOND_NS);
        Loan { site, site_key, user: user.to_owned(), until_ns, identity: identity.unwrap() }
    }

    #[test]
    fn a_loan_is_what_its_text_says() {
        let made = loan("anna");
        let text = made.encode().unwrap();
        let read = Loan::decode(&text).unwrap();
        assert_eq!(
            (read.site, read.user.as_str(), read.until_ns),
            (made.site, "anna", 5 * SECOND_NS)
        );
        assert_eq!(read.site_key, made.site_key);
        assert_eq!(read.identity.certificate.wire(), made.identity.certificate.wire());
        assert_eq!(read.identity.signer.key().key_id(), made.identity.certificate.key_id());
    }

    #[test]
    fn what_was_altered_or_cut_is_refused() {
        let text = loan("anna").encode().unwrap();
        for end in 0..text.len() {
            assert!(Loan::decode(&text[..end]).is_err(), "{end} octets of it");
        }
        for at in 0..text.len() {
            let mut octets = text.clone().into_bytes();
            octets[at] = if octets[at] == b'x' { b'y' } else { b'x' };
            assert!(Loan::decode(&String::from_utf8(octets).unwrap()).is_err(), "octet {at}");
        }
        assert_eq!(Loan::decode("").unwrap_err(), LoanError::NotLoan);
        let later = text.replacen(" 1 ", " 2 ", 1);
        assert_eq!(Loan::decode(&later).unwrap_err(), LoanError::Version);
    }

    #[test]
    fn parts_of_several_loans_make_none() {
        let (ours, other) = (loan("anna").encode().unwrap(), loan("bert").encode().unwrap());
        let (ours, other): (Vec<_>, Vec<_>) =
            (ours.split(' ').collect(), other.split(' ').collect());
        for at in 2..7 {
            let mut mixed = ours[..7].to_vec();
            mixed[at] = match at {
                2 => "/other",
                3 => "SHA256:short",
                4 => "-1",
                at => other[at],
            };
            let said = mixed.join(" ");
            let text = format!("{said} {}", sum(&said));
            assert_eq!(Loan::decode(&text).unwrap_err(), LoanError::Mismatch, "field {at}");
        }
    }

    /// Those of `vectors/site/loan.json`, which another encoder wrote.
    #[test]
    fn golden_texts_are_read_and_written_and_others_refused() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/site/loan.json");
        let vectors = std::fs::read_to_string(path).unwrap();
        let vectors: Vec<serde_json::Value> = serde_json::from_str(&vectors).unwrap();
        assert!(vectors.len() > 10);
        for vector in vectors {
            let (name, text) = (&vector["name"], vector["text"].as_str().unwrap());
            let read = Loan::decode(text);
            if vector["accept"] == false {
                let refusal = match read.unwrap_err() {
                    LoanError::NotLoan => "not-loan",
                    LoanError::Version => "version",
                    LoanError::Altered => "altered",
                    LoanError::Mismatch => "mismatch",
                    other => panic!("{name}: {other}"),
                };
                assert_eq!(refusal, vector["reason"], "{name}");
                continue;
            }
            let (loan, expected) = (read.unwrap(), &vector["expect"]);
            assert_eq!(loan.site.view().to_string(), expected["site"].as_str().unwrap(), "{name}");
            assert_eq!(loan.user, expected["user"], "{name}");
            assert_eq!(loan.until_ns, expected["until_ns"].as_u64().unwrap(), "{name}");
            assert_eq!(loan.site_key.to_string(), expected["site_key"].as_str().unwrap());
            assert_eq!(loan.key_id().to_string(), expected["key"].as_str().unwrap(), "{name}");
            // Its own form of the key may have more in it.
            let again = Loan::decode(&loan.encode().unwrap()).unwrap();
            assert_eq!(again.key_id(), loan.key_id(), "{name}");
        }
    }

    #[test]
    fn a_loan_ends_and_prints_no_secret() {
        let made = loan("anna");
        let over = made.check_time().unwrap_err();
        assert!(matches!(over, LoanError::Over { .. }), "{over}");
        let key = encode_url(&made.identity.signer.key().to_pkcs8().unwrap());
        let printed = format!("{made:?} {over}");
        assert!(!printed.contains(&key) && printed.contains("anna"), "{printed}");
    }
}
