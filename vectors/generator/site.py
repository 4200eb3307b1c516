"""A site's protocol (docs/protocol.md, section 11): parameters of commands, contents of answers."""

from .signature import validity
from .tlv import Name, nni, sha256, tlv

REQUEST, SESSION, SLOT, SEQUENCE, COMMAND = 0xF600, 0xF602, 0xF604, 0xF606, 0xF608
PLACE, INODE, CONTENT, VERSION = 0xF60A, 0xF60C, 0xF60E, 0xF610
MODE, SIZE, ROOT, CHECKSUMS, ADLER32, CRC32C = 0xF504, 0xF502, 0xF540, 0xF55E, 0xF566, 0xF56A
OWNER, GROUP, MTIME, TARGET = 0xF55A, 0xF55C, 0xF50C, 0xF558
DISK, GENERATION, LIMIT, USER = 0xF622, 0xF624, 0xF626, 0xF628
SPEAKS_FOR, DOOR, FOR_ALL, ASSERTED = 0xF720, 0xF722, 0xF724, 0xF726
SPACE, POLICY = 0xF62C, 0xF63A
EPOCH, DONE, REFUSED, FAILED, REASON = 0xF648, 0xF64A, 0xF64C, 0xF64E, 0xF650
LISTED, LAST, REREAD = 0xF672, 0xF674, 0xF676
EDITION, OFFSET, THROUGH, ROWS = 0xF678, 0xF67A, 0xF67C, 0xF67E
COPIES, HIGHEST, COMPLETE, BUILDING = 0xF680, 0xF682, 0xF684, 0xF686
LENGTH, BASE, STORED, OCTETS = 0xF688, 0xF68A, 0xF68C, 0xF68E
RECORD, SETTLED, DIGEST, SINCE, LAST_ORDER = 0xF690, 0xF692, 0xF698, 0xF69A, 0xF69C
MAX = (1 << 64) - 1


def names(*parts):
    return b"".join(tlv(8, part) for part in parts)


def place(*parts, base=1):
    return tlv(PLACE, nni(INODE, base), names(*parts))


def mode(bits):
    return tlv(MODE, bits.to_bytes(2, "big"))


def checksums(adler32=1, crc32c=0xFFFFFFFF):
    return tlv(CHECKSUMS, tlv(ADLER32, adler32.to_bytes(4, "big")),
               tlv(CRC32C, crc32c.to_bytes(4, "big")))


def limits(inodes, octets):
    return nni(0xF640, inodes) + nni(0xF642, octets)


A, B = place(b"a"), place(b"b")
B_C = place(b"b", b"c")
CONTENT_ID = tlv(CONTENT, nni(INODE, 300), nni(VERSION, 7))
THE_POLICY = tlv(POLICY, tlv(SPACE, b"main"), nni(0xF63C, 3), nni(0xF63E, 2))
THE_CHANGES = tlv(0xF694, tlv(SPACE, b"tape"), nni(0xF63C, 3), nni(0xF63E, 1))
THE_COMMIT = CONTENT_ID + nni(SIZE, 8193) + tlv(ROOT, b"\x03" * 32) + checksums() + nni(MTIME, 5)
CERTIFICATE = tlv(6, tlv(7, tlv(8, b"k")))
ANNA_OF_CMS = tlv(SPEAKS_FOR, tlv(USER, b"anna"), tlv(GROUP, b"cms"))
REQUEST_ID = tlv(REQUEST, nni(SESSION, 77), nni(SLOT, 63), nni(SEQUENCE, 1))


def listed(number):
    content = tlv(CONTENT, nni(INODE, number), nni(VERSION, 7))
    return tlv(LISTED, content, nni(SIZE, 8193), tlv(ROOT, b"\x03" * 32))


