//! Reasons why something could not be done at a site.

use std::io;
use std::path::PathBuf;

use byname_catalog::Refusal;
use byname_client::{ClientError, Refusals};
use byname_face::FaceError;
use byname_io::IoError;
use byname_keychain::KeychainError;
use byname_packet::{DecodeError, Name, NameRef, SignError};
use byname_profile::ProfileError;
use byname_security::cert::{CertificateError, IssueError};
use byname_security::key::KeyId;
use byname_security::trust::TrustError;
use byname_site::{DiskRefusal, HeadFailure, SiteName, Untrusted};
use byname_writer::WriterError;
use rustix::io::Errno;

use crate::loan::LoanError;

/// Reason why something could not be done at a site.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The catalog refused a command that is about the site as a whole.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The catalog refused something about a name.
    #[error("{}: {refusal}", name.view().to_user())]
    At {
        /// The name.
        name: Name,
        /// Why.
        refusal: Refusal,
    },
    /// The head could not execute the command.
    #[error("{failure}: {reason}")]
    Head {
        /// The kind of failure.
        failure: HeadFailure,
        /// What the head said.
        reason: String,
    },
    /// Nobody answered for the head.
    #[error("the head of {} does not answer", site.view().to_user())]
    NoHead {
        /// The site.
        site: SiteName,
    },
    /// The certificate of whoever signed an answer cannot be had.
    #[error("nobody answers with the certificate {}", name.view().to_user())]
    NoCertificate {
        /// Its name.
        name: Name,
    },
    /// A certificate that came is none.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// A certificate could not be made.
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// The signature of an answer does not count.
    #[error("{source}")]
    Untrusted {
        /// The site.
        site: SiteName,
        /// Why.
        source: Box<Untrusted>,
    },
    /// The answer is not the site's.
    #[error("the answer is signed by somebody else than the site")]
    OtherSigner,
    /// No answer of the site was verified yet.
    #[error("the certificate of the site is not known")]
    NoAnswerYet,
    /// An answer is malformed.
    #[error("a malformed answer: {0}")]
    Malformed(#[from] DecodeError),
    /// A line of an answer is no JSON.
    #[error("a malformed answer: {0}")]
    Line(#[from] serde_json::Error),
    /// The answer is none to what was asked.
    #[error("the head answered something else than was asked")]
    OtherAnswer,
    /// A command could not be signed.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// The connection failed.
    #[error(transparent)]
    Face(#[from] FaceError),
    /// Nobody answers at any forwarder.
    #[error("{}", tried.as_ref().map_or("no forwarder to ask".to_owned(), ToString::to_string))]
    NoForwarder {
        /// Why each does not; `None` if there was none to try.
        tried: Option<Refusals>,
    },
    /// There is no key of this user here.
    #[error("there is no key of {user} at {} here", site.view().to_user())]
    NoKey {
        /// The site.
        site: SiteName,
        /// The user.
        user: String,
    },
    /// There is no key of this door here.
    #[error("there is no key of the door {door} of {} here", site.view().to_user())]
    NoDoorKey {
        /// The site.
        site: SiteName,
        /// The door.
        door: String,
    },
    /// A door acts for nobody.
    #[error("for which user does the door {door} act?")]
    ForWhom {
        /// The door.
        door: String,
    },
    /// There is no key here for a site above a name.
    #[error("there is no key here for a site above {}", name.view().to_user())]
    NoSiteAbove {
        /// The name.
        name: Name,
    },
    /// There are keys for no site, or for several, and none was named.
    #[error("which site? There are keys here for {count}")]
    WhichSite {
        /// Sites that there are keys for.
        count: usize,
    },
    /// There are keys of several users, and none was named.
    #[error("which user of {}? There are keys here of {}", site.view().to_user(), users.join(", "))]
    WhichUser {
        /// The site.
        site: SiteName,
        /// Users whose keys are here.
        users: Vec<String>,
    },
    /// The name cannot be that of a site.
    #[error("{} is no name of a site", name.view().to_user())]
    NoSiteName {
        /// The name.
        name: Name,
    },
    /// A name is not in the site.
    #[error("{} is not in the site {}", name.view().to_user(), site.view().to_user())]
    NotInSite {
        /// The name.
        name: Name,
        /// The site.
        site: SiteName,
    },
    /// Configuration, keys or trust cannot be read.
    #[error(transparent)]
    Profile(Box<ProfileError>),
    /// The forwarder takes nothing of the user: disks could not ask for what is written.
    #[error(
        "{}: this forwarder takes no files of {user}: {said}; its operator starts it with \
         --allow-register '{}={}'",
        name.view().to_user(),
        prefix.view().to_user(),
        key.map_or_else(|| format!("KEY of {user}, not of the loan"), |key| key.to_string())
    )]
    NotAdmitted {
        /// What should be written.
        name: Name,
        /// The user.
        user: Box<str>,
        /// Prefix that the forwarder would have to take.
        prefix: Name,
        /// Digest of the user's key; `None` if a lent one signs, which is admitted by the user's.
        key: Option<KeyId>,
        /// The forwarder's words.
        said: Box<str>,
    },
    /// A file was not written.
    #[error("{}: {source}", name.view().to_user())]
    Write {
        /// The file.
        name: Name,
        /// Why.
        source: Box<WriterError>,
    },
    /// A file could not be read.
    #[error("{}: {source}", name.view().to_user())]
    Read {
        /// The file.
        name: Name,
        /// Why.
        source: Box<ClientError>,
    },
    /// Content cannot be kept on the local disk until it is written.
    #[error("{}: {source}", path.display())]
    Spool {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others go on changing it.
    #[error("{}: somebody goes on writing in it", name.view().to_user())]
    KeepsChanging {
        /// What is changed.
        name: Name,
    },
    /// A lent key does not count.
    #[error(transparent)]
    Loan(#[from] LoanError),
    /// It was told to stop.
    #[error("interrupted")]
    Stopped,
}

impl From<ProfileError> for AccessError {
    fn from(error: ProfileError) -> Self {
        Self::Profile(Box::new(error))
    }
}

impl From<KeychainError> for AccessError {
    fn from(error: KeychainError) -> Self {
        ProfileError::from(error).into()
    }
}

impl AccessError {
    /// A refusal about a name.
    pub fn at(name: NameRef<'_>, refusal: Refusal) -> Self {
        Self::At { name: name.to_name(), refusal }
    }

    /// A file that was not written.
    pub(crate) fn write(name: &Name, source: WriterError) -> Self {
        Self::Write { name: name.clone(), source: Box::new(source) }
    }

    /// The same error, about a name if it is a refusal.
    #[must_use]
    pub fn about(self, name: &Name) -> Self {
        match self {
            Self::Refused(refusal) => Self::At { name: name.clone(), refusal },
            other => other,
        }
    }

    /// The refusal, if the catalog refused.
    pub fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Refused(refusal) | Self::At { refusal, .. } => Some(*refusal),
            Self::Write { source, .. } => match **source {
                WriterError::Refused(refusal) => Some(refusal),
                _ => None,
            },
            _ => None,
        }
    }

    /// True if a forwarder, the head or disks cannot be reached, perhaps for a moment only.
    pub(crate) fn is_outage(&self) -> bool {
        match self {
            Self::NoForwarder { .. } | Self::Face(_) => true,
            Self::Write { source, .. } => matches!(
                **source,
                WriterError::Face(_) | WriterError::NoRoute | WriterError::SilentDisk { .. }
            ),
            _ => false,
        }
    }

    /// True if the writer has ended the attempt itself, so that no commit of it comes through.
    pub(crate) fn was_given_up(&self) -> bool {
        match self {
            Self::Write { source, .. } => matches!(**source, WriterError::SilentDisk { .. }),
            _ => false,
        }
    }

    /// The errno for programs that know only numbers; README.md has the table.
    pub fn errno(&self) -> i32 {
        let number = match self {
            Self::Refused(refusal) | Self::At { refusal, .. } => return refusal.errno(),
            Self::Head { failure, .. } => of_head(*failure),
            Self::NoHead { .. } | Self::NoCertificate { .. } => Errno::HOSTUNREACH,
            Self::Certificate(_)
            | Self::Issue(_)
            | Self::OtherSigner
            | Self::Malformed(_)
            | Self::Line(_)
            | Self::OtherAnswer
            | Self::Sign(_) => Errno::IO,
            Self::Untrusted { source, .. } => of_untrusted(source),
            Self::Face(error) => return of_face(error),
            Self::NoForwarder { tried } => {
                return tried
                    .as_ref()
                    .map_or(Errno::HOSTUNREACH.raw_os_error(), |tried| tried.telling().errno());
            }
            Self::NoAnswerYet
            | Self::NoKey { .. }
            | Self::NoDoorKey { .. }
            | Self::NoSiteAbove { .. } => Errno::NOKEY,
            Self::WhichSite { .. }
            | Self::WhichUser { .. }
            | Self::ForWhom { .. }
            | Self::NoSiteName { .. } => Errno::INVAL,
            Self::NotAdmitted { .. } => Errno::ACCESS,
            Self::NotInSite { .. } => Errno::XDEV,
            Self::Loan(LoanError::Over { .. }) => Errno::KEYEXPIRED,
            Self::Loan(_) => Errno::KEYREJECTED,
            Self::Profile(error) => return error.errno(),
            Self::Write { source, .. } => return of_writer(source),
            Self::Read { source, .. } => return source.errno(),
            Self::Spool { source, .. } => return of_io(source),
            Self::KeepsChanging { .. } => Errno::BUSY,
            Self::Stopped => Errno::INTR,
        };
        number.raw_os_error()
    }

    /// True if the same may succeed in a while.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::NoHead { .. }
            | Self::NoCertificate { .. }
            | Self::Face(_)
            | Self::NoForwarder { .. }
            | Self::KeepsChanging { .. }
            | Self::Stopped => true,
            Self::Head { failure, .. } => failure.is_retryable(),
            Self::Write { source, .. } => match &**source {
                WriterError::Head { failure, .. } => failure.is_retryable(),
                WriterError::NoAnswer { .. }
                | WriterError::NoRoute
                | WriterError::SilentDisk { .. }
                | WriterError::Face(_)
                | WriterError::Stopped => true,
                _ => false,
            },
            _ => false,
        }
    }
}

