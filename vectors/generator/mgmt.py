"""NFD management: command parameters, responses and status datasets."""

from .tlv import Name, accept, nni, reject, tlv, version

BEST_ROUTE = Name(b"localhost", b"nfd", b"strategy", b"best-route", version(5))
NUMBERS = {
    "face_id": 105,
    "origin": 111,
    "cost": 106,
    "capacity": 131,
    "count": 132,
    "flags": 108,
    "mask": 112,
    "expiration_period_ms": 109,
    "face_persistency": 133,
    "base_congestion_marking_interval_ns": 135,
    "default_congestion_threshold_bytes": 136,
    "mtu": 137,
}
TEXTS = {"uri": 114, "local_uri": 129}


def parameters(*fields):
    return tlv(104, *fields)


def shown_parameters(**fields):
    default = dict.fromkeys([*NUMBERS, *TEXTS, "name", "strategy"])
    unknown = set(fields) - set(default)
    assert not unknown, unknown
    return {**default, **fields}


def control_parameters():
    name = Name(b"lab").tlv()
    found = [accept("nothing", parameters(), shown_parameters(), canonical=True)]
    for field, kind in NUMBERS.items():
        for number in (0, 2**64 - 1):
            octets = parameters(nni(kind, number))
            found.append(
                accept(
                    f"{field} {number}", octets, shown_parameters(**{field: number}), canonical=True
                )
            )
        for octets in (0, 3, 9):
            found.append(
                reject(
                    f"{field} of {octets} octets",
                    parameters(tlv(kind, bytes(octets))),
                    "bad-length",
                )
            )
        found.append(
            reject(f"{field} twice", parameters(nni(kind, 1), nni(kind, 1)), "out-of-order")
        )
    for field, kind in TEXTS.items():
        octets = parameters(tlv(kind, b"tcp4://192.0.2.1:6363"))
        found.append(
            accept(
                field, octets, shown_parameters(**{field: "tcp4://192.0.2.1:6363"}), canonical=True
            )
        )
        found.append(reject(f"{field} is not UTF-8", parameters(tlv(kind, b"\xff")), "bad-value"))
    strategy = tlv(107, BEST_ROUTE.tlv())
    every = parameters(
        name,
        nni(105, 300),
        tlv(114, b"u"),
        tlv(129, b"l"),
        nni(111, 65),
        nni(106, 10),
        nni(131, 1),
        nni(132, 2),
        nni(108, 3),
        nni(112, 3),
        strategy,
        nni(109, 60_000),
        nni(133, 2),
        nni(135, 1),
        nni(136, 2),
        nni(137, 8800),
    )
    fields = {
        "name": "/lab",
        "face_id": 300,
        "uri": "u",
        "local_uri": "l",
        "origin": 65,
        "cost": 10,
        "capacity": 1,
        "count": 2,
        "flags": 3,
        "mask": 3,
        "strategy": BEST_ROUTE.uri(),
        "expiration_period_ms": 60_000,
        "face_persistency": 2,
        "base_congestion_marking_interval_ns": 1,
        "default_congestion_threshold_bytes": 2,
        "mtu": 8800,
    }
    found.append(accept("every field", every, shown_parameters(**fields), canonical=True))
    octets = parameters(nni(106, 1), tlv(240, b"x"), name)
    found.append(
        accept("any order, unknown field ignored", octets, shown_parameters(name="/lab", cost=1))
    )
    found += [
        reject("nothing at all", b"", "truncated"),
        reject("another element", name, "unexpected"),
        reject("octets behind", parameters() + b"\x00", "trailing"),
        reject("unknown critical field", parameters(tlv(241)), "unknown-critical"),
        reject("name twice", parameters(name, name), "out-of-order"),
        reject("bad name", parameters(tlv(7, b"\x00\x00")), "invalid-type"),
        reject("strategy without name", parameters(tlv(107)), "truncated"),
        reject("strategy with something else", parameters(tlv(107, tlv(8))), "unexpected"),
        reject("strategy with two names", parameters(tlv(107, name, name)), "trailing"),
        reject("field cut", parameters(b"\x69\x04\x01"), "truncated"),
    ]
    return found


