// A fresh process: builds the context of a session, or only reads and parses its lines, and prints what that took.
import { join } from 'node:path'
import { openFileStore } from '@tapetree/session/stores/file'
import { forEachParsedLine } from '../../scripts/figure/parsed-lines.ts'

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

async function bare(path: string): Promise<number> {
  const parsed: { type: string }[] = []
  await forEachParsedLine(path, (line) => void parsed.push(line as { type: string }))
  return parsed.filter(({ type }) => type === 'message').length
}
