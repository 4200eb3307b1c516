//! Links.

use byname_packet::{Name, UriError};
use byname_profile::link::{LINK_BYTES_MAX, Link, LinkError, VIA_MAX, for_links, may_be_cut};
use byname_security::key::{KeyId, KeyPair};
use proptest::prelude::*;

fn key() -> KeyId {
    KeyPair::ed25519_from_seed(&[1; 32]).key_id()
}

#[test]
fn a_link_reads_back_what_it_prints() {
    let link = Link {
        name: Name::from_path("/lab/run 7/ä?b&c%25d#e/v=1").unwrap(),
        via: vec![
            "tcp://host:6363".to_owned(),
            "udp://[2001:db8::1]:6363".to_owned(),
            "unix:///run/a b&c%.sock".to_owned(),
        ],
        key: Some(key()),
    };
    let text = link.to_string();
    assert_eq!(
        text,
        format!(
            "byname:/lab/run%207/%C3%A4%3Fb%26c%25d%23e/v=1,via=tcp://host:6363\
             ,via=udp://%5B2001:db8::1%5D:6363,via=unix:///run/a%20b%26c%25.sock,key={}",
            key()
        )
    );
    assert_eq!(text.parse::<Link>().unwrap(), link);
    let harmless = |c: char| c.is_ascii_alphanumeric() || "-._/:=,%".contains(c);
    assert!(text.chars().all(harmless), "a shell takes it as it is: {text}");
    let older = format!(
        "byname:/lab/run%207/%C3%A4%3Fb%26c%25d%23e/v=1?via=tcp://host:6363\
         &via=udp://[2001:db8::1]:6363&via=unix:///run/a%20b%26c%25.sock&key={}",
        key()
    );
    assert_eq!(older.parse::<Link>().unwrap(), link);
}

#[test]
fn name_alone_and_typed_names_are_links_too() {
    for (text, uri) in [
        ("byname:/", "/"),
        ("byname:/lab", "/lab"),
        ("byname:/lab?", "/lab"),
        ("byname:ndn:/lab/v=7", "/lab/v=7"),
        ("byname:/my files/ä", "/my%20files/%C3%A4"),
    ] {
        let link: Link = text.parse().unwrap();
        assert_eq!(link.name, uri.parse().unwrap(), "{text}");
        assert_eq!((link.via.len(), link.key), (0, None));
        assert_eq!(link.to_string().parse::<Link>().unwrap(), link);
    }
    assert!(Link::is_link("byname:/lab"));
    assert!(!Link::is_link("/lab"));
}

/// What `ls` prints goes between the name and the rest, as it is.
#[test]
fn a_path_with_question_marks_and_commas_may_be_put_into_a_link() {
    for separators in [",,", "?&"] {
        let (first, second) = separators.split_at(1);
        let text = format!("byname:/lab/a?b,c#d%25e{first}via=tcp://h{second}key={}", key());
        let link: Link = text.parse().unwrap();
        assert_eq!(link.name, Name::from_path("/lab/a?b,c#d%25e").unwrap());
        assert_eq!((link.via.len(), link.key), (1, Some(key())));
    }
}

#[test]
fn a_link_that_a_shell_has_cut_is_recognised() {
    assert!(may_be_cut("byname:/lab?via=tcp://h:6363"));
    assert!(!may_be_cut(&format!("byname:/lab?via=tcp://h:6363&key={}", key())));
    for whole in ["byname:/lab,via=tcp://h", "byname:/lab", "/lab?via=x"] {
        assert!(!may_be_cut(whole), "{whole}");
    }
}

#[test]
fn users_may_write_a_plain_name() {
    assert_eq!(
        Link::from_user("/my files").unwrap(),
        Link::of_name("/my%20files".parse().unwrap())
    );
    let link = format!("byname:/lab?key={}", key());
    assert_eq!(Link::from_user(&link).unwrap().key, Some(key()));
    let error = Link::from_user("no-slash").unwrap_err();
    assert!(matches!(error, LinkError::PlainName(UriError::NoSlash { .. })));
    assert!(!error.to_string().contains("link"), "{error}");
}

