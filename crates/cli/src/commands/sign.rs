//! `byname sign`: the publisher's packets for a tree, written beside its files, without a server.
//!
//! A file server runs in this process for as long as it takes, and a client of it asks for
//! everything there is to sign. So what is signed, and under which version, is what `serve` with
//! the same key would say. Packets of a directory are written after all of them were made: writing
//! one changes the state by which the server knows the file.

use super::daemon::{ExposureArgs, Publication, file_server};
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use crate::typed::{directory, name};
use crate::{failure, settings};
use byname_client::{Client, ClientConfig, Copies, LISTING_BYTES_MAX};
use byname_io::{Attachments, Connection};
use byname_packet::{Data, Name};
use byname_profile::Paths;
use byname_security::trust::TrustPolicy;
use byname_transfer::copies::{FILE_SLOT, Kept, LISTING_SLOT, MANIFEST_SLOT};
use byname_transfer::discovery::Discovered;
use byname_transfer::metadata::{Answer, Metadata};
use serde_json::json;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Octets of what is kept with a file.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// Sign a directory for mirrors: `serve --mirror` then publishes it without the key.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname sign /data/run7 --name /lab/run7
  rsync -aX /data/run7 mirror:/data/           -X takes the packets along
  byname serve --mirror /data/run7 --name /lab/run7        on that machine, no key there

The packets are extended attributes of the files (user.byname.*). Sign again after a change.")]
pub(crate) struct Args {
    /// Directory to sign.
    dir: PathBuf,
    /// Its name.
    #[arg(long)]
    name: String,
    /// The key's id; must be the one for this name. Default: the key that `serve` would use.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    #[command(flatten)]
    exposure: ExposureArgs,
    /// One JSON object at the end.
    #[arg(long)]
    json: bool,
}

#[derive(Default)]
struct Counts {
    files: u64,
    directories: u64,
    unchanged: u64,
    failed: u64,
}

struct Signing<'a> {
    client: Client,
    root: &'a Path,
    copies: &'a Copies,
    attachments: Attachments,
    counts: Counts,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let profile = settings::profile(paths)?;
    let publication = Publication { name: name(&args.name)?, directory: directory(&args.dir)? };
    let exposure = args.exposure.exposure(profile.settings());
    let (server, identity) = file_server(&profile, &publication, exposure)?;
    let key = identity.certificate.key_id();
    if args.key.as_ref().is_some_and(|wanted| *wanted != key.to_string()) {
        let shown = output::name(publication.name.view());
        return Err(Failure::new(Code::NotFound, format!("the key for {shown} is {key}")));
    }
    let (ours, theirs) = Connection::pair()
        .map_err(|error| Failure::new(Code::Other, format!("no socket pair: {error}")))?;
    let handle = server.handle();
    let thread = std::thread::spawn(move || server.run_direct(theirs));
    let mut trust = TrustPolicy::default();
    trust.add_anchor(publication.name.clone(), key);
    let config = ClientConfig { trust, ..ClientConfig::default() };
    let copies = profile.copies();
    let client = Client::with_connection(ours, config)?;
    let attachments = Attachments::new(paths.copies.clone());
    let counts = Counts::default();
    let root = &publication.directory;
    let mut signing = Signing { client, root, copies: &copies, attachments, counts };
    let signed = signing.tree(&publication.name);
    handle.stop();
    // It has nothing to say that the client would not have said.
    let _ = thread.join();
    signed?;
    let unkept = copies.failed_count();
    report(args, &signing.counts, unkept);
    if signing.counts.failed + unkept > 0 {
        return Err(Failure::new(Code::SomeFailed, "not everything could be signed"));
    }
    Ok(())
}

fn report(args: &Args, counts: &Counts, unkept: u64) {
    if args.json {
        output::json_line(json!({
            "files": counts.files,
            "directories": counts.directories,
            "unchanged": counts.unchanged,
            "failed": counts.failed + unkept,
        }));
    } else {
        output::err_line(&format!(
            "signed {} files and {} directories; {} files were signed already",
            counts.files, counts.directories, counts.unchanged
        ));
    }
}

