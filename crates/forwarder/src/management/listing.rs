//! Long listings: the FIB or the RIB of a forwarder with very many routes, made in slices.
//!
//! Who asks waits until the listing is there; it is made by calls of `handle_timeout`, one slice
//! each, so that packets pass in between. It shows each route as it was when its turn came. Who
//! asks for the same meanwhile joins, and shortly after gets the same: a listing costs memory.

use byname_packet::{Name, NameRef};

use super::action::{Asker, Turn};
use super::dataset::Published;
use super::request::Call;
use super::status::{self, Dataset};
use super::view::View;
use crate::counters::DropReason;

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

/// Returns whether a listing would take too long to be made at once.
pub(super) fn is_long(view: &dyn View) -> bool {
    view.rib().len() > AT_ONCE_MAX
}

impl Listings {
    pub(super) fn due_ns(&self) -> Option<u64> {
        (!self.making.is_empty()).then_some(0)
    }

    fn find(&mut self, name: NameRef<'_>) -> Option<&mut Listing> {
        self.making.iter_mut().find(|listing| listing.name.view() == name)
    }

    /// Answers with a listing that was made just now, or lets the asker wait for one.
    pub(super) fn join(
        &mut self,
        turn: &mut Turn<'_>,
        call: &Call<'_>,
        dataset: Dataset,
        published: &Published,
    ) -> Result<(), DropReason> {
        let name = call.interest.name;
        if let Some(packet) = published.recent(name, turn.unix_ms()) {
            turn.reply(call.asker, packet);
            return Ok(());
        }
        if let Some(listing) = self.find(name) {
            if listing.askers.len() >= ASKERS_MAX {
                return Err(DropReason::UnansweredManagement);
            }
            listing.askers.retain(|asker| asker.face != call.asker.face);
            listing.askers.push(call.asker);
            return Ok(());
        }
        if self.making.len() >= LISTINGS_MAX {
            return Err(DropReason::UnansweredManagement);
        }
        let askers = vec![call.asker];
        let (name, payload) = (name.to_name(), Vec::new());
        self.making.push(Listing { dataset, name, askers, payload, after: None });
        Ok(())
    }

    /// Makes the next slice of the first listing.
    pub(super) fn handle_timeout(&mut self, turn: &mut Turn<'_>, published: &mut Published) {
        if self.making.is_empty() {
            return;
        }
        let mut listing = self.making.remove(0);
        let from = (listing.after.as_ref().map(Name::view), SLICE);
        let last = status::encode_listing(turn, &listing.dataset, from, &mut listing.payload);
        if last.is_some() {
            listing.after = last;
            // One after the other: only the first one takes memory.
            self.making.insert(0, listing);
            return;
        }
        let packet = published.publish(listing.name.view(), listing.payload, turn.unix_ms());
        for asker in listing.askers {
            if let Some(packet) = &packet {
                turn.reply(asker, packet.clone());
            }
        }
    }
}
