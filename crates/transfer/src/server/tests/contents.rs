//! Contents under their ids: versions of a content are files of their own.

use super::*;

fn contents() -> Server {
    let signer: SharedSigner = Arc::new(DigestSigner);
    let mount = |contents| Mount {
        prefix: "/site".parse().unwrap(),
        signer: Arc::clone(&signer),
        contents,
    };
    Server::new(ServerConfig::default(), vec![mount(false), mount(true)])
}

fn ask_segment(server: &mut Server, uri: &str) {
    ask(server, uri, 4000, at(0));
}

#[test]
fn a_segment_of_a_content_is_looked_up_by_id_and_version_and_nothing_is_announced() {
    let mut server = contents();
    ask_segment(&mut server, "/site/32=file/seq=515/v=9/seg=0");
    ask_segment(&mut server, "/site/32=file/seq=515/v=9/seg=1");
    let (id, located) = op(&mut server);
    let path = b"03/0000000000000203-0000000000000009".to_vec();
    assert_eq!(located, Op::Locate { mount: 1, path });
    server.handle_completion(id, found(stat(10_000), 7), at(0));
    assert_eq!(server.poll_op(), None);
    let burst = server.poll_segments().expect("both segments");
    let segments: Vec<_> = burst.segments().map(|one| (one.offset, one.len)).collect();
    assert_eq!(segments, [(0, 8192), (8192, 1808)]);
    server.handle_segments(burst, SegmentSent::Sent);
    assert_eq!(server.levels().pending, 0);
    ask_segment(&mut server, "/site/32=file/seq=515/v=9/seg=1");
    assert_eq!(server.poll_op(), None, "it is open");
    assert!(server.poll_segments().is_some());
}

#[test]
fn two_versions_of_a_content_are_two_files() {
    let mut server = contents();
    ask_segment(&mut server, "/site/32=file/seq=1/v=1/seg=0");
    ask_segment(&mut server, "/site/32=file/seq=1/v=2/seg=0");
    let paths: Vec<_> = std::iter::from_fn(|| server.poll_op())
        .map(|(_, op)| match op {
            Op::Locate { path, .. } => path,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(paths, [crate::naming::content_path(1, 1), crate::naming::content_path(1, 2)]);
}

#[test]
fn nodes_of_a_content_come_from_its_tree() {
    let mut server = contents();
    ask_segment(&mut server, "/site/32=file/seq=1/v=1/32=tree-1/seg=0");
    let (id, _) = op(&mut server);
    server.handle_completion(id, found(stat(10_000), 7), at(0));
    let (id, tree) = op(&mut server);
    assert_eq!(tree, Op::OpenTree { file: Handle(7), state: state(10_000) });
    server.handle_completion(id, Completion::TreeOpened(Some(Handle(8))), at(0));
    let burst = server.poll_segments().expect("the node");
    assert_eq!((burst.source(), burst.len()), (Handle(8), 1));
}

#[test]
fn a_content_that_is_not_here_is_refused_without_a_signature() {
    let mut server = contents();
    ask_segment(&mut server, "/site/32=file/seq=1/v=1/seg=0");
    let (id, _) = op(&mut server);
    server.handle_completion(id, Completion::Located(Located::NotFound), at(0));
    assert_eq!(sent(&mut server), Some(Sent::Nack(nack_reason::NONE)));
    assert_eq!(server.levels().pending, 0);
}

#[test]
fn contents_of_other_sites_and_their_paths_are_no_requests_here() {
    let mut server = contents();
    for uri in ["/site/a/32=file/seq=1/v=1/seg=0", "/other/32=file/seq=1/v=1/seg=0"] {
        ask_segment(&mut server, uri);
        assert_eq!(server.poll_op(), None, "{uri}");
        assert_eq!(sent(&mut server), Some(Sent::Nack(nack_reason::NONE)), "{uri}");
    }
    ask(&mut server, "/site/03/0000000000000203-0000000000000009/32=metadata", 4000, at(0));
    let (_, located) = op(&mut server);
    assert!(matches!(located, Op::Locate { mount: 0, .. }), "paths never lead to contents");
}