def good():
    """One of each kind; tests have the same list."""
    yield "mkdir", "a directory", place(b"a", b"b c") + mode(0o1755)
    yield "rmdir", "by its number alone", place(base=1 << 48)
    yield "unlink", "a name of 255 octets", place(b"\xff" * 255, base=9)
    yield "remove-all", "whatever is there", B_C
    yield "restore-trash", "to where it was", nni(INODE, 300)
    yield "restore-trash", "to another place", nni(INODE, 300) + B_C
    yield "purge-trash", "by its number", nni(INODE, 300)
    yield "rename", "refused if there is something", A + B_C + tlv(0xF612)
    yield "rename", "over what is there", A + B_C
    yield "link", "another name", A + B
    yield "symlink", "a symbolic link", place(b"l") + tlv(TARGET, b"../a")
    yield "setattr", "nothing changes", A
    yield "setattr", "everything changes", (
        A + mode(0o640) + tlv(OWNER, b"anna") + tlv(GROUP, b"cms") + nni(MTIME, MAX)
        + nni(SIZE, 0))
    yield "setattr", "modified now", A + tlv(0xF620)
    yield "setxattr", "only if it is not there", (
        A + tlv(0xF61A, b"user.x") + tlv(0xF61C) + nni(0xF61E, 0))
    yield "removexattr", "an extended attribute", A + tlv(0xF61A, b"user.x")
    yield ("set-acl", "a default list",
        A + tlv(0xF6E0) + tlv(0xF6E2, b"u::rwx,u:anna:r--,g::r-x,g:cms:rw-,m::rwx,o::---"))
    yield "set-acl", "no list", A
    yield "create", "published at commit", A + mode(0o644) + nni(0xF618, 1 << 40)
    yield "create", "at once, exclusive", (
        A + mode(0o600) + nni(0xF618, 0) + tlv(0xF616) + tlv(0xF614) + THE_CHANGES)
    yield "create", "without octets, exclusive", (
        A + mode(0o644) + nni(0xF618, 0) + tlv(0xF6C2) + tlv(0xF614))
    yield "extend", "an attempt", CONTENT_ID
    yield "commit", "without receipts", THE_COMMIT
    yield "abort", "an attempt", CONTENT_ID
    yield "replace-disk", "a disk", CONTENT_ID + nni(DISK, 2)
    yield "resolve", "of a disk", nni(GENERATION, 4) + CONTENT_ID
    yield "hold", "a version", CONTENT_ID
    yield "release", "a version", CONTENT_ID
    yield "lease", "of a file", A
    yield "end-lease", "of a file by its number", place(base=7)
    yield "open-session", "nothing in it", b""
    yield "renew-session", "nothing in it", b""
    yield "end-session", "nothing in it", b""
    yield "expire", "ten rows", nni(LIMIT, 10)
    yield "collect", "ten entries", nni(LIMIT, 10)
    yield "dropped", "a content", nni(DISK, 2) + CONTENT_ID
    yield "drop-replica", "of a disk", CONTENT_ID + nni(DISK, 2)
    yield "set-user", "an operator", tlv(USER, b"anna") + tlv(GROUP, b"cms") + tlv(0xF62A)
    key = tlv(0xF670, tlv(8, b"k"))
    yield "add-key", "of a user", tlv(USER, b"anna") + key + CERTIFICATE
    yield "add-key", "of a disk", nni(DISK, 2) + key + CERTIFICATE
    yield "add-key", "of a door", tlv(DOOR, b"xrd1") + key + CERTIFICATE
    yield "remove-key", "a key", key
    yield "set-door", "may speak for nobody", tlv(DOOR, b"xrd1")
    yield "set-door", "for all, and more", (
        tlv(DOOR, b"xrd1") + tlv(FOR_ALL) + tlv(USER, b"anna") + tlv(USER, b"bert")
        + tlv(GROUP, b"cms") + tlv(ASSERTED, b"higgs"))
    yield "remove-door", "a door", tlv(DOOR, b"xrd1")
    yield "lend-key", "until a time", key + nni(0xF65E, 1 << 60) + CERTIFICATE
    yield "recall-key", "a key", key
    yield "add-disk", "a disk", (
        tlv(SPACE, b"main") + tlv(0xF62E, b"d1") + tlv(0xF630, b"rack1") + nni(0xF632, 1 << 44))
    yield "set-disk", "everything changes", (
        nni(DISK, 2) + nni(0xF634, 2) + nni(0xF636, 0) + nni(0xF632, 1) + tlv(0xF638)
        + nni(0xF69E, 3))
    yield "set-disk", "drained at a rate of its own, in another server", (
        nni(DISK, 2) + nni(0xF634, 2) + nni(0xF712, 20_000_000) + tlv(0xF62E, b"d2"))
    yield "set-disk", "nothing changes", nni(DISK, 2)
    yield "remove-disk", "a disk", nni(DISK, 2)
    yield "set-policy", "of a directory", A + THE_POLICY
    yield "set-versions", "five", A + nni(0xF714, 5)
    yield "set-trash", "a week, a terabyte", (
        A + nni(0xF71A, 7 * 86400 * 10**9) + nni(0xF642, 1 << 40))
    yield "set-trash", "off", A + nni(0xF71A, 1) + nni(0xF642, MAX) + tlv(0xF71C)
    yield "set-pattern", "nothing any more", tlv(0xF696, b"*.tmp")
    yield "set-pattern", "a space and replicas", tlv(0xF696, b"*.root") + THE_CHANGES
    yield "set-limits", "of a user", tlv(USER, b"anna") + limits(1, 2)
    yield "set-limits", "of a group", tlv(GROUP, b"cms") + limits(MAX, MAX)
    yield "set-limits", "of a tree", nni(INODE, 7) + limits(MAX, MAX)
    yield "set-limits", "of a space", tlv(SPACE, b"tape") + limits(MAX, 1 << 44)
    yield "set-limits", "soft ones and their grace", (
        tlv(USER, b"anna") + limits(10, 300) + nni(0xF702, 8) + nni(0xF704, 200)
        + nni(0xF706, 3600 * 10**9))
    yield "set-limits", "a soft one", tlv(SPACE, b"tape") + limits(MAX, MAX) + nni(0xF704, 200)
    yield "make-tree", "a directory", A
    yield "trim-log", "below five", nni(0xF644, 5) + nni(LIMIT, 6)
    yield "raise-epoch", "to three", nni(0xF646, 3)


