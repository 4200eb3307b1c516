// Reads one byte range with the file-server client, to standard output.
// usage: node range.mjs UPLINK PREFIX PATH OFFSET LENGTH
import { Client } from "@ndn/fileserver";
import { Name } from "@ndn/packet";

import { openUplink } from "./uplink.mjs";

const [uplink, prefix, relPath, offset, length] = process.argv.slice(2);
const face = await openUplink(uplink);
const client = new Client(new Name(prefix), { retx: 3, retxLimit: 10 });
const metadata = await client.stat(relPath);
const buffer = new Uint8Array(Number(length));
await client.readFileInto(metadata, buffer, 0, buffer.length, Number(offset));
face.close();
process.stdout.write(buffer, () => process.exit(0));
