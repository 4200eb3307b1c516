//! Our server, and clients that break every rule.

use std::os::fd::{AsFd, OwnedFd};

use byname_io::{Connection, Interest, IoError, MemifError, RecvStatus};
use rustix::fs::{FallocateFlags, fallocate};

use super::Place;
use super::raw::{
    ACK, ADD_RING, BUFFER, BUFFERS, CONNECT, CONNECTED, Control, Descriptor, HELLO, MASK_INTERRUPT,
    REGION, RawClient, RingOffer, SLOTS, TO_CLIENT, TO_SERVER, add_region, init, message,
    new_eventfd,
};
use crate::{frame, framer, receive, send, wait_for};

/// A good raw client, connected.
fn established(place: &Place) -> (RawClient, Connection) {
    let client = RawClient::new(&place.path());
    client.send_all();
    let server = place.accept();
    client.control.expect(HELLO);
    for _ in 0..4 {
        client.control.expect(ACK);
    }
    client.control.expect(CONNECTED);
    (client, server)
}

/// Serves the listener as long as there is something to do at once; nobody may get in.
fn serve_nobody(place: &Place) {
    for _ in 0..20 {
        assert!(place.listener.accept().unwrap().is_none());
    }
}

/// Runs the good steps before `at`, then `bad` instead; returns with which words we were refused.
fn refusal(at: usize, bad: impl FnOnce(&RawClient)) -> String {
    let place = Place::new();
    let client = RawClient::new(&place.path());
    for (bytes, fd) in client.steps().into_iter().take(at) {
        client.control.send(&bytes, fd.as_slice());
    }
    bad(&client);
    serve_nobody(&place);
    let words = client.control.farewell();
    // It harmed nobody else.
    let (mut ours, mut server) = place.connected();
    send(&mut ours, &frame(b"still there"));
    assert_eq!(receive(&mut server, 1), [frame(b"still there")]);
    words
}

/// Finishes the steps after a ring was offered, which must then fail.
fn refused_ring(offer: RingOffer) -> String {
    refusal(2, |client| {
        client.control.send(&offer.message(), &[client.wakes_server.as_fd()]);
        for (bytes, fd) in client.steps().into_iter().skip(3) {
            client.control.send(&bytes, fd.as_slice());
        }
    })
}

#[test]
fn a_client_of_another_make_is_served() {
    let place = Place::new();
    let (client, mut server) = established(&place);
    client.fill(0, &frame(b"hello"));
    client.fill(1, &frame(b"server"));
    client.show(2);
    assert_eq!(receive(&mut server, 2), [frame(b"hello"), frame(b"server")]);
    assert_eq!(client.memory.tail(TO_SERVER), 2);
    send(&mut server, &frame(b"hello client"));
    assert_eq!(client.memory.tail(TO_CLIENT), 1);
    let Descriptor { flags, region, length, offset } = client.memory.descriptor(TO_CLIENT, 0);
    assert_eq!((flags, region, length), (0, 0, 14));
    assert_eq!(
        client.memory.get(offset.into()),
        *frame(b"hello client").first_chunk::<14>().unwrap()
    );
    let mut count = [0; 8];
    assert_eq!(rustix::io::read(&client.wakes_us, &mut count), Ok(8), "nobody woke the client");
}

#[test]
fn indices_wrap_around() {
    let place = Place::new();
    let (client, mut server) = established(&place);
    for round in 0..70_000u64 {
        let bytes = frame(&round.to_be_bytes());
        client.fill(round % SLOTS, &bytes);
        client.show(round as u16 + u16::from(round as u16 != u16::MAX));
        if round as u16 == u16::MAX {
            client.show(0);
        }
        let mut got = Vec::new();
        server.recv_burst(framer, &mut |frame| got.push(frame.to_vec())).unwrap();
        assert_eq!(got, [bytes], "round {round}");
    }
}

