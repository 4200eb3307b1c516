//! Textual forms and order of names.
use super::*;

#[test]
fn uri_both_ways() {
    for uri in [
        "/",
        "/a/b",
        "/%00%FF/seg=5/off=1/v=18446744073709551615/t=3/seq=9",
        "/32=metadata/8888=x",
        "/.../a/....",
        "/sha256digest=000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
        "/50=%00%01",
        "/a%3Db",
    ] {
        let name: Name = uri.parse().unwrap();
        assert_eq!(name.to_string(), uri);
    }
    let same: Name = "ndn:/a%20b/%41".parse().unwrap();
    assert_eq!(same.to_string(), "/a%20b/A");
    for bad in ["", "a", "/a//b", "/.", "/..", "/%4", "/%zz", "/0=a", "/70000=a", "/seg=x", "/q=1"]
    {
        assert!(bad.parse::<Name>().is_err(), "{bad}");
    }
}

#[test]
fn path_form_is_what_people_type() {
    let name = Name::from_path("/d/v=1/t=3/x y/é%2F//...").unwrap();
    assert_eq!(name.view().count(), 6);
    assert!(name.view().components().all(|c| c.typ == types::GENERIC));
    assert_eq!(name.view().get(4).unwrap().value, "é/".as_bytes());
    assert_eq!(name.view().to_user(), "/d/v=1/t=3/x y/é%2F/...");
    assert_eq!(Name::from_user(&name.view().to_user()).unwrap(), name);
    let control = Name::new().with_generic(b"a\x1b[31m\xff%");
    assert_eq!(control.view().to_user(), "/a%1B[31m%FF%25");
    assert_eq!(Name::from_user(&control.view().to_user()).unwrap(), control);
    let typed = control.with_version(3);
    assert_eq!(Name::from_user(&typed.view().to_user()).unwrap(), typed);
    assert!(Name::from_path("/a/../b").is_err());
    assert!(Name::from_path("/a/%2e%2e/b").is_err());
}

#[test]
fn canonical_order() {
    let sorted = ["/", "/a", "/a/b", "/b", "/aa", "/32=a", "/seg=0"];
    let names: Vec<Name> = sorted.iter().map(|uri| uri.parse().unwrap()).collect();
    assert!(names.windows(2).all(|pair| pair[0] < pair[1]));
    let sub: Name = "/a/b/c".parse().unwrap();
    assert_eq!(sub.view().prefix(2).to_string(), "/a/b");
    assert_eq!(sub.view().suffix(2).to_string(), "/c");
    assert_eq!(sub.view().without_last(9).to_string(), "/");
    assert!(names[2].view().is_prefix_of(sub.view()));
}

#[test]
fn a_segment_is_known_by_its_parent() {
    let name = |uri: &str| uri.parse::<Name>().unwrap();
    let parent = name("/a/v=1");
    for segment in [0, 255, 256, 70_000, u64::MAX] {
        let child = parent.with_segment(segment);
        assert_eq!(child.view().segment_of(parent.view()), Some(segment));
        assert_eq!(child.view().last().and_then(|last| last.segment()), Some(segment));
    }
    let others =
        ["/", "/a", "/a/v=1", "/a/v=2/seg=0", "/a/v=1/off=0", "/a/v=1/seg=0/seg=0", "/50=%00%01"];
    for other in others {
        assert_eq!(name(other).view().segment_of(parent.view()), None, "{other}");
    }
    assert_eq!(name("/a/v=1/50=%00%01").view().segment_of(parent.view()), None, "not shortest");
    assert_eq!(name("/a/v=1/50=").view().segment_of(parent.view()), None);
    assert_eq!(Name::new().view().last(), None);
}
