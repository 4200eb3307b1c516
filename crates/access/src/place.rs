//! Places of names.

use byname_catalog::{EntryName, PATH_NAMES_MAX, Place, Refusal};
use byname_packet::{Name, NameRef};
use byname_site::SiteName;

use crate::error::AccessError;

/// Type of a generic component.
const GENERIC: u16 = 8;

/// The place of a name of a site.
///
/// # Errors
/// [`AccessError::At`] for names that no entry can have, or that are too long, or no name of the
/// site.
pub fn place(site: &SiteName, name: NameRef<'_>) -> Result<Place, AccessError> {
    let bad = |refusal| AccessError::at(name, refusal);
    if !site.view().is_prefix_of(name) {
        return Err(bad(Refusal::BadName));
    }
    let below = name.suffix(site.view().count());
    let mut place = Place::path("").map_err(bad)?;
    for component in below.components() {
        if component.typ != GENERIC {
            return Err(bad(Refusal::BadName));
        }
        place.names.push(EntryName::new(component.value).map_err(bad)?);
    }
    if place.names.len() > PATH_NAMES_MAX {
        return Err(bad(Refusal::NameTooLong));
    }
    Ok(place)
}

/// The name of an entry of a directory.
pub(crate) fn below(directory: &Name, entry: &[u8]) -> Name {
    directory.with_generic(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_elsewhere_is_no_place_of_the_site() {
        let site = SiteName::new("/lab".parse().unwrap()).unwrap();
        let at = |uri: &str| place(&site, uri.parse::<Name>().unwrap().view());
        assert_eq!(at("/lab/a/b").unwrap().names.len(), 2);
        assert_eq!(at("/lab").unwrap().names.len(), 0);
        for other in ["/other/a", "/labs/a", "/"] {
            assert!(at(other).is_err(), "{other}");
        }
    }
}
