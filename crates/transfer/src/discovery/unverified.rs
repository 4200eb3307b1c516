//! The description that came, before it is verified.

use byname_packet::Data;

use super::{Discovery, Stage};
use crate::metadata::{Answer, Metadata};

impl Discovery {
    /// The description that came, while the certificate that proves it is being fetched. Anybody
    /// may have made it: good for a speculative read, and for nothing else.
    pub fn unverified(&self) -> Option<Metadata> {
        let Stage::Authenticating(packet) = &self.stage else { return None };
        let data = Data::decode(packet).ok()?;
        match Answer::decode(&data) {
            Ok(Answer::Metadata(metadata)) => {
                let object = metadata.name.view().without_last(1);
                self.is_own(object).then_some(metadata)
            }
            _ => None,
        }
    }
}
