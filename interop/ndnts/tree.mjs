// Walks a published directory with the file-server client of @ndn/fileserver.
// usage: node tree.mjs UPLINK PREFIX [OUTDIR]
// Prints one JSON object per entry; with OUTDIR also downloads every file.
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";

import { Client } from "@ndn/fileserver";
import { Name } from "@ndn/packet";

import { openUplink } from "./uplink.mjs";

const [uplink, prefix, outDir] = process.argv.slice(2);
const face = await openUplink(uplink);
const client = new Client(new Name(prefix), { retx: 3, retxLimit: 10 });

async function walk(relPath) {
  const directory = await client.stat(relPath);
  if (outDir) {
    await mkdir(path.join(outDir, relPath), { recursive: true });
  }
  for await (const entry of client.readdir(directory)) {
    const child = relPath === "" ? entry.name : `${relPath}/${entry.name}`;
    if (entry.isDir) {
      console.log(JSON.stringify({ path: child, isDir: true }));
      await walk(child);
      continue;
    }
    const metadata = await client.stat(child);
    console.log(JSON.stringify({ path: child, isDir: false, size: metadata.size }));
    if (outDir) {
      await writeFile(path.join(outDir, child), await client.readFile(metadata));
    }
  }
}

await walk("");
face.close();
process.exit(0);
