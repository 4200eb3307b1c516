//! Exit codes and advice for what cannot be done at a site.

use crate::commands::put::failure as writing;
use crate::exit::{Code, Failure, chain};
use crate::{forwarders, output};
use byname_access::AccessError;
use byname_catalog::{NAME_BYTES_MAX, PATH_NAMES_MAX, Refusal};
use byname_packet::Name;
use byname_site::{HeadFailure, SiteName};

const MAKE_KEY: &str = "make one: byname site user key --site SITE, and have an operator add it";

impl From<AccessError> for Failure {
    fn from(error: AccessError) -> Self {
        let text = error.to_string();
        match error {
            AccessError::Refused(refusal) => refused(refusal),
            AccessError::At { name, refusal } => about(&name, refusal),
            AccessError::Head { failure: HeadFailure::NotAuthentic, .. } => {
                Failure::new(Code::UnknownKey, text)
            }
            AccessError::NoHead { site } => Failure::new(Code::NoRoute, text)
                .hint(format!("is it running? byname catalog {}", output::name(site.view()))),
            AccessError::NoCertificate { .. } | AccessError::Face(_) => {
                Failure::new(Code::NoRoute, text)
            }
            AccessError::Certificate(error) => Failure::new(Code::NotVerified, chain(&error)),
            AccessError::Untrusted { site, source } => {
                let shown = output::name(site.view());
                Failure::new(Code::UnknownKey, chain(&*source)).hint(format!(
                    "trust the site's key: byname trust add LINK, or --site LINK ({shown})"
                ))
            }
            AccessError::OtherSigner => Failure::new(Code::NotVerified, text),
            AccessError::Loan(_) => Failure::new(Code::UnknownKey, text),
            AccessError::NoForwarder { tried } => forwarders::none_answers(tried),
            AccessError::NoKey { site, user } => {
                let shown = output::name(site.view());
                Failure::new(Code::UnknownKey, text).hint(format!(
                    "make one: byname site user key --site {shown} --user {user}, and have an \
                     operator add it"
                ))
            }
            AccessError::NoDoorKey { site, door } => {
                Failure::new(Code::UnknownKey, text).hint(make_door_key(&site, &door))
            }
            AccessError::ForWhom { .. } => Failure::usage(format!("{text} --user USER")),
            AccessError::NoSiteAbove { .. } => Failure::new(Code::UnknownKey, text).hint(MAKE_KEY),
            AccessError::NoAnswerYet => Failure::new(Code::UnknownKey, text),
            AccessError::WhichSite { count: 0 } => {
                Failure::usage("which site? --site NAME, or --site LINK")
            }
            AccessError::WhichSite { .. } => {
                Failure::usage("which site? There are keys for several: --site NAME")
            }
            AccessError::WhichUser { users, .. } => {
                Failure::usage(format!("which user? --user {}", users.join(" or --user ")))
            }
            AccessError::NoSiteName { .. } | AccessError::NotInSite { .. } => Failure::usage(text),
            AccessError::Profile(error) => (*error).into(),
            AccessError::NotAdmitted { user, .. } => Failure::new(Code::NoRoute, text)
                .hint(format!("disks ask {user} for the file, by name")),
            AccessError::Write { name, source } => writing::of(&name, *source),
            AccessError::Read { source, .. } => (*source).into(),
            AccessError::Spool { path, source } => Failure::disk(&path, source),
            AccessError::Stopped => Failure::new(Code::Interrupted, text),
            AccessError::Head { .. }
            | AccessError::Issue(_)
            | AccessError::Malformed(_)
            | AccessError::Line(_)
            | AccessError::OtherAnswer
            | AccessError::Sign(_)
            | AccessError::KeepsChanging { .. } => Failure::new(Code::Other, chain(&error)),
        }
    }
}

/// Advice for who has no key of a door.
fn make_door_key(site: &SiteName, door: &str) -> String {
    let shown = output::name(site.view());
    format!("make one: byname site door key {door} --site {shown}, and have an operator add it")
}

/// A refusal as the end of a command.
fn refused(refusal: Refusal) -> Failure {
    Failure::new(code(refusal), refusal)
}

/// The exit code of a refusal.
pub(crate) fn code(refusal: Refusal) -> Code {
    match refusal {
        Refusal::NotFound
        | Refusal::NoAttribute
        | Refusal::NoSuchDisk
        | Refusal::UnknownKey
        | Refusal::NotInTrash => Code::NotFound,
        Refusal::UnknownUser | Refusal::UnknownDoor => Code::UnknownKey,
        Refusal::AccessDenied
        | Refusal::NotOwner
        | Refusal::NotOperator
        | Refusal::MayNotSpeakFor
        | Refusal::MayNotSpeakForOperator
        | Refusal::MayNotAssertGroup => Code::LocalDisk,
        _ => Code::Other,
    }
}

/// A refusal that concerns a name.
pub(crate) fn about(name: &Name, refusal: Refusal) -> Failure {
    let failure = refused(refusal);
    let message = format!("{}: {}", output::name(name.view()), failure.message);
    let failure = Failure { message, ..failure };
    match refusal {
        Refusal::NameTooLong => failure.hint(format!(
            "a name has at most {NAME_BYTES_MAX} octets, a path at most {PATH_NAMES_MAX} names"
        )),
        _ => failure,
    }
}