def control_response():
    code, text = nni(102, 200), tlv(103, b"OK")
    body = parameters(nni(105, 5))
    shown = lambda number, words, rest: {
        "status_code": number,
        "status_text": words,
        "body": rest.hex(),
    }
    return [
        accept("no body", tlv(101, code, text), shown(200, "OK", b""), canonical=True),
        accept("body", tlv(101, code, text, body), shown(200, "OK", body), canonical=True),
        accept(
            "code above 255, no text",
            tlv(101, nni(102, 404), tlv(103)),
            shown(404, "", b""),
            canonical=True,
        ),
        reject("empty", tlv(101), "missing"),
        reject("no text", tlv(101, code), "missing"),
        reject("text first", tlv(101, text, code), "missing"),
        reject("code of three octets", tlv(101, tlv(102, bytes(3)), text), "bad-length"),
        reject("text is not UTF-8", tlv(101, code, tlv(103, b"\xff")), "bad-value"),
        reject("body cut", tlv(101, code, text, b"\x68\x05"), "truncated"),
        reject("two bodies", tlv(101, code, text, body, body), "trailing"),
        reject("another element", body, "unexpected"),
    ]


def general_status():
    numbers = {
        "start_timestamp_ms": 129,
        "current_timestamp_ms": 130,
        "name_tree_entry_count": 131,
        "fib_entry_count": 132,
        "pit_entry_count": 133,
        "measurements_entry_count": 134,
        "cs_entry_count": 135,
        "in_interest_count": 144,
        "in_data_count": 145,
        "in_nack_count": 151,
        "out_interest_count": 146,
        "out_data_count": 147,
        "out_nack_count": 152,
        "satisfied_interest_count": 153,
        "unsatisfied_interest_count": 154,
    }
    values = {field: 1000 * i for i, field in enumerate(numbers)}
    octets = tlv(128, b"byname 0.1") + b"".join(nni(numbers[f], v) for f, v in values.items())
    zero = dict.fromkeys(numbers, 0)
    return [
        accept("every counter", octets, {"version": "byname 0.1", **values}, canonical=True),
        accept("absent counters are 0", b"", {"version": "", **zero}),
        accept(
            "counters of other forwarders are ignored",
            tlv(128, b"x") + nni(200, 1),
            {"version": "x", **zero},
        ),
        reject("counter twice", nni(129, 1) + nni(129, 1), "out-of-order"),
        reject("counter of three octets", tlv(144, bytes(3)), "bad-length"),
        reject("version is not UTF-8", tlv(128, b"\xff"), "bad-value"),
        reject("unknown critical counter", nni(201, 1), "unknown-critical"),
        reject("cut", b"\x80\x05a", "truncated"),
    ]


def face_status():
    counters = {
        "in_interest_count": 144,
        "in_data_count": 145,
        "in_nack_count": 151,
        "out_interest_count": 146,
        "out_data_count": 147,
        "out_nack_count": 152,
        "in_bytes": 148,
        "out_bytes": 149,
        "flags": 108,
    }
    values = {field: 10**i for i, field in enumerate(counters)}
    head = nni(105, 300) + tlv(114, b"tcp4://192.0.2.1:6363") + tlv(129, b"tcp4://192.0.2.2:1")
    kinds = nni(132, 1) + nni(133, 2) + nni(134, 0)
    tail = b"".join(nni(counters[f], v) for f, v in values.items())
    shown = {
        "face_id": 300,
        "uri": "tcp4://192.0.2.1:6363",
        "local_uri": "tcp4://192.0.2.2:1",
        "expiration_period_ms": None,
        "scope": 1,
        "persistency": 2,
        "link_type": 0,
        "mtu": None,
        **values,
    }
    full = tlv(128, head, nni(109, 5), kinds, nni(137, 1420), tail)
    marking = tlv(128, head, kinds, nni(135, 100), nni(136, 65536), tail)
    empty = {
        **shown,
        **dict.fromkeys(counters, 0),
        "uri": "",
        "local_uri": "",
        "face_id": 1,
        "scope": 0,
        "persistency": 0,
    }
    return [
        accept("no faces", b"", [], canonical=True),
        accept("one face", tlv(128, head, kinds, tail), [shown], canonical=True),
        accept(
            "two faces",
            full + full,
            [{**shown, "expiration_period_ms": 5, "mtu": 1420}] * 2,
            canonical=True,
        ),
        accept("congestion marking is passed over", marking, [shown]),
        accept("face without counters", tlv(128, nni(105, 1)), [empty]),
        reject("face without identifier", tlv(128), "missing"),
        reject("another element", tlv(129, head), "unexpected"),
        reject("address twice", tlv(128, head, tlv(114, b"")), "out-of-order"),
        reject("unknown critical field", tlv(128, head, tlv(241)), "unknown-critical"),
        reject("second face cut", full + full[:-1], "truncated"),
    ]


