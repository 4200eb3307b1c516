//! Exit codes and advice for what goes wrong while files are written.

use crate::commands::writing::about;
use crate::exit::{Code, Failure, chain};
use crate::output;
use byname_catalog::Refusal;
use byname_packet::Name;
use byname_site::{DiskRefusal, HeadFailure, Untrusted};
use byname_writer::WriterError;
use std::path::Path;

const AGAIN: &str = "run the same command again to go on where it stopped";

/// The end of a command that was about a name.
pub(crate) fn of(name: &Name, error: WriterError) -> Failure {
    let shown = output::name(name.view());
    let text = chain(&error);
    match error {
        WriterError::Refused(refusal) => refused(name, refusal),
        WriterError::Head { failure: HeadFailure::NotAuthentic, .. } => {
            Failure::new(Code::UnknownKey, text).hint("an operator adds keys: byname site user add")
        }
        WriterError::Head { .. } | WriterError::Malformed(_) | WriterError::OtherAnswer => {
            Failure::new(Code::Other, format!("{shown}: {text}"))
        }
        WriterError::NoAnswer { .. } | WriterError::NoRoute => {
            Failure::new(Code::NoRoute, format!("{shown}: {text}")).hint(AGAIN)
        }
        WriterError::Untrusted(Untrusted::Trust(error)) if error.is_unknown_key() => {
            Failure::new(Code::UnknownKey, text)
                .hint("trust the site's key: byname trust add LINK, or --site LINK")
        }
        WriterError::Untrusted(_) => Failure::new(Code::NotVerified, text),
        WriterError::Disk { refusal: DiskRefusal::Full, .. } => {
            Failure::new(Code::Other, format!("{shown}: {text}"))
                .hint("no other disk takes it: byname site disk ls")
        }
        WriterError::Disk { .. } | WriterError::SilentDisk { .. } => {
            Failure::new(Code::Other, format!("{shown}: {text}"))
                .hint("no other disk is left to ask: byname site disk ls")
        }
        WriterError::Changed { .. } | WriterError::Local { .. } => {
            Failure::new(Code::LocalDisk, text)
        }
        WriterError::Sign(_) => Failure::new(Code::Other, format!("{shown}: {text}")),
        WriterError::Face(_) => Failure::new(Code::NoRoute, text).hint(AGAIN),
        WriterError::Stopped => Failure::new(Code::Interrupted, "interrupted").hint(AGAIN),
    }
}

/// A local file that cannot be read.
pub(crate) fn local(path: &Path, error: WriterError) -> Failure {
    match error {
        WriterError::Stopped => Failure::new(Code::Interrupted, "interrupted"),
        WriterError::Local { source, .. } => Failure::disk(path, source),
        error => Failure::new(Code::LocalDisk, chain(&error)),
    }
}

fn refused(name: &Name, refusal: Refusal) -> Failure {
    let failure = about(name, refusal);
    match refusal {
        Refusal::NotFound => failure.hint("what is above it is missing: -p makes that too"),
        Refusal::IsDirectory => {
            let last = output::name(name.view());
            failure.hint(format!("name the file in it: {last}/…"))
        }
        Refusal::NoSpace => failure.hint("disks and their room: byname site disk ls"),
        Refusal::TooMuchReserved => failure.hint(
            "wait until what this user writes at the same time is there; an operator can let a \
             user reserve more: byname site quota set user:NAME --bytes SIZE",
        ),
        Refusal::Leased | Refusal::LeaseLost => {
            let name = output::name(name.view());
            failure.hint(format!("who has it: byname site lease ls {name}"))
        }
        Refusal::UserQuota | Refusal::GroupQuota | Refusal::TreeQuota | Refusal::SpaceQuota => {
            failure.hint(
                "what is removed counts no more: byname rm; in a trash it does until it is gone: \
                 byname site trash purge",
            )
        }
        Refusal::UserGrace | Refusal::GroupGrace | Refusal::TreeGrace | Refusal::SpaceGrace => {
            failure.hint(
                "below the soft limit there is room again: byname rm (and byname site trash purge \
                 where there is a trash), byname site quota ls",
            )
        }
        _ => failure,
    }
}