def bad():
    body = A + mode(0o755)
    command = tlv(COMMAND, body)
    yield "mkdir", "no command", b"", "missing"
    yield "mkdir", "for nobody", tlv(SPEAKS_FOR) + command, "missing"
    yield "mkdir", "for somebody behind the request", (
        REQUEST_ID + ANNA_OF_CMS + command), "missing"
    yield "mkdir", "for two", ANNA_OF_CMS + ANNA_OF_CMS + command, "missing"
    yield "mkdir", "for somebody with something more", tlv(
        SPEAKS_FOR, tlv(USER, b"anna"), tlv(240)) + command, "unexpected"
    yield "mkdir", "for somebody in 65 groups", tlv(
        SPEAKS_FOR, tlv(USER, b"anna"), *[tlv(GROUP, b"g")] * 65) + command, "bad-value"
    yield "set-door", "257 users", tlv(
        COMMAND, tlv(DOOR, b"d"), *[tlv(USER, b"u")] * 257), "bad-value"
    yield "set-door", "groups before users", tlv(
        COMMAND, tlv(DOOR, b"d"), tlv(GROUP, b"g"), tlv(USER, b"u")), "unexpected"
    yield "mkdir", "only a request", REQUEST_ID, "missing"
    yield "mkdir", "the request behind the command", command + REQUEST_ID, "unexpected"
    yield "mkdir", "two commands", command + command, "unexpected"
    yield "mkdir", "cut short", command[:-1], "truncated"
    yield "set-pattern", "changes that change nothing", (
        tlv(COMMAND, tlv(0xF696, b"*") + tlv(0xF694))), "bad-value"
    yield "chdir", "no such operation", command, "bad-value"
    yield "mkdir", "no mode", tlv(COMMAND, A), "missing"
    yield "mkdir", "elements in another order", tlv(COMMAND, mode(0o755) + A), "missing"
    yield "mkdir", "an ignorable element more", tlv(COMMAND, body + tlv(240)), "unexpected"
    yield "mkdir", "a mode of one octet", tlv(COMMAND, A + tlv(MODE, b"\x01")), "bad-length"
    yield "mkdir", "a number that is not shortest", tlv(
        COMMAND, tlv(PLACE, tlv(INODE, b"\x00\x01")) + mode(0o755)), "bad-length"
    yield "mkdir", "a name with a slash", tlv(COMMAND, place(b"a/b") + mode(0)), "bad-value"
    yield "mkdir", "a name of two dots", tlv(COMMAND, place(b"..") + mode(0)), "bad-value"
    yield "mkdir", "an empty name", tlv(COMMAND, place(b"") + mode(0)), "bad-value"
    yield "mkdir", "256 octets in a name", (
        tlv(COMMAND, place(b"a" * 256) + mode(0))), "bad-value"
    yield "mkdir", "257 names", tlv(COMMAND, place(*[b"a"] * 257) + mode(0)), "bad-value"
    yield "rename", "a flag with a value", (
        tlv(COMMAND, A + B + tlv(0xF612, b"\x01"))), "bad-length"
    yield "set-user", "a name with a control character", (
        tlv(COMMAND, tlv(USER, b"an\na"))), "bad-value"
    yield "set-user", "a name that is no UTF-8", tlv(COMMAND, tlv(USER, b"\xff")), "bad-value"
    yield "add-key", "no certificate", (
        tlv(COMMAND, tlv(USER, b"anna") + tlv(0xF670, tlv(8, b"k")))), "missing"
    yield "add-key", "nobody's", (
        tlv(COMMAND, tlv(0xF670, tlv(8, b"k")) + CERTIFICATE)), "missing"
    yield "lend-key", "for ever", (
        tlv(COMMAND, tlv(0xF670, tlv(8, b"k")) + CERTIFICATE)), "missing"
    yield "remove-key", "a name of 1025 octets", (
        tlv(COMMAND, tlv(0xF670, b"k" * 1025))), "bad-length"
    yield "set-user", "an empty name", tlv(COMMAND, tlv(USER)), "bad-length"
    yield "restore-trash", "something behind its number", (
        tlv(COMMAND, nni(INODE, 300) + mode(0))), "missing"
    yield "set-versions", "too many", tlv(COMMAND, A + nni(0xF714, 256)), "bad-value"
    yield "set-trash", "no time", tlv(COMMAND, A + nni(0xF642, 1)), "missing"
    yield "purge-trash", "a place", tlv(COMMAND, A), "missing"
    yield "remove-disk", "without its number", tlv(COMMAND), "missing"
    yield "set-disk", "no such state", tlv(COMMAND, nni(DISK, 2) + nni(0xF634, 4)), "bad-value"
    yield "setxattr", "a flag of two", tlv(COMMAND, (
        A + tlv(0xF61A, b"user.x") + tlv(0xF61C) + nni(0xF61E, 2))), "bad-value"
    yield "commit", "a root of 31 octets", (
        tlv(COMMAND, CONTENT_ID + nni(SIZE, 1) + tlv(ROOT, bytes(31)) + checksums())), "bad-length"
    yield "commit", "no CRC-32C", tlv(COMMAND, CONTENT_ID + nni(SIZE, 1) + tlv(ROOT, bytes(32))
        + tlv(CHECKSUMS, tlv(ADLER32, bytes(4)))), "missing"
    yield "open-session", "a receipt", tlv(COMMAND) + tlv(6), "bad-value"
    slot = tlv(REQUEST, nni(SESSION, 77), nni(SLOT, 1 << 16), nni(SEQUENCE, 1))
    yield "mkdir", "a slot above 65535", slot + command, "bad-value"


