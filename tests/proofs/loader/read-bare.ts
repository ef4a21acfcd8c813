// A process of its own that reads a file as simply as can be: it joins the pieces of each line and parses it. Prints by how
// many bytes its memory had grown at its worst.
import { open } from 'node:fs/promises'

const path = process.argv[2] ?? ''
const chunkBytes = 1024 * 1024
const before = process.memoryUsage.rss()
// As often as the loader is measured: once to verify, once to open.
await readLines()
await readLines()
console.log(process.resourceUsage().maxRSS * 1024 - before)

async function readLines(): Promise<void> {
  await using file = await open(path)
  let pieces: Uint8Array[] = []
  for (let at = 0; ;) {
    const chunk = Buffer.from(new ArrayBuffer(chunkBytes))
    const { bytesRead } = await file.read(chunk, 0, chunkBytes, at)
    if (bytesRead === 0) return
    at += bytesRead
    let rest = chunk.subarray(0, bytesRead)
    for (let end = rest.indexOf(0x0a); end !== -1; end = rest.indexOf(0x0a)) {
      JSON.parse(Buffer.concat([...pieces, rest.subarray(0, end)]).toString())
      pieces = []
      rest = rest.subarray(end + 1)
    }
    pieces.push(rest)
  }
}
