import { readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Round, Tenure } from './arena.ts'
import { checkLog } from './check-log.ts'
import type { LockUse, Trap } from './orders.ts'

/** The ways in which writers meet. Each ends with nobody stopped; the log is checked afterwards. */
export const rounds: Record<string, (round: Round) => Promise<void>> = {
  'the lock is handed from one to the next': handOver,
  'the writer is stopped': stopWriter,
  'the writer is killed': killWriter,
  'the lock file is deleted': deleteLock,
  'the folder is renamed': renameFolder,
  'defeated: everybody writes': everybodyWrites,
  'defeated: stopped before its write': (round) => stopAtWrite(round, 'stop-before-write'),
  'defeated: stopped after its write': (round) => stopAtWrite(round, 'stop-after-write'),
  'defeated: stopped before it cuts off its own half line': stopWhileCutting,
  'defeated: stopped before it cuts off the half line of another': stopWhileMending,
  'defeated: a half line appears while it opens': halfLineWhileOpening,
}

async function handOver(round: Round): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) {
    const { writer, others } = await round.race(round.processes)
    const [again] = await Promise.all([round.open(writer.process, 'usual'), appendAll(round, writer)])
    if (again.isWriter) round.complain('one process has the session open for writing twice')
    await again.close()
    await round.race(others, { isHeld: true })
    await appendAll(round, writer)
    await writer.close()
  }
}

async function stopWriter(round: Round): Promise<void> {
  const { writer, others } = await round.race(round.processes)
  const appending = appendAll(round, writer)
  writer.process.stop()
  await round.race(others, { isHeld: true })
  writer.process.resume()
  await appending
  await appendAll(round, writer)
}

async function killWriter(round: Round): Promise<void> {
  const { writer, others } = await round.race(round.processes)
  const appending = writer.append({ count: 1000, size: 2000, together: round.random() < 0.5 })
  await round.race(others, { isHeld: true })
  await writer.process.kill()
  await appending
  const next = await round.race(others)
  await appendAll(round, next.writer)
}

/**
 * The old writer is refused at its next append, and what it was writing when the new one came is detected. A writer of accepted lines
 * checks its lock only every few milliseconds: until then it may continue if the new writer found its lines and was stopped.
 */
async function deleteLock(round: Round): Promise<void> {
  const { writer, others } = await round.race(round.processes)
  await appendAll(round, writer)
  const appending = round.random() < 0.5 ? writer.append({ count: 20 }) : undefined
  rmSync(join(round.place.folder, round.place.sessionId, 'lock'))
  const next = await round.race(others)
  await Promise.all([appending, next.writer.append({ count: 20 })])
  const mayContinue = round.durability === 'accepted' && next.writer.isFenced
  if ((await writer.append()) > 0 && !mayContinue)
    round.complain('a writer whose lock file was deleted was not refused')
  for (let tries = mayContinue ? 1000 : 0; tries > 0 && !writer.isFenced; tries -= 1) await writer.append()
  if (!writer.isFenced) round.complain(`a writer whose lock file was deleted got ${writer.refusals.join()}`)
  if (appending === undefined) await appendAll(round, next.writer)
}

/** The lock moves along with the log, and nothing of the old writer gets into a new session under the old name. */
async function renameFolder(round: Round): Promise<void> {
  const { folder, sessionId } = round.place
  const { writer, others } = await round.race(round.processes)
  await appendAll(round, writer)
  renameSync(join(folder, sessionId), join(folder, 'moved'))
  await round.race(others, { isHeld: true, at: { folder, sessionId: 'moved' } })
  const [maker] = others
  const isReplaced = round.random() < 0.7
  const fresh = isReplaced ? await round.open(maker!, 'usual', { at: { folder, sessionId }, isNew: true }) : undefined
  if (fresh && !fresh.isWriter) round.complain('a new session under the old name cannot be written')
  await fresh?.append({ count: 3 })
  await writer.append({ size: 300_000 })
  await writer.append()
  await fresh?.close()
  const before = filesOf(join(folder, sessionId))
  await writer.close()
  if (filesOf(join(folder, sessionId)) !== before) {
    round.complain('the old writer wrote into the folder that now has its old name')
  }
  if (fresh) await checkFresh(round, fresh)
  rmSync(join(folder, sessionId), { recursive: true, force: true })
  renameSync(join(folder, 'moved'), join(folder, sessionId))
}

