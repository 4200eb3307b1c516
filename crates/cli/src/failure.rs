//! The exit code and the advice for every error of the rooms below.
//!
//! docs/cli.md has the codes. A library says what happened; what a person can do about it at a
//! prompt is said here.

use crate::exit::{Code, Failure, chain};
use crate::output;
use byname_client::ClientError;
use byname_io::{BindError, EndpointError};
use byname_keychain::{KeychainError, TrustStoreError};
use byname_node::NodeError;
use byname_packet::Name;
use byname_profile::{
    ConfigError, LinkError, PathsError, ProfileError, RemoteError, SeenError, UnknownKey,
};
use byname_security::trust::TrustError;
use byname_store::{StateError, StoreError};
use byname_transfer::error::{ProtocolProblem, ReadError};
use byname_transfer::naming::ContentName;

/// Advice about a link without key in the older form.
pub(crate) const CUT_HINT: &str =
    "a shell cuts an unquoted link at its first `&`: put it between quotes, '…'";

/// An error of the client in one line; of an unknown key with the line to run.
pub(crate) fn text(error: &ClientError) -> String {
    UnknownKey::of(error).map_or_else(|| chain(error), |unknown| unknown.to_string())
}

/// True if a directory was asked for and a file is there.
pub(crate) fn is_a_file(error: &ClientError) -> bool {
    let ClientError::Read(ReadError::Protocol { problem, .. }) = error else { return false };
    *problem == ProtocolProblem::Kind { is_directory: false }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let text = text(&error);
        match &error {
            ClientError::Read(error) => read_failure(error, text),
            ClientError::NoForwarder { .. }
            | ClientError::NoEndpoint
            | ClientError::Unreachable { .. } => Failure::new(Code::NoRoute, text).hint(
                "is the publisher's `byname up` running? --connect URI names another forwarder",
            ),
            ClientError::Disconnected { .. } => Failure::new(Code::NoRoute, text)
                .hint("run the same command again to go on where it stopped"),
            ClientError::NoProgress { .. } => Failure::new(Code::NoRoute, text),
            ClientError::LocalDisk { .. }
            | ClientError::InTheWay { .. }
            | ClientError::Exists { .. } => Failure::new(Code::LocalDisk, text),
            ClientError::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
                Failure::new(Code::Other, "")
            }
            ClientError::Output(_) => Failure::new(Code::LocalDisk, text),
            ClientError::Interrupted => Failure::new(Code::Interrupted, "interrupted")
                .hint("run the same command again to go on where it stopped"),
            _ => Failure::new(Code::Other, text),
        }
    }
}

/// True for content of a site, below the number that its head gave it.
fn is_content(name: &Name) -> bool {
    (0..=name.view().count()).any(|count| ContentName::parse(name.view().prefix(count)).is_some())
}

fn read_failure(error: &ReadError, text: String) -> Failure {
    match error {
        ReadError::NotFound { .. } => Failure::new(Code::NotFound, text),
        ReadError::NoRoute { name } | ReadError::TimeOut { name } if is_content(name) => {
            Failure::new(Code::NoRoute, text).hint(
                "the site has the file, and no disk that answers has its content: `byname site \
                 replica ls` of its name shows where it is",
            )
        }
        ReadError::NoRoute { .. } => Failure::new(Code::NoRoute, text)
            .hint("is the name right, and is its publisher running?"),
        ReadError::TimeOut { .. } | ReadError::RootPending { .. } | ReadError::NotFresh { .. } => {
            Failure::new(Code::NoRoute, text)
        }
        ReadError::NoPermission { .. } => Failure::new(Code::LocalDisk, text),
        ReadError::RolledBack { name, .. } => {
            let name = output::name(name.view());
            Failure::new(Code::NotVerified, text).hint(format!(
                "to accept the older version: byname trust forget '{name}', and move a newer \
                     copy at the target away"
            ))
        }
        ReadError::Trust(TrustError::NoCertificate { .. }) => Failure::new(Code::UnknownKey, text),
        ReadError::Trust(error) if error.is_unknown_key() => Failure::new(Code::UnknownKey, text),
        ReadError::Trust(_)
        | ReadError::BadUnit { .. }
        | ReadError::BadNode { .. }
        | ReadError::Manifest { .. } => Failure::new(Code::NotVerified, text),
        ReadError::Protocol { problem: ProtocolProblem::Kind { is_directory }, .. } => {
            let failure = Failure::new(Code::Other, text);
            match is_directory {
                true => failure.hint("to fetch a directory: byname get -r"),
                false => failure,
            }
        }
        ReadError::Protocol { problem: ProtocolProblem::Link { .. }, .. } => {
            Failure::new(Code::Other, text)
        }
        ReadError::Protocol { .. } => Failure::new(Code::NotVerified, text),
        ReadError::VersionGone { .. }
        | ReadError::BeingWritten { .. }
        | ReadError::BeingListed { .. }
        | ReadError::Unservable { .. } => Failure::new(Code::Other, text),
    }
}

