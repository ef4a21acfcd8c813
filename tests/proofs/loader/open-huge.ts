// A process of its own that opens large logs in every way: told the folder and the session's id, it answers what that cost.
import { memoryStore, type Session } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { firstId, lastId } from '../../corpus/huge-files.ts'
import { unsyncedPort } from '../../corpus/unsynced-port.ts'
import type { HugeReport, HugeRequest } from './reports.ts'

/** What the first lines cost until the code is warm. */
const startMs = 200

await warmUp()
const before = process.memoryUsage.rss()
process.on('message', (request: HugeRequest) => {
  void openHuge(request).then((report) => process.send?.(report))
})
process.send?.('ready')

async function openHuge({ root, sessionId, megabytes }: HugeRequest): Promise<HugeReport> {
  const store = openFileStore({ folder: root, port: unsyncedPort() })
  const problems: string[] = []
  const costs: number[] = []
  const timed = async <T>(work: () => Promise<T>): Promise<T> => {
    const start = process.cpuUsage()
    const result = await work()
    const { user, system } = process.cpuUsage(start)
    costs.push(Math.max(0, (user + system) / 1000 - startMs) / megabytes)
    return result
  }
  await timed(() => store.verify(sessionId))
  const session = await timed(() => store.open(sessionId, { readOnly: true }))
  const grownBytes = process.resourceUsage().maxRSS * 1024 - before
  problems.push(...(await look(session)))
  const travelled = await timed(() => countLines(session))
  if (travelled < 3) problems.push(`only ${travelled} lines travel`)
  await session.close()
  await timed(async () => (await store.open(sessionId)).close())
  await store.close()
  return { problems, msPerMegabyte: Math.max(...costs), bareMsPerMegabyte: bareCost(), grownBytes }
}

const bareLines = Buffer.from(
  `${JSON.stringify({ seq: 1, type: 'message', id: firstId, parent_id: null })}\n`.repeat(20_000),
)

/** What it costs here and now to split lines and parse each. */
function bareCost(): number {
  const start = process.cpuUsage()
  for (let from = 0; from < bareLines.length;) {
    const end = bareLines.indexOf(0x0a, from)
    JSON.parse(bareLines.toString('utf8', from, end))
    from = end + 1
  }
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1000 / (bareLines.length / 1e6)
}

async function look(session: Session): Promise<string[]> {
  const problems: string[] = []
  for (const id of [firstId, lastId]) await session.getEntry(id).catch(() => problems.push(`entry ${id} is not shown`))
  if (session.leafId !== lastId) problems.push(`the leaf is ${session.leafId}`)
  const { messages } = await session.getContext()
  if (messages.at(-1)?.entryId !== lastId) problems.push('the last message is not in the context')
  return problems
}

async function countLines(session: Session): Promise<number> {
  let count = 0
  for await (const { type } of session.lines()) if (type === 'line') count++
  return count
}

/** What every first reading costs is no matter of the log. */
async function warmUp(): Promise<void> {
  const small = memoryStore()
  await using session = await small.create()
  await session.appendMessage('user', [])
  await session.getContext()
  await small.verify(session.id)
}