#[test]
fn the_first_messages_are_checked() {
    let words = refusal(0, |client| client.control.send(&init(0x0100, 0), &[]));
    assert!(words.contains("0x0100"), "{words}");
    let words = refusal(0, |client| client.control.send(&init(0x0200, 1), &[]));
    assert!(words.contains("mode 1"), "{words}");
    let words = refusal(0, |client| client.control.send(&message(99, &[]), &[]));
    assert!(words.contains("unknown control message 99"), "{words}");
    let words = refusal(0, |client| client.control.send(&message(CONNECT, &[]), &[]));
    assert!(words.contains("unexpected control message CONNECT"), "{words}");
    let words = refusal(1, |client| client.control.send(&init(0x0200, 0), &[]));
    assert!(words.contains("unexpected control message INIT"), "{words}");
    for length in [1, 127, 129, 4096] {
        let words = refusal(1, |client| client.control.send(&vec![4; length], &[]));
        assert!(words.contains("instead of 128"), "{words}");
    }
    let words = refusal(1, |client| {
        for index in 0..40 {
            client.control.send(&add_region(index, REGION), &[client.memory.0.as_fd()]);
        }
    });
    assert!(words.contains("too large"), "{words}");
}

#[test]
fn descriptors_come_one_with_each_offer_and_none_otherwise() {
    let words = refusal(1, |client| client.control.send(&add_region(0, REGION), &[]));
    assert!(words.contains("0 file descriptors instead of 1"), "{words}");
    let words = refusal(2, |client| client.control.send(&RingOffer::TO_SERVER.message(), &[]));
    assert!(words.contains("0 file descriptors instead of 1"), "{words}");
    for count in [2, 3, 4, 5, 16] {
        let words = refusal(1, |client| {
            let fd = client.memory.0.as_fd();
            client.control.send(&add_region(0, REGION), &vec![fd; count]);
        });
        assert!(words.contains("instead of 1"), "{words}");
    }
    let words = refusal(0, |client| {
        client.control.send(&init(0x0200, 0), &[client.memory.0.as_fd()]);
    });
    assert!(words.contains("1 file descriptors instead of 0"), "{words}");
}

#[test]
fn regions_must_be_there() {
    for bytes in [0, REGION + 1, 1 << 40, u64::MAX] {
        let words = refusal(1, |client| {
            client.control.send(&add_region(0, bytes), &[client.memory.0.as_fd()]);
        });
        assert!(words.contains("bytes announced"), "{words}");
    }
    let words = refusal(1, |client| {
        client.control.send(&add_region(1, REGION), &[client.memory.0.as_fd()]);
    });
    assert!(words.contains("not the next"), "{words}");
    let words = refusal(1, |client| {
        client.control.send(&add_region(0, REGION), &[client.wakes_us.as_fd()]);
    });
    assert!(words.contains("bytes announced"), "{words}");
}

#[test]
fn rings_must_be_there() {
    let good = RingOffer::TO_SERVER;
    for log2 in [0, 15, 16, 64, 255] {
        assert!(refused_ring(RingOffer { log2, ..good }).contains("2^1 to 2^14"));
    }
    for offset in [REGION as u32 - 128, REGION as u32, u32::MAX, 4, 2] {
        let words = refused_ring(RingOffer { offset, ..good });
        assert!(words.contains("does not lie within"), "{offset}: {words}");
    }
    for region in [1, u16::MAX] {
        assert!(refused_ring(RingOffer { region, ..good }).contains("does not lie within"));
    }
    assert!(refused_ring(RingOffer { log2: 14, ..good }).contains("does not lie within"));
    assert!(refused_ring(RingOffer { index: 1, ..good }).contains("number 0"));
    assert!(refused_ring(RingOffer { header: 8, ..good }).contains("private headers"));
    assert!(refused_ring(RingOffer::TO_CLIENT).contains("added before"));
    let offset = BUFFERS as u32;
    assert!(refused_ring(RingOffer { offset, ..good }).contains("wrong cookie 0x0"));
    let words = refusal(3, |client| client.control.send(&message(CONNECT, &[]), &[]));
    assert!(words.contains("without a ring in each direction"), "{words}");
}

