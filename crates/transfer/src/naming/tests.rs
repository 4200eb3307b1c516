//! Which names are requests, and which components can be files.

use super::*;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn request(uri: &str) -> Option<Request> {
    parse(name(uri).view()).map(|parsed| parsed.request)
}

#[test]
fn every_form_of_request_is_told_apart() {
    let metadata = |aspect| Some(Request::Metadata { aspect });
    assert_eq!(request("/a/b/32=metadata"), metadata(Aspect::File));
    assert_eq!(request("/a/32=ls/32=metadata"), metadata(Aspect::Listing));
    let segment = |aspect, part| Some(Request::Segment { aspect, version: 7, part, segment: 300 });
    assert_eq!(request("/a/v=7/seg=300"), segment(Aspect::File, Part::Content));
    assert_eq!(request("/a/32=ls/v=7/seg=300"), segment(Aspect::Listing, Part::Content));
    assert_eq!(request("/a/v=7/32=tree-1/seg=300"), segment(Aspect::File, Part::Tree(1)));
    assert_eq!(request("/a/32=ls/v=7/32=tree-7/seg=300"), segment(Aspect::Listing, Part::Tree(7)));
    assert_eq!(request("/a/32=manifest/32=metadata"), metadata(Aspect::Manifest));
    assert_eq!(request("/a/32=manifest/v=7/seg=300"), segment(Aspect::Manifest, Part::Content));
    let level = request("/a/32=manifest/v=7/32=tree-2/seg=300");
    assert_eq!(level, segment(Aspect::Manifest, Part::Tree(2)));
}

#[test]
fn anything_else_is_refused() {
    for uri in [
        "/",
        "/a",
        "/a/32=ls",
        "/a/32=other",
        "/a/32=manifest",
        "/a/32=ls/32=manifest/32=metadata",
        "/a/v=7",
        "/a/seg=0",
        "/a/seg=0/v=7",
        "/a/32=metadata/b",
        "/a/v=7/32=tree-0/seg=0",
        "/a/v=7/32=tree-8/seg=0",
        "/a/v=7/32=tree-12/seg=0",
        "/a/32=metadata/32=ls",
        "/a/32=ls/32=ls/v=7/seg=0",
        "/a/v=7/seg=0/seg=0",
        "/a/32=ls/v=7/32=tree-1/seg=0/seg=0",
        "/a/32=metadata/v=7/seg=0",
    ] {
        assert_eq!(request(uri), None, "{uri}");
    }
}

#[test]
fn segments_of_contents_are_told_from_paths() {
    let segment =
        |part| Some(Request::Segment { aspect: Aspect::File, version: 7, part, segment: 1 });
    for (uri, part) in [
        ("/a/b/32=file/seq=9/v=7/seg=1", Part::Content),
        ("/a/b/32=file/seq=9/v=7/32=tree-2/seg=1", Part::Tree(2)),
        ("/32=file/seq=9/v=7/seg=1", Part::Content),
    ] {
        let uri = name(uri);
        let parsed = parse(uri.view()).unwrap();
        assert_eq!(Some(parsed.request), segment(part), "{uri}");
        let content = ContentName::parse(parsed.path).unwrap();
        assert_eq!(content.id, 9);
        assert_eq!(content.to_name().with_version(7), parsed.object.to_name(), "{uri}");
        let after_mount = parsed.path.suffix(content.prefix.count());
        assert_eq!(relative_path(after_mount), None, "no file of a mount");
    }
    for uri in [
        "/a/32=file/seq=9",
        "/a/32=file/seq=9/v=7",
        "/a/32=file/seq=9/32=metadata",
        "/a/32=file/seq=9/32=ls/32=metadata",
        "/a/32=file/seq=9/32=ls/v=7/seg=1",
        "/a/32=file/seq=9/32=manifest/v=7/seg=1",
        "/a/32=file/seq=9/32=file/seq=9/v=7/seg=1",
        "/a/32=file/v=7/seg=1",
        "/a/32=file/v=9/v=7/seg=1",
        "/a/32=file/seq=9/b/v=7/seg=1",
        "/a/seq=9/v=7/seg=1",
        "/a/32=other/seq=9/v=7/seg=1",
        "/a/32=ls/32=file/seq=9/v=7/seg=1",
        "/a/32=file/seq=9/v=7/seg=1/seg=1",
    ] {
        assert_eq!(request(uri), None, "{uri}");
    }
    assert!(
        parse(name("/a/v=7/seg=1").view()).is_some_and(|it| ContentName::parse(it.path).is_none())
    );
}

