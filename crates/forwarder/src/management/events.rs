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

use super::action::{Asker, Turn};
use super::face_fields::{flags, link_type_number, persistency_number, scope_number};
use super::request::Call;
use super::response::{FRESHNESS_MS, PREFIX_LEN};
use super::view::{FaceView, View};
use crate::counters::DropReason;
use crate::face::FaceId;

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
    /// Time of the first timeout after it happened; `None` until then.
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

impl Events {
    /// Answers a request for a notification, or lets it wait for the next one.
    pub(super) fn handle_request(
        &mut self,
        turn: &mut Turn<'_>,
        call: &Call<'_>,
    ) -> Result<(), DropReason> {
        let (interest, now_ns) = (call.interest, turn.now_ns);
        let wanted = wanted(interest.name)?;
        self.complete_notifications(turn.view);
        let is_recent = |n: &Notification| {
            !interest.must_be_fresh
                || n.sent_ns.is_none_or(|at| now_ns.saturating_sub(at) < FRESHNESS_NS)
        };
        let number = match wanted {
            Some(number) => Some(number).filter(|number| *number < self.next()),
            None if !interest.can_be_prefix => return Err(DropReason::UnansweredManagement),
            None => self.history.back().filter(|n| is_recent(n)).map(|_| self.next() - 1),
        };
        if let Some(number) = number {
            let packet = self.packet(number).ok_or(DropReason::UnansweredManagement)?;
            turn.reply(call.asker, packet);
            return Ok(());
        }
        let lifetime_ns = interest.lifetime_ms_or_default().saturating_mul(1_000_000);
        let expires_ns = now_ns.saturating_add(lifetime_ns);
        self.waiting.retain(|s| {
            s.expires_ns > now_ns && (s.asker.face, s.wanted) != (call.asker.face, wanted)
        });
        if self.waiting.len() >= WAITING_MAX {
            return Err(DropReason::UnansweredManagement);
        }
        self.waiting.push(Subscriber { asker: call.asker, wanted, expires_ns });
        Ok(())
    }

    /// Notes that something has happened to a face.
    pub(super) fn note(&mut self, kind: u64, face: FaceView<'_>) {
        let mut content = Vec::new();
        notification(kind, face).encode(&mut content);
        let made = (kind == face_event::CREATED).then_some(face.id);
        self.push(content, made);
    }

    /// Writes what is known by now of faces just made into their notifications.
    fn complete_notifications(&mut self, view: &dyn View) {
        let looked_at = self.history.len() - self.unsent;
        for unsent in self.history.iter_mut().skip(looked_at) {
            if let Some(id) = unsent.made.take()
                && let Some(face) = view.face(id)
            {
                unsent.content.clear();
                notification(face_event::CREATED, face).encode(&mut unsent.content);
            }
        }
    }

    /// Sends what has happened to those who wait for it.
    pub(super) fn handle_timeout(&mut self, turn: &mut Turn<'_>) {
        if self.unsent == 0 {
            return;
        }
        self.complete_notifications(turn.view);
        let unsent = std::mem::take(&mut self.unsent);
        let (len, next) = (self.history.len(), self.next());
        for notification in self.history.iter_mut().skip(len - unsent) {
            notification.sent_ns = Some(turn.now_ns);
        }
        let fresh = next - unsent as u64;
        let (ready, waiting): (Vec<Subscriber>, _) = std::mem::take(&mut self.waiting)
            .into_iter()
            .filter(|subscriber| subscriber.expires_ns > turn.now_ns)
            .partition(|s| s.wanted.is_none_or(|wanted| wanted < next));
        self.waiting = waiting;
        for subscriber in ready {
            let number = subscriber.wanted.unwrap_or(fresh);
            if let Some(packet) = self.packet(number) {
                turn.reply(subscriber.asker, packet);
            }
        }
    }
}

fn notification(kind: u64, face: FaceView<'_>) -> FaceEventNotification {
    FaceEventNotification {
        kind,
        face_id: face.id.0,
        uri: face.info.remote_uri.clone(),
        local_uri: face.info.local_uri.clone(),
        scope: scope_number(face.info),
        persistency: persistency_number(face.info.persistency),
        link_type: link_type_number(face.info.link_type),
        flags: flags(face.options),
    }
}
