//! The commands as NFD expects them, and what becomes of each kind of answer.

use byname_io::Connection;
use byname_link::ReassemblyLimits;
use byname_packet::{DataBuilder, NullSigner};

use super::*;

fn routes(uris: &'static [&'static str]) -> impl Iterator<Item = Route> + Send {
    uris.iter().map(|uri| {
        let signer: SharedSigner = Arc::new(DigestSigner);
        Route { prefix: uri.parse().unwrap(), signer: Some(signer), face_id: None }
    })
}

fn registrar(options: RegisterOptions) -> Registrar {
    Registrar::new(routes(&["/lab"]), options, CommandClock::new())
}

fn poll(registrar: &mut Registrar, now_ns: u64) -> Option<Vec<u8>> {
    registrar.poll_command((now_ns, now_ns), &mut || 7).unwrap()
}

/// The prefix that a command is about.
fn prefix(wire: &[u8]) -> Name {
    let interest = Interest::decode_checked(wire).unwrap();
    let parameters = interest.name.get(4).unwrap();
    ControlParameters::decode(parameters.value).unwrap().name.unwrap()
}

fn answer(command: &[u8], code: u64) -> Vec<u8> {
    let name = Interest::decode(command).unwrap().name;
    let (mut content, mut wire) = (Vec::new(), Vec::new());
    ControlResponse::new(code, "text").encode(&mut content);
    DataBuilder::new(name).encode(&content, &NullSigner, &mut wire).unwrap();
    wire
}

fn take(registrar: &mut Registrar, packet: &[u8]) -> Result<(), RegisterError> {
    registrar.handle_packet(&LpHeader::default(), packet)
}

#[test]
fn the_command_is_what_nfd_expects() {
    let options = RegisterOptions { origin: route_origin::APP, ..RegisterOptions::local() };
    let routes =
        std::iter::once(Route { prefix: "/lab".parse().unwrap(), signer: None, face_id: Some(9) });
    let mut registrar = Registrar::new(routes, options, CommandClock::new());
    let wire = poll(&mut registrar, 1).unwrap();
    let interest = Interest::decode(&wire).unwrap();
    assert_eq!(interest.lifetime_ms, Some(1000));
    let parameters = interest.name.get(4).unwrap().value;
    let parameters = ControlParameters::decode(parameters).unwrap();
    assert_eq!(parameters.name, Some("/lab".parse().unwrap()));
    assert_eq!(parameters.flags, Some(1));
    assert_eq!((parameters.origin, parameters.face_id), (Some(0), Some(9)));
}

/// A disk of a site behind NDNd lost every other order to the site's head, whose prefix is shorter.
#[test]
fn a_place_within_a_prefix_inherits_no_routes_of_it() {
    let flags = |uri: &'static str| {
        let routes = routes(Box::leak(Box::new([uri])));
        let mut registrar = Registrar::new(routes, RegisterOptions::local(), CommandClock::new());
        let wire = poll(&mut registrar, 1).unwrap();
        let parameters = Interest::decode(&wire).unwrap().name.get(4).unwrap().value;
        ControlParameters::decode(parameters).unwrap().flags
    };
    assert_eq!(flags("/lab/run"), Some(ROUTE_FLAG_CHILD_INHERIT));
    for within in ["/lab/32=disk/here/seq=3", "/lab/32=user/op/32=at/seq=9"] {
        assert_eq!(flags(within), Some(ROUTE_FLAG_CHILD_INHERIT | ROUTE_FLAG_CAPTURE), "{within}");
    }
}

#[test]
fn success_ends_it_and_other_data_does_not() {
    let mut registrar = registrar(RegisterOptions::local());
    let wire = poll(&mut registrar, 1).unwrap();
    assert!(poll(&mut registrar, 1).is_none());
    let mut stranger = Vec::new();
    let name: Name = "/other".parse().unwrap();
    DataBuilder::new(name.view()).encode(b"", &NullSigner, &mut stranger).unwrap();
    take(&mut registrar, &stranger).unwrap();
    assert!(!registrar.is_done());
    take(&mut registrar, &answer(&wire, 200)).unwrap();
    assert!(registrar.is_done());
    assert_eq!(registrar.poll_timeout(), None);
}

#[test]
fn refusal_and_a_missing_management_are_told_apart() {
    let mut refused = registrar(RegisterOptions::remote());
    for _ in 1..ATTEMPTS_MAX {
        let wire = poll(&mut refused, 1).unwrap();
        take(&mut refused, &answer(&wire, 403)).unwrap();
    }
    let wire = poll(&mut refused, 1).unwrap();
    let error = take(&mut refused, &answer(&wire, 403)).unwrap_err();
    assert!(matches!(error, RegisterError::Refused { code: 403, is_local: false, .. }));
    assert!(error.to_string().contains("/lab: 403 text; with NFD"), "{error}");
    assert!(error.to_string().contains("--allow-register"), "{error}");

    let mut bare = registrar(RegisterOptions::local());
    let wire = poll(&mut bare, 1).unwrap();
    let nack = LpHeader { nack: Some(150), ..LpHeader::default() };
    let error = bare.handle_packet(&nack, &wire).unwrap_err();
    assert!(matches!(error, RegisterError::NoManagement { reason: 150, .. }));
}

