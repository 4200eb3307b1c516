//! The face over which the forwarder itself asks.
//!
//! It is a face like others to the pipelines, but what is sent to it lands in an inbox that is
//! emptied by the next call of `handle_timeout`. It is made when it is first needed, and clients do
//! not see it.

use std::collections::BTreeMap;

use byname_packet::lp::LpHeader;
use byname_packet::{Data, Name};

use crate::face::{Face, FaceId, FaceInfo, FaceOptions, Persistency};
use crate::forwarder::{Forwarder, Tx};

/// Answers are awaited for this long.
pub(super) const PATIENCE_NS: u64 = 4_000_000_000;

/// Packets in the inbox; more are dropped, as on any full queue.
pub(crate) const INBOX_MAX: usize = 256;

/// Why the forwarder asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A command to the routing daemon.
    Readvertise,
    /// A certificate; the answer's name may be longer.
    Certificate,
}

/// What the forwarder has asked for.
#[derive(Debug, Default)]
pub(super) struct Internal {
    face: Option<FaceId>,
    /// What is awaited, why and until when.
    awaited: BTreeMap<Name, (Purpose, u64)>,
}

impl Forwarder {
    /// Sends an Interest as an application would, over `next_hop` if one is given.
    pub(super) fn express(
        &mut self,
        (name, purpose): (Name, Purpose),
        wire: &[u8],
        next_hop: Option<FaceId>,
        (now_ns, tx): (u64, &mut dyn Tx),
    ) {
        let face = self.internal_face();
        let until_ns = now_ns.saturating_add(PATIENCE_NS);
        self.management.internal.awaited.insert(name, (purpose, until_ns));
        let next_hop_face_id = next_hop.map(|face| face.0);
        let header = LpHeader { next_hop_face_id, ..LpHeader::default() };
        self.handle_packet(face, &header, wire, now_ns, tx);
    }

    /// Waits no longer for `name`.
    pub(super) fn forget_awaited(&mut self, name: &Name) {
        self.management.internal.awaited.remove(name);
    }

    fn internal_face(&mut self) -> FaceId {
        if let Some(face) = self.management.internal.face {
            return face;
        }
        let uri = String::from("internal://");
        let info = FaceInfo {
            local: true,
            persistency: Persistency::Permanent,
            remote_uri: uri.clone(),
            local_uri: uri,
            ..FaceInfo::default()
        };
        let mut face = Face::new(info);
        face.inbox = Some(Vec::new());
        // It says over which face a certificate is to be had.
        face.options = FaceOptions { local_fields: true, ..FaceOptions::default() };
        let id = self.faces.add(face);
        self.management.internal.face = Some(id);
        id
    }

    pub(super) fn internal_due_ns(&self) -> Option<u64> {
        let Internal { face, awaited } = &self.management.internal;
        if awaited.is_empty() {
            return None;
        }
        let inbox = self.faces.get((*face)?)?.inbox.as_ref()?;
        (!inbox.is_empty()).then_some(0)
    }

    pub(super) fn take_internal_answers(&mut self, now_ns: u64, tx: &mut dyn Tx) {
        let Some(face) = self.management.internal.face else { return };
        let Some(face) = self.faces.get_mut(face) else { return };
        let Some(inbox) = &mut face.inbox else { return };
        for packet in std::mem::take(inbox) {
            let Ok(data) = Data::decode(&packet) else { continue };
            let awaited = &mut self.management.internal.awaited;
            let exact = data.name.to_name();
            match awaited.get(&exact) {
                Some((Purpose::Readvertise, _)) => {
                    awaited.remove(&exact);
                    self.on_readvertise_answer(&exact, &data, now_ns);
                }
                _ => self.on_certificate(&data, now_ns, tx),
            }
        }
        self.management.internal.awaited.retain(|_, (_, until_ns)| *until_ns > now_ns);
    }
}
