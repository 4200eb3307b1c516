//! Management's side of the forwarder: it is called with a view, and its actions are carried out.

use byname_packet::Interest;
use byname_packet::lp::LpHeader;

use super::Forwarder;
use super::view::Tables;
use crate::counters::DropReason;
use crate::face::{
    FaceFailure, FaceId, FaceInfo, FaceOptions, FaceRequest, Persistency, RequestId,
};
use crate::face_table::Face;
use crate::management::{Action, Asker, Erasure, Management, Turn};
use crate::pipeline::Arrival;
use crate::shard::Change;
use crate::tx::Tx;

impl Forwarder {
    /// The next request of management to the driver.
    pub fn poll_request(&mut self) -> Option<(RequestId, FaceRequest)> {
        self.management.poll_request()
    }

    /// Takes the driver's report on a request and answers the client that waits for it. Unknown
    /// requests, and those that need no report, are ignored.
    pub fn complete_request(
        &mut self,
        id: RequestId,
        outcome: Result<FaceId, FaceFailure>,
        now_ns: u64,
        tx: &mut dyn Tx,
    ) {
        self.manage(now_ns, tx, |management, turn| management.complete_request(turn, id, outcome));
    }

    /// Sets the FaceUris on which the driver accepts peers, for `faces/channels`.
    pub fn set_channels(&mut self, local_uris: Vec<String>) {
        self.management.set_channels(local_uris);
    }

    /// Lets management act on the tables as they are, then carries out what it wants.
    fn manage<R>(
        &mut self,
        now_ns: u64,
        tx: &mut dyn Tx,
        act: impl FnOnce(&mut Management, &mut Turn<'_>) -> R,
    ) -> R {
        let mut actions = std::mem::take(&mut self.actions);
        let view = Tables {
            pipeline: &self.pipeline,
            rib: &self.rib,
            others: &self.others,
            shard_count: self.config.shard_count(),
        };
        let unix_ns = self.config.unix_ns(now_ns);
        let mut turn = Turn { view: &view, now_ns, unix_ns, actions: &mut actions };
        let result = act(&mut self.management, &mut turn);
        for action in actions.drain(..) {
            self.carry_out(action, now_ns, tx);
        }
        self.actions = actions;
        result
    }

    fn carry_out(&mut self, action: Action, now_ns: u64, tx: &mut dyn Tx) {
        match action {
            Action::Reply { asker, packet } => {
                let header = LpHeader { pit_token: asker.token.get(), ..LpHeader::default() };
                self.pipeline.send_data(asker.face, &header, &packet, tx);
            }
            Action::Express { interest, next_hop } => {
                let face = self.own_face();
                let next_hop_face_id = next_hop.map(|face| face.0);
                let header = LpHeader { next_hop_face_id, ..LpHeader::default() };
                self.handle_packet(face, &header, &interest, now_ns, tx);
            }
            Action::AddRoute { prefix, route } => {
                let added = self.add_route(&prefix, route);
                debug_assert!(added.is_ok(), "management has looked whether there is room");
            }
            Action::RemoveRoute { prefix, face, origin } => {
                self.remove_route(&prefix, face, origin);
            }
            Action::SetStrategy { prefix, strategy } => self.set_strategy(&prefix, strategy),
            Action::UnsetStrategy { prefix } => self.unset_strategy(&prefix),
            Action::ConfigureStore { capacity, admits, serves } => {
                self.configure_store(capacity, admits, serves);
            }
            Action::Erase(erasure) => self.erase(erasure, now_ns, tx),
            Action::SetFace { face, options, persistency } => {
                if let Some(face) = self.pipeline.faces.get_mut(face) {
                    face.options = options;
                    face.info.persistency = persistency;
                }
                self.record_face(face);
            }
        }
    }

    fn erase(&mut self, erasure: Erasure, now_ns: u64, tx: &mut dyn Tx) {
        let (prefix, max) = (erasure.prefix.clone(), erasure.packets_max);
        let (store, hasher) = (&mut self.pipeline.cs, &self.pipeline.hasher);
        let count = store.erase(prefix.view(), hasher, max);
        let has_more = store.has_below(prefix.view(), hasher);
        self.record(|| Change::Erase(prefix, max));
        self.manage(now_ns, tx, |_, turn| {
            Management::handle_erased(turn, erasure, count, has_more);
        });
    }

    /// The face over which the forwarder itself asks. It is like others to the pipeline, but what
    /// is sent to it lands in an inbox, and clients do not see it.
    fn own_face(&mut self) -> FaceId {
        if let Some(face) = self.own_face {
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
        // It chooses the face over which a certificate is to be had.
        face.options = FaceOptions { local_fields: true, ..FaceOptions::default() };
        let id = self.pipeline.faces.add(face);
        self.own_face = Some(id);
        id
    }

    /// Data for the forwarder itself.
    fn inbox(&self) -> Option<&Vec<Vec<u8>>> {
        self.pipeline.faces.get(self.own_face?)?.inbox.as_ref()
    }

    /// Lets management answer an Interest that the pipeline has found to be for it.
    pub(super) fn manage_interest(
        &mut self,
        arrival: &Arrival<'_>,
        packet: &[u8],
        tx: &mut dyn Tx,
    ) -> Result<(), DropReason> {
        let interest = Interest::decode(packet).map_err(|_| DropReason::Malformed)?;
        let asker = Asker::of(arrival.face, arrival.header).ok_or(DropReason::ForbiddenHeader)?;
        self.manage(arrival.now_ns, tx, |management, turn| {
            management.handle_interest(turn, asker, &interest)
        })
    }

    /// Time at which [`Forwarder::maintain_management`] has something to do.
    pub(super) fn management_due_ns(&self) -> Option<u64> {
        let has_answers =
            self.management.awaits_answers() && self.inbox().is_some_and(|inbox| !inbox.is_empty());
        if has_answers { Some(0) } else { self.management.poll_timeout() }
    }

    /// Hands management what has come for it, and lets it do what is due.
    pub(super) fn maintain_management(&mut self, now_ns: u64, tx: &mut dyn Tx) {
        let own = self.own_face.and_then(|face| self.pipeline.faces.get_mut(face));
        let inbox = own.and_then(|face| face.inbox.as_mut()).map(std::mem::take);
        for packet in inbox.unwrap_or_default() {
            self.manage(now_ns, tx, |management, turn| management.handle_answer(turn, &packet));
        }
        while self.manage(now_ns, tx, Management::handle_next_command) {}
        self.manage(now_ns, tx, Management::handle_timeout);
    }

    /// Notes that something has happened to a face that clients see.
    pub(super) fn note_face_event(&mut self, kind: u64, id: FaceId) {
        let face = self.pipeline.faces.get(id).filter(|face| face.inbox.is_none());
        if let Some(face) = face {
            self.management.on_face_event(kind, face.view(id));
        }
    }
}
