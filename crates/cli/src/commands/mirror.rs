//! `serve --mirror`: serving copies with what their publisher signed, without any key.

use super::daemon::{Publication, mirror_state_dir};
use super::serving::ServingArgs;
use crate::exit::{Failure, Outcome};
use crate::output;
use byname_keychain::Keychain;
use byname_packet::{DigestSigner, Name};
use byname_profile::{Paths, Profile};
use byname_store::{
    Exposure, FileServer, FileServerConfig, MirrorConfig, MountConfig, MountSource,
};
use byname_transfer::server::{Counters, MirrorOptions, SharedSigner};
use serde_json::json;
use std::sync::Arc;

/// Components of a certificate's name from `KEY` on.
const AFTER_IDENTITY: usize = 4;

/// Flags of a mirror.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct MirrorArgs {
    /// Serve copies (`byname get`, `byname sign`) with what their publisher signed; needs no key.
    #[arg(long, conflicts_with_all = ["checksums", "watch"])]
    pub(crate) mirror: bool,
    /// Let the mirror answer readers who want the publisher's word of this moment with its word
    /// of another: for software that asks for nothing else. They cannot tell how old it is.
    #[arg(long, requires = "mirror")]
    answer_fresh: bool,
    /// Report of what the mirror did, as one JSON object at the end.
    #[arg(long, requires = "mirror")]
    json: bool,
}

/// Opens a server of copies. Its commands to the forwarder are signed with a key of this user if
/// there is one for the name; what it serves, never.
pub(crate) fn server(
    profile: &Profile,
    publication: &Publication,
    exposure: Exposure,
    (args, serving): (MirrorArgs, &ServingArgs),
) -> Outcome<FileServer> {
    let paths = profile.paths();
    let signer = command_signer(paths, &publication.name)?;
    let mount = MountConfig {
        prefix: publication.name.clone(),
        source: MountSource::Directory { directory: publication.directory.clone(), exposure },
        signer: signer.clone(),
    };
    let state = mirror_state_dir(paths, &publication.name);
    let mut config = FileServerConfig::new(vec![mount], state);
    let options = MirrorOptions { answers_fresh: args.answer_fresh };
    config.mirror = Some(MirrorConfig { copies: paths.copies.clone(), options });
    let directory = &publication.directory;
    let certificates = byname_store::mirror::certificates(directory, &paths.copies)
        .map_err(|error| Failure::disk(directory, error))?;
    if certificates.is_empty() {
        output::err_line(&format!(
            "{}: no packet of a publisher was kept here, so there is nothing to serve yet; \
             `byname get` keeps them, `byname sign` writes them",
            directory.display()
        ));
    }
    for (name, wire) in certificates {
        let depth = name.view().count().saturating_sub(AFTER_IDENTITY);
        let keys =
            name.view().without_last(name.view().count() - depth).to_name().with_generic(b"KEY");
        let is_known = config.also_register.iter().any(|(known, _)| *known == keys);
        if !publication.name.view().is_prefix_of(keys.view()) && !is_known {
            config.also_register.push((keys, signer.clone()));
        }
        config.certificates.push(wire);
    }
    serving.apply(profile.settings(), &mut config);
    Ok(FileServer::new(config)?)
}

fn command_signer(paths: &Paths, name: &Name) -> Outcome<SharedSigner> {
    if matches!(paths.keys.try_exists(), Ok(false)) {
        return Ok(Arc::new(DigestSigner));
    }
    let keychain = Keychain::open(&paths.keys)?;
    let identity = keychain.identity_for(name.view())?;
    Ok(match identity {
        Some(identity) => Arc::new(identity.signer.clone()),
        None => Arc::new(DigestSigner),
    })
}

/// Says what a mirror did.
pub(crate) fn report(counters: &Counters, args: MirrorArgs) {
    if args.json {
        output::json_line(json!({
            "metadata": counters.mirror_metadata,
            "segments": counters.segments + counters.listing_segments,
            "certificates": counters.fixed,
            "hidden_changed": counters.mirror_changed,
            "refused_not_fresh": counters.mirror_unfresh,
            "not_here": counters.mirror_elsewhere,
        }));
    } else {
        output::err_line(&format!(
            "mirror: {} packets of publishers and {} segments sent; {} times a changed copy was \
             hidden",
            counters.mirror_metadata,
            counters.segments + counters.listing_segments,
            counters.mirror_changed
        ));
    }
}
