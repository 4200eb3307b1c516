//! Parts that `up`, `serve` and `forward` share: listening, publishing, links, signals.
//!
//! The forwarder and the file server each have a thread; the main thread starts them, waits for a
//! signal or for one of them to end, and stops the other.

use super::segments::SegmentArgs;
use super::serving::ServingArgs;
use crate::exit::{Code, Failure, Outcome, chain};
use crate::output;
use byname_io::{Clock, ConnectError, Connection, Endpoint};
use byname_keychain::{Identity, Keychain};
use byname_node::{Node, NodeConfig, NodeError, Stop};
use byname_packet::Name;
use byname_profile::{Link, Paths, Profile, Settings};
use byname_store::{
    Exposure, FileServer, FileServerConfig, MountConfig, MountSource, RegisterError, ServerEvent,
    ServerHandle, StoreError,
};
use byname_transfer::server::SharedSigner;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// Files of a directory that are published.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct ExposureArgs {
    /// Publish dot-files too.
    #[arg(long)]
    hidden: bool,
    /// Publish files that only their owner can read.
    #[arg(long)]
    private: bool,
}

impl ExposureArgs {
    pub(crate) fn exposure(self, settings: &Settings) -> Exposure {
        Exposure {
            hidden: self.hidden || settings.switch("server.hidden"),
            private: self.private || settings.switch("server.private"),
        }
    }
}

/// A directory and the name it gets.
#[derive(Debug, Clone)]
pub(crate) struct Publication {
    pub(crate) name: Name,
    pub(crate) directory: PathBuf,
}

/// The event that ends the process.
pub(crate) enum Ending {
    Signal,
    Node(Result<(), NodeError>),
    /// With what the operator of the forwarder would have to do if it was refused.
    Server(Result<(), StoreError>, String),
}

/// Collects endings from all threads.
pub(crate) struct Endings {
    sender: Sender<Ending>,
    receiver: Receiver<Ending>,
}

impl Endings {
    /// Takes SIGINT and SIGTERM from now on.
    pub(crate) fn watch_signals() -> Outcome<Self> {
        byname_io::descriptors::raise_limit();
        let (sender, receiver) = channel();
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])
            .map_err(|error| Failure::new(Code::Other, format!("signals: {error}")))?;
        let on_signal = sender.clone();
        std::thread::spawn(move || {
            if signals.forever().next().is_some() {
                let _ = on_signal.send(Ending::Signal);
            }
        });
        Ok(Self { sender, receiver })
    }

    /// Runs the forwarder on a thread of its own.
    pub(crate) fn spawn_node(&self, mut node: Node) -> Stop {
        let stop = node.stop_handle();
        let handle = stop.clone();
        let sender = self.sender.clone();
        std::thread::spawn(move || {
            let _ = sender.send(Ending::Node(node.run(&stop)));
        });
        handle
    }

    /// Runs the file server on a thread of its own; `ready` is called once it can be reached.
    /// `allow` are the flags with which a forwarder on another machine accepts it.
    pub(crate) fn spawn_server(
        &self,
        (server, allow): (FileServer, String),
        mut connect: impl FnMut() -> Result<Connection, ConnectError> + Send + 'static,
        ready: impl Fn() + Send + 'static,
    ) -> (ServerHandle, JoinHandle<()>) {
        let handle = server.handle();
        let sender = self.sender.clone();
        let thread = std::thread::spawn(move || {
            let mut announced = false;
            let result = server.run(&mut connect, &mut |event| match event {
                ServerEvent::Ready if !announced => {
                    announced = true;
                    ready();
                }
                ServerEvent::Ready => output::err_line("attached again"),
                ServerEvent::Disconnected { reason } => {
                    output::err_line(&format!("the forwarder went away ({reason}); reconnecting"));
                }
                ServerEvent::Retrying { error } => tracing::info!("{}", chain(error)),
            });
            let _ = sender.send(Ending::Server(result, allow));
        });
        (handle, thread)
    }

    /// Runs a file server that has no forwarder on a thread of its own. Once that has ended, the
    /// server's sockets are gone.
    pub(crate) fn spawn_server_alone(&self, server: FileServer) -> (ServerHandle, JoinHandle<()>) {
        let handle = server.handle();
        let sender = self.sender.clone();
        let thread = std::thread::spawn(move || {
            let _ = sender.send(Ending::Server(server.run_alone(), String::new()));
        });
        (handle, thread)
    }

    /// Waits for the first ending and says whether it was a good one.
    pub(crate) fn wait(self) -> Outcome {
        match self.receiver.recv() {
            Ok(Ending::Node(Err(error))) => Err(error.into()),
            Ok(Ending::Server(Err(error), allow)) => Err(refusal(error, &allow)),
            _ => Ok(()),
        }
    }
}

