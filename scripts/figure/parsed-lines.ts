import { open } from 'node:fs/promises'

/** What reading a log costs at the least: bytes in, lines split, JSON parsed. Benches compare with it. */
export async function forEachParsedLine(path: string, take: (value: unknown) => void): Promise<void> {
  const file = await open(path)
  let rest: Buffer = Buffer.alloc(0)
  for (let position = 0; ;) {
    const chunk = Buffer.allocUnsafe(1024 * 1024)
    const { bytesRead } = await file.read(chunk, 0, chunk.length, position)
    if (bytesRead === 0) break
    position += bytesRead
    const bytes = Buffer.concat([rest, chunk.subarray(0, bytesRead)])
    let from = 0
    for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10, from)) {
      take(JSON.parse(bytes.toString('utf8', from, end)))
      from = end + 1
    }
    rest = bytes.subarray(from)
  }
  await file.close()
}
