// One process of the proof `two-writers`: opens, appends and closes as it is told, and can stop itself at a chosen system call.
import { writeSync } from 'node:fs'
import { SessionError, type Session, type SessionStore } from '@tapetree/session'
import { acquireWriterLock, nodeFilePort, openFileStore, type FilePort } from '@tapetree/session/stores/file'
import type { Answer, LockUse, Order, Report, Trap } from './orders.ts'

const tenures = new Map<string, { session: Session; store: SessionStore }>()
let traps: Trap[] = []

async function obey(order: Order): Promise<Answer> {
  switch (order.type) {
    case 'open':
    case 'create':
      return openSession(order)
    case 'append':
      return { type: 'appended', refusals: await append(order) }
    case 'set-traps':
      traps = order.traps
      return { type: 'done' }
    case 'close':
      await tenures.get(order.tenure)?.session.close()
      await tenures.get(order.tenure)?.store.close()
      tenures.delete(order.tenure)
      return { type: 'done' }
    default:
      return order satisfies never
  }
}

async function openSession(order: Order & { type: 'open' | 'create' }): Promise<Answer> {
  const { folder, sessionId } = order.at
  const { port, knownSize } = trappedPort()
  const store = openFileStore({ folder, lock: lockOf(order.lock), durability: order.durability, port })
  traps = order.traps
  const session =
    order.type === 'create'
      ? await store.create({ id: sessionId })
      : await store.open(sessionId, { insist: order.lock === 'defeated' })
  tenures.set(order.tenure, { session, store })
  return { type: 'opened', isWriter: session.readOnlyReason === undefined, knownSize: knownSize() }
}

async function append({ tenure, count, size, together }: Order & { type: 'append' }): Promise<string[]> {
  const { session } = tenures.get(tenure) ?? {}
  const refusals: string[] = []
  const appendOne = async (): Promise<void> => {
    try {
      const data = { tenure, text: 'x'.repeat(size) }
      const line = await session!.append({ type: 'custom', custom: { customType: 'two-writers', data } })
      report({ type: 'acknowledged', tenure, id: line.id })
    } catch (error) {
      refusals.push(codeOf(error))
    }
  }
  if (together) await Promise.all(Array.from({ length: count }, appendOne))
  else for (let done = 0; done < count && refusals.length === 0; done += 1) await appendOne()
  return refusals
}

function lockOf(use: LockUse): typeof acquireWriterLock {
  switch (use) {
    case 'usual':
      return (path) => acquireWriterLock(path)
    case 'ofd':
    case 'sqlite':
      return (path) => acquireWriterLock(path, { kinds: [use] })
    case 'defeated':
      return async () => ({ type: 'unavailable', reason: 'The proof defeats the lock.' })
    default:
      return use satisfies never
  }
}

function trappedPort(): { port: FilePort; knownSize: () => number } {
  const real = nodeFilePort()
  let log: number | undefined
  let knownSize = 0
  const port: FilePort = {
    ...real,
    openAppend: (path) => {
      log = real.openAppend(path)
      return log
    },
    size: (fd) => {
      const size = real.size(fd)
      if (fd === log) knownSize = size
      return size
    },
    truncate: (fd, size) => {
      real.truncate(fd, size)
      if (fd === log) knownSize = size
    },
    write: (fd, bytes) => {
      if (fd !== log) return real.write(fd, bytes)
      stopIf('stop-before-write')
      const count = real.write(fd, springs('short-write') ? bytes.subarray(0, bytes.length >> 1) : bytes)
      stopIf('stop-after-write')
      return count
    },
    read: async (fd, bytes, position) => {
      const count = await real.read(fd, bytes, position)
      if (fd === log) stopIf('stop-after-read')
      return count
    },
    dataSync: async (fd) => {
      stopIf(fd === log ? 'stop-before-sync' : 'stop-before-sync-of-copy')
      await real.dataSync(fd)
    },
  }
  return { port, knownSize: () => knownSize }
}

function stopIf(trap: Trap): void {
  if (!springs(trap)) return
  // Written at once, unlike a message: after the next call nothing of this process moves.
  writeSync(process.stdout.fd, 'stopped\n')
  process.kill(process.pid, 'SIGSTOP')
  // The signal may reach another thread first; this one does nothing until all are stopped.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20)
  writeSync(process.stdout.fd, 'resumed\n')
}

function springs(trap: Trap): boolean {
  if (traps[0] !== trap) return false
  traps.shift()
  return true
}

function codeOf(error: unknown): string {
  return error instanceof SessionError ? error.code : String(error)
}

function report(message: Report): void {
  process.send?.(message)
}

process.on('message', ({ number, order }: { number: number; order: Order }) => {
  const failed = (error: unknown): Answer => ({ type: 'failed', code: codeOf(error), message: String(error) })
  void obey(order)
    .catch(failed)
    .then((answer) => report({ type: 'answer', number, answer }))
})
process.on('disconnect', () => process.exit())
