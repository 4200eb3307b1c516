//! Meaning of an answer whose signature counts: for the memory of versions, for freshness, and
//! for the caller.

use byname_packet::{Data, KeyLocator, Name, NameRef};
use byname_security::trust::Trusted;

use super::{Discovered, Discovery, MS, PAUSE_FIRST_NS, PAUSE_MAX_NS, Stage, Waiting, Whom};
use crate::attributes::ObjectKind;
use crate::authenticate;
use crate::error::{ProtocolProblem, ReadError, ServerReason};
use crate::freshness::{FRESH_AGE_MAX_NS, Freshness};
use crate::metadata::{Absence, ContentRoot, Metadata};
use crate::reader::ObjectPlan;
use crate::request::Context;
use crate::versions::{Announced, Lesson, Older};

/// A cache may hold the previous description for as long as it is fresh; ask past that.
const STALE_ASKS_MAX: u32 = 3;

impl Discovery {
    pub(super) fn on_absence(&mut self, absence: Absence, context: &mut Context<'_>) {
        let name = self.name.clone();
        let reason = match absence {
            Absence::NotFound => match self.whom {
                // That there was nothing once says nothing of now.
                Whom::Anybody(Some(first)) => return self.fail_unanswered(first, context),
                _ => return self.fail(ReadError::NotFound { name }),
            },
            Absence::NoPermission => return self.fail(ReadError::NoPermission { name }),
            Absence::BeingWritten { retry_ms } => {
                return self.ask_later(Waiting::Written, retry_ms, context);
            }
            Absence::BeingListed { retry_ms } => {
                return self.ask_later(Waiting::Listed, retry_ms, context);
            }
            Absence::ListingTooLarge => ServerReason::ListingTooLarge,
            Absence::NameTooLong => ServerReason::NameTooLong,
            Absence::Unreadable { code } => ServerReason::Unreadable { code },
        };
        self.fail(ReadError::Unservable { name, reason });
    }

    /// The publisher says when to ask again.
    fn ask_later(&mut self, waiting: Waiting, retry_ms: u64, context: &mut Context<'_>) {
        let name = self.name.clone();
        let (most_ns, error) = match waiting {
            Waiting::Written => (self.config.being_written_ns, ReadError::BeingWritten { name }),
            Waiting::Listed => (self.config.root_pending_ns, ReadError::BeingListed { name }),
            Waiting::Hashed => (self.config.root_pending_ns, ReadError::RootPending { name }),
        };
        let waited_ns = context.now_ns.saturating_sub(self.started_ns);
        // What a cache keeps of that never becomes true.
        if waited_ns >= most_ns || self.is_offline() {
            return self.fail(error);
        }
        self.waiting = Some(waiting);
        let asked_ns = retry_ms.saturating_mul(MS).clamp(PAUSE_FIRST_NS, PAUSE_MAX_NS);
        let pause_ns = context.flow.jitter().pause_above_ns(asked_ns);
        self.pause(pause_ns, context);
    }

