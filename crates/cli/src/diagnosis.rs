//! Why nobody answers for a name, as far as the forwarder that was asked knows.
//!
//! A reader sees a Nack or nothing. The forwarder of its own machine can be asked where its routes
//! lead, so that the message names the neighbour that is to blame.

use crate::manager::Manager;
use crate::output;
use byname_io::Endpoint;
use byname_packet::NameRef;
use byname_packet::mgmt::FaceStatus;
use std::time::Duration;

/// Time-out of a question. Something that is no forwarder may not answer at all.
const PATIENCE: Duration = Duration::from_secs(1);

/// What became of the question about a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// A Nack came.
    Refused,
    /// Nothing came.
    Silence,
}

/// A line that says why there is no answer; `None` where the forwarder cannot say more than that.
pub(crate) fn of(endpoint: &Endpoint, name: NameRef<'_>, fate: Fate) -> Option<String> {
    let mut manager = Manager::connect(endpoint).ok()?.with_patience(PATIENCE);
    let fib = manager.fib().ok()?;
    let route = fib
        .iter()
        .filter(|entry| entry.name.view().is_prefix_of(name) && !entry.next_hops.is_empty())
        .max_by_key(|entry| entry.name.view().count())?;
    let faces = manager.faces().ok()?;
    let hops = route.next_hops.iter();
    let hops: Vec<&FaceStatus> =
        hops.filter_map(|hop| faces.iter().find(|face| face.face_id == hop.face_id)).collect();
    let end = verdict(&hops, fate)?;
    let remotes: Vec<String> = hops.iter().map(|face| output::one_line(&face.uri)).collect();
    Some(format!(
        "no answer for {}: the route {} leads to {}, {end}",
        output::name(name),
        output::name(route.name.view()),
        remotes.join(" and "),
    ))
}

/// What is known of those that a route leads to.
fn verdict(hops: &[&FaceStatus], fate: Fate) -> Option<&'static str> {
    let down_count = hops.iter().filter(|face| face.is_down).count();
    match (down_count, hops.len(), fate) {
        (_, 0, _) => None,
        (1, 1, _) => Some("which is down: the forwarder cannot connect to it and keeps trying"),
        (down, all, _) if down == all => {
            Some("which are down: the forwarder cannot connect to them and keeps trying")
        }
        (_, 1, Fate::Refused) => Some("which has no route to it either"),
        (_, _, Fate::Refused) => Some("of which none that is up has a route to it"),
        (_, 1, Fate::Silence) => Some("from which nothing comes back"),
        (_, _, Fate::Silence) => Some("from none of which anything comes back"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Fate, verdict};
    use byname_packet::mgmt::FaceStatus;

    #[test]
    fn who_is_to_blame_depends_on_who_is_up() {
        let (up, down) =
            (FaceStatus::default(), FaceStatus { is_down: true, ..FaceStatus::default() });
        for (hops, fate, words) in [
            (&[&down][..], Fate::Refused, "which is down"),
            (&[&down, &down], Fate::Silence, "which are down"),
            (&[&up], Fate::Refused, "no route to it either"),
            (&[&down, &up], Fate::Refused, "none that is up"),
            (&[&up], Fate::Silence, "nothing comes back"),
            (&[&down, &up], Fate::Silence, "none of which anything"),
        ] {
            assert!(verdict(hops, fate).unwrap().contains(words), "{words}");
        }
        assert_eq!(verdict(&[], Fate::Refused), None);
    }
}