impl From<ProfileError> for Failure {
    fn from(error: ProfileError) -> Self {
        match error {
            ProfileError::Link(error) => error.into(),
            ProfileError::Remote(error) => error.into(),
            ProfileError::Config(error) => error.into(),
            ProfileError::Endpoint(error) => error.into(),
            ProfileError::Paths(error) => error.into(),
            ProfileError::Keychain(error) => error.into(),
            ProfileError::TrustStore(error) => error.into(),
            ProfileError::Seen(error) => error.into(),
            ProfileError::Client(error) => error.into(),
        }
    }
}

impl From<LinkError> for Failure {
    fn from(error: LinkError) -> Self {
        let failure = Failure::usage(&error);
        match error {
            LinkError::PlainName(_) => {
                failure.hint("a short name of `byname remote` has a colon: lab:, lab:run7/x")
            }
            _ => failure,
        }
    }
}

impl From<RemoteError> for Failure {
    fn from(error: RemoteError) -> Self {
        let code = match error {
            RemoteError::Disk { .. } | RemoteError::Line { .. } | RemoteError::TooMany => {
                Code::LocalDisk
            }
            RemoteError::Unknown { .. } => Code::NotFound,
            RemoteError::BadName { .. } | RemoteError::Exists { .. } => Code::Usage,
        };
        Failure::new(code, error)
    }
}

impl From<EndpointError> for Failure {
    fn from(error: EndpointError) -> Self {
        Failure::usage(error)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        match &error {
            ConfigError::Unreadable { .. } => Failure::new(Code::LocalDisk, error),
            ConfigError::Variable { .. } => Failure::usage(error),
            _ => Failure::usage(error).hint("`byname config show` lists every option"),
        }
    }
}

impl From<PathsError> for Failure {
    fn from(error: PathsError) -> Self {
        let failure = Failure::new(Code::LocalDisk, &error);
        match error {
            PathsError::RuntimeShared { .. } => failure
                .hint("set XDG_RUNTIME_DIR or BYNAME_HOME to a directory that is yours alone"),
            PathsError::Disk { .. } => failure,
        }
    }
}

impl From<SeenError> for Failure {
    fn from(error: SeenError) -> Self {
        let failure = Failure::new(Code::LocalDisk, &error);
        match error {
            SeenError::Line { .. } => {
                failure.hint("remove the line, or the file to forget all versions seen")
            }
            SeenError::NotText { .. } | SeenError::TooLong { .. } => {
                failure.hint("remove the file to forget all versions seen")
            }
            SeenError::Disk { .. } => failure,
        }
    }
}

impl From<TrustStoreError> for Failure {
    fn from(error: TrustStoreError) -> Self {
        Failure::new(Code::LocalDisk, chain(&error))
    }
}

impl From<KeychainError> for Failure {
    fn from(error: KeychainError) -> Self {
        let code = match error {
            KeychainError::File(_) => Code::LocalDisk,
            KeychainError::NoIdentity { .. } | KeychainError::NoSuchKey { .. } => Code::NotFound,
            _ => Code::Other,
        };
        Failure::new(code, chain(&error))
    }
}

impl From<NodeError> for Failure {
    fn from(error: NodeError) -> Self {
        let text = chain(&error);
        match error {
            NodeError::Access { .. } => Failure::new(Code::LocalDisk, text),
            NodeError::Bind(error) => bind_failure(&error, text),
            _ => Failure::new(Code::Other, text),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let text = chain(&error);
        match error {
            StoreError::Bind(error) => bind_failure(&error, text),
            StoreError::State(StateError::Locked { .. }) => Failure::new(Code::LocalDisk, text)
                .hint(
                    "another process serves this very name (`byname up`, `serve`, or `catalog` \
                     with the same directory): stop it, or take another name or directory",
                ),
            StoreError::State(_) | StoreError::Mount { .. } => Failure::new(Code::LocalDisk, text),
            StoreError::Prefix { .. } => Failure::usage(text),
            StoreError::Connect(_) => Failure::new(Code::NoRoute, text)
                .hint("start a forwarder first: `byname forward`, or use `byname up`"),
            StoreError::Register(_) => Failure::new(Code::NoRoute, text),
            _ => Failure::new(Code::Other, text),
        }
    }
}

fn bind_failure(error: &BindError, text: String) -> Failure {
    match error {
        BindError::Denied { .. } | BindError::NotASocket { .. } => {
            Failure::new(Code::LocalDisk, text)
        }
        BindError::Endpoint(_) => Failure::usage(text),
        BindError::InUse { .. } => Failure::new(Code::Other, text)
            .hint("stop the other process, or choose another address with --listen"),
        BindError::Failed { .. } => Failure::new(Code::Other, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_that_no_disk_has_is_told_from_a_name_that_is_not_there() {
        let advice = |uri: &str| {
            let name: Name = uri.parse().unwrap();
            let failed = |error| Failure::from(ClientError::Read(error)).hint;
            [failed(ReadError::NoRoute { name: name.clone() }), failed(ReadError::TimeOut { name })]
        };
        for hint in advice("/lab/32=file/seq=30/v=31") {
            assert!(hint.unwrap().contains("byname site replica ls"));
        }
        let [no_route, silence] = advice("/lab/run7/file/30");
        assert!(no_route.unwrap().contains("is the name right"));
        assert_eq!(silence, None);
    }
}