def commands():
    found = []
    for operation, label, body in good():
        command = tlv(COMMAND, body)
        for more, request, speaks_for, octets in (
                ("", None, None, b""),
                (", with a request id", [77, 63, 1], None, REQUEST_ID),
                (", for a user", [77, 63, 1], ["anna", ["cms"]], REQUEST_ID)):
            door = ANNA_OF_CMS if speaks_for else b""
            digest = sha256(operation.encode(), b"\0", door + command).hex()
            found.append({
                "name": f"{operation}: {label}{more}",
                "operation": operation, "accept": True, "hex": (door + octets + command).hex(),
                "expect": {"request": request, "speaks_for": speaks_for, "digest": digest}})
    for operation, label, octets, reason in bad():
        found.append({"name": f"{operation}: {label}", "operation": operation, "accept": False,
                      "hex": octets.hex(), "reason": reason})
    return found


P = "/cern/cms"
CLAIM = f"{P}/32=file/seq=300/v=7/32=claim"
RECEIPT = f"{P}/32=disk/rack1/seq=1/32=receipt/seq=300/v=7"
ANSWER = f"{P}/32=catalog/mkdir"
CLAIMED = nni(SIZE, 8193) + tlv(ROOT, b"\x09" * 32)
RECEIVED = nni(GENERATION, 4) + CLAIMED + checksums()
TERM = nni(EPOCH, 5)


def entry(detail):
    times = nni(0xF508, 1) + nni(MTIME, 2) + nni(0xF50A, 3)
    return tlv(0xF652, nni(INODE, 300), mode(0o644), tlv(OWNER, b"anna"), tlv(GROUP, b"cms"),
               nni(0xF654, 1), times, nni(0xF560, 9), nni(0xF656, 1), THE_POLICY, detail)


