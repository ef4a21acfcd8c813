// A process of its own: opens one large log in every way and says what it cost.
// `open-huge.ts <root folder> <session id> [large]`
import { writeSync } from 'node:fs'
import { memoryStore } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { firstId, lastId } from '../../corpus/huge-files.ts'
import { unsyncedPort } from '../../corpus/unsynced-port.ts'
import type { HugeReport } from './reports.ts'

const [root = '', sessionId = '', size] = process.argv.slice(2)
const costs: HugeReport['costs'] = []
const problems: string[] = []

await warmUp()
const before = process.memoryUsage.rss()
const store = openFileStore({ folder: root, port: unsyncedPort() })
await step('open', 1, async () => {
  await using session = await store.open(sessionId, { readOnly: true })
  for (const id of [firstId, lastId]) await session.getEntry(id).catch(() => problems.push(`entry ${id} is not shown`))
  if (session.leafId !== lastId) problems.push(`the leaf is ${session.leafId}`)
  const { messages } = await session.getContext()
  if (messages.at(-1)?.entryId !== lastId) problems.push('the last message is not in the context')
})
const afterOpening = grownBytes()
await step('verify', 1, async () => {
  await store.verify(sessionId)
})
await step('lines', 2, async () => {
  await using session = await store.open(sessionId, { readOnly: true })
  const seen = new Set<number>()
  for await (const { type, seq } of session.lines()) if (type === 'line') seen.add(seq)
  if (seen.size < 3) problems.push(`only ${seen.size} lines travel`)
})
await step('open to write', 1, async () => (await store.open(sessionId)).close())
await store.close()
// A log that is large in itself leaves more behind with every reading than is worth collecting in between.
const report: HugeReport = { costs, problems, grownBytes: size === 'large' ? afterOpening : grownBytes() }
writeSync(1, `${JSON.stringify(report)}\n`)

async function step(name: string, readings: number, work: () => Promise<void>): Promise<void> {
  const start = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(start)
  costs.push({ step: name, readings, cpuMs: (user + system) / 1000 })
}

function grownBytes(): number {
  return process.resourceUsage().maxRSS * 1024 - before
}

/** What every first reading costs is no matter of the log. */
async function warmUp(): Promise<void> {
  const small = memoryStore()
  await using session = await small.create()
  await session.appendMessage('user', [])
  await session.getContext()
  await small.verify(session.id)
}
