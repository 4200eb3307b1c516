//! Long listings: the FIB or the RIB of a forwarder with very many routes, made in slices.
//!
//! Who asks waits until the listing is there; it is made by calls of `handle_timeout`, one slice
//! each, so that packets pass in between. It shows each route as it was when its turn came. Who
//! asks for the same meanwhile joins, and shortly after gets the same: a listing costs memory.

use byname_packet::{Name, NameRef};

use super::Asker;
use super::command::Call;
use super::status::Dataset;
use crate::counters::DropReason;
use crate::forwarder::{Forwarder, Tx};

/// Prefixes up to which a listing is made at once.
const AT_ONCE_MAX: usize = 8192;

/// Prefixes in a slice.
const SLICE: usize = 1024;

/// Listings in the making, and who waits for each.
const LISTINGS_MAX: usize = 8;
const ASKERS_MAX: usize = 64;

#[derive(Debug)]
struct Listing {
    dataset: Dataset,
    name: Name,
    askers: Vec<Asker>,
    payload: Vec<u8>,
    after: Option<Name>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Listings {
    making: Vec<Listing>,
}

impl Listings {
    pub(super) fn due_ns(&self) -> Option<u64> {
        (!self.making.is_empty()).then_some(0)
    }

    fn find(&mut self, name: NameRef<'_>) -> Option<&mut Listing> {
        self.making.iter_mut().find(|listing| listing.name.view() == name)
    }
}

impl Forwarder {
    /// Whether a listing would take too long to be made at once.
    pub(super) fn is_long_listing(&self) -> bool {
        self.rib.len() > AT_ONCE_MAX
    }

    /// Answers with a listing that was made just now, or lets the asker wait for one.
    pub(super) fn join_listing(
        &mut self,
        call: &Call<'_>,
        dataset: Dataset,
        tx: &mut dyn Tx,
    ) -> Result<(), DropReason> {
        let name = call.interest.name;
        let now_ms = self.unix_ns(call.now_ns) / 1_000_000;
        if let Some(packet) = self.management.published.recent(name, now_ms) {
            self.reply(call.asker, &packet, tx);
            return Ok(());
        }
        let listings = &mut self.management.listings;
        if let Some(listing) = listings.find(name) {
            if listing.askers.len() >= ASKERS_MAX {
                return Err(DropReason::UnansweredManagement);
            }
            listing.askers.retain(|asker| asker.face != call.asker.face);
            listing.askers.push(call.asker);
            return Ok(());
        }
        if listings.making.len() >= LISTINGS_MAX {
            return Err(DropReason::UnansweredManagement);
        }
        let askers = vec![call.asker];
        let (name, payload) = (name.to_name(), Vec::new());
        listings.making.push(Listing { dataset, name, askers, payload, after: None });
        Ok(())
    }

    /// Makes the next slice of the first listing.
    pub(super) fn continue_listing(&mut self, now_ns: u64, tx: &mut dyn Tx) {
        if self.management.listings.making.is_empty() {
            return;
        }
        let mut listing = self.management.listings.making.remove(0);
        let from = (listing.after.as_ref().map(Name::view), SLICE);
        let last = self.encode_listing(&listing.dataset, from, now_ns, &mut listing.payload);
        if last.is_some() {
            listing.after = last;
            // One after the other: only the first one takes memory.
            self.management.listings.making.insert(0, listing);
            return;
        }
        let packet = self.publish(listing.name.view(), listing.payload, now_ns);
        for asker in listing.askers {
            if let Some(packet) = &packet {
                self.reply(asker, packet, tx);
            }
        }
    }
}