def a_copy(*more):
    return b"".join((nni(EDITION, 3), nni(LENGTH, 5000), nni(BASE, 4000), nni(STORED, 6000),
                     nni(LAST_ORDER, 5900), *more))


A_COPY = a_copy(tlv(DIGEST, b"\x05" * 32), nni(THROUGH, 77))
DISK_STATE = TERM + nni(GENERATION, 4) + nni(HIGHEST, 301)
A_PACKET = tlv(6, b"\x07\x00")


def good_contents():
    yield "claim", "of a file", CLAIM, CLAIMED
    yield "claim", "of an empty file", CLAIM, nni(SIZE, 0) + tlv(ROOT, b"\x09" * 32)
    yield "receipt", "of a disk", RECEIPT, RECEIVED
    content = nni(VERSION, 7) + CLAIMED + checksums()
    for label, answer in (
        ("done", b""),
        ("a file", entry(tlv(0xF658, content + nni(DISK, 1) + nni(DISK, 2)))),
        ("a directory", entry(nni(0xF65A, 1))),
        ("a symbolic link", entry(tlv(TARGET, b"../a"))),
        ("a session", tlv(0xF65C, nni(SESSION, 77), nni(0xF65E, MAX))),
        ("a disk", nni(DISK, 9)),
        ("what becomes of content", nni(0xF660, 2)),
        ("a count", nni(0xF662, 4096)),
        ("a share of a session's keys", tlv(0xF6C0, b"\x03" * 32) + nni(0xF65E, MAX)),
    ):
        yield "reply", label, ANSWER, TERM + tlv(DONE, answer)
    yield "reply", "refused", ANSWER, TERM + nni(REFUSED, 30)
    yield "reply", "without the keys", ANSWER, TERM + nni(FAILED, 8) + tlv(REASON)
    yield "reply", "failed", ANSWER, TERM + nni(FAILED, 2) + tlv(REASON, b"4096 wait")
    pulling = tlv(0xF66A, nni(0xF66C, 1 << 40), nni(0xF66E, 60_000))
    yield "insert-answer", "pulling", ANSWER, pulling
    yield "insert-answer", "stored", ANSWER, tlv(6, b"\x07\x00")
    yield "insert-answer", "the disk is full", ANSWER, nni(REFUSED, 9)
    yield "drop-answer", "done", ANSWER, TERM
    yield "drop-answer", "done, of a busy disk", ANSWER, TERM + nni(0xF69E, 250)
    scrub = nni(0xF70A, 1 << 30) + nni(0xF70C, 1 << 40)
    yield "drop-answer", "done, reading what it has", ANSWER, (
        TERM + tlv(0xF708, scrub, nni(0xF710, 0)))
    yield "drop-answer", "done, with rot", ANSWER, TERM + nni(0xF69E, 250) + tlv(
        0xF708, scrub, nni(0xF70E, 1_700_000_000), nni(0xF710, 40), CONTENT_ID * 32)
    yield "drop-answer", "of an old head", ANSWER, nni(REFUSED, 5)
    yield "list-answer", "a page", ANSWER, TERM + listed(300) + listed(301)
    yield "list-answer", "the last page", ANSWER, TERM + listed(300) + tlv(LAST)
    yield "list-answer", "nothing at all", ANSWER, TERM + tlv(LAST)
    yield "list-answer", "of another generation", ANSWER, nni(REFUSED, 4)
    yield "proof-answer", "the octets of a small content", ANSWER, TERM + tlv(0xF732, b"octets")
    yield "proof-answer", "the longest", ANSWER, TERM + tlv(0xF732, b"p" * 6432)
    yield "proof-answer", "it is not there", ANSWER, nni(REFUSED, 16)
    yield "copy-answer", "no copy", ANSWER, tlv(COPIES, DISK_STATE)
    yield "copy-answer", "two copies", ANSWER, tlv(
        COPIES, DISK_STATE, tlv(COMPLETE, A_COPY), tlv(BUILDING, A_COPY))
    yield "copy-answer", "what is stored", ANSWER, tlv(OCTETS, b"o" * 6144)
    yield "copy-answer", "nothing is stored there", ANSWER, tlv(OCTETS)
    yield "copy-answer", "a record", ANSWER, tlv(RECORD, checksums(), A_PACKET * 2)
    yield "copy-answer", "a settled record", ANSWER, tlv(
        RECORD, tlv(SETTLED), checksums(), A_PACKET * 2)
    yield "copy-answer", "refused", ANSWER, nni(REFUSED, 10)


