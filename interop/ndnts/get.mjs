// Fetches one file: RDR discovery, then all segments.
// usage: node get.mjs UPLINK NAME OUT
// Exit code 0 ok, 3 not found (application Nack), 1 anything else.
import { writeFile } from "node:fs/promises";

import { consume } from "@ndn/endpoint";
import { FileMetadata } from "@ndn/fileserver";
import { Name } from "@ndn/packet";
import { makeDiscoveryInterest } from "@ndn/rdr";
import { fetch } from "@ndn/segmented-object";
import { Decoder } from "@ndn/tlv";

import { openUplink } from "./uplink.mjs";

const CONTENT_TYPE_NACK = 3;

const [uplink, uri, out] = process.argv.slice(2);
const face = await openUplink(uplink);
const data = await consume(makeDiscoveryInterest(new Name(uri)), { retx: 3 });
if (data.contentType === CONTENT_TYPE_NACK) {
  console.error("not found");
  face.close();
  process.exit(3);
}
const metadata = Decoder.decode(data.content, FileMetadata);
const payload = await fetch(metadata.name, { retxLimit: 10 });
await writeFile(out, payload);
console.log(JSON.stringify({
  name: metadata.name.toString(),
  sigType: data.sigInfo.type,
  size: metadata.size,
  segmentSize: metadata.segmentSize,
  lastSegment: metadata.lastSeg,
  mode: metadata.mode,
  mtimeMs: metadata.mtime.getTime(),
}));
face.close();
process.exit(0);
