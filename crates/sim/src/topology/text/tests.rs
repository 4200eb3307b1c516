//! Meanings of texts, and reports on wrong ones.

use super::*;
use crate::queue::Discipline;
use crate::topology::{shapes, sites};
use crate::world::{MS, SECOND};

#[test]
fn a_text_is_understood() {
    let text = "
# A publisher, a forwarder and a reader.
default host store=64Mi
default link rate=10G delay=5ms queue=4Mi
host a f
host b store=0 strategy=asf/v=5/max-timeouts~1
link a f
link f b rate=1.5G delay=20us discipline=codel-marks mtu=1500 loss=0.1% bad-begin=0.01 bad-end=0.5
publish /site/file at a size=4M
read /site/file at b start=1.5s";
    let plan = Plan::parse(text).expect("a plan");
    let names: Vec<_> = plan.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names, ["a", "f", "b"]);
    assert_eq!(plan.hosts[1].store_bytes, Some(64 << 20));
    assert_eq!(plan.hosts[2].store_bytes, Some(0));
    assert_eq!(plan.hosts[2].strategy.as_deref(), Some("asf/v=5/max-timeouts~1"));
    let [one, two] = &plan.links[..] else { panic!("two links") };
    assert_eq!((one.ends, one.config.line.delay_ns), ((0, 1), 5 * MS));
    assert_eq!(one.config.line.queue.bits_per_s, 10_000_000_000);
    assert_eq!((one.config.mtu_bytes, two.config.mtu_bytes), (None, Some(1500)));
    let line = two.config.line;
    assert_eq!((line.queue.bits_per_s, line.delay_ns), (1_500_000_000, 20_000));
    assert_eq!((line.queue.discipline, line.queue.buffer_bytes), (Discipline::CodelMarks, 4 << 20));
    assert_eq!((line.faults.loss, line.faults.bursts.end), (0.001, 0.5));
    assert_eq!((plan.files[0].size, plan.files[0].host), (4_000_000, 0));
    assert_eq!((plan.reads[0].start_ns, plan.reads[0].host), (3 * SECOND / 2, 2));
}

#[test]
fn what_is_written_is_read_again() {
    let lossy = Plan::parse(
        "host a b strategy=asf\nlink a b loss=1% jitter=3us burst=4 late=2ms disorder=0.25 \
         corruption=0.5 duplication=1e-3 bad-begin=0.1 bad-end=1 discipline=codel mtu=9000\n\
         publish /a/b at a size=3\nread /a/b at b",
    )
    .expect("a plan");
    let plans = [
        lossy,
        shapes::chain(5, plain_link()),
        shapes::ring(4, plain_link()),
        shapes::tree(3, 2, plain_link()),
        shapes::dumbbell(3, plain_link(), plain_link()),
        shapes::fat_tree(4, plain_link()),
        shapes::cluster16(),
        shapes::cluster128(),
        sites::lhc(),
    ];
    for plan in plans {
        assert_eq!(Plan::parse(&plan.to_string()), Ok(plan));
    }
}

/// The position and the beginning of what is said of the last line of a text.
fn problem(line: &str) -> String {
    let text = format!("host a b # two hosts\npublish /x/y at a\n{line}");
    Plan::parse(&text).expect_err(line).to_string()
}

#[test]
fn problems_say_where_and_what_to_do() {
    let cases = [
        ("hots c", "line 3, column 1: `hots` is nothing that a line can begin with; lines begin"),
        ("link a", "line 3, column 7: a link without two ends; write `link ONE OTHER`"),
        ("link a c", "line 3, column 8: there is no host `c`; write `host c` above"),
        ("link a a", "line 3, column 8: `a` would be joined to itself; name two hosts"),
        ("host a", "line 3, column 6: there is a host `a` already; give each host its own"),
        ("host", "line 3, column 5: a host without a name; write `host NAME…`"),
        ("link a b rate=fast", "line 3, column 15: `fast` is no value of `rate`; write bits per"),
        ("link a b rate=0", "line 3, column 15: `0` is no value of `rate`; write bits per second"),
        ("link a b delay=5", "line 3, column 16: `5` is no value of `delay`; write a time with"),
        ("link a b loss=2", "line 3, column 15: `2` is no value of `loss`; write a share"),
        ("link a b loss=-1%", "line 3, column 15: `-1%` is no value of `loss`; write a share"),
        ("link  a  b colour=red", "line 3, column 12: there is no setting `colour`; links have"),
        ("link a b fast", "line 3, column 10: `fast` is no setting; settings are written"),
        ("link a b mtu=1", "line 3, column 14: `1` is no value of `mtu`; write octets of a frame"),
        ("host c strategy=best", "line 3, column 17: `best` is no value of `strategy`; write"),
        ("default rate=1G", "line 3, column 9: defaults of what is not said; write `default"),
        ("publish /x at a", "line 3, column 9: `/x` is no name of a file; write a name such as"),
        ("publish /x/y on a", "line 3, column 14: `on` where `at` should stand; write `publish"),
        ("publish /x/y at a size=2", "line 3, column 1: `/x/y` is published in two sizes; give"),
        ("publish /x/z at a rate=1G", "line 3, column 19: there is no setting `rate`; only `size`"),
        ("read /x/z at b", "line 3, column 6: nobody publishes `/x/z`; write a `publish` line"),
        ("read /x/y at", "line 3, column 13: something is missing; write `read NAME at HOST"),
    ];
    for (line, expected) in cases {
        let said = problem(line);
        assert!(said.starts_with(expected), "{line}\n{said}\n{expected}");
    }
}
