//! Questions to the head: as commands, but they change nothing and have no request id. Under the
//! session's keys each counts once, so one whose answer was lost is asked anew.

use std::sync::Arc;

use byname_packet::Data;
use byname_site::{HeadFailure, Outcome, Reply, SealedBy, sealed_by, sign_question};

use super::{About, Now, WriterCore};
use crate::error::WriterError;

/// What the head has said to a question, under its number.
pub(super) type Told = (usize, Result<Vec<u8>, WriterError>);

impl WriterCore {
    /// Asks the head something, under a number of its own; what it says comes by
    /// [`WriterCore::poll_told`].
    ///
    /// # Errors
    /// [`WriterError::Sign`] if it fits no packet.
    pub fn ask(&mut self, number: usize, question: &[u8], now: Now) -> Result<(), WriterError> {
        let question = match &self.config.speaks_for {
            Some(speaks_for) => speaks_for.asking(question),
            None => question.to_vec(),
        };
        self.express_question(number, question.into(), now)?;
        self.agree(now)
    }

    /// What the head has said to a question, with its number.
    pub fn poll_told(&mut self) -> Option<(usize, Result<Vec<u8>, WriterError>)> {
        self.told.pop_front()
    }

    fn express_question(
        &mut self,
        number: usize,
        question: Arc<[u8]>,
        now: Now,
    ) -> Result<(), WriterError> {
        let (wire, sealed) = match self.keyring.seal_question(&self.config.site, &question) {
            Some(sealed) => sealed.map(|(wire, keys)| (wire, Some(keys)))?,
            None => {
                let stamp = self.stamp(now);
                let (site, signer) = (&self.config.site, &self.config.signer);
                (sign_question(site, &question, signer, stamp)?, None)
            }
        };
        self.asks.ask_known(About::Question { number, question, sealed }, wire, now.now_ns);
        Ok(())
    }

    pub(super) fn handle_told(
        &mut self,
        data: &Data<'_>,
        (number, question, sealed): (usize, &Arc<[u8]>, Option<u64>),
        now: Now,
    ) -> Result<(), WriterError> {
        let checked = match sealed_by(data) {
            // Whoever has not the keys has answered nothing: the Interest stays.
            SealedBy::Keys(_) if !self.keyring.is_answer(data, sealed) => return Ok(()),
            SealedBy::Keys(_) => Ok(()),
            SealedBy::Signature => match self.checked(data, now) {
                Some(checked) => checked,
                None => return Ok(()),
            },
        };
        let reply = checked.map(|()| Reply::decode(&self.config.site, data).ok());
        let told = match reply.map(|reply| reply.map(|reply| reply.outcome)) {
            Ok(None) => Ok(data.content.to_vec()),
            Ok(Some(Outcome::Refused(refusal))) => Err(refusal.into()),
            Ok(Some(Outcome::Done(_))) => Err(WriterError::OtherAnswer),
            // The Interest stays, and is sent again.
            Ok(Some(Outcome::Failed { failure, .. })) if failure.is_retryable() => return Ok(()),
            // The same question is signed.
            Ok(Some(Outcome::Failed { failure, .. }))
                if matches!(failure, HeadFailure::NoKeys | HeadFailure::Replayed)
                    && sealed.is_some() =>
            {
                sealed.into_iter().for_each(|keys| self.keyring.lost(keys, now.now_ns));
                self.asks.finish(data.name);
                return self.express_question(number, Arc::clone(question), now);
            }
            Ok(Some(Outcome::Failed { failure, reason })) => {
                Err(WriterError::Head { failure, reason })
            }
            Err(error) => Err(error),
        };
        self.asks.finish(data.name);
        self.told.push_back((number, told));
        Ok(())
    }
}
