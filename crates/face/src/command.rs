//! Signed commands to a forwarder's management.
//!
//! spec: NFD management, "ControlCommand": `/localhost/nfd/<module>/<verb>/<ControlParameters>`, as
//! a signed Interest of packet format v0.3.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use byname_packet::mgmt::ControlParameters;
use byname_packet::{InterestBuilder, Name, SignError, SignatureExtra, Signer};

/// The times of signed commands: verifiers let no key sign two in one millisecond. Clones share the
/// time of the last one; whoever signs with a key by several of them shares a clock.
#[derive(Debug, Clone, Default)]
pub struct CommandClock(Arc<AtomicU64>);

impl CommandClock {
    /// A clock by which nothing has been signed.
    pub fn new() -> Self {
        Self::default()
    }

    /// Now, or the next millisecond in which nothing was signed.
    pub fn next_ms(&self, unix_ns: u64) -> u64 {
        let now_ms = unix_ns / 1_000_000;
        let next = |last_ms: u64| Some(now_ms.max(last_ms + 1));
        // The closure always gives a value, and either result is the value before.
        let (Ok(last_ms) | Err(last_ms)) =
            self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        now_ms.max(last_ms + 1)
    }
}

/// A command that is not signed yet.
#[derive(Debug, Clone, Copy)]
pub struct ControlCommand<'a> {
    /// To the forwarder of this machine; otherwise to the one at the other end of a link.
    pub is_local: bool,
    /// Module and verb: `rib/register`.
    pub path: &'a str,
    /// The command's arguments.
    pub parameters: &'a ControlParameters,
    /// Longest wait for its answer.
    pub lifetime_ms: u64,
}

impl ControlCommand<'_> {
    /// The Interest, dated `time_ms`; `random` makes its nonces.
    ///
    /// # Errors
    /// [`SignError`] of the signer, or if it is too large for a packet.
    pub fn sign(
        &self,
        signer: &dyn Signer,
        time_ms: u64,
        random: &mut dyn FnMut() -> u64,
    ) -> Result<Vec<u8>, SignError> {
        let mut parameters = Vec::new();
        self.parameters.encode(&mut parameters);
        let scope: &[u8] = if self.is_local { b"localhost" } else { b"localhop" };
        let mut name = Name::new();
        name.push_generic(scope);
        name.push_generic(b"nfd");
        self.path.split('/').for_each(|component| name.push_generic(component.as_bytes()));
        name.push_generic(&parameters);
        let nonce = random().to_be_bytes();
        let extra = SignatureExtra {
            nonce: Some(&nonce),
            time_ms: Some(time_ms),
            ..SignatureExtra::default()
        };
        let mut wire = Vec::new();
        InterestBuilder::new(name.view())
            .must_be_fresh(true)
            .nonce((random() as u32).to_be_bytes())
            .lifetime_ms(self.lifetime_ms)
            .encode_signed(signer, extra, &mut wire)?;
        Ok(wire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use byname_packet::{DigestSigner, Interest};

    #[test]
    fn no_millisecond_is_used_twice_whoever_asks() {
        let (clock, other) = (CommandClock::new(), CommandClock::new());
        let shared = clock.clone();
        assert_eq!(clock.next_ms(5_000_000), 5);
        assert_eq!(shared.next_ms(5_900_000), 6);
        assert_eq!(clock.next_ms(1_000_000), 7, "the clock went back");
        assert_eq!(clock.next_ms(90_000_000), 90);
        assert_eq!(other.next_ms(5_000_000), 5);
    }

    #[test]
    fn the_command_is_a_signed_interest_in_its_scope() {
        for (is_local, prefix) in
            [(true, "/localhost/nfd/rib/register"), (false, "/localhop/nfd/rib/register")]
        {
            let prefix: Name = prefix.parse().unwrap();
            let parameters = ControlParameters::default();
            let path = "rib/register";
            let command =
                ControlCommand { is_local, path, parameters: &parameters, lifetime_ms: 100 };
            let wire = command.sign(&DigestSigner, 9, &mut || 7).unwrap();
            let interest = Interest::decode(&wire).unwrap();
            assert!(interest.check_parameters_digest());
            assert_eq!(interest.name.count(), 6);
            assert!(prefix.view().is_prefix_of(interest.name));
            assert_eq!(interest.signature_info.unwrap().time_ms, Some(9));
        }
    }
}
