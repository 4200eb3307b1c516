//! Seals: by these the head of a site vouches for a file of a backup that an operator has taken.
//!
//! A seal is the head's answer to the question `backup-seal SUM`, signed by the site's key, also
//! where what is asked else goes under the keys of a session: whoever has the site's certificate
//! can look at it, years later. It says that an operator has asked for it, and when.

use byname_packet::Data;
use byname_security::cert::Certificate;
use byname_security::trust::{TrustPolicy, Validator};
use byname_site::{Authentic, Check, Identity, SiteName, check_data};
use serde_json::Value;

use super::rows::hex;

/// Whose seals count.
pub struct SealCheck<'a> {
    /// The site.
    pub site: &'a SiteName,
    /// The certificate of its key, which is believed.
    pub certificate: &'a Certificate,
    /// The time, in seconds since 1970.
    pub now_s: u64,
}

impl SealCheck<'_> {
    /// True if the site's key has signed that this is the sum of a backup.
    pub(super) fn is_genuine(&self, seal: &[u8], sum: &[u8; 32]) -> bool {
        let Ok(data) = Data::decode(seal) else { return false };
        let mut policy = TrustPolicy::default();
        policy.add_anchor(self.site.view().to_name(), self.certificate.key_id());
        let mut validator = Validator::new(policy);
        validator.give_certificate(self.certificate.clone());
        let by = check_data(self.site, &data, &mut validator, self.now_s);
        let is_signed = matches!(by, Check::Accepted(Authentic { identity: Identity::Site, .. }));
        let is_answer = self.site.command("query").view().is_prefix_of(data.name);
        let said: Value = serde_json::from_slice(data.content).unwrap_or_default();
        is_signed && is_answer && said["sealed"] == hex(sum)
    }
}
