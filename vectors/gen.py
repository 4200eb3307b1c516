#!/usr/bin/env python3
"""Writes the golden octets of all folders but vectors/peers, vectors/security and vectors/tree.

The octets come from the small encoder in generator/, which is written from the specifications and
shares nothing with byname's own encoder. Run without arguments; `--check` only compares, and
computes the smaller hash trees of vectors/tree by a BLAKE3 of its own.
"""

import json
import sys
from pathlib import Path

from generator import (
    data, forwarding, interest, kept, loan, lp, manifest, metadata, mgmt, names, pending, session,
    signature, site, tree,
)

FILES = {
    "packet/component.json": names.components,
    "packet/name.json": names.names,
    "packet/uri.json": names.uris,
    "packet/path.json": names.paths,
    "packet/order.json": names.order,
    "packet/signature-info.json": signature.vectors,
    "packet/interest.json": interest.vectors,
    "packet/data.json": data.vectors,
    "packet/match.json": forwarding.matching,
    "packet/forward.json": forwarding.forwarded,
    "lp/packet.json": lp.vectors,
    "manifest/payload.json": manifest.vectors,
    "metadata/content.json": metadata.contents,
    "metadata/absence.json": metadata.absences,
    "metadata/delegation.json": metadata.delegations,
    "copies/kept.json": kept.vectors,
    "tree/pending.json": pending.vectors,
    "site/command.json": site.commands,
    "site/content.json": site.contents,
    "site/packet.json": site.packets,
    "site/loan.json": loan.vectors,
    "site/session.json": lambda: list(session.vectors()),
    "mgmt/control-parameters.json": mgmt.control_parameters,
    "mgmt/control-response.json": mgmt.control_response,
    "mgmt/general-status.json": mgmt.general_status,
    "mgmt/face-status.json": mgmt.face_status,
    "mgmt/rib.json": mgmt.rib,
    "mgmt/fib.json": mgmt.fib,
    "mgmt/cs-info.json": mgmt.cs_info,
    "mgmt/strategy-choice.json": mgmt.strategy_choice,
}


def render(vectors):
    """One vector a line, so that a change shows as a change of its line."""
    repeated = [v["name"] for v in vectors if sum(v["name"] == w["name"] for w in vectors) > 1]
    assert not repeated, repeated
    lines = (json.dumps(vector, ensure_ascii=False) for vector in vectors)
    return "[\n" + ",\n".join(lines) + "\n]\n"


def main():
    here = Path(__file__).resolve().parent
    stale = []
    for file, make in FILES.items():
        path = here / file
        text = render(make())
        if "--check" in sys.argv:
            if not path.exists() or path.read_text() != text:
                stale.append(file)
            continue
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    if "--check" in sys.argv:
        stale += tree.differences(here / "tree")
    if stale:
        sys.exit("not what gen.py writes: " + ", ".join(stale))


if __name__ == "__main__":
    main()