#[test]
fn what_wakes_must_be_an_eventfd() {
    let file: OwnedFd = tempfile::tempfile().unwrap().into();
    let (pipe, _other) = rustix::pipe::pipe().unwrap();
    for at in [2, 3] {
        for fd in [&file, &pipe] {
            let words = refusal(at, |client| {
                client.control.send(&client.steps()[at].0, &[fd.as_fd()]);
                for (bytes, fd) in client.steps().into_iter().skip(at + 1) {
                    client.control.send(&bytes, fd.as_slice());
                }
            });
            assert!(words.contains("no eventfd"), "{words}");
        }
    }
}

#[test]
fn clients_that_leave_at_any_step_leave_nothing_behind() {
    let place = Place::new();
    for at in 0..=5 {
        let client = RawClient::new(&place.path());
        for (bytes, fd) in client.steps().into_iter().take(at) {
            client.control.send(&bytes, fd.as_slice());
        }
        if at % 2 == 0 {
            serve_nobody(&place);
        }
        drop(client);
        serve_nobody(&place);
    }
    // After the handshake the connection is found closed.
    let (client, mut server) = established(&place);
    drop(client);
    wait_for(&server, Interest::READ);
    assert!(server.recv_burst(framer, &mut |_| ()).unwrap().closed);
}

#[test]
fn half_open_handshakes_are_bounded_and_keep_nobody_out() {
    let place = Place::new();
    let silent: Vec<Control> = (0..100)
        .map(|_| {
            let control = Control::connect(&place.path());
            serve_nobody(&place);
            control
        })
        .collect();
    let (mut ours, mut server) = place.connected();
    send(&mut ours, &frame(b"let me in"));
    assert_eq!(receive(&mut server, 1), [frame(b"let me in")]);
    // The oldest had to go.
    assert!(silent[0].farewell().contains("not finished in time"));
    drop(silent);
    serve_nobody(&place);
}

#[test]
fn a_handshake_that_takes_too_long_is_ended() {
    let place = Place::new();
    let silent = Control::connect(&place.path());
    serve_nobody(&place);
    // The timer says when; nothing else happens to the listener.
    wait_for(&place.listener, Interest::READ);
    serve_nobody(&place);
    assert!(silent.farewell().contains("not finished in time"));
}

/// Result of receiving at the server when a slot of the ring to it has this descriptor.
fn received(fields: Descriptor) -> Result<RecvStatus, IoError> {
    let place = Place::new();
    let (client, mut server) = established(&place);
    client.memory.put_descriptor(TO_SERVER, 0, fields);
    client.show(1);
    wait_for(&server, Interest::READ);
    server.recv_burst(framer, &mut |_| panic!("that is no frame"))
}

#[test]
fn descriptors_out_of_bounds_end_the_connection() {
    let end = REGION as u32;
    for (region, length, offset) in [
        (1, 10, 0),
        (u16::MAX, 10, 0),
        (0, 1, end),
        (0, 11, end - 10),
        (0, u32::MAX, 0),
        (0, u32::MAX, u32::MAX),
        (0, 10, u32::MAX - 5),
    ] {
        let result = received(Descriptor::new(region, length, offset));
        let found = matches!(result, Err(IoError::Memif(MemifError::Descriptor { .. })));
        assert!(found, "{region} {length} {offset}: {result:?}");
    }
    // Within the region, but longer than a frame may be.
    let status = received(Descriptor::new(0, 9217, 0)).unwrap();
    assert_eq!((status.frames, status.dropped), (0, 1));
}

