//! A user who has tickets for files of his own, and claims content with them that is none of his:
//! that of others, and that of tickets he has given back. No disk may take any of it.

use std::collections::VecDeque;
use std::sync::Arc;

use byname_catalog::id::{ContentId, InodeId, Version};
use byname_catalog::{Answer, Command, Create, Place, PolicyChanges, Publish};
use byname_face::CommandClock;
use byname_packet::lp::LpPacket;
use byname_packet::{Data, Interest, Packet};
use byname_security::key::KeySigner;
use byname_site::{Claim, DiskName, Insert, InsertAnswer, SiteAnswer, Stamp, Ticket};
use byname_writer::{WriterConfig, WriterCore};

use super::serving::frame;
use super::writer::clock;
use crate::program::{Crash, Now, Program};
use crate::random::Random;
use crate::world::{MS, SECOND};

/// Tickets that he asks for in one life.
const TICKETS_MAX: u64 = 8;
/// Pause between two of them, and before another life.
const PAUSE_NS: u64 = 2 * SECOND;
/// Octets that he claims contents to have.
const CLAIMED_BYTES: u64 = 5000;
/// Distances of the contents that he claims from the one that he has a ticket for: numbers are
/// given out one after the other, two for a new file.
const DISTANCES: [i64; 4] = [-4, -2, 2, 4];

/// See the module.
pub struct SiteThief {
    config: WriterConfig,
    core: Option<WriterCore>,
    /// When he goes on.
    at_ns: u64,
    tickets: u64,
    /// The last ticket that he gave back.
    old: Option<Ticket>,
    random: Random,
    stamps: u64,
    out: VecDeque<Vec<u8>>,
    /// Orders that disks have refused.
    refused: u64,
    fault: Option<String>,
    is_down: bool,
}

impl SiteThief {
    pub(super) fn new(config: WriterConfig, seed: u64) -> Self {
        Self {
            config,
            core: None,
            at_ns: 0,
            tickets: 0,
            old: None,
            random: Random::new(seed),
            stamps: 0,
            out: VecDeque::new(),
            refused: 0,
            fault: None,
            is_down: false,
        }
    }

