//! The table against a naive model of NFD's semantics, and its indices.

use proptest::prelude::*;

use super::*;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn route(face: u64, cost: u64, flags: u64) -> Route {
    Route { face: FaceId(face), origin: 0, cost, flags, expires_ns: None }
}

fn hops(rib: &Rib, prefix: &str) -> Option<Vec<(u64, u64)>> {
    let hops = rib.next_hops(name(prefix).view())?;
    Some(hops.iter().map(|hop| (hop.face.0, hop.cost)).collect())
}

fn add(rib: &mut Rib, prefix: &str, route: Route) {
    rib.insert(name(prefix).view(), route).unwrap();
}

#[test]
fn routes_are_inherited_until_captured() {
    let mut rib = Rib::new(100);
    add(&mut rib, "/", route(1, 50, ROUTE_FLAG_CHILD_INHERIT));
    add(&mut rib, "/a", route(2, 10, ROUTE_FLAG_CHILD_INHERIT));
    add(&mut rib, "/a", route(3, 5, 0));
    add(&mut rib, "/a/b", route(1, 70, 0));
    add(&mut rib, "/a/c", route(4, 1, ROUTE_FLAG_CAPTURE));
    add(&mut rib, "/a/c/d", route(5, 9, 0));
    assert_eq!(hops(&rib, "/a"), Some(vec![(3, 5), (2, 10), (1, 50)]));
    assert_eq!(hops(&rib, "/a/b"), Some(vec![(2, 10), (1, 70)]), "the nearest entry wins");
    assert_eq!(hops(&rib, "/a/c"), Some(vec![(4, 1)]));
    assert_eq!(hops(&rib, "/a/c/d"), Some(vec![(5, 9)]), "capture holds below");
    assert_eq!(hops(&rib, "/b"), None);
    let (prefix, from) = (name("/a"), name("/a/b"));
    let below: Vec<String> =
        rib.subtree(prefix.view(), from.view()).map(|n| n.to_name().to_string()).collect();
    assert_eq!(below, ["/a/b", "/a/c", "/a/c/d"]);
}

#[test]
fn next_hops_set_in_the_fib_neither_inherit_nor_are_inherited() {
    let mut rib = Rib::new(100);
    let direct = |face, cost| Route { origin: FIB_ORIGIN, ..route(face, cost, 0) };
    add(&mut rib, "/", route(1, 50, ROUTE_FLAG_CHILD_INHERIT));
    add(&mut rib, "/a", direct(2, 7));
    assert_eq!(hops(&rib, "/a"), Some(vec![(2, 7)]));
    add(&mut rib, "/a", route(2, 3, 0));
    assert_eq!(hops(&rib, "/a"), Some(vec![(2, 7), (1, 50)]), "what was set directly wins");
    add(&mut rib, "/a/b", route(3, 1, 0));
    assert_eq!(hops(&rib, "/a/b"), Some(vec![(3, 1), (1, 50)]));
}

#[test]
fn a_renewed_route_outlives_its_first_expiry() {
    let mut rib = Rib::new(100);
    for at in 10..=20 {
        add(&mut rib, "/a", Route { expires_ns: Some(at), ..route(1, 0, 0) });
    }
    assert_eq!(rib.expiries.len(), 1, "renewals leave nothing behind");
    assert_eq!(rib.pop_expired(19), None);
    assert_eq!(rib.next_expiry_ns(), Some(20));
    assert_eq!(rib.pop_expired(20).unwrap().0, name("/a"));
    assert_eq!(rib.next_expiry_ns(), None);
    assert_eq!(hops(&rib, "/a"), None);
}

#[test]
fn a_full_table_refuses_new_routes_but_renews_old_ones() {
    let mut rib = Rib::new(1);
    add(&mut rib, "/a", route(1, 0, 0));
    assert_eq!(rib.insert(name("/b").view(), route(1, 0, 0)), Err(RibFull { max: 1 }));
    add(&mut rib, "/a", route(1, 7, 0));
    assert_eq!(rib.pop_face(FaceId(1)).unwrap().0, name("/a"));
    add(&mut rib, "/b", route(1, 0, 0));
    assert_eq!(rib.pop_face(FaceId(2)), None);
    assert!(rib.remove(name("/b").view(), FaceId(1), 0).is_some());
    assert_eq!(rib.pop_face(FaceId(1)), None);
    assert!(rib.by_face.is_empty() && rib.entries.is_empty() && rib.route_count == 0);
}

#[derive(Debug, Clone)]
enum Operation {
    Insert(Vec<u8>, Route),
    Remove(Vec<u8>, FaceId, u64),
    PopFace(FaceId),
    Expire(u64),
}

fn path() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(0u8..3, 0..4)
}

