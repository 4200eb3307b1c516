//! What comes of an error: the end, or another look at the name.

use byname_retry::BackOff;
use byname_transfer::error::ReadError;
use byname_transfer::request::Context;

use super::{FileJob, FileStage};
use crate::download::reading::Reading;
use crate::error::ClientError;
use crate::lookup::list_job::VERSIONS_MAX;
use crate::lookup::name::NameLookup;

/// After a silence, a newer version is looked for during this part of the time-out.
const SUSPICION_DIVISOR: u64 = 4;

/// Pauses before the description is asked for again when it was of a version that is gone: a cache
/// may announce it as long as it is fresh.
const GONE_PAUSES: BackOff = BackOff { min_ns: 50_000_000, max_ns: 800_000_000 };
/// Times one version may be announced and be gone, with nothing gained.
const GONE_MAX: u32 = 8;

impl FileJob<'_> {
    /// Ends with an error; the part file stays for the next run if there is anything in it.
    pub(super) fn end_reading(&mut self, error: ClientError, context: &mut Context<'_>) {
        if let FileStage::Reading(reading) = std::mem::replace(&mut self.state, FileStage::Done) {
            let Reading { mut reader, writer, .. } = *reading;
            reader.abandon(context.flow);
            if reader.verified().is_none_or(|verified| verified.count() == 0) {
                writer.discard();
            }
        }
        self.finish(Err(error));
    }

    pub(super) fn on_failure(&mut self, error: ReadError, context: &mut Context<'_>) {
        let is_gone = matches!(error, ReadError::VersionGone { .. });
        // Some forwarders swallow the refusal of an old version, so silence may mean the same.
        let is_suspect = matches!(error, ReadError::TimeOut { .. });
        if !is_gone && !is_suspect {
            return self.end_reading(error.into(), context);
        }
        if self.versions >= VERSIONS_MAX {
            let (name, versions) = (self.name.clone(), self.versions);
            return self.end_reading(ClientError::KeepsChanging { name, versions }, context);
        }
        if let FileStage::Reading(reading) = &mut self.state {
            reading.reader.abandon(context.flow);
        }
        if is_gone {
            if self.has_gained() {
                self.gone_count = 0;
            }
            if self.gone_count >= GONE_MAX {
                return self.end_reading(error.into(), context);
            }
            // The first time, there is most likely a new one.
            let random = context.flow.jitter().next_u64();
            let pause_ns = GONE_PAUSES.pause_ns(self.gone_count, random);
            self.paused_until_ns = context.now_ns.saturating_add(pause_ns);
            self.gone_count += 1;
        }
        let mut config = self.context.config.discovery_to_read();
        if is_suspect {
            config.fetch.silence_ns /= SUSPICION_DIVISOR;
            self.suspected = Some(error);
        }
        let lookup = Box::new(NameLookup::new(self.name.clone(), config, context.now_ns));
        self.state = FileStage::LookingUp(lookup);
        self.blocked_until_ns = 0;
    }

    /// True if this reading verified anything that was not here before.
    fn has_gained(&self) -> bool {
        let FileStage::Reading(reading) = &self.state else { return false };
        let verified = reading.reader.verified().map_or(0, |verified| verified.count());
        verified > reading.reader.local_count()
    }
}
