//! Deciding whether a packet counts, fetching the certificates that the decision needs.

use byname_packet::{Data, KeyLocator, Name};
use byname_security::trust::{CHAIN_MAX, Decision, Signed, TrustError, Trusted};

use crate::fetch::FetchConfig;
use crate::flow::Flow;
use crate::request::{Ask, Context, Request};

/// Certificates fetched for one decision; the validator refuses longer chains before that.
const ASKS_MAX: usize = 16;

/// The outcome of checking a packet.
#[derive(Debug)]
pub(crate) enum Verdict {
    Trusted(Trusted),
    /// A certificate is being fetched; check again when [`Authenticator::handle_data`] says so.
    Wait,
    Refused(TrustError),
}

/// The certificates of the chain from a packet to its anchor that are known by now.
pub(crate) fn chain(data: &Data<'_>, context: &mut Context<'_>) -> Vec<Vec<u8>> {
    let mut chain = Vec::new();
    let mut locator = match data.signature_info.key_locator {
        Some(KeyLocator::Name(locator)) => locator.to_name(),
        _ => return chain,
    };
    let mut own_names = Vec::new();
    while chain.len() < CHAIN_MAX {
        let Some(certificate) = context.validator.certificate(locator.view()) else { break };
        chain.push(certificate.wire().to_vec());
        match certificate.issuer() {
            Some(issuer) if !certificate.is_self_signed() => {
                locator = issuer.to_name();
                own_names.push(certificate.own_name());
            }
            _ => break,
        }
    }
    // An anchor whose issuer is not trusted counts by the certificate that it signed itself.
    for own in own_names {
        if chain.len() < CHAIN_MAX
            && let Some(certificate) = context.validator.certificate(own.view())
        {
            chain.push(certificate.wire().to_vec());
        }
    }
    chain
}

/// Fetches certificates, one at a time.
#[derive(Debug)]
pub(crate) struct Authenticator {
    config: FetchConfig,
    /// Subject of the packet, if that is not its own name.
    about: Option<Name>,
    ask: Option<Ask>,
    asked: usize,
}

impl Authenticator {
    pub(crate) fn new(config: FetchConfig) -> Self {
        Authenticator { config, about: None, ask: None, asked: 0 }
    }

    /// For packets of which only what they say of this name is used: whose word counts for the
    /// name may say it.
    pub(crate) fn set_about(&mut self, about: Name) {
        self.about = Some(about);
    }

    /// Who may speak of one entry does not decide about the versions of the directory.
    pub(crate) fn is_about_another(&self) -> bool {
        self.about.is_some()
    }

    /// Decides about a packet, or starts to fetch what the decision needs.
    pub(crate) fn check(&mut self, data: &Data<'_>, context: &mut Context<'_>) -> Verdict {
        let now_s = context.unix_s();
        let about = self.about.as_ref().map_or(data.name, Name::view);
        match context.validator.check_about(&Signed::from(data), about, now_s) {
            Decision::Trusted(trusted) => Verdict::Trusted(trusted),
            Decision::Refused(error) => Verdict::Refused(error),
            // One at a time: what is in flight may be just what is missing.
            Decision::NeedCertificate(_) if self.ask.is_some() => Verdict::Wait,
            Decision::NeedCertificate(name) if self.asked < ASKS_MAX => {
                self.asked += 1;
                self.ask = Some(Ask::new(Request::prefix(name), self.config));
                Verdict::Wait
            }
            Decision::NeedCertificate(_) => {
                Verdict::Refused(TrustError::ChainTooLong { name: data.name.to_name() })
            }
        }
    }

    /// `Some(Ok)` when a certificate has come: check again. `None` if the packet is another one.
    pub(crate) fn handle_data(
        &mut self,
        data: &Data<'_>,
        context: &mut Context<'_>,
    ) -> Option<Result<(), TrustError>> {
        let ask = self.ask.as_mut()?;
        if !ask.handle_data(data.name, context) {
            return None;
        }
        let name = ask.request().name.clone();
        self.ask = None;
        match context.validator.add_certificate(data.wire()) {
            Ok(_) => Some(Ok(())),
            Err(source) => Some(Err(TrustError::MalformedCertificate { name, source })),
        }
    }

    /// The certificate being fetched; for Nacks, time-outs and deadlines.
    pub(crate) fn ask(&mut self) -> Option<&mut Ask> {
        self.ask.as_mut()
    }

    /// The certificate that could not be fetched, if it has come to that.
    pub(crate) fn failed_certificate(&self) -> Option<Name> {
        let ask = self.ask.as_ref()?;
        ask.failure().map(|_| ask.request().name.clone())
    }

    /// Goes on without a certificate that could not be fetched: check again. False if none is
    /// missing.
    pub(crate) fn give_up(&mut self, context: &mut Context<'_>) -> bool {
        let Some(missing) = self.failed_certificate() else { return false };
        context.validator.note_missing(missing);
        self.abandon(context.flow);
        true
    }

    pub(crate) fn abandon(&mut self, flow: &mut Flow) {
        if let Some(ask) = &mut self.ask {
            ask.abandon(flow);
        }
        self.ask = None;
    }
}

#[cfg(test)]
mod tests;