#[test]
fn indices_that_jump_end_the_connection() {
    for index in [SLOTS as u16 + 1, 1000, u16::MAX] {
        let place = Place::new();
        let (client, mut server) = established(&place);
        client.show(index);
        let result = server.recv_burst(framer, &mut |_| panic!("that is no frame"));
        let found = matches!(result, Err(IoError::Memif(MemifError::IndexJump { slots: 8, .. })));
        assert!(found, "{index}: {result:?}");

        let (client, mut server) = established(&place);
        client.memory.put_head(TO_CLIENT, index);
        server.queue(&[&frame(b"where to?")]).unwrap();
        let result = server.flush();
        let found = matches!(result, Err(IoError::Memif(MemifError::IndexJump { slots: 8, .. })));
        assert!(found, "{index}: {result:?}");
    }
}

/// Offers were taken back, or slots offered that were filled and not yet shown.
#[test]
fn indices_that_move_back_end_the_connection() {
    let place = Place::new();
    let (client, mut server) = established(&place);
    send(&mut server, &frame(b"the offer is seen"));
    client.memory.put_head(TO_CLIENT, SLOTS as u16 - 1);
    server.queue(&[&frame(b"and then is another")]).unwrap();
    let result = server.flush();
    let moved_back =
        matches!(result, Err(IoError::Memif(MemifError::IndexJump { moved: -1, at_most: 1, .. })));
    assert!(moved_back, "{result:?}");

    let (client, mut server) = established(&place);
    for _ in 0..SLOTS {
        server.queue(&[&frame(b"not shown yet")]).unwrap();
    }
    client.memory.put_head(TO_CLIENT, 2 * SLOTS as u16);
    server.queue(&[&frame(b"over what is not shown")]).unwrap();
    let result = server.flush();
    let jumped = matches!(result, Err(IoError::Memif(MemifError::IndexJump { moved: 8, .. })));
    assert!(jumped, "{result:?}");

    let (client, mut server) = established(&place);
    client.fill(0, &frame(b"once"));
    client.show(1);
    assert_eq!(receive(&mut server, 1).len(), 1);
    client.show(0);
    let result = server.recv_burst(framer, &mut |_| panic!("that is no frame"));
    let moved_back = matches!(
        result,
        Err(IoError::Memif(MemifError::IndexJump { moved: -1, at_most: 8, slots: 8 }))
    );
    assert!(moved_back, "{result:?}");
}

/// gomemif masks interrupts in the rings that it makes, and wakes who unmasks them.
#[test]
fn a_client_that_masks_interrupts_at_first_wakes_us_from_the_first_frame_on() {
    for sent_before in [0, 1] {
        let place = Place::new();
        let client = RawClient::new(&place.path());
        client.memory.put_flags(TO_SERVER, MASK_INTERRUPT);
        client.memory.put_flags(TO_CLIENT, MASK_INTERRUPT);
        client.fill(0, &frame(b"first"));
        client.fill(1, &frame(b"second"));
        // Sent while the handshake goes on, it wakes nobody.
        client.show_unless_masked(sent_before);
        client.send_all();
        let mut server = place.accept();
        assert_eq!(client.memory.flags(TO_SERVER), 0, "the server is asleep");
        assert_eq!(client.memory.flags(TO_CLIENT), MASK_INTERRUPT, "that flag is the client's");
        if sent_before == 0 {
            client.show_unless_masked(1);
        }
        assert_eq!(receive(&mut server, 1), [frame(b"first")]);
        // Until nothing is left, so that it sleeps again.
        while !server.recv_burst(framer, &mut |_| ()).unwrap().drained {}
        client.show_unless_masked(2);
        assert_eq!(receive(&mut server, 1), [frame(b"second")]);
    }
}

