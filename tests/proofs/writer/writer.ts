// Appends to sessions at full speed until it is killed. Says `ready` when it is loaded, begins when its options come in on stdin
// (one line of JSON), and tells every acknowledgement on stdout the moment it has it. Anything more on stdin makes it begin a
// very long write, and say so, so that it can be killed in the middle of one.
import { once } from 'node:events'
import { writeSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { createInterface } from 'node:readline'
import { setImmediate } from 'node:timers/promises'
import { text, type Durability, type Session, type SessionStore } from '@tapetree/session'
import { nodeFilePort, openFileStore, type FilePort } from '@tapetree/session/stores/file'
import { randomFrom } from '../../../scripts/figure/random.ts'
import { fingerprintOf } from './fingerprint.ts'
import { storeFolder, type Report, type WriterOptions } from './report.ts'
import { sampleText } from './sample-text.ts'
import { appendSomething, type Producer } from './workload.ts'

const wanted: Record<Durability, { sessions: number; producers: number }> = {
  durable: { sessions: 3, producers: 8 },
  accepted: { sessions: 1, producers: 2 },
}

async function main(): Promise<void> {
  process.stdin.on('end', () => process.exit(0)) // whoever started us is gone
  flushCompileCache() // whoever is killed never gets to it at the end
  tell({ type: 'ready' })
  // Both may come at once to a process that is slow to listen.
  const lines = createInterface({ input: process.stdin })
  const more = Promise.withResolvers<void>()
  lines.on('line', (line) => line === 'burst' && more.resolve())
  const [line] = (await once(lines, 'line')) as [string]
  const options = JSON.parse(line) as WriterOptions
  const random = randomFrom(options.seed)
  const textOf = sampleText(random)
  const port = announcing(nodeFilePort())
  const work = (['durable', 'accepted'] as const).flatMap((durability) => {
    const store = openFileStore({ folder: storeFolder(options.folder, durability), durability, port })
    const count = Math.max(wanted[durability].sessions, options.sessions[durability].length)
    return Array.from({ length: count }, async (_, index) => {
      const session = await openSession(store, options.sessions[durability][index])
      if (durability === 'durable' && index === 0) void more.promise.then(() => burst(session, textOf))
      await produce({ session, random, sampleText: textOf }, durability)
    })
  })
  const other = openFileStore({ folder: storeFolder(options.folder, 'durable'), port })
  await Promise.all([...work, createSessions(other, textOf)])
}

async function openSession(store: SessionStore, id: string | undefined): Promise<Session> {
  const session = id === undefined ? await createSession(store) : await store.open(id)
  if (session.readOnlyReason !== undefined) throw new Error(`${session.id} is read-only: ${session.readOnlyReason}`)
  if (session.damage.length > 0) throw new Error(`${session.id} is damaged: ${JSON.stringify(session.damage)}`)
  return session
}

async function createSession(store: SessionStore): Promise<Session> {
  const session = await store.create({ cwd: '/proof' })
  tellCreated(session.id)
  return session
}

/** A new session is durable, whatever its lines are going to be. */
function tellCreated(session: string): void {
  const header = { session, id: session, seq: 1, fingerprint: fingerprintOf(null) }
  tell({ type: 'acknowledged', ...header, durability: 'durable' })
}

async function produce(parts: Omit<Producer, 'entries'>, durability: Durability): Promise<void> {
  const effects = new Map<string, { id: string; seq: number }>()
  parts.session.subscribe(({ line, seq }) => {
    if (line.type !== 'session' && line.cause) effects.set(line.cause.cmd, { id: line.id, seq })
  })
  const producers = Array.from({ length: wanted[durability].producers }, async (_, number) => {
    const producer = { ...parts, entries: [] }
    for (let count = 0; ; count++) {
      const cmd = `${process.pid}-${number}-${count}`
      const payload = await appendSomething(producer, { cmd, client: 'proof' })
      const effect = effects.get(cmd)
      effects.delete(cmd)
      if (payload !== undefined && effect) {
        const fingerprint = fingerprintOf(payload, anyBlob)
        tell({ type: 'acknowledged', session: parts.session.id, ...effect, durability, fingerprint })
      }
      // Merely accepted appends wait for no disk; they would leave no turn to the others.
      if (durability === 'accepted') await setImmediate()
    }
  })
  await Promise.all(producers)
}

/** Sessions come and go beside those that are written: made, filled a little, copied, closed. */
async function createSessions(store: SessionStore, textOf: (length: number) => string): Promise<void> {
  for (let made = 0; made < maxSideSessions; made++) {
    const session = await createSession(store)
    const [first] = await Promise.all(Array.from({ length: 4 }, async () => appendText(session, textOf(50))))
    tellCreated(await session.createBranchedSession(first as string))
    await session.close()
  }
}

/** So many long lines at once that their one write takes a while. */
async function burst(session: Session, textOf: (length: number) => string): Promise<void> {
  await Promise.all(Array.from({ length: 40 }, async () => appendText(session, textOf(100_000))))
}

async function appendText(session: Session, content: string): Promise<string> {
  const message = { role: 'user' as const, content: [text(content)] }
  const { id, seq } = await session.append({ type: 'message', message })
  tell({
    type: 'acknowledged',
    session: session.id,
    id,
    seq,
    durability: 'durable',
    fingerprint: fingerprintOf(message),
  })
  return id
}

/** More would only be more to look through afterwards. */
const maxSideSessions = 2

function announcing(port: FilePort): FilePort {
  return {
    ...port,
    write: (fd, bytes) => {
      if (bytes.length >= longWriteBytes) tell({ type: 'writing' })
      return port.write(fd, bytes)
    },
  }
}

const longWriteBytes = 1_500_000

/** The blobs of our own payloads are there: we have just stored them. */
function anyBlob(): Uint8Array {
  return new Uint8Array()
}

/** Returns when the reader's end has it; a full pipe is tried again. */
function tell(report: Report): void {
  const bytes = Buffer.from(`${JSON.stringify(report)}\n`)
  for (let sent = 0; sent < bytes.length;) {
    try {
      sent += writeSync(1, bytes, sent)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') process.exit(2)
    }
  }
}

process.on('uncaughtException', (error) => {
  tell({ type: 'failed', reason: error.stack ?? error.message })
  process.exit(1)
})
await main()