/// A forwarder with the configuration's options that listens at these endpoints.
pub(crate) fn node(settings: &Settings, listen: Vec<Endpoint>) -> Outcome<Node> {
    let config = NodeConfig { listen, ..crate::node_config::from_settings(settings)? };
    Ok(Node::new(config)?)
}

/// A failure of a running server: if a forwarder elsewhere refused, what would let us in.
fn refusal(error: StoreError, allow: &str) -> Failure {
    let is_remote = matches!(
        error,
        StoreError::Register(
            RegisterError::Refused { is_local: false, code: 401 | 403, .. }
                | RegisterError::Silent { is_local: false, .. }
        )
    );
    let failure = Failure::from(error);
    if !is_remote {
        return failure;
    }
    failure.hint(format!("its operator has to run: byname forward {allow}"))
}

/// Opens the file server of a publication, making its identity if that is missing.
///
/// Each published name has a server and a state of its own, so that any number of `up` and `serve`
/// can run side by side, and what was announced of a name does not depend on what else is
/// published.
pub(crate) fn file_server(
    profile: &Profile,
    publication: &Publication,
    exposure: Exposure,
) -> Outcome<(FileServer, Identity)> {
    let (segments, serving) = (SegmentArgs::default(), ServingArgs::default());
    file_server_with(profile, publication, exposure, (&segments, &serving))
}

/// The same with a choice of signatures for segments, and of how it serves.
pub(crate) fn file_server_with(
    profile: &Profile,
    publication: &Publication,
    exposure: Exposure,
    (segments, serving): (&SegmentArgs, &ServingArgs),
) -> Outcome<(FileServer, Identity)> {
    let paths = profile.paths();
    let keychain = Keychain::open(&paths.keys)?;
    let identity = identity(&keychain, &publication.name)?;
    let signer: SharedSigner = Arc::new(identity.signer.clone());
    let mount = MountConfig {
        prefix: publication.name.clone(),
        source: MountSource::Directory { directory: publication.directory.clone(), exposure },
        signer: signer.clone(),
    };
    let state = state_dir(paths, &publication.name);
    let mut config = FileServerConfig::new(vec![mount], state);
    let segments = segments.signer(paths, &identity)?;
    config.segment_signer = segments.signer;
    let certificates = keychain.certificates_to_serve(identity.prefix.view())?;
    config.certificates = certificates.iter().map(|it| it.wire().to_vec()).collect();
    config.certificates.extend(segments.certificate);
    if !publication.name.view().is_prefix_of(identity.prefix.view()) {
        // The key belongs to a name above: its certificates must be reachable too.
        config.also_register = vec![(identity.prefix.with_generic(b"KEY"), signer)];
    }
    serving.apply(profile.settings(), &mut config);
    let server = FileServer::new(config)?;
    Ok((server, identity))
}

/// The flags with which a forwarder elsewhere lets this publication register what it registers.
pub(crate) fn allow_flags(publication: &Publication, identity: &Identity) -> String {
    let key = identity.certificate.key_id();
    let mut prefixes = vec![publication.name.clone()];
    if !publication.name.view().is_prefix_of(identity.prefix.view()) {
        prefixes.push(identity.prefix.with_generic(b"KEY"));
    }
    let flags = prefixes.iter().map(|prefix| {
        let prefix = output::name(prefix.view());
        format!("--allow-register '{prefix}={key}'")
    });
    flags.collect::<Vec<String>>().join(" ")
}

/// The state directory of the server of a name.
pub(crate) fn state_dir(paths: &Paths, name: &Name) -> PathBuf {
    paths.state.join("serve").join(state_name(name))
}

/// The state directory of a mirror of a name.
pub(crate) fn mirror_state_dir(paths: &Paths, name: &Name) -> PathBuf {
    paths.state.join("mirror").join(state_name(name))
}

/// A directory name for a name of any length.
pub(crate) fn state_name(name: &Name) -> String {
    blake3::hash(name.view().value()).to_hex()[..32].to_owned()
}

fn identity(keychain: &Keychain, name: &Name) -> Outcome<Identity> {
    if let Some(identity) = keychain.identity_for(name.view())? {
        return Ok(identity);
    }
    let now_ns = Clock::new().unix_ns();
    let identity =
        keychain.create_identity(name.view(), byname_security::key::Algorithm::default(), now_ns);
    let identity = identity?;
    output::err_line(&format!(
        "made a key for {}: {}",
        output::name(name.view()),
        identity.certificate.key_id()
    ));
    Ok(identity)
}

/// The link to a publication.
pub(crate) fn link(publication: &Publication, identity: &Identity, via: &[String]) -> Link {
    Link {
        name: publication.name.clone(),
        via: via.to_vec(),
        key: Some(identity.certificate.key_id()),
    }
}
