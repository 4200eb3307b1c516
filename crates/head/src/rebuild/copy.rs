//! One copy of the catalog's rows, read from a disk: verified, and applied as far as it is
//! complete.

use byname_catalog::engine::Engine;
use byname_catalog::id::TransactionNumber;
use byname_catalog::{MalformedChange, RowChange, Staging};
use byname_packet::Interest;
use byname_security::trust::Validator;
use byname_site::{COPY_PAGE_BYTES, Check, CopyPoint, Frame, Keep, SiteName};

use super::{DiskSource, RebuildError, SourceError, of};

/// A copy, as far as it was read.
#[derive(Debug)]
pub(super) struct Walk {
    site: SiteName,
    edition: u64,
    /// The place of the last complete state.
    complete: Option<CopyPoint>,
    /// Where it cannot be read on, and why.
    end: Option<(u64, BadOrder)>,
}

/// Reason for which an order in a copy does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum BadOrder {
    #[error("it is torn")]
    Torn,
    #[error("there is something else than an order to keep rows")]
    Malformed,
    #[error("what is before it is not what an order says")]
    Gap,
    #[error("the site's key has not signed it")]
    NotSigned,
}

impl Walk {
    pub(super) fn new(site: &SiteName, edition: u64) -> Self {
        let site = site.clone();
        Self { site, edition, complete: None, end: None }
    }

    /// The last transaction that it is complete up to.
    pub(super) fn through(&self) -> TransactionNumber {
        self.complete.unwrap_or_default().through
    }

    pub(super) fn is_complete(&self) -> bool {
        self.complete.is_some()
    }

    /// Why it is not as complete as the disk says.
    pub(super) fn problem(&self) -> String {
        match self.end {
            None => "its copy ends before the place that it is said to reach".to_owned(),
            Some((at, why)) => format!("its copy counts up to octet {at}: {why}"),
        }
    }

    /// Reads it to its end, or to the first order that does not count.
    pub(super) fn verify(
        &mut self,
        disk: &mut dyn DiskSource,
        (validator, now_s): (&mut Validator, u64),
    ) -> Result<(), SourceError> {
        let (edition, site) = (self.edition, self.site.clone());
        let mut at = CopyPoint::default();
        let end = each_order(disk, edition, &mut |wire| {
            let order = verified(&site, wire, (validator, now_s))?;
            if (order.edition, order.at) != (edition, at) {
                return Err(BadOrder::Gap);
            }
            at = order.end();
            if order.through.is_some() {
                self.complete = Some(at);
            }
            Ok(true)
        })?;
        self.end = end;
        Ok(())
    }

    /// Applies the rows of the last complete state. They are verified again: a disk may say
    /// something else now.
    pub(super) fn stage(
        &self,
        disk: &mut dyn DiskSource,
        engine: &dyn Engine,
        (validator, now_s): (&mut Validator, u64),
    ) -> Result<(), RebuildError> {
        let mut staging = Staging::new(engine);
        let (mut octets, mut at) = (Vec::new(), CopyPoint::default());
        let mut failed = None;
        let read = each_order(disk, self.edition, &mut |wire| {
            let order = verified(&self.site, wire, (validator, now_s))?;
            if (order.edition, order.at) != (self.edition, at) {
                return Err(BadOrder::Gap);
            }
            at = order.end();
            octets.extend(order.rows);
            let applied = apply(&mut octets, &mut staging);
            failed = applied.err();
            Ok(failed.is_none() && Some(at) != self.complete)
        });
        read.map_err(of(disk))?;
        if let Some(error) = failed {
            return Err(error);
        }
        if Some(at) != self.complete {
            return Err(RebuildError::Changed { disk: disk.name().id });
        }
        Ok(staging.flush()?)
    }
}

/// An order of a copy, if the site has signed it.
fn verified(
    site: &SiteName,
    wire: &[u8],
    verifier: (&mut Validator, u64),
) -> Result<Keep, BadOrder> {
    let interest = Interest::decode(wire).map_err(|_| BadOrder::Malformed)?;
    let (_, order) = Keep::decode(site, &interest).map_err(|_| BadOrder::Malformed)?;
    match Keep::check_kept(site, &interest, verifier) {
        Check::Accepted(()) => Ok(order),
        _ => Err(BadOrder::NotSigned),
    }
}

/// Applies the changes that are all there.
fn apply(octets: &mut Vec<u8>, staging: &mut Staging<'_>) -> Result<(), RebuildError> {
    let mut rest = octets.as_slice();
    loop {
        match RowChange::first(rest) {
            Ok(Some((change, behind))) => {
                staging.apply(change)?;
                rest = behind;
            }
            Ok(None) => break,
            // The site has signed that, so whoever wrote it was another version of this.
            Err(MalformedChange) => {
                return Err(byname_catalog::engine::EngineError::Corrupt {
                    table: byname_catalog::engine::Table::Meta,
                    what: "a kept row is malformed",
                }
                .into());
            }
        }
    }
    *octets = rest.to_vec();
    Ok(())
}

/// Gives the orders of a copy to somebody, until he wants no more; where and why it ends before.
fn each_order(
    disk: &mut dyn DiskSource,
    edition: u64,
    visit: &mut dyn FnMut(&[u8]) -> Result<bool, BadOrder>,
) -> Result<Option<(u64, BadOrder)>, SourceError> {
    let (mut octets, mut read_bytes) = (Vec::new(), 0);
    loop {
        let page = disk.read_copy(edition, read_bytes)?;
        // A page is as long as it can be unless it is the last: nobody is drawn out octet by octet.
        let is_last = page.len() < COPY_PAGE_BYTES;
        read_bytes += page.len() as u64;
        octets.extend_from_slice(&page);
        let mut rest = octets.as_slice();
        loop {
            let at = read_bytes - rest.len() as u64;
            let (wire, behind) = match Frame::first(rest) {
                Frame::Order(wire, behind) => (wire, behind),
                Frame::Cut if !is_last => break,
                Frame::Cut if rest.is_empty() => return Ok(None),
                Frame::Cut | Frame::Torn => return Ok(Some((at, BadOrder::Torn))),
            };
            match visit(wire) {
                Ok(true) => rest = behind,
                Ok(false) => return Ok(None),
                Err(why) => return Ok(Some((at, why))),
            }
        }
        octets = rest.to_vec();
    }
}