    /// Orders of his that disks have refused.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    fn work(&mut self, now: Now) {
        if self.is_down {
            return;
        }
        if now.now_ns >= self.at_ns && self.tickets < TICKETS_MAX {
            self.at_ns = now.now_ns + PAUSE_NS;
            self.go_on(now);
        }
        let mut answers = Vec::new();
        if let Some(core) = &mut self.core {
            answers.extend(std::iter::from_fn(|| core.poll_answer()));
        }
        for (_, answer) in answers {
            match answer {
                Ok(SiteAnswer::Plain(Answer::Session { session, .. })) => {
                    let core = self.core.as_mut().expect("it has just answered");
                    core.begin_session(session, clock(now));
                }
                Ok(SiteAnswer::Ticket(ticket)) => self.steal(ticket, now),
                Ok(SiteAnswer::Plain(_) | SiteAnswer::Agreed { .. }) => {}
                Err(_) => self.core = None,
            }
        }
        let Some(core) = &mut self.core else { return };
        while let Some(sent) = core.poll_transmit(clock(now)) {
            self.out.push_back(frame((sent.pit_token.as_deref(), sent.nack), &sent.wire));
        }
    }

    /// Opens a session, or asks for another ticket.
    fn go_on(&mut self, now: Now) {
        let command = match &self.core {
            None => {
                let mut random = Random::new(self.random.draw());
                let number = random.draw();
                let mut seeds = Random::new(random.draw());
                let random = Box::new(move || random.draw());
                let config = self.config.clone();
                let mut core = WriterCore::new(config, number, CommandClock::new(), random);
                core.draw_seeds_from(Box::new(move || Some(seeds.seed())));
                core.agree_after(1);
                self.core = Some(core);
                Command::OpenSession
            }
            Some(_) => {
                self.tickets += 1;
                let path = format!("stolen{}", self.tickets);
                Command::Create(Create {
                    place: Place::path(path).expect("a short name"),
                    mode: 0o644,
                    size_max: CLAIMED_BYTES,
                    publish: Publish::AtCommit,
                    exclusive: false,
                    policy: PolicyChanges::default(),
                })
            }
        };
        self.send(command, now);
    }

    fn send(&mut self, command: Command, now: Now) {
        if let Some(core) = &mut self.core
            && core.send(0, command, clock(now)).is_err()
        {
            self.core = None;
        }
    }

    /// Orders disks to take what the ticket is not for, and gives it back.
    fn steal(&mut self, ticket: Ticket, now: Now) {
        let content = ticket.terms().content;
        let other = |distance: &i64| ContentId {
            inode: InodeId(content.inode.0.wrapping_add_signed(*distance)),
            version: Version(content.version.0.wrapping_add_signed(*distance)),
        };
        for other in DISTANCES.iter().map(other) {
            self.order(&ticket, other, now);
        }
        if let Some(old) = self.old.take() {
            self.order(&old, content, now);
        }
        self.send(Command::Abort { content }, now);
        self.old = Some(ticket);
    }

    /// Orders all disks of a ticket to take some content, signed as for the ticket's own.
    fn order(&mut self, ticket: &Ticket, content: ContentId, now: Now) {
        let certificate = ticket.certificate().name().to_name();
        let signer = KeySigner::new(Arc::clone(self.config.signer.key()), certificate);
        let disks: Vec<DiskName> = ticket.terms().disks.iter().map(|it| it.name.clone()).collect();
        let hint = self.core.as_ref().map(WriterCore::prefix).unwrap_or_default();
        for disk in disks {
            self.stamps += 1;
            let stamp = Stamp {
                time_ms: now.unix_ns / MS + self.stamps,
                nonce: self.random.draw().to_be_bytes(),
            };
            let site = &self.config.site;
            let root = [content.version.0 as u8; 32];
            let claim = Claim { content, size: CLAIMED_BYTES, root }.encode(site, &signer);
            let Ok(claim) = claim else { continue };
            let order = Insert { ticket: ticket.clone(), claim, hint: hint.clone() };
            let Ok(wire) = order.encode(site, &disk, &signer, stamp) else { continue };
            let Ok(interest) = Interest::decode(&wire) else { continue };
            let (nonce, mut out) = ((self.random.draw() as u32).to_be_bytes(), Vec::new());
            interest.encode_forwarded(nonce, None, &mut out);
            self.out.push_back(out);
        }
    }

    /// An answer of a disk, if it is one.
    fn take_answer(&mut self, packet: &[u8]) {
        let Ok(Packet::Data(data)) = Packet::decode(packet) else { return };
        if !is_of_disk(&self.config, &data) {
            return;
        }
        match InsertAnswer::decode(&data) {
            Ok(InsertAnswer::Refused(_)) => self.refused += 1,
            Ok(answer) => {
                let name = data.name;
                self.fault = Some(format!(
                    "disks take only what a ticket was given for: {name} was answered {answer:?}"
                ));
            }
            Err(_) => {}
        }
    }
}

fn is_of_disk(config: &WriterConfig, data: &Data<'_>) -> bool {
    config.site.parse_insert(data.name).is_some()
}

impl Program for SiteThief {
    fn handle_frame(&mut self, frame: &[u8], now: Now) {
        let Ok(link) = LpPacket::decode(frame) else { return };
        let Some(packet) = link.fragment else { return };
        self.take_answer(packet);
        if let Some(core) = &mut self.core {
            let header = (link.header.nack, link.header.pit_token);
            if core.handle_packet(header, packet, clock(now)).is_err() {
                self.core = None;
            }
        }
        self.work(now);
    }

    fn handle_timeout(&mut self, now: Now) {
        if let Some(core) = &mut self.core
            && core.handle_timeout(clock(now)).is_err()
        {
            self.core = None;
        }
        self.work(now);
    }

    fn poll_frame(&mut self, _now: Now) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    fn poll_timeout(&mut self) -> Option<u64> {
        if self.is_down {
            return None;
        }
        let core = self.core.as_ref().map(WriterCore::poll_timeout);
        let own = (self.tickets < TICKETS_MAX).then_some(self.at_ns);
        [core, own].into_iter().flatten().filter(|at_ns| *at_ns != u64::MAX).min()
    }

    fn fault(&self) -> Option<String> {
        self.fault.clone()
    }

    fn crash(&mut self, _how: Crash, _now: Now) {
        (self.core, self.is_down) = (None, true);
        self.out.clear();
    }

    fn restart(&mut self, now: Now) {
        (self.is_down, self.at_ns) = (false, now.now_ns + PAUSE_NS);
    }
}
