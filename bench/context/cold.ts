// A fresh process: builds the context of a session, or only reads and parses its lines, and prints what that took.
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { openFileStore } from '@tapetree/session/stores/file'

const [side = '', folder = '', id = ''] = process.argv.slice(2)
// Loads all modules.
await contextOf('short')
await bare(join(folder, 'short', 'events.jsonl'))
const cpuBefore = process.cpuUsage()
const start = performance.now()
const messages = side === 'ours' ? await contextOf(id) : await bare(join(folder, id, 'events.jsonl'))
const ms = performance.now() - start
const { user, system } = process.cpuUsage(cpuBefore)
console.log(JSON.stringify({ ms, cpuMs: (user + system) / 1000, messages }))
process.exit()

async function contextOf(sessionId: string): Promise<number> {
  const session = await openFileStore({ folder }).open(sessionId)
  return (await session.getContext()).messages.length
}

/** What the context costs at the least: bytes in, lines split, JSON parsed, messages kept. */
async function bare(path: string): Promise<number> {
  const file = await open(path)
  const parsed: { type: string }[] = []
  let rest: Buffer = Buffer.alloc(0)
  for (let position = 0; ;) {
    const chunk = Buffer.allocUnsafe(1024 * 1024)
    const { bytesRead } = await file.read(chunk, 0, chunk.length, position)
    if (bytesRead === 0) break
    position += bytesRead
    const bytes = Buffer.concat([rest, chunk.subarray(0, bytesRead)])
    let from = 0
    for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10, from)) {
      parsed.push(JSON.parse(bytes.toString('utf8', from, end)) as { type: string })
      from = end + 1
    }
    rest = bytes.subarray(from)
  }
  await file.close()
  return parsed.filter(({ type }) => type === 'message').length
}