def bad_contents():
    yield "claim", "under the content itself", f"{P}/32=file/seq=300/v=7", CLAIMED, "bad-value"
    yield "claim", "of another site", CLAIM.replace("cms", "atlas"), CLAIMED, "bad-value"
    yield "claim", "of no version", f"{P}/32=file/seq=300/32=claim", CLAIMED, "bad-value"
    yield "claim", "without a root", CLAIM, nni(SIZE, 1), "missing"
    yield "claim", "a critical element more", CLAIM, CLAIMED + tlv(0xF1), "unknown-critical"
    yield "receipt", "of no disk", RECEIPT.replace("seq=1/", "1/"), RECEIVED, "bad-value"
    yield "receipt", "of two places", RECEIPT.replace("rack1", "a/b"), RECEIVED, "bad-value"
    yield "receipt", "without generation", RECEIPT, CLAIMED + checksums(), "missing"
    yield "receipt", "without checksums", RECEIPT, nni(GENERATION, 4) + CLAIMED, "missing"
    yield "reply", "of no head", ANSWER, tlv(DONE), "missing"
    yield "reply", "without outcome", ANSWER, TERM, "missing"
    yield "reply", "of two outcomes", ANSWER, TERM + tlv(DONE) + tlv(0xF1), "unknown-critical"
    yield "reply", "no such refusal", ANSWER, TERM + nni(REFUSED, 255), "bad-value"
    yield "reply", "no such failure", ANSWER, TERM + nni(FAILED, 200), "bad-value"
    yield "reply", "a reason of 256 octets", ANSWER, (
        TERM + nni(FAILED, 2) + tlv(REASON, b"a" * 256)), "bad-value"
    disks = b"".join(nni(DISK, n) for n in range(17))
    many = entry(tlv(0xF658, nni(VERSION, 7) + CLAIMED + checksums() + disks))
    yield "reply", "a share of 31 octets", ANSWER, (
        TERM + tlv(DONE, tlv(0xF6C0, b"\x03" * 31) + nni(0xF65E, 1))), "bad-length"
    yield "reply", "a share for ever", ANSWER, (
        TERM + tlv(DONE, tlv(0xF6C0, b"\x03" * 32))), "missing"
    yield "reply", "17 replicas", ANSWER, TERM + tlv(DONE, many), "bad-value"
    yield "reply", "a ticket that is none", ANSWER, TERM + tlv(DONE, tlv(6)), "bad-value"
    late = tlv(0xF66A, nni(0xF66C, 0), nni(0xF66E, 60_001))
    yield "insert-answer", "to be asked after more than a minute", ANSWER, late, "bad-value"
    yield "insert-answer", "nothing", ANSWER, b"", "missing"
    yield "drop-answer", "no such refusal", ANSWER, nni(REFUSED, 0), "bad-value"
    yield "list-answer", "of no term", ANSWER, listed(300), "missing"
    yield "list-answer", "contents that do not ascend", ANSWER, (
        TERM + listed(300) + listed(300)), "bad-value"
    yield "list-answer", "65 contents", ANSWER, (
        TERM + b"".join(listed(number) for number in range(65))), "bad-value"
    yield "list-answer", "nothing, and more to come", ANSWER, TERM, "bad-value"
    yield "list-answer", "a content without a root", ANSWER, (
        TERM + tlv(LISTED, CONTENT_ID, nni(SIZE, 1))), "missing"
    yield "proof-answer", "without a proof", ANSWER, TERM, "missing"
    yield "proof-answer", "of no term", ANSWER, tlv(0xF732, b"octets"), "missing"
    yield "proof-answer", "6433 octets", ANSWER, TERM + tlv(0xF732, b"p" * 6433), "bad-length"
    yield "copy-answer", "nothing", ANSWER, b"", "missing"
    yield "copy-answer", "6145 octets", ANSWER, tlv(OCTETS, b"o" * 6145), "bad-length"
    yield "copy-answer", "of no disk", ANSWER, tlv(COPIES, TERM), "missing"
    without = tlv(COPIES, DISK_STATE, tlv(COMPLETE, a_copy(nni(THROUGH, 77))))
    yield "copy-answer", "a copy without a digest", ANSWER, without, "missing"
    yield "copy-answer", "a record without a claim", ANSWER, (
        tlv(RECORD, checksums(), A_PACKET)), "missing"