async function everybodyWrites(round: Round): Promise<void> {
  const [slow] = round.processes
  const working = round.processes.map(async (process) => {
    for (let opening = 0; opening < 3; opening += 1) {
      const tenure = await round.open(process, 'defeated')
      const together = round.random() < 0.5
      const size = round.pick([20, 2000, 100_000])
      await tenure.append({ count: 1 + Math.floor(round.random() * 20), size, together })
      if (round.random() < 0.5) await tenure.close()
      else await tenure.append({ count: 3 })
    }
  })
  slow!.stop()
  await Promise.race(working.slice(1))
  slow!.resume()
  await Promise.all(working)
}

async function stopAtWrite(round: Round, trap: 'stop-before-write' | 'stop-after-write'): Promise<void> {
  const { first, openSecond } = await defeatLock(round)
  const early = round.random() < 0.5 ? await openSecond() : undefined
  await first.setTraps(trap)
  const appending = first.append({ count: 3, together: round.random() < 0.5 })
  await first.process.hasStopped(appending)
  const second = early ?? (await openSecond())
  await second.append({ count: 1 + Math.floor(round.random() * 4) })
  first.process.resume()
  await appending
  await first.append()
  if (second.acknowledged.length > 0 && !first.isFenced) round.complain('the second writer was not detected')
}

/** A write was short; while it looks at what is its own to cut off, another one opens, mends and writes. */
async function stopWhileCutting(round: Round): Promise<void> {
  const { first, openSecond } = await defeatLock(round)
  await first.setTraps('short-write', 'stop-after-read')
  const appending = first.append({ size: 500 })
  await first.process.hasStopped(appending)
  const second = await openSecond()
  await second.append({ count: 2 })
  first.process.resume()
  await appending
  await first.append()
}

/** The half line that it is about to set aside and cut off is the other's, who meanwhile goes on by itself. */
async function stopWhileMending(round: Round): Promise<void> {
  const { first, openSecond } = await defeatLock(round)
  await first.setTraps('short-write', 'stop-after-write')
  const appending = first.append({ size: 500 })
  await first.process.hasStopped(appending)
  const opening = openSecond(['stop-before-sync-of-copy'])
  await round.processes[1]!.hasStopped(opening)
  first.process.resume()
  await appending
  await first.append({ count: 3, size: 400 })
  round.processes[1]!.resume()
  const second = await opening
  await second.append({ count: 2 })
}

/** Its end of the log is where it has looked, not where the file ends by the time it writes. */
async function halfLineWhileOpening(round: Round): Promise<void> {
  const { first, openSecond } = await defeatLock(round)
  const opening = openSecond(['stop-before-sync'])
  await round.processes[1]!.hasStopped(opening)
  await first.setTraps('short-write', 'stop-after-write')
  const appending = first.append({ size: 500 })
  await first.process.hasStopped(appending)
  await first.process.kill()
  await appending
  round.processes[1]!.resume()
  const second = await opening
  await second.append({ count: 2 })
}

/** A writer that has written, and a second one that can open beside it: nobody has a lock, or the first one's file is gone. */
async function defeatLock(round: Round): Promise<{ first: Tenure; openSecond: (traps?: Trap[]) => Promise<Tenure> }> {
  const [one, two] = round.processes
  const isDeleted = round.random() < 0.5
  const lock = (): LockUse => (isDeleted ? round.pick(['ofd', 'sqlite'] as const) : 'defeated')
  const first = await round.open(one!, lock())
  await first.append()
  if (isDeleted) rmSync(join(round.place.folder, round.place.sessionId, 'lock'))
  return { first, openSecond: (traps = []) => round.open(two!, lock(), { traps }) }
}

/** The writer is alone, so everything it appends must be acknowledged. */
async function appendAll(round: Round, writer: Tenure): Promise<void> {
  const count = 1 + Math.floor(round.random() * 10)
  const size = round.pick([20, 1000, 50_000])
  const acknowledged = await writer.append({ count, size, together: round.random() < 0.5 })
  if (acknowledged < count) round.complain(`the only writer was refused: ${writer.refusals.join()}`)
}

async function checkFresh(round: Round, fresh: Tenure): Promise<void> {
  const { problems } = await checkLog(round.place, [fresh], { isDefeated: false })
  for (const problem of problems) round.complain(`new session under the old name: ${problem}`)
}

function filesOf(folder: string): string {
  return ['events.jsonl', 'checkpoint.json', 'metadata.json', 'queue.json', 'owner.json']
    .map((name) => {
      try {
        return readFileSync(join(folder, name), 'utf8')
      } catch {
        return 'missing'
      }
    })
    .join('\n')
}