#[test]
fn buffers_out_of_bounds_are_not_written_to() {
    for (region, length, offset) in
        [(1, BUFFER as u32, 0), (0, BUFFER as u32, REGION as u32 - 5), (0, u32::MAX, u32::MAX)]
    {
        let place = Place::new();
        let (client, mut server) = established(&place);
        client.memory.put_descriptor(TO_CLIENT, 0, Descriptor::new(region, length, offset));
        server.queue(&[&frame(b"where to?")]).unwrap();
        let result = server.flush();
        let found = matches!(result, Err(IoError::Memif(MemifError::Descriptor { .. })));
        assert!(found, "{region} {length} {offset}: {result:?}");
    }
}

#[test]
fn a_buffer_too_small_costs_its_frame_only() {
    let place = Place::new();
    let (client, mut server) = established(&place);
    client.memory.put_descriptor(TO_CLIENT, 0, Descriptor::new(0, 10, BUFFERS as u32));
    for bytes in [&frame(&[1; 20]), &frame(&[2; 4])] {
        server.queue(&[bytes]).unwrap();
    }
    server.flush().unwrap();
    assert_eq!(server.send_dropped(), 1);
    assert_eq!(client.memory.tail(TO_CLIENT), 1);
    assert_eq!(client.memory.descriptor(TO_CLIENT, 0).length, 6);
}

#[test]
fn packets_over_several_buffers_are_dropped_whole() {
    let place = Place::new();
    let (client, mut server) = established(&place);
    let bytes = frame(b"a part");
    for slot in 0..6 {
        client.fill(slot, &bytes);
        // Slots 1 to 3 are one packet, so is what begins with 5.
        if (1..3).contains(&slot) || slot == 5 {
            let goes_on = Descriptor { flags: 1, ..client.memory.descriptor(TO_SERVER, slot) };
            client.memory.put_descriptor(TO_SERVER, slot, goes_on);
        }
    }
    client.show(6);
    let mut frames = 0;
    let status = server.recv_burst(framer, &mut |_| frames += 1).unwrap();
    assert_eq!((frames, status.frames, status.dropped), (2, 2, 1));
    // The end of the second packet comes with a later burst.
    client.fill(6, &bytes);
    client.fill(7, &bytes);
    client.show(8);
    let status = server.recv_burst(framer, &mut |_| frames += 1).unwrap();
    assert_eq!((frames, status.frames, status.dropped), (3, 1, 1));
}

/// The peer may write at any time; what we look at does not change.
#[test]
fn a_frame_cannot_be_changed_while_we_look_at_it() {
    let place = Place::new();
    let (client, mut server) = established(&place);
    client.fill(0, &frame(b"before"));
    client.show(1);
    let mut seen = Vec::new();
    let look = &mut |bytes: &[u8]| {
        client.memory.put(BUFFERS, &frame(b"after!"));
        seen = bytes.to_vec();
    };
    server.recv_burst(framer, look).unwrap();
    assert_eq!(seen, frame(b"before"));
}

#[test]
fn memory_cannot_shrink_under_us() {
    let place = Place::new();
    let (client, mut server) = established(&place);
    assert!(rustix::fs::ftruncate(&client.memory.0, 0).is_err());
    client.fill(0, &frame(b"still there"));
    client.show(1);
    assert_eq!(receive(&mut server, 1), [frame(b"still there")]);
    // A hole is nothing but zeroes.
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(&client.memory.0, hole, BUFFERS, REGION - BUFFERS).unwrap();
    client.memory.put_descriptor(TO_SERVER, 1, Descriptor::new(0, 2, BUFFERS as u32));
    client.show(2);
    assert_eq!(receive(&mut server, 1), [[0, 0]]);
}

#[test]
fn control_messages_after_the_handshake_end_the_connection() {
    let place = Place::new();
    let (client, mut server) = established(&place);
    client.control.send(&message(ADD_RING, &[]), &[new_eventfd().as_fd()]);
    wait_for(&server, Interest::READ);
    let result = server.recv_burst(framer, &mut |_| ());
    assert!(matches!(result, Err(IoError::Memif(MemifError::UnexpectedMessage { .. }))));
}