fn operation() -> impl Strategy<Value = Operation> {
    let face = (1u64..4).prop_map(FaceId);
    let origin = prop_oneof![Just(0u64), Just(65), Just(FIB_ORIGIN)];
    let expiry = proptest::option::of(0u64..50);
    let route = (face.clone(), origin.clone(), 0u64..5, 0u64..4, expiry).prop_map(
        |(face, origin, cost, flags, expires_ns)| {
            let flags = if origin == FIB_ORIGIN { 0 } else { flags };
            Route { face, origin, cost, flags, expires_ns }
        },
    );
    prop_oneof![
        6 => (path(), route).prop_map(|(path, route)| Operation::Insert(path, route)),
        2 => (path(), face.clone(), origin).prop_map(|(p, f, o)| Operation::Remove(p, f, o)),
        1 => face.prop_map(Operation::PopFace),
        1 => (0u64..50).prop_map(Operation::Expire),
    ]
}

fn prefix(path: &[u8]) -> Name {
    path.iter().fold(Name::new(), |name, octet| name.with_generic(&[*octet]))
}

/// NFD's rules, as slowly as they can be said.
fn naive(model: &[(Vec<u8>, Route)], path: &[u8]) -> Option<Vec<(u64, u64)>> {
    let at = |path: &[u8]| -> Vec<Route> {
        model.iter().filter(|(p, _)| p == path).map(|(_, r)| *r).collect()
    };
    let cheapest = |routes: &[Route], face: FaceId| {
        routes.iter().filter(|r| r.face == face).map(|r| r.cost).min()
    };
    let own = at(path);
    if own.is_empty() {
        return None;
    }
    let (direct, own): (Vec<Route>, Vec<Route>) =
        own.into_iter().partition(|r| r.origin == FIB_ORIGIN);
    let mut found = Vec::new();
    for face in (1..4).map(FaceId) {
        let mut cost = cheapest(&direct, face).or_else(|| cheapest(&own, face));
        let mut captured = own.is_empty() || own.iter().any(|r| r.flags & 2 != 0);
        let mut len = path.len();
        while cost.is_none() && !captured && len > 0 {
            len -= 1;
            let routes = at(&path[..len]);
            let inherited: Vec<Route> =
                routes.iter().filter(|r| r.flags & 1 != 0).copied().collect();
            cost = cheapest(&inherited, face);
            captured = routes.iter().any(|r| r.flags & 2 != 0);
        }
        found.extend(cost.map(|cost| (face.0, cost)));
    }
    found.sort_by_key(|(face, cost)| (*cost, *face));
    Some(found)
}

proptest! {
    #[test]
    fn agrees_with_a_naive_model(
        operations in proptest::collection::vec(operation(), 1..40),
    ) {
        let mut rib = Rib::new(1000);
        let mut model: Vec<(Vec<u8>, Route)> = Vec::new();
        for operation in operations {
            match operation {
                Operation::Insert(path, route) => {
                    rib.insert(prefix(&path).view(), route).unwrap();
                    model.retain(|(p, r)| {
                        *p != path || r.face != route.face || r.origin != route.origin
                    });
                    model.push((path, route));
                }
                Operation::Remove(path, face, origin) => {
                    let before = model.len();
                    model.retain(|(p, r)| *p != path || r.face != face || r.origin != origin);
                    let removed = rib.remove(prefix(&path).view(), face, origin);
                    prop_assert_eq!(removed.is_some(), model.len() < before);
                }
                Operation::PopFace(face) => {
                    while rib.pop_face(face).is_some() {}
                    model.retain(|(_, r)| r.face != face);
                }
                Operation::Expire(now_ns) => {
                    while rib.pop_expired(now_ns).is_some() {}
                    model.retain(|(_, r)| r.expires_ns.is_none_or(|at| at > now_ns));
                }
            }
            prop_assert_eq!(rib.route_count, model.len());
            prop_assert_eq!(
                rib.expiries.len(),
                model.iter().filter(|(_, r)| r.expires_ns.is_some()).count()
            );
            for (path, _) in &model {
                let prefix = prefix(path);
                let found = rib.next_hops(prefix.view()).map(|hops| {
                    hops.iter().map(|hop| (hop.face.0, hop.cost)).collect::<Vec<_>>()
                });
                prop_assert_eq!(found, naive(&model, path), "{}", prefix);
            }
            let paths: std::collections::BTreeSet<_> = model.iter().map(|(p, _)| p).collect();
            prop_assert_eq!(rib.len(), paths.len());
            for face in (1..4).map(FaceId) {
                let over: std::collections::BTreeSet<_> =
                    model.iter().filter(|(_, r)| r.face == face).map(|(p, _)| p).collect();
                prop_assert_eq!(rib.count_of_face(face, 1000), over.len());
            }
        }
    }
}
