// A process of its own: opens large logs in every way and says for each what it cost. `open-huge.ts <folder> <number>...`
import { mkdirSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { memoryStore } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { firstId, hugeFiles, lastId, writeHugeFile, type HugeFile } from '../../corpus/huge-files.ts'
import { unsyncedPort } from '../../corpus/unsynced-port.ts'
import type { HugeReport } from './reports.ts'

const [root = '', ...numbers] = process.argv.slice(2)
const store = openFileStore({ folder: root, port: unsyncedPort() })

await warmUp()
const before = process.memoryUsage.rss()
for (const number of numbers) {
  const file = hugeFiles[Number(number)]
  if (file) writeSync(1, `${JSON.stringify(await openHuge(file))}\n`)
}
await store.close()

async function openHuge(file: HugeFile): Promise<HugeReport> {
  const folder = join(root, 'huge')
  mkdirSync(folder)
  const megabytes = writeHugeFile(join(folder, 'events.jsonl'), file) / 1e6
  const report: HugeReport = { name: file.name, problems: [], msPerMegabyte: 0, grownBytes: 0 }
  const measure = async (readings: number, work: () => Promise<void>): Promise<void> => {
    const start = process.cpuUsage()
    await work()
    const { user, system } = process.cpuUsage(start)
    report.msPerMegabyte = Math.max(report.msPerMegabyte, (user + system) / 1000 / readings / megabytes)
  }
  await measure(1, () => open(report.problems))
  await measure(1, async () => void (await store.verify('huge')))
  await measure(2, () => readLines(report.problems))
  await measure(1, async () => (await store.open('huge')).close())
  rmSync(folder, { recursive: true })
  return { ...report, grownBytes: process.resourceUsage().maxRSS * 1024 - before }
}

async function open(problems: string[]): Promise<void> {
  await using session = await store.open('huge', { readOnly: true })
  for (const id of [firstId, lastId]) await session.getEntry(id).catch(() => problems.push(`entry ${id} is not shown`))
  if (session.leafId !== lastId) problems.push(`the leaf is ${session.leafId}`)
  const { messages } = await session.getContext()
  if (messages.at(-1)?.entryId !== lastId) problems.push('the last message is not in the context')
}

async function readLines(problems: string[]): Promise<void> {
  await using session = await store.open('huge', { readOnly: true })
  const seen = new Set<number>()
  for await (const { type, seq } of session.lines()) if (type === 'line') seen.add(seq)
  if (seen.size < 3) problems.push(`only ${seen.size} lines travel`)
}

/** What every first reading costs is no matter of the log. */
async function warmUp(): Promise<void> {
  const small = memoryStore()
  await using session = await small.create()
  await session.appendMessage('user', [])
  await session.getContext()
  await small.verify(session.id)
}