    pub(super) fn on_metadata(
        &mut self,
        metadata: Metadata,
        trust: Trusted,
        data: &Data<'_>,
        context: &mut Context<'_>,
    ) {
        let own_object = self.own_object(&metadata, data, context);
        let is_about = own_object.is_some() || Self::may_lie_elsewhere(&metadata, &trust);
        let Some(version) = metadata.version().filter(|_| is_about) else {
            let announced = metadata.name;
            return self.fail(self.problem(ProtocolProblem::OtherName { announced }));
        };
        // A publisher decides about versions of its own names only.
        let object = own_object.unwrap_or_else(|| self.name.clone());
        let path = self.name.clone();
        let (path, object, binding) = (path.view(), object.view(), metadata.attributes().binding);
        let announced = Announced { path, object, version, binding };
        if let Err(Older { seen, got }) = self.judge(&announced, &trust, context) {
            let name = self.name.clone();
            return self.refuse_old(ReadError::RolledBack { name, seen, got }, context);
        }
        let age_ns = age_ns(&metadata, data.name, context.unix_ns);
        let is_recent = age_ns.is_none_or(|age_ns| age_ns <= FRESH_AGE_MAX_NS);
        let age_ns = age_ns.unwrap_or(0);
        if self.config.freshness == Freshness::Required && !is_recent {
            let name = self.name.clone();
            return self.refuse_old(ReadError::NotFresh { name, age_ns }, context);
        }
        if metadata.root == ContentRoot::Pending
            && !(self.config.takes_pending && ObjectPlan::is_tree_of(&metadata))
        {
            let waited_ns = context.now_ns.saturating_sub(self.started_ns);
            if waited_ns >= self.config.root_pending_ns || self.is_offline() {
                return self.fail(ReadError::RootPending { name: metadata.name });
            }
            self.waiting = Some(Waiting::Hashed);
            let pause_ns = context.flow.jitter().pause_ns(self.pause_ns);
            return self.pause(pause_ns, context);
        }
        self.stage = Stage::Done;
        self.note_who_answered(data, context);
        let is_fresh = !self.is_offline() && is_recent;
        if !is_fresh {
            context.versions.note_age(age_ns);
        }
        self.outcome = Some(Ok(Discovered {
            metadata,
            version,
            trust,
            packet: data.wire().to_vec(),
            certificates: authenticate::chain(data, context),
            is_fresh,
            age_ns,
        }));
    }

    /// The object that is described, without version, if it is under the name asked for or a
    /// content to which the key may lead from there.
    fn own_object(
        &self,
        metadata: &Metadata,
        data: &Data<'_>,
        context: &mut Context<'_>,
    ) -> Option<Name> {
        let object = metadata.name.view().without_last(1);
        if self.is_own(object) {
            return Some(object.to_name());
        }
        let content = metadata.content_name()?;
        let Some(KeyLocator::Name(locator)) = data.signature_info.key_locator else { return None };
        let identity = context.validator.certificate(locator)?.identity();
        let is_file = metadata.kind() != ObjectKind::Directory;
        (is_file && content.is_within(self.name.view(), identity)).then(|| object.to_name())
    }

    /// Compares with what was seen before, and remembers it.
    fn judge(
        &self,
        announced: &Announced<'_>,
        trust: &Trusted,
        context: &mut Context<'_>,
    ) -> Result<(), Older> {
        let is_taught = *trust != Trusted::Insecure && !self.authenticator.is_about_another();
        let lesson = if is_taught { Lesson::Numbers } else { Lesson::Nothing };
        context.versions.admit(announced, lesson)
    }

    /// An old answer: perhaps a cache has it, and will not have it much longer.
    fn refuse_old(&mut self, error: ReadError, context: &mut Context<'_>) {
        self.stale_asks += 1;
        if self.stale_asks < STALE_ASKS_MAX {
            let pause_ns = context.flow.jitter().pause_above_ns(PAUSE_MAX_NS);
            return self.pause(pause_ns, context);
        }
        self.fail(error);
    }

    /// True if the publisher is not the one who is asked.
    fn is_offline(&self) -> bool {
        matches!(self.whom, Whom::Anybody(_))
    }

    fn note_who_answered(&self, data: &Data<'_>, context: &mut Context<'_>) {
        match (self.whom, data.signature_info.key_locator) {
            (Whom::Publisher { .. }, _) => {
                context.versions.unreachable.forget(self.name.view());
            }
            (Whom::Anybody(Some(_)), Some(KeyLocator::Name(locator))) => {
                if let Some(certificate) = context.validator.certificate(locator) {
                    let identity = certificate.identity().to_name();
                    context.versions.unreachable.note(identity, context.now_ns);
                }
            }
            (Whom::Anybody(_), _) => {}
        }
    }
}

/// Time since a description of this name (`…/v=T/seg=0`) was signed. Only servers of ours make T
/// of the time in nanoseconds; they are known by the root that they announce.
fn age_ns(metadata: &Metadata, name: NameRef<'_>, unix_ns: u64) -> Option<u64> {
    if metadata.root == ContentRoot::Absent {
        return None;
    }
    let signed_ns = name.without_last(1).last()?.version()?;
    Some(unix_ns.saturating_sub(signed_ns))
}
