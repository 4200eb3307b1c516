//! Checksums of files by object, beside their roots: state, then the element of the metadata.

use byname_packet::tlv;
use byname_transfer::attributes::Checksums;
use byname_transfer::server::Fingerprint;
use redb::{ReadableTable, TableDefinition};

use super::{Records, body_of, checked, failed};
use crate::error::StateError;

pub(super) const CHECKSUMS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("checksums-1");

/// The checksums of a file in one state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChecksumRecord {
    /// The state.
    pub fingerprint: Fingerprint,
    /// Its checksums.
    pub checksums: Checksums,
}

impl Records {
    /// The checksums of a file's state; none if nothing is known of it.
    pub(in crate::state) fn checksums(&self, fingerprint: &Fingerprint) -> Checksums {
        let body = self.read(CHECKSUMS, fingerprint.object()).ok().flatten();
        body.and_then(|body| decode(&body, fingerprint)).unwrap_or_default()
    }

    /// Makes checksums durable.
    pub(in crate::state) fn keep_checksums(
        &self,
        kept: &[ChecksumRecord],
    ) -> Result<(), StateError> {
        let written = self.with_database(|database| {
            let transaction = database.begin_write()?;
            {
                let mut table = transaction.open_table(CHECKSUMS)?;
                for record in kept {
                    let object = record.fingerprint.object();
                    let mut body = record.fingerprint.state().to_vec();
                    record.checksums.encode(&mut body);
                    table.insert(object.as_slice(), checked(object, &body).as_slice())?;
                }
            }
            transaction.commit()?;
            Ok(())
        });
        written.map_err(failed(&self.path))
    }
}

/// The checksums of one file among those of many.
pub(super) fn find(
    table: &impl ReadableTable<&'static [u8], &'static [u8]>,
    fingerprint: &Fingerprint,
) -> Result<Checksums, redb::Error> {
    let object = fingerprint.object();
    let value = table.get(object.as_slice())?;
    let body = value.as_ref().and_then(|value| body_of(object, value.value()));
    Ok(body.and_then(|body| decode(body, fingerprint)).unwrap_or_default())
}

fn decode(body: &[u8], fingerprint: &Fingerprint) -> Option<Checksums> {
    let (state, element) = body.split_at_checked(fingerprint.state().len())?;
    if state != fingerprint.state() {
        return None;
    }
    let element = tlv::Reader::new(element).read().ok()??;
    Checksums::decode(element.value).ok()
}
