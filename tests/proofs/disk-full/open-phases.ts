import { appendFileSync, readFileSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import type { Session } from '@tapetree/session'
import { started } from './append-phases.ts'
import type { Scene } from './scene.ts'

/** Copies of the log that do not fit are no failure: the old ones stay whole, and the session works. */
export async function saveDerived(scene: Scene, fill: () => void): Promise<boolean> {
  const session = await started(scene, 150)
  await session.saveDerived()
  await scene.append(session, 10)
  const { seq } = session.head
  fill()
  await session.saveDerived()
  if (session.storageFailure) scene.problems.push('a copy could not be saved and the session says that storage failed')
  const isSaved = savedSeq(scene, session.id) === seq
  await session.close()
  await scene.mayFail('open', async () => (await scene.store.open(session.id)).close())
  scene.disk.makeRoom()
  const again = await scene.store.open(session.id)
  if (again.head.seq !== seq) scene.problems.push(`the session opens at seq ${again.head.seq}, not ${seq}`)
  await scene.goOn(again)
  await scene.check(session.id)
  return !isSaved
}

export async function setAside(scene: Scene, fill: () => void): Promise<boolean> {
  const session = await started(scene)
  await session.close()
  const log = join(scene.folderOf(session.id), 'events.jsonl')
  const torn = `{"seq":99,"type":"message","id":"torn","message":"${'y'.repeat(18_000)}`
  appendFileSync(log, torn)
  scene.expectTornFile()
  const opened = await openOnFullDisk(scene, session.id, fill)
  const kept = readFileSync(`${log}.torn-1`, 'utf8')
  if (kept !== torn) scene.problems.push(`of ${torn.length} torn bytes ${kept.length} were set aside`)
  return opened
}

/** The last line ends with its page, and only its newline is missing: one byte, and it needs a page of its own. */
export async function giveNewlineBack(scene: Scene, fill: () => void): Promise<boolean> {
  const session = await started(scene)
  const log = join(scene.folderOf(session.id), 'events.jsonl')
  const before = statSync(log).size
  await scene.append(session, 100)
  const after = statSync(log).size
  await scene.append(session, 100 + 8192 - ((after + (after - before) - 1) % 4096))
  await session.close()
  const size = statSync(log).size - 1
  if (size % 4096 !== 0) throw new Error(`The log ends at byte ${size}, which is inside a page`)
  truncateSync(log, size)
  return openOnFullDisk(scene, session.id, fill)
}

/** Opening fails and changes nothing, or succeeds; with room it succeeds. */
async function openOnFullDisk(scene: Scene, id: string, fill: () => void): Promise<boolean> {
  const log = join(scene.folderOf(id), 'events.jsonl')
  const bytes = readFileSync(log)
  fill()
  const session = await scene.mayFail<Session>('open', () => scene.store.open(id))
  if (!session && !readFileSync(log).equals(bytes)) scene.problems.push('opening failed and the log is not what it was')
  scene.disk.makeRoom()
  const opened = session ?? (await scene.store.open(id))
  await scene.goOn(opened)
  await scene.check(id)
  return !session
}

function savedSeq(scene: Scene, session: string): number {
  const [, body] = readFileSync(join(scene.folderOf(session), 'checkpoint.json'), 'utf8').split('\n')
  const { seq } = JSON.parse(body ?? '{}') as { seq: number }
  return seq
}
