// A process of its own: opens one large log in every way and says what it cost. `open-huge.ts <root folder> <session id>`
import { writeSync } from 'node:fs'
import { memoryStore, type SessionStore } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { firstId, lastId } from '../../corpus/huge-files.ts'
import { unsyncedPort } from '../../corpus/unsynced-port.ts'

export interface Cost {
  step: string
  cpuMs: number
}

export interface HugeReport {
  costs: Cost[]
  problems: string[]
  /** How much more memory the process had at its worst than before. */
  grownBytes: number
}

async function openHuge(root: string, sessionId: string, { isLargeInItself }: { isLargeInItself: boolean }): Promise<HugeReport> {
  await warmUp()
  const before = process.memoryUsage.rss()
  const costs: Cost[] = []
  const problems: string[] = []
  const step = async (name: string, work: () => Promise<void>): Promise<void> => {
    const start = process.cpuUsage()
    await work()
    const { user, system } = process.cpuUsage(start)
    costs.push({ step: name, cpuMs: (user + system) / 1000 })
  }
  const store = openFileStore({ folder: root, port: unsyncedPort() })
  await step('verify', async () => {
    const report = await store.verify(sessionId)
    if (report.isIntact && !isLargeInItself) problems.push('verify finds nothing')
  })
  await step('open', async () => {
    await using session = await store.open(sessionId, { readOnly: true })
    for (const id of [firstId, lastId]) await session.getEntry(id).catch(() => problems.push(`entry ${id} is not shown`))
    if (session.leafId !== lastId) problems.push(`the leaf is ${session.leafId}`)
    const { messages } = await session.getContext()
    if (messages.at(-1)?.entryId !== lastId) problems.push('the last message is not in the context')
  })
  await step('lines', async () => {
    await using session = await store.open(sessionId, { readOnly: true })
    let last = 0
    for await (const { seq } of session.lines()) last = seq
    if (last === 0) problems.push('no line travels')
  })
  await step('open to write', async () => (await store.open(sessionId)).close())
  await store.close()
  const grownBytes = process.resourceUsage().maxRSS * 1024 - before
  return { costs, problems, grownBytes }
}

/** What every first reading costs is no matter of the log. */
async function warmUp(): Promise<void> {
  const store: SessionStore = memoryStore()
  await using session = await store.create()
  await session.appendMessage('user', [])
  await session.getContext()
  await store.verify(session.id)
}

const [root = '', sessionId = '', isLarge] = process.argv.slice(2)
const report = await openHuge(root, sessionId, { isLargeInItself: isLarge === 'large' })
writeSync(1, JSON.stringify(report))
