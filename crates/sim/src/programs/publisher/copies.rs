//! Making mirrors: what a copier keeps with the files it has fetched.

use byname_packet::lp::LpPacket;
use byname_packet::{Data, InterestBuilder};
use byname_transfer::metadata::{ContentRoot, Metadata};
use byname_transfer::naming::metadata_name;
use byname_transfer::server::{KeptObject, MirrorOptions};

use super::{DiskTimes, Publisher};
use crate::disk::Disk;
use crate::program::{Now, Program};
use crate::world::SECOND;

/// Time that the publisher may take to know the root of a file.
const HASHING_NS: u64 = 600 * SECOND;

impl Publisher {
    /// A server of copies of files that this publisher has, at the same names: the production
    /// engine as a mirror. It has the packets that this publisher signs now, and signs nothing.
    /// Files that the publisher does not describe are left out.
    ///
    /// To be called before this publisher is part of a world: `now` is what its clock shows then.
    pub fn mirror(&mut self, paths: &[&str], times: DiskTimes, now: Now) -> Publisher {
        let mut disk = Disk::default();
        let mut kept = Vec::new();
        for path in paths {
            let Some(file) = self.disk.find(path.as_bytes()) else { continue };
            let Some(packet) = self.describe(path, now) else { continue };
            disk.put(path, file.seed, file.size, file.changed_ns);
            let certificates = vec![self.certificate.clone()];
            let object = KeptObject { packet, certificates, listing: None };
            kept.push((path.as_bytes().to_vec(), object));
        }
        let prefix = self.mount.prefix.clone();
        // The key is there because a mount has one; a mirror never signs.
        let mut mirror = Publisher::new(&prefix, self.key_seed, disk, times);
        mirror.kept = Some(kept.into_iter().collect());
        mirror.server.mirror(0, MirrorOptions::default());
        mirror
    }

    /// Metadata packet of a file, asked for until its root is known.
    fn describe(&mut self, path: &str, mut now: Now) -> Option<Vec<u8>> {
        let name = path.split('/').fold(self.mount.prefix.clone(), |name, component| {
            name.with_generic(component.as_bytes())
        });
        let mut wire = Vec::new();
        InterestBuilder::new(metadata_name(name.view()).view())
            .can_be_prefix(true)
            .must_be_fresh(true)
            .encode(&mut wire);
        let end_ns = now.now_ns + HASHING_NS;
        let mut ask_ns = now.now_ns;
        while now.now_ns < end_ns {
            if ask_ns <= now.now_ns {
                self.handle_frame(&wire, now);
                // What was signed while the root was not known is not used again by then.
                ask_ns = now.now_ns + 2 * SECOND;
            }
            while let Some(frame) = self.poll_frame(now) {
                if let Some(packet) = description(&frame) {
                    return Some(packet);
                }
            }
            let next_ns = self.poll_timeout().unwrap_or(ask_ns).clamp(now.now_ns + 1, ask_ns);
            let passed_ns = next_ns.max(now.now_ns + 1) - now.now_ns;
            now = Now { now_ns: now.now_ns + passed_ns, unix_ns: now.unix_ns + passed_ns };
            self.handle_timeout(now);
        }
        None
    }
}

/// The packet in a frame, if it says what a file hashes to.
fn description(frame: &[u8]) -> Option<Vec<u8>> {
    let packet = LpPacket::decode(frame).ok()?.fragment?;
    let metadata = Metadata::decode(Data::decode(packet).ok()?.content).ok()?;
    matches!(metadata.root, ContentRoot::Known(_)).then(|| packet.to_vec())
}