/// A small generator of numbers that look random, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// Mostly what could be right, sometimes what is just wrong, sometimes anything.
    fn near(&mut self, right: u64) -> u64 {
        match self.next() % 100 {
            0 => self.next(),
            1 => right.wrapping_add(self.next() % 3).wrapping_sub(1),
            2 => 0,
            _ => right,
        }
    }
}

/// Whatever is in the rings, frames lie within the limit and everybody else is served.
#[test]
fn rings_full_of_anything_do_no_harm() {
    let place = Place::new();
    let mut numbers = Numbers(1);
    let (mut ends, mut frames) = (0, 0);
    for _ in 0..200 {
        let (client, mut server) = established(&place);
        let (mut head, mut offered) = (0u16, SLOTS as u16);
        for _ in 0..40 {
            for slot in 0..SLOTS {
                let fields = Descriptor {
                    flags: (numbers.near(0) & 1) as u16,
                    region: numbers.near(0) as u16,
                    length: numbers.near(100) as u32,
                    offset: numbers.near(BUFFERS) as u32,
                };
                let ring = if numbers.next().is_multiple_of(2) { TO_SERVER } else { TO_CLIENT };
                client.memory.put_descriptor(ring, slot, fields);
            }
            client.memory.put(BUFFERS, &frame(&[1; 98]));
            head = head.wrapping_add((numbers.next() % SLOTS) as u16);
            offered = offered.wrapping_add((numbers.next() % 3) as u16);
            client.show(numbers.near(head.into()) as u16);
            client.memory.put_head(TO_CLIENT, numbers.near(offered.into()) as u16);
            let count = &mut |bytes: &[u8]| {
                assert!(bytes.len() <= 9216);
                frames += 1;
            };
            let received = server.recv_burst(framer, count);
            let _ = server.queue(&[&frame(b"an answer")]);
            if received.is_err() || server.flush().is_err() {
                ends += 1;
                break;
            }
        }
    }
    assert!(ends > 10 && frames > 500, "{ends} connections ended, {frames} frames came");
}

/// Whatever is said in a handshake, those who say the right things get in.
#[test]
fn handshakes_of_anything_do_no_harm() {
    let place = Place::new();
    let mut numbers = Numbers(2);
    let mut connected = 0;
    for _ in 0..500 {
        let client = RawClient::new(&place.path());
        for (mut bytes, fd) in client.steps() {
            for _ in 0..numbers.next() % 3 {
                let at = (numbers.next() % 20) as usize;
                bytes[at] = numbers.near(bytes[at].into()) as u8;
            }
            let fds = if numbers.next().is_multiple_of(50) { None } else { fd };
            client.control.send(&bytes, fds.as_slice());
        }
        for _ in 0..5 {
            if let Some(mut server) = place.listener.accept().unwrap() {
                connected += 1;
                let _ = server.recv_burst(framer, &mut |_| ());
            }
        }
    }
    assert!(connected > 0 && connected < 500, "{connected}");
    let (mut ours, mut server) = place.connected();
    send(&mut ours, &frame(b"and now for something else"));
    assert_eq!(receive(&mut server, 1), [frame(b"and now for something else")]);
}

/// A client that offers no buffers gets nothing, and costs a bounded amount of memory.
#[test]
fn a_client_without_buffers_is_waited_for() {
    let place = Place::new();
    let client = RawClient::new(&place.path());
    client.memory.put_head(TO_CLIENT, 0);
    client.send_all();
    let mut server = place.accept();
    send(&mut server, &frame(b"patience"));
    assert!(server.wants_write());
    client.memory.put_head(TO_CLIENT, SLOTS as u16);
    while server.wants_write() {
        wait_for(&server, Interest::READ_WRITE);
        server.recv_burst(framer, &mut |_| ()).unwrap();
    }
    assert_eq!(client.memory.tail(TO_CLIENT), 1);
}