def rib():
    name = Name(b"lab").tlv()
    route = tlv(129, nni(105, 5), nni(111, 65), nni(106, 10), nni(108, 3))
    expiring = tlv(129, nni(105, 6), nni(111, 0), nni(106, 0), nni(108, 1), nni(109, 60_000))
    shown = {"face_id": 5, "origin": 65, "cost": 10, "flags": 3, "expiration_period_ms": None}
    later = {"face_id": 6, "origin": 0, "cost": 0, "flags": 1, "expiration_period_ms": 60_000}
    entry = lambda routes: {"name": "/lab", "routes": routes}
    return [
        accept("no entries", b"", [], canonical=True),
        accept(
            "two routes", tlv(128, name, route, expiring), [entry([shown, later])], canonical=True
        ),
        accept("no routes", tlv(128, name), [entry([])], canonical=True),
        accept(
            "two entries",
            tlv(128, name, route) + tlv(128, name),
            [entry([shown]), entry([])],
            canonical=True,
        ),
        reject("entry without name", tlv(128, route), "missing"),
        reject("name twice", tlv(128, name, name), "out-of-order"),
        reject("route without face", tlv(128, name, tlv(129, nni(106, 1))), "missing"),
        reject(
            "route with two costs",
            tlv(128, name, tlv(129, nni(105, 1), nni(106, 1), nni(106, 2))),
            "out-of-order",
        ),
        reject(
            "unknown critical field in route",
            tlv(128, name, tlv(129, nni(105, 1), tlv(241))),
            "unknown-critical",
        ),
        reject("another element", tlv(130), "unexpected"),
    ]


def fib():
    name = Name(b"lab").tlv()
    hop = lambda face, cost: tlv(129, nni(105, face), nni(106, cost))
    shown = [
        {"name": "/lab", "next_hops": [{"face_id": 5, "cost": 10}, {"face_id": 300, "cost": 0}]}
    ]
    return [
        accept("no entries", b"", [], canonical=True),
        accept("two next hops", tlv(128, name, hop(5, 10), hop(300, 0)), shown, canonical=True),
        reject("entry without name", tlv(128, hop(5, 10)), "missing"),
        reject("next hop without face", tlv(128, name, tlv(129, nni(106, 1))), "missing"),
        reject("another element", tlv(7), "unexpected"),
    ]


def cs_info():
    fields = {
        "capacity": 131,
        "flags": 108,
        "entry_count": 135,
        "hit_count": 129,
        "miss_count": 130,
    }
    values = {field: 3 * 256**i for i, field in enumerate(fields)}
    octets = tlv(128, *[nni(fields[f], v) for f, v in values.items()])
    return [
        accept("every field", octets, values, canonical=True),
        reject("nothing", b"", "truncated"),
        reject("two", octets + octets, "trailing"),
        reject("hits twice", tlv(128, nni(129, 1), nni(129, 1)), "out-of-order"),
        reject("hits of no octets", tlv(128, tlv(129)), "bad-length"),
    ]


def strategy_choice():
    name, strategy = Name().tlv(), tlv(107, BEST_ROUTE.tlv())
    shown = [{"name": "/", "strategy": BEST_ROUTE.uri()}]
    return [
        accept("no entries", b"", [], canonical=True),
        accept("one entry", tlv(128, name, strategy), shown, canonical=True),
        reject("no name", tlv(128, strategy), "missing"),
        reject("no strategy", tlv(128, name), "missing"),
        reject("strategy without name", tlv(128, name, tlv(107)), "truncated"),
    ]