/// Of several files that a user began to write at once, one was refused now and then.
#[test]
fn a_command_whose_time_another_process_took_is_signed_anew() {
    let mut registrar = registrar(RegisterOptions::remote());
    let first = poll(&mut registrar, 1).unwrap();
    take(&mut registrar, &answer(&first, 403)).unwrap();
    assert!(!registrar.is_done());
    let second = poll(&mut registrar, 1).unwrap();
    let time_of = |wire: &[u8]| Interest::decode(wire).unwrap().signature_info.unwrap().time_ms;
    assert!(time_of(&second) > time_of(&first));
    take(&mut registrar, &answer(&second, 200)).unwrap();
    assert!(registrar.is_done());
}

#[test]
fn silence_is_asked_again_after_growing_pauses_and_then_an_error() {
    let mut silent = registrar(RegisterOptions::local());
    let (mut now_ns, mut pauses) = (SECOND_NS, Vec::new());
    for attempt in 1..=ATTEMPTS_MAX {
        assert!(poll(&mut silent, now_ns).is_some());
        now_ns = silent.poll_timeout().unwrap();
        let result = silent.handle_timeout(now_ns, &mut || u64::MAX);
        assert_eq!(result.is_err(), attempt == ATTEMPTS_MAX);
        if attempt < ATTEMPTS_MAX {
            assert!(poll(&mut silent, now_ns).is_none(), "no pause");
            let due_ns = silent.poll_timeout().unwrap();
            pauses.push(due_ns - now_ns);
            now_ns = due_ns;
        }
    }
    let (first, last) = (PAUSES.min_ns, PAUSES.min_ns * 4);
    assert!((first / 2..=first).contains(&pauses[0]), "{pauses:?}");
    assert!((last / 2..=last).contains(&pauses[2]), "{pauses:?}");
}

#[test]
fn every_route_is_registered_once_and_few_at_a_time() {
    let routes = (0..200u64).map(|number| Route {
        prefix: "/a".parse::<Name>().unwrap().with_generic(&number.to_be_bytes()),
        signer: None,
        face_id: None,
    });
    let mut registrar = Registrar::new(routes, RegisterOptions::local(), CommandClock::new());
    let mut prefixes = Vec::new();
    while !registrar.is_done() {
        let wires: Vec<_> = std::iter::from_fn(|| poll(&mut registrar, 0)).collect();
        assert!((1..=RegisterOptions::local().in_flight_max).contains(&wires.len()));
        for wire in wires {
            prefixes.push(prefix(&wire));
            take(&mut registrar, &answer(&wire, 200)).unwrap();
        }
    }
    prefixes.sort();
    prefixes.dedup();
    assert_eq!(prefixes.len(), 200);
}

#[test]
fn commands_to_another_machine_go_one_by_one_with_increasing_times() {
    let clock = CommandClock::new();
    let routes = routes(&["/lab", "/lab/KEY"]);
    let mut registrar = Registrar::new(routes, RegisterOptions::remote(), clock.clone());
    let time = |wire: &[u8]| Interest::decode(wire).unwrap().signature_info.unwrap().time_ms;
    let first = poll(&mut registrar, SECOND_NS).unwrap();
    assert!(poll(&mut registrar, SECOND_NS).is_none());
    assert_ne!(registrar.poll_timeout(), Some(0));
    take(&mut registrar, &answer(&first, 200)).unwrap();
    assert_eq!(registrar.poll_timeout(), Some(0), "the next may go");
    let second = poll(&mut registrar, SECOND_NS).unwrap();
    assert!(time(&second) > time(&first), "in the same millisecond");
    // After a reconnection the next registrar goes on with the same clock.
    let mut next = Registrar::new(self::routes(&["/lab"]), RegisterOptions::remote(), clock);
    assert!(time(&poll(&mut next, SECOND_NS).unwrap()) > time(&second));
}

#[test]
fn the_loop_registers_over_a_connection_and_says_what_ends_it() {
    let (near, far) = Connection::pair().unwrap();
    let forwarder = std::thread::spawn(move || {
        let mut face = Face::new(far, ReassemblyLimits::default());
        let mut poller = Poller::new().unwrap();
        poller.add(face.connection(), Token(0), Watch::READ).unwrap();
        let (mut events, mut prefixes) = (Vec::new(), Vec::new());
        while prefixes.len() < 2 {
            poller.wait(&mut events, Some(Duration::from_secs(60))).unwrap();
            assert!(!events.is_empty(), "no command within a minute");
            let mut answers = Vec::new();
            face.receive(0, |received| {
                prefixes.push(prefix(received.packet));
                answers.push(answer(received.packet, 200));
            })
            .unwrap();
            for wire in answers {
                face.send(&LpHeader::default(), &wire, 0).unwrap();
            }
            face.flush().unwrap();
        }
        prefixes
    });
    let mut face = Face::new(near, ReassemblyLimits::default());
    let mut registrar =
        Registrar::new(routes(&["/a", "/b"]), RegisterOptions::local(), CommandClock::new());
    register(&mut face, &mut registrar, &|| false).unwrap();
    assert!(registrar.is_done());
    let expected: Vec<Name> = ["/a", "/b"].map(|uri| uri.parse().unwrap()).to_vec();
    assert_eq!(forwarder.join().unwrap(), expected);
    // The forwarder is gone now.
    let mut registrar = self::registrar(RegisterOptions::local());
    let error = register(&mut face, &mut registrar, &|| false).unwrap_err();
    assert!(matches!(error, FaceError::Closed | FaceError::Io(_)), "{error}");
}