#[test]
fn what_is_wrong_with_a_link_is_said() {
    let error = |text: &str| text.parse::<Link>().unwrap_err();
    assert_eq!(error("/lab"), LinkError::NotALink);
    assert_eq!(error("http://lab"), LinkError::NotALink);
    assert!(matches!(error("byname:lab"), LinkError::Name(UriError::NoSlash { .. })));
    assert!(matches!(error("byname:/%zz"), LinkError::Name(UriError::BadEscape { .. })));
    let no_value = LinkError::NoValue { part: "key".to_owned() };
    assert_eq!(error("byname:/lab?via=tcp://h&key"), no_value);
    assert_eq!(error("byname:/lab,via=tcp://h,key"), no_value);
    assert_eq!(error("byname:/lab?x=1"), LinkError::UnknownPart { name: "x".to_owned() });
    for address in ["host:6363", "tcp://", "://host", "TCP://host", "tcp://h%0Aost", "tcp://%zz"] {
        let expected = LinkError::Via { address: address.to_owned() };
        assert_eq!(error(&format!("byname:/lab?via={address}")), expected);
    }
    let many = format!("byname:/lab?{}", "via=tcp://a&".repeat(VIA_MAX + 1));
    assert_eq!(error(&many), LinkError::TooManyVia);
    assert!(matches!(error("byname:/lab?key=MD5:00"), LinkError::Key(_)));
    assert_eq!(error(&format!("byname:/lab?key={0}&key={0}", key())), LinkError::TwoKeys);
    let behind = error(&format!("byname:/lab,via=tcp://h,key={}/run7/x", key())).to_string();
    assert!(behind.contains("before the first comma, byname:/lab/run7/x,via=…"), "{behind}");
    let length = LINK_BYTES_MAX + 1;
    let long = format!("byname:/{}", "a".repeat(length - 8));
    assert_eq!(error(&long), LinkError::TooLong { length });
}

/// A file may be called like the parts of a link.
#[test]
fn a_name_with_the_parts_of_a_link_in_it_can_be_put_into_one() {
    for name in
        ["a,via=b", "a,key=", "a?via=b", "what?", "a?b=1", "a?b", "?", "a?/b=c", ",via=,key="]
    {
        let name = Name::from_path(&format!("/lab/{name}")).unwrap();
        let shown = for_links(&name.view().to_user());
        assert_eq!(Name::from_user(&shown).unwrap(), name, "{shown}");
        for rest in ["", ",via=tcp://h", ",key=KEY", "?via=tcp://h&key=KEY", "?key=KEY"] {
            let text = format!("byname:{shown}{}", rest.replace("KEY", &key().to_string()));
            assert_eq!(text.parse::<Link>().map(|link| link.name), Ok(name.clone()), "{text}");
        }
    }
    assert_eq!(for_links("/plain, as it is?yes"), "/plain, as it is?yes");
}

proptest! {
    #[test]
    fn any_path_that_is_shown_can_be_put_into_a_link(path in "[a-z?,=/&%;#via]{0,30}") {
        let Ok(name) = Name::from_path(&format!("/{path}")) else { return Ok(()) };
        let shown = for_links(&name.view().to_user());
        for rest in ["", ",via=tcp://h", "?via=tcp://h"] {
            let link: Link = format!("byname:{shown}{rest}").parse().unwrap();
            prop_assert_eq!(&link.name, &name, "{}", shown);
        }
    }

    #[test]
    fn any_text_after_the_scheme_parses_or_is_refused(text in "\\PC{0,200}") {
        if let Ok(link) = format!("byname:/{text}").parse::<Link>() {
            prop_assert_eq!(link.to_string().parse::<Link>().unwrap(), link);
        }
    }

    #[test]
    fn any_name_round_trips(parts in prop::collection::vec(
        prop::collection::vec(any::<u8>(), 0..12), 0..6,
    )) {
        let mut name = Name::new();
        parts.iter().for_each(|part| name.push_generic(part));
        let link = Link { name, via: Vec::new(), key: Some(key()) };
        let text = link.to_string();
        prop_assert!(text.chars().all(|c| c.is_ascii_graphic()), "{}", text);
        prop_assert_eq!(text.parse::<Link>().unwrap(), link);
    }
}
