//! `faces/events`: a stream of numbered notifications.
//!
//! A subscriber first asks for any notification (CanBePrefix, MustBeFresh) and then for each next
//! number, by exact name; an Interest for what has not happened yet waits until it does. The latest
//! notifications are kept for subscribers that fall behind. The driver makes and ends faces outside
//! of any call that could send, so notifications leave with the next call of `handle_timeout`,
//! which is due at once when somebody waits.

use std::collections::VecDeque;

use byname_packet::mgmt::{FaceEventNotification, face_event};
use byname_packet::{DataBuilder, DigestSigner, Name, NameRef, NumberComponent, types};

use super::command::Call;
use super::{Asker, FRESHNESS_MS, PREFIX_LEN};
use crate::counters::DropReason;
use crate::face::{Face, FaceId};
use crate::forwarder::{Forwarder, Tx};

/// Notifications kept.
const HISTORY_MAX: usize = 256;

/// Interests that wait.
const WAITING_MAX: usize = 1024;

/// Components of `/localhost/nfd/faces/events`.
const STREAM_LEN: usize = PREFIX_LEN + 2;

const FRESHNESS_NS: u64 = FRESHNESS_MS * 1_000_000;

#[derive(Debug)]
struct Notification {
    content: Vec<u8>,
    /// The face that was made: the driver says more of it after it is made, so `content` is written
    /// anew until the notification is due.
    made: Option<FaceId>,
    /// When time was seen to pass after it happened; `None` until then.
    sent_ns: Option<u64>,
}

#[derive(Debug)]
struct Subscriber {
    asker: Asker,
    /// The number asked for; `None` takes the next one.
    wanted: Option<u64>,
    expires_ns: u64,
}

/// The stream.
#[derive(Debug, Default)]
pub(super) struct Events {
    history: VecDeque<Notification>,
    /// Number of the first notification in `history`.
    first: u64,
    /// Notifications that have not been looked at yet.
    unsent: usize,
    waiting: Vec<Subscriber>,
}

impl Events {
    fn push(&mut self, content: Vec<u8>, made: Option<FaceId>) {
        if self.history.len() >= HISTORY_MAX {
            self.history.pop_front();
            self.first += 1;
        }
        self.history.push_back(Notification { content, made, sent_ns: None });
        self.unsent = (self.unsent + 1).min(self.history.len());
    }

    fn next(&self) -> u64 {
        self.first + self.history.len() as u64
    }

    fn get(&self, number: u64) -> Option<&Notification> {
        self.history.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// The packet of a notification that is kept.
    fn packet(&self, number: u64) -> Option<Vec<u8>> {
        let content = &self.get(number)?.content;
        let stream: Name = "/localhost/nfd/faces/events".parse().expect("a constant name");
        let sequence = NumberComponent::new(types::SEQUENCE_NUM, number);
        let name = stream.with(sequence.as_component());
        let mut packet = Vec::new();
        DataBuilder::new(name.view())
            .freshness_ms(FRESHNESS_MS)
            .encode(content, &DigestSigner, &mut packet)
            .ok()?;
        Some(packet)
    }

    pub(super) fn due_ns(&self) -> Option<u64> {
        (self.unsent > 0 && !self.waiting.is_empty()).then_some(0)
    }
}

/// The number that a name asks for; `Err` for what is no name of the stream.
fn wanted(name: NameRef<'_>) -> Result<Option<u64>, DropReason> {
    match name.get(STREAM_LEN) {
        None => Ok(None),
        // A signed request without number.
        Some(c) if c.typ == types::PARAMETERS_SHA256_DIGEST => Ok(None),
        Some(c) => c.sequence().map(Some).ok_or(DropReason::UnansweredManagement),
    }
}

impl Forwarder {
    pub(super) fn on_event_request(
        &mut self,
        call: &Call<'_>,
        tx: &mut dyn Tx,
    ) -> Result<(), DropReason> {
        let interest = call.interest;
        let wanted = wanted(interest.name)?;
        self.complete_notifications();
        let events = &mut self.management.events;
        let is_recent = |n: &Notification| {
            !interest.must_be_fresh
                || n.sent_ns.is_none_or(|at| call.now_ns.saturating_sub(at) < FRESHNESS_NS)
        };
        let number = match wanted {
            Some(number) => Some(number).filter(|number| *number < events.next()),
            None if !interest.can_be_prefix => return Err(DropReason::UnansweredManagement),
            None => events.history.back().filter(|n| is_recent(n)).map(|_| events.next() - 1),
        };
        if let Some(number) = number {
            let packet = events.packet(number).ok_or(DropReason::UnansweredManagement)?;
            self.reply(call.asker, &packet, tx);
            return Ok(());
        }
        let lifetime_ns = interest.lifetime_ms_or_default().saturating_mul(1_000_000);
        let expires_ns = call.now_ns.saturating_add(lifetime_ns);
        events.waiting.retain(|s| {
            s.expires_ns > call.now_ns && (s.asker.face, s.wanted) != (call.asker.face, wanted)
        });
        if events.waiting.len() >= WAITING_MAX {
            return Err(DropReason::UnansweredManagement);
        }
        events.waiting.push(Subscriber { asker: call.asker, wanted, expires_ns });
        Ok(())
    }

    /// Notes that something has happened to a face.
    pub(crate) fn note_face_event(&mut self, kind: u64, id: FaceId) {
        let Some(face) = self.faces.get(id).filter(|face| face.inbox.is_none()) else { return };
        let mut content = Vec::new();
        notification(kind, id, face).encode(&mut content);
        let made = (kind == face_event::CREATED).then_some(id);
        self.management.events.push(content, made);
    }

    /// Writes what is known by now of faces just made into their notifications.
    fn complete_notifications(&mut self) {
        let events = &mut self.management.events;
        let looked_at = events.history.len() - events.unsent;
        for unsent in events.history.iter_mut().skip(looked_at) {
            if let Some(id) = unsent.made.take()
                && let Some(face) = self.faces.get(id)
            {
                unsent.content.clear();
                notification(face_event::CREATED, id, face).encode(&mut unsent.content);
            }
        }
    }

    pub(super) fn send_events(&mut self, now_ns: u64, tx: &mut dyn Tx) {
        if self.management.events.unsent == 0 {
            return;
        }
        self.complete_notifications();
        let events = &mut self.management.events;
        let unsent = std::mem::take(&mut events.unsent);
        let (len, next) = (events.history.len(), events.next());
        for notification in events.history.iter_mut().skip(len - unsent) {
            notification.sent_ns = Some(now_ns);
        }
        let fresh = next - unsent as u64;
        let (ready, waiting) = std::mem::take(&mut events.waiting)
            .into_iter()
            .filter(|subscriber| subscriber.expires_ns > now_ns)
            .partition(|s| s.wanted.is_none_or(|wanted| wanted < next));
        events.waiting = waiting;
        let ready: Vec<Subscriber> = ready;
        for subscriber in ready {
            let number = subscriber.wanted.unwrap_or(fresh);
            if let Some(packet) = self.management.events.packet(number) {
                self.reply(subscriber.asker, &packet, tx);
            }
        }
    }
}

fn notification(kind: u64, id: FaceId, face: &Face) -> FaceEventNotification {
    FaceEventNotification {
        kind,
        face_id: id.0,
        uri: face.info.remote_uri.clone(),
        local_uri: face.info.local_uri.clone(),
        scope: super::faces::scope_number(&face.info),
        persistency: super::faces::persistency_number(face.info.persistency),
        link_type: super::faces::link_type_number(face.info.link_type),
        flags: super::faces::flags(&face.options),
    }
}
