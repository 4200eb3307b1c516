//! A user's end of the keys of his session. Whoever sends little signs it; whoever sends much
//! agrees upon keys with the head meanwhile, and seals what comes after. When a head does not know
//! the keys (it was started again, the user's key is no more), what was sealed is signed: nobody
//! who asks notices.

use byname_catalog::id::SessionId;
use byname_packet::{Data, SignError};
use byname_security::exchange::Exchange;

use crate::agreement::{Agree, SeedSource, SessionKeys, Transcript};
use crate::command::CommandPacket;
use crate::names::SiteName;
use crate::reply::SiteAnswer;

/// Commands and questions after which keys are worth their agreement.
const COMMANDS_BEFORE: u32 = 16;
const SECOND_NS: u64 = 1_000_000_000;
/// Pause before another agreement, when a head did not know the keys; and when there was none.
const LOST_NS: u64 = SECOND_NS;
const REFUSED_NS: u64 = 60 * SECOND_NS;
/// Age of keys at which others are agreed upon: a head forgets them after an hour.
const RENEW_NS: u64 = 1800 * SECOND_NS;

/// See the module.
pub struct Keyring {
    seeds: SeedSource,
    /// Commands and questions that are signed before keys are asked for.
    commands_before: u32,
    /// When keys are asked for, at the earliest.
    ask_ns: u64,
    /// The agreement in flight.
    asked: Option<(SessionId, Exchange)>,
    keys: Option<Keys>,
    generation: u64,
}

struct Keys {
    keys: SessionKeys,
    /// The last number that was used.
    number: u64,
}

impl Keyring {
    /// No keys yet; private numbers come from `seeds`.
    pub fn new(seeds: SeedSource) -> Self {
        let (asked, keys) = (None, None);
        Self { seeds, commands_before: COMMANDS_BEFORE, ask_ns: 0, asked, keys, generation: 0 }
    }

    /// Draws private numbers from somewhere else.
    pub fn draw_seeds_from(&mut self, seeds: SeedSource) {
        self.seeds = seeds;
    }

    /// Agrees upon keys after so many commands and questions; with `u32::MAX`, never.
    pub fn agree_after(&mut self, commands: u32) {
        self.commands_before = commands;
    }

    /// True while there are keys.
    pub fn has_keys(&self) -> bool {
        self.keys.is_some()
    }

    /// A command under the present keys, and which these are; `None` if it has to be signed.
    ///
    /// # Errors
    /// [`SignError`]; `TooLarge` for what fits no packet.
    pub fn seal(
        &mut self,
        site: &SiteName,
        packet: &CommandPacket,
    ) -> Option<Result<(Vec<u8>, u64), SignError>> {
        packet.request?;
        let Keys { keys, number } = self.keys.as_mut()?;
        *number += 1;
        let wire = packet.encode_sealed(site, keys, *number);
        Some(wire.map(|wire| (wire, self.generation)))
    }

    /// A question under the present keys, and which these are; `None` if it has to be signed.
    ///
    /// # Errors
    /// [`SignError`]; `TooLarge` for what fits no packet.
    pub fn seal_question(
        &mut self,
        site: &SiteName,
        question: &[u8],
    ) -> Option<Result<(Vec<u8>, u64), SignError>> {
        let Keys { keys, number } = self.keys.as_mut()?;
        *number += 1;
        let wire = keys.ask(site, question, *number);
        Some(wire.map(|wire| (wire, self.generation)))
    }

    /// Notes that something is sent; true if it is time to wish for keys.
    pub fn note_sent(&mut self, now_ns: u64) -> bool {
        self.commands_before = self.commands_before.saturating_sub(1);
        self.commands_before == 0 && self.asked.is_none() && now_ns >= self.ask_ns
    }

    /// The session is over, and its keys with it; others are worth their agreement at once.
    pub fn end_session(&mut self) {
        (self.keys, self.asked, self.ask_ns) = (None, None, 0);
    }

    /// True for an answer under the keys that a command was sent with.
    pub fn is_answer(&self, data: &Data<'_>, sealed: Option<u64>) -> bool {
        let keys = self.keys.as_ref().filter(|_| sealed == Some(self.generation));
        keys.is_some_and(|Keys { keys, .. }| keys.is_answer(data))
    }

    /// The wish for keys of a session, once it is time; `None` if there are no random numbers.
    pub fn begin(&mut self, session: SessionId, now_ns: u64) -> Option<Agree> {
        self.ask_ns = now_ns.saturating_add(REFUSED_NS);
        let exchange = (self.seeds)().and_then(|seed| Exchange::from_seed(&seed).ok())?;
        let share = *exchange.share();
        self.asked = Some((session, exchange));
        Some(Agree { session, share })
    }

    /// The head has agreed: by this answer, which the site has signed.
    pub fn agreed(
        &mut self,
        site: &SiteName,
        (data, answer): (&Data<'_>, &SiteAnswer),
        now_ns: u64,
    ) {
        let Some((session, own)) = self.asked.take() else { return };
        let SiteAnswer::Agreed { share, .. } = answer else { return };
        let transcript = Transcript { name: data.name, content: data.content };
        let keys = SessionKeys::derive(site, session, own, share, transcript);
        let Some(keys) = keys else { return };
        self.keys = Some(Keys { keys, number: 0 });
        self.generation += 1;
        self.ask_ns = now_ns.saturating_add(RENEW_NS);
    }

    /// There was no agreement: what is there is used on, and another is sought later.
    pub fn refused(&mut self, now_ns: u64) {
        self.asked = None;
        self.ask_ns = now_ns.saturating_add(REFUSED_NS);
    }

    /// The head does not take these keys.
    pub fn lost(&mut self, sealed: u64, now_ns: u64) {
        if sealed == self.generation && self.keys.take().is_some() {
            self.ask_ns = now_ns.saturating_add(LOST_NS);
        }
    }
}