impl Signing<'_> {
    /// Signs everything below `name`, directory by directory.
    fn tree(&mut self, name: &Name) -> Outcome {
        let depth = name.view().count();
        let mut ahead = vec![name.clone()];
        while let Some(directory) = ahead.pop() {
            let relative = directory.view().suffix(depth).to_name();
            let mut path = self.root.to_owned();
            for component in relative.view().components() {
                path.push(OsStr::from_bytes(component.value));
            }
            ahead.extend(self.directory(&directory, &path)?);
        }
        Ok(())
    }

    /// Signs what lies in one directory; the directories in it are returned.
    fn directory(&mut self, name: &Name, path: &Path) -> Outcome<Vec<Name>> {
        let manifest = self.client.list_resolved(name)?;
        let plain = self.client.list(name)?;
        let (mut below, mut signed) = (Vec::new(), Vec::new());
        for entry in manifest.safe_entries() {
            let child = name.with_generic(entry.name);
            if entry.is_directory {
                below.push(child);
                continue;
            }
            match self.client.lookup(&child) {
                Ok(found) => signed.push((path.join(OsStr::from_bytes(entry.name)), found)),
                Err(error) => {
                    self.counts.failed += 1;
                    let shown = output::name(child.view());
                    output::err_line(&format!("{shown}: {}", failure::text(&error)));
                }
            }
        }
        self.counts.directories += 1;
        let directory = File::open(path).map_err(|error| Failure::disk(path, error))?;
        // Packets and manifest speak of the same versions: all are written, or none.
        let is_signed = self.has_listing(&directory, plain.payload())
            && signed.iter().all(|(path, found)| self.is_signed(path, found));
        if is_signed {
            self.counts.unchanged += signed.len() as u64;
            return Ok(below);
        }
        for (path, found) in &signed {
            self.keep_file(path, found);
        }
        for listing in [&manifest, &plain] {
            let (is_manifest, found) = (listing.is_manifest(), &listing.discovered);
            self.copies.keep_directory(&directory, is_manifest, found, listing.payload());
        }
        Ok(below)
    }

    /// True if a directory has a manifest, and a listing of these octets.
    fn has_listing(&self, directory: &File, payload: &[u8]) -> bool {
        let kept =
            |slot| self.attachments.get(directory, slot, LISTING_BYTES_MAX as usize).ok().flatten();
        let listing = kept(LISTING_SLOT);
        let listing = listing.as_deref().and_then(|kept| Kept::decode(kept).ok());
        kept(MANIFEST_SLOT).is_some() && listing.is_some_and(|it| it.payload == Some(payload))
    }

    fn is_signed(&self, path: &Path, found: &Discovered) -> bool {
        let Ok(file) = File::open(path) else { return false };
        let kept = self.attachments.get(&file, FILE_SLOT, KEPT_BYTES_MAX).ok().flatten();
        kept.is_some_and(|kept| says_the_same(&kept, found))
    }

    fn keep_file(&mut self, path: &Path, found: &Discovered) {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) => {
                self.counts.failed += 1;
                return output::err_line(&format!("{}: {error}", path.display()));
            }
        };
        self.copies.keep_file(&file, found);
        self.counts.files += 1;
    }
}

/// True if what is there already is about the same name and content and by the same key.
fn says_the_same(kept: &[u8], found: &Discovered) -> bool {
    let facts = |packet: &[u8]| {
        let data = Data::decode(packet).ok()?;
        let Ok(Answer::Metadata(Metadata { name, size, mtime_ns, root, mode, .. })) =
            Answer::decode(&data)
        else {
            return None;
        };
        let key = format!("{:?}", data.signature_info.key_locator);
        Some((name.view().without_last(1).to_name(), size, mtime_ns, root, mode, key))
    };
    let Ok(kept) = Kept::decode(kept) else { return false };
    let (before, now) = (facts(kept.packet), facts(&found.packet));
    before.is_some() && before == now
}
