"""What is measured: cells, each one kind of traffic that all contenders get in turn."""

import dataclasses

BYNAME, SHARDS, NDND, RELAY = "byname", "byname, 2 shards", "NDNd", "bare relay"


@dataclasses.dataclass(frozen=True)
class Cell:
    """One kind of traffic."""

    group: str
    link: str
    payload: int
    contenders: tuple[str, ...] = (BYNAME, NDND)
    # "on": asked for once each; "off": there is no store; "hit": all is in the store.
    store: str = "on"
    routes: int = 1
    window: int = 128
    is_pinned: bool = False
    # The forwarder has a core of its own, consumer and producer share another.
    is_split: bool = False
    is_quick: bool = False

    @property
    def key(self):
        """The cell in a few words."""
        words = [self.link, f"{self.payload} B", f"store {self.store}"]
        if self.routes > 1:
            words.append(f"{self.routes} routes")
        if self.is_split:
            words.append("a core of its own")
        if self.window == 1:
            words.append("pinned" if self.is_pinned else "free")
        return ", ".join(words)


def all_cells():
    """In the order of the report."""
    yield Cell("cost", "unix", 8192, (BYNAME, SHARDS, NDND), is_quick=True)
    yield Cell("cost", "unix", 1000)
    yield Cell("cost", "unix", 100, (BYNAME, SHARDS, NDND), is_quick=True)
    yield Cell("cost", "unix", 8192, store="off")
    yield Cell("cost", "unix", 100, store="off")
    yield Cell("cost", "unix", 8192, store="hit", is_quick=True)
    yield Cell("cost", "unix", 100, store="hit")
    # NDNd's UDP sockets hold about 20 packets of this size.
    yield Cell("cost", "udp", 8192, window=16, is_quick=True)
    yield Cell("cost", "udp", 1000, window=64)
    yield Cell("cost", "udp", 100, window=64)
    for payload in (8192, 1000, 100):
        yield Cell("cost", "memif", payload, (BYNAME,), store="off", is_quick=True)
        yield Cell("cost", "memif", payload, (BYNAME,), is_quick=payload == 8192)
    yield Cell("cost", "memif", 100, (BYNAME,), store="off", window=192, is_split=True,
               is_quick=True)
    yield Cell("fib", "unix", 100, routes=10)
    yield Cell("fib", "unix", 100, routes=10_000, is_quick=True)
    # Registering that many with NDNd takes minutes.
    yield Cell("fib", "unix", 100, (BYNAME,), routes=1_000_000)
    everybody = (BYNAME, RELAY, NDND)
    yield Cell("latency", "unix", 100, everybody, window=1, is_pinned=True, is_quick=True)
    yield Cell("latency", "unix", 100, everybody, window=1, is_quick=True)
    yield Cell("latency", "memif", 100, (BYNAME,), window=1, is_pinned=True)
    yield Cell("latency", "memif", 100, (BYNAME,), window=1)