#[test]
fn path_and_object_are_cut_where_they_end() {
    let uri = name("/a/b c/32=ls/v=7/32=tree-2/seg=1");
    let parsed = parse(uri.view()).unwrap();
    assert_eq!(parsed.path, name("/a/b c").view());
    assert_eq!(parsed.object, name("/a/b c/32=ls/v=7").view());
    let uri = name("/32=metadata");
    assert_eq!(parse(uri.view()).unwrap().path, name("/").view());
}

#[test]
fn built_names_are_read_back() {
    let path = name("/x/y");
    let versioned = versioned_name(path.view(), true, 9);
    assert_eq!(versioned, name("/x/y/32=ls/v=9"));
    let built = segment_name(versioned.view(), Part::Tree(3), 4);
    assert_eq!(built, name("/x/y/32=ls/v=9/32=tree-3/seg=4"));
    let parsed = parse(built.view()).unwrap();
    assert_eq!(parsed.object, versioned.view());
    assert_eq!(metadata_name(path.view()), name("/x/y/32=metadata"));
}

#[test]
fn the_last_segment_of_sizes_around_the_boundary() {
    let last = |size| last_segment(size, 8192);
    assert_eq!([0, 1, 8192, 8193, 16384].map(last), [0, 0, 0, 1, 1]);
    assert_eq!(last((4 << 30) + 1), 524_288);
}

#[test]
fn long_names_get_smaller_segments_until_none_fit() {
    assert_eq!(segment_size_for(30), Some(8192));
    assert_eq!(segment_size_for(400), Some(8192));
    assert_eq!(segment_size_for(500), Some(4096));
    assert_eq!(segment_size_for(4600), Some(2048));
    assert_eq!(segment_size_for(7600), Some(1024));
    assert_eq!(segment_size_for(7700), None);
    assert_eq!(segment_size_for(usize::MAX / 2), None);
}

#[test]
fn only_names_of_directory_entries_make_a_path() {
    assert_eq!(relative_path(name("/a/b%20c/......").view()), Some(b"a/b c/...".to_vec()));
    assert_eq!(relative_path(name("/").view()), Some(Vec::new()));
    for uri in ["/a/...", "/a/....", "/a/.....", "/a/%00", "/a/b%2Fc", "/a/v=1"] {
        assert_eq!(relative_path(name(uri).view()), None, "{uri}");
    }
    let long = Name::new().with_generic(&[b'x'; 256]);
    assert_eq!(relative_path(long.view()), None);
}

#[test]
fn a_confined_link_cannot_lead_out() {
    for (depth, target, is_confined) in [
        (0, "a", true),
        (0, "a/b/c", true),
        (0, "./a//b/", true),
        (1, "../a", true),
        (2, "../../a", true),
        (2, ".././../a", true),
        (1, "..", true),
        (0, ".", true),
        (0, "", false),
        (0, "/a", false),
        (0, "/", false),
        (0, "..", false),
        (0, "../a", false),
        (1, "../../a", false),
        (5, "a/..", false),
        (5, "a/../b", false),
        (5, "../a/../b", false),
        (5, "..a/b", true),
        (0, "a\0b", false),
    ] {
        assert_eq!(is_confined_link(depth, target.as_bytes()), is_confined, "{depth} {target:?}");
    }
}

#[test]
fn the_segment_size_of_a_content_leaves_room_for_any_signature() {
    let of = |uri: &str| content_segment_size(name(uri).view());
    assert_eq!(of("/site/32=file/seq=9/v=7"), Some(8192));
    let long = format!("/{}/32=file/seq=9/v=7", "x".repeat(240));
    assert_eq!(of(&long), Some(4096), "a signature of 256 octets would not fit beside 8192");
}

#[test]
fn every_version_of_a_content_has_a_file_of_its_own() {
    assert_eq!(content_path(0x203, 9), b"03/0000000000000203-0000000000000009");
    assert_eq!(content_path(u64::MAX, 0), b"ff/ffffffffffffffff-0000000000000000");
}