def contents():
    found = [{"name": f"{kind}: {label}", "kind": kind, "of": of, "accept": True,
              "hex": octets.hex()} for kind, label, of, octets in good_contents()]
    found += [{"name": f"{kind}: {label}", "kind": kind, "of": of, "accept": False,
               "hex": octets.hex(), "reason": reason}
              for kind, label, of, octets, reason in bad_contents()]
    return found


DER = bytes.fromhex("302a300506032b6570032100") + b"\x11" * 32
CONTENT_NAME = Name(b"cern", b"cms", (32, b"file"), (58, b"\x01\x2c"), (54, b"\x07"))
TICKET_NAME = CONTENT_NAME + b"KEY" + b"12345678" + b"site" + (54, b"\x01")
DISK_NAME = Name(b"cern", b"cms", (32, b"disk"), b"rack1", (58, b"\x01"))
HINT_NAME = Name(b"cern", b"cms", (32, b"user"), b"anna", (32, b"at"), (58, b"\x09"))
SITE_KEY = Name(b"cern", b"cms", b"KEY", b"1", b"self", (54, b"\x01"))
VALID = validity("20270115T060000", "20270116T090000")


def a_disk(number, generation=4):
    return tlv(0xF666, tlv(0xF630, b"rack1"), nni(DISK, number), nni(GENERATION, generation))


TERMS = TERM + nni(0xF618, 10_000) + nni(0xF63E, 2) + nni(0xF65E, 1_800_003_600_000_000_000)
TERMS_FOR_TWO = TERMS + a_disk(1) + a_disk(2)
THE_ORIGIN = tlv(0xF668, nni(INODE, 1), tlv(8, b"a.root"), tlv(OWNER, b"anna"),
                 tlv(GROUP, b"cms"), mode(0o640))


def signed(name, content, key, *more, meta=b""):
    """A packet with a signature of 64 octets that nobody made."""
    info = tlv(22, nni(27, 5), tlv(28, key.tlv()), *more)
    return tlv(6, name.tlv(), meta, tlv(21, content), info, tlv(23, b"\x77" * 64))


def ticket(terms, name=TICKET_NAME, extension=0xF664):
    more = b"" if terms is None else tlv(extension, terms)
    return signed(name, DER, SITE_KEY, VALID, more, meta=tlv(20, nni(24, 2), nni(25, 3_600_000)))


def order(word, parameters, disk=DISK_NAME):
    """A signed Interest; only its form is right."""
    info = tlv(44, nni(27, 5), tlv(28, TICKET_NAME.tlv()), tlv(38, b"\x01" * 8), nni(40, 1))
    tail = tlv(36, parameters) + info + tlv(46, b"\x77" * 64)
    name = disk + word + (2, sha256(tail))
    return tlv(5, name.tlv(), tlv(18), tlv(10, b"\x01" * 4), nni(12, 4000), tail)


def good_packets():
    yield "ticket", "for two disks", ticket(TERMS_FOR_TWO)
    yield "ticket", "for no disk", ticket(TERMS)
    yield "ticket", "with the file's place", ticket(TERMS_FOR_TWO + THE_ORIGIN)
    hint, claim = tlv(0xF564, HINT_NAME.tlv()), signed(Name(b"c"), CLAIMED, TICKET_NAME)
    yield "insert", "of a writer", order(b"insert", hint + ticket(TERMS_FOR_TWO) + claim)
    yield "drop", "two contents", order(b"drop", TERM + nni(GENERATION, 4) + CONTENT_ID * 2)
    yield "drop", "nothing", order(b"drop", TERM + nni(GENERATION, 4))
    yield "list", "from the beginning", order(b"list", TERM + nni(GENERATION, 4))
    yield "list", "from a content on, reread", order(
        b"list", TERM + nni(GENERATION, 4) + tlv(REREAD) + CONTENT_ID)
    yield "prove", "a content", order(
        b"prove", TERM + nni(GENERATION, 4) + tlv(0xF730, b"\x05" * 32) + CONTENT_ID)
    place = nni(EDITION, 3) + nni(OFFSET, 70_000)
    keep = TERM + nni(GENERATION, 4) + place + tlv(DIGEST, b"\x05" * 32) + nni(SINCE, 70)
    yield "keep", "rows", order(b"keep", keep + tlv(ROWS, b"rows"))
    yield "keep", "no rows, complete", order(b"keep", keep + nni(THROUGH, 77) + tlv(ROWS))
    yield "recall", "what there is", order(b"recall", b"")
    yield "recall", "a copy", order(b"recall", place)
    yield "recall", "a record", order(b"recall", CONTENT_ID)


