//! The file server as a reader sees it: packets over a socket pair, no forwarder in between.

#[path = "serving/client.rs"]
mod client;
#[path = "serving/files.rs"]
mod files;

mod basics {
    use super::client::{Peer, World};
    use byname_transfer::metadata::Answer;

    #[test]
    fn a_small_file_is_described_and_read_back() {
        let world = World::new();
        world.write("a.txt", b"hello");
        let mut peer = Peer::start(&world);
        let metadata = match peer.discover("/t/a.txt") {
            Answer::Metadata(metadata) => metadata,
            other => panic!("{other:?}"),
        };
        assert_eq!(metadata.size, Some(5));
        assert_eq!(peer.fetch(&metadata), b"hello");
    }
}