fn of_head(failure: HeadFailure) -> Errno {
    match failure {
        HeadFailure::NotLeading | HeadFailure::Busy | HeadFailure::NoKeys => Errno::AGAIN,
        HeadFailure::Engine | HeadFailure::Malformed | HeadFailure::Replayed => Errno::REMOTEIO,
        HeadFailure::NotAuthentic => Errno::ACCESS,
        HeadFailure::Clock => Errno::KEYREJECTED,
    }
}

fn of_untrusted(error: &Untrusted) -> Errno {
    match error {
        Untrusted::Trust(error) if error.is_unknown_key() => Errno::NOKEY,
        Untrusted::Trust(TrustError::Expired { .. }) => Errno::KEYEXPIRED,
        Untrusted::Trust(TrustError::Revoked { .. }) => Errno::KEYREVOKED,
        _ => Errno::KEYREJECTED,
    }
}

fn of_face(error: &FaceError) -> i32 {
    match error {
        FaceError::Io(error) => error.errno(),
        FaceError::Register(_) => Errno::ACCESS.raw_os_error(),
        FaceError::Link(_) => Errno::MSGSIZE.raw_os_error(),
        FaceError::Full(_) => Errno::NOBUFS.raw_os_error(),
        FaceError::Closed => Errno::CONNRESET.raw_os_error(),
    }
}

fn of_writer(error: &WriterError) -> i32 {
    let number = match error {
        WriterError::Refused(refusal) => return refusal.errno(),
        WriterError::Head { failure, .. } => of_head(*failure),
        WriterError::NoAnswer { .. } | WriterError::SilentDisk { .. } => Errno::TIMEDOUT,
        WriterError::NoRoute => Errno::HOSTUNREACH,
        WriterError::Untrusted(error) => of_untrusted(error),
        WriterError::Malformed(_) | WriterError::OtherAnswer | WriterError::Sign(_) => Errno::IO,
        WriterError::Disk { refusal: DiskRefusal::Full, .. } => Errno::NOSPC,
        WriterError::Disk { .. } => Errno::REMOTEIO,
        WriterError::Changed { .. } => Errno::BUSY,
        WriterError::Local { source, .. } => return of_io(source),
        WriterError::Face(error) => return of_face(error),
        WriterError::Stopped => Errno::INTR,
    };
    number.raw_os_error()
}

fn of_io(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(Errno::IO.raw_os_error())
}

impl From<IoError> for AccessError {
    fn from(error: IoError) -> Self {
        Self::Face(error.into())
    }
}