def bad_packets():
    seventeen = b"".join(a_disk(number) for number in range(17))
    yield "ticket", "without terms", ticket(None)
    yield "ticket", "terms of another TYPE", ticket(TERMS, extension=0xF0FE)
    yield "ticket", "for 17 disks", ticket(TERMS + seventeen)
    yield "ticket", "without an end", ticket(TERM + nni(0xF618, 1) + nni(0xF63E, 2))
    yield "ticket", "a critical element in the terms", ticket(TERMS + tlv(0xF1))
    elsewhere = Name(b"cern", b"atlas", *TICKET_NAME.components[2:])
    yield "ticket", "of another site", ticket(TERMS, name=elsewhere)
    for_user = Name(b"cern", b"cms", (32, b"user"), *TICKET_NAME.components[5:])
    yield "ticket", "for no content", ticket(TERMS, name=for_user)
    hint, claim = tlv(0xF564, HINT_NAME.tlv()), signed(Name(b"c"), CLAIMED, TICKET_NAME)
    the_ticket = ticket(TERMS_FOR_TWO)
    yield "insert", "without a hint", order(b"insert", the_ticket + claim)
    yield "insert", "without a claim", order(b"insert", hint + the_ticket)
    yield "insert", "without a ticket", order(b"insert", hint + claim)
    yield "insert", "an element more", order(b"insert", hint + the_ticket + claim + tlv(240))
    yield "insert", "two hints in one", order(
        b"insert", tlv(0xF564, HINT_NAME.tlv() * 2) + the_ticket + claim)
    local = tlv(0xF564, Name(b"localhost", b"x").tlv())
    yield "insert", "a hint to this machine", order(b"insert", local + the_ticket + claim)
    yield "list", "without a generation", order(b"list", TERM + CONTENT_ID)
    yield "list", "after two contents", order(
        b"list", TERM + nni(GENERATION, 4) + CONTENT_ID * 2)
    challenge = TERM + nni(GENERATION, 4) + tlv(0xF730, b"\x05" * 32)
    yield "prove", "nothing", order(b"prove", challenge)
    yield "prove", "two contents", order(b"prove", challenge + CONTENT_ID * 2)
    yield "prove", "a challenge of 31 octets", order(
        b"prove", TERM + nni(GENERATION, 4) + tlv(0xF730, b"\x05" * 31) + CONTENT_ID)
    before = tlv(DIGEST, bytes(32)) + nni(SINCE, 0)
    place = TERM + nni(GENERATION, 4) + nni(EDITION, 3) + nni(OFFSET, 0)
    keep = place + before
    yield "keep", "without rows", order(b"keep", keep)
    yield "keep", "without what is before it", order(b"keep", place + tlv(ROWS, b"rows"))
    yield "keep", "a digest of 31 octets", order(
        b"keep", place + tlv(DIGEST, bytes(31)) + nni(SINCE, 0) + tlv(ROWS, b"rows"))
    yield "keep", "6145 octets", order(b"keep", keep + tlv(ROWS, b"r" * 6145))
    yield "keep", "an element more", order(b"keep", keep + tlv(ROWS) + tlv(REREAD))
    yield "recall", "an edition without a place", order(b"recall", nni(EDITION, 3))
    yield "recall", "two things", order(
        b"recall", nni(EDITION, 3) + nni(OFFSET, 0) + CONTENT_ID)
    yield "drop", "without a generation", order(b"drop", TERM + CONTENT_ID)
    yield "drop", "257 contents", order(b"drop", TERM + nni(GENERATION, 4) + CONTENT_ID * 257)
    yield "drop", "to no disk", order(
        b"drop", TERM + nni(GENERATION, 4) + CONTENT_ID, disk=Name(b"cern", b"cms"))


def packets():
    found = [{"name": f"{kind}: {label}", "kind": kind, "accept": True, "hex": wire.hex()}
             for kind, label, wire in good_packets()]
    found += [{"name": f"{kind}: {label}", "kind": kind, "accept": False, "hex": wire.hex()}
              for kind, label, wire in bad_packets()]
    return found
