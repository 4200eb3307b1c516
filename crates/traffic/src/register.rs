//! Routes to what is answered here: any number, made up while they are registered.

use byname_face::{RegisterOptions, Route};
use byname_packet::Name;
use byname_packet::mgmt::route_origin;

use crate::pattern::route_component;

/// Commands are signed with a digest, which forwarders accept on local links only. Forwarders under
/// measurement may be slow to answer.
pub(crate) const OPTIONS: RegisterOptions = RegisterOptions {
    origin: route_origin::APP,
    answer_ns: 2_000_000_000,
    ..RegisterOptions::local()
};

/// Routes to register: prefixes, or `spread` names below each.
#[derive(Debug, Clone)]
pub struct Routes {
    /// The prefixes.
    pub prefixes: Vec<Name>,
    /// Names below each, as [`crate::Pattern::spread`] asks for them; `None` means the
    /// prefix itself.
    pub spread: Option<u64>,
    /// The forwarder's number of the face that the routes lead to; `None` means the one that
    /// registers them.
    pub face: Option<u64>,
}

impl Routes {
    /// Count of routes.
    pub fn count(&self) -> u64 {
        self.prefixes.len() as u64 * self.spread.unwrap_or(1)
    }

    /// All routes, one after the other.
    pub(crate) fn into_iter(self) -> impl Iterator<Item = Route> + Send {
        (0..self.count()).map_while(move |index| {
            let (prefix, face_id) = (self.get(index)?, self.face);
            Some(Route { prefix, signer: None, face_id })
        })
    }

    fn get(&self, index: u64) -> Option<Name> {
        let spread = self.spread.unwrap_or(1).max(1);
        let prefix = self.prefixes.get(usize::try_from(index / spread).ok()?)?;
        Some(match self.spread {
            Some(_) => prefix.with_generic(&route_component(index % spread)),
            None => prefix.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefixes(spread: Option<u64>) -> Vec<Name> {
        let prefixes = vec!["/a".parse().unwrap(), "/b".parse().unwrap()];
        let routes = Routes { prefixes, spread, face: None };
        let count = routes.count();
        let all: Vec<_> = routes.into_iter().map(|route| route.prefix).collect();
        assert_eq!(all.len() as u64, count);
        all
    }

    #[test]
    fn there_is_one_route_for_each_prefix_or_for_each_name_below() {
        assert_eq!(prefixes(None), ["/a", "/b"].map(|uri| uri.parse().unwrap()));
        let mut spread = prefixes(Some(100));
        assert_eq!(spread.first(), Some(&"/a".parse::<Name>().unwrap().with_generic(&[0; 8])));
        spread.sort();
        spread.dedup();
        assert_eq!(spread.len(), 200);
        assert!(prefixes(Some(0)).is_empty());
    }
}
