//! Both ends, and what is cut, swapped or changed between them.

use byname_packet::{DataBuilder, Name};

use super::*;

/// Signs with less of the code than there is.
struct Cut<'a>(&'a HmacSigner, usize);

impl Signer for Cut<'_> {
    fn signature_type(&self) -> u64 {
        self.0.signature_type()
    }

    fn key_locator(&self) -> Option<NameRef<'_>> {
        self.0.key_locator()
    }

    fn signature_len_max(&self) -> usize {
        self.1
    }

    fn sign(&self, parts: &[&[u8]], out: &mut [u8]) -> Result<usize, SignError> {
        let mut whole = [0; 32];
        self.0.sign(parts, &mut whole)?;
        out.copy_from_slice(&whole[..self.1]);
        Ok(self.1)
    }
}

fn site() -> SiteName {
    SiteName::new("/cern/cms".parse().expect("a name")).expect("a site's name")
}

/// The keys of both ends.
fn both(name: &Name, content: &[u8]) -> (SessionKeys, SessionKeys) {
    let [user, head] = [1, 2].map(|seed| Exchange::from_seed(&[seed; 32]).expect("a number"));
    let (of_user, of_head) = (*user.share(), *head.share());
    let derive = |own, peer: &[u8; SHARE_BYTES]| {
        let transcript = Transcript { name: name.view(), content };
        SessionKeys::derive(&site(), SessionId(7), own, peer, transcript)
    };
    let (user, head) = (derive(user, &of_head), derive(head, &of_user));
    (user.expect("a share"), head.expect("a share"))
}

fn sealed(signer: &dyn Signer, number: Option<u64>) -> Vec<u8> {
    let name = site().command("mkdir");
    let builder = InterestBuilder::new(name.view()).application_parameters(b"x");
    let extra = SignatureExtra { nonce: None, time_ms: None, seq_num: number };
    sign_with(&builder, signer, extra).expect("a small packet")
}

fn opened(keys: &SessionKeys, wire: &[u8]) -> Option<u64> {
    keys.opened(&Interest::decode(wire).expect("an Interest"))
}

fn data(signer: &dyn Signer) -> Vec<u8> {
    let (name, mut wire) = (site().command("mkdir"), Vec::new());
    DataBuilder::new(name.view()).encode(b"x", signer, &mut wire).expect("a small packet");
    wire
}

fn is_answer(keys: &SessionKeys, wire: &[u8]) -> bool {
    keys.is_answer(&Data::decode(wire).expect("a Data"))
}

#[test]
fn both_ends_have_the_same_keys_if_they_have_seen_the_same() {
    let name = site().command("agree");
    let (user, head) = both(&name, b"content");
    assert_eq!(opened(&head, &sealed(&user.commands, Some(3))), Some(3));
    assert!(is_answer(&user, &data(head.answers())));
    assert_eq!(user.name(), head.name());
    let others = [both(&name, b"other").0, both(&site().command("agreed"), b"content").0];
    for other in others {
        assert_ne!(other.name(), head.name());
        assert_eq!(opened(&head, &sealed(&other.commands, Some(3))), None);
        assert!(!is_answer(&user, &data(other.answers())));
    }
}

#[test]
fn a_code_is_whole_and_of_its_direction() {
    let (user, head) = both(&site().command("agree"), b"content");
    for octets in [0, 4, 16, 31] {
        assert_eq!(opened(&head, &sealed(&Cut(&user.commands, octets), Some(1))), None);
        assert!(!is_answer(&user, &data(&Cut(&head.answers, octets))));
    }
    assert_eq!(opened(&head, &sealed(&user.answers, Some(1))), None);
    assert!(!is_answer(&user, &data(&head.commands)));
    assert_eq!(opened(&head, &sealed(&user.commands, None)), None, "it has no number");
}

#[test]
fn what_was_changed_on_the_way_is_not_opened() {
    let (user, head) = both(&site().command("agree"), b"content");
    let wire = sealed(&user.commands, Some(258));
    for at in 0..wire.len() {
        let mut changed = wire.clone();
        changed[at] ^= 1;
        let Ok(interest) = Interest::decode(&changed) else { continue };
        let whole = Interest::decode(&wire).expect("an Interest");
        // Lifetime and selectors are not signed: whoever forwards may change them.
        let is_same = interest.name == whole.name
            && interest.signed_portion() == whole.signed_portion()
            && interest.signature_value == whole.signature_value;
        assert_eq!(head.opened(&interest).is_some(), is_same, "octet {at}");
    }
}

#[test]
fn keys_show_nothing_of_themselves() {
    let (user, _) = both(&site().command("agree"), b"content");
    let shown = format!("{user:?}");
    let octets = Exchange::from_seed(&[1; 32]).expect("a number");
    assert!(!shown.contains("0x") && !format!("{octets:?}").contains('['), "{shown}");
}
