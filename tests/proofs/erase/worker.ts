// One process of the proof `erase`: acts on random sessions of a store, and may kill itself inside an erase.
import { mkdir, writeFile } from 'node:fs/promises'
import { appendFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { SessionError, text, type Session, type SessionInfo } from '@tapetree/session'
import { nodeFilePort, openFileStore, type FilePort, type ListIndex } from '@tapetree/session/stores/file'
import { randomFrom } from '@tapetree/session/testing'
import { indexFileIn } from '../../../packages/session/src/stores/file/session-index/index-db.ts'
import { SessionIndex } from '../../../packages/session/src/stores/file/session-index/session-index.ts'
import { newCanary } from './canary.ts'
import type { Order, Report } from './orders.ts'

const order = JSON.parse(process.argv[2]!) as Order
const random = randomFrom(order.seed)
let isErasing = false
let erasureCalls = 0

function report(line: Report): void {
  writeSync(1, `${JSON.stringify(line)}\n`)
}

function dieHere(): void {
  if (isErasing && ++erasureCalls === order.dieAtCall) process.kill(process.pid, 'SIGKILL')
}

/** Dies before or after a call that changes the disk. */
function mortal<T extends object>(parts: T, names: readonly (keyof T & string)[]): T {
  return new Proxy(parts, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function' || !names.includes(name as keyof T & string)) {
        return typeof value === 'function' ? (value as () => unknown).bind(target) : value
      }
      return (...values: unknown[]): unknown => {
        dieHere()
        const result = (value as (...all: unknown[]) => unknown).apply(target, values)
        if (!(result instanceof Promise)) dieHere()
        return result instanceof Promise ? result.finally(dieHere) : result
      }
    },
  })
}

const port: FilePort = mortal(nodeFilePort(), ['rename', 'remove', 'syncFolder', 'makeFolder'])
const index: ListIndex = mortal(new SessionIndex({ file: indexFileIn(order.folder) }), ['purge'])
const store = openFileStore({ folder: order.folder, port, index, durability: 'accepted' })
const canaries = new Map<string, string>()

const acts = {
  make: async (): Promise<void> => {
    const canary = newCanary(random)
    const id = `s-${newCanary(random).slice(0, 12)}`
    canaries.set(id, canary)
    report({ type: 'made', id, canary })
    await using session = await store.create({ id })
    await fill(session, canary)
  },
  write: () => withSession(async (session, canary) => fill(session, canary)),
  archive: () => withRow('active', ({ id }) => store.archive(id)),
  trash: () => withRow('active', ({ id }) => store.delete(id)),
  restore: () => withRow(chance(0.5) ? 'archive' : 'trash', ({ id }) => store.restore(id)),
  search: async (): Promise<void> => {
    const [canary] = pick([...canaries.values()]) ?? []
    await store.search({ text: (canary ?? 'absent').slice(3, 12) })
  },
  list: async (): Promise<void> => {
    for (const place of ['active', 'archive', 'trash'] as const) await store.list({ place })
  },
  fork: () =>
    withRow('active', async ({ id: from }) => {
      report({ type: 'copying', from })
      await using fork = await store.forkFrom(from, { id: `f-${newCanary(random).slice(0, 12)}` })
      report({ type: 'copied', id: fork.id, from })
    }),
  branch: () =>
    withSession(async (session) => {
      if (session.leafId === null) return
      report({ type: 'copying', from: session.id })
      report({ type: 'copied', id: await session.createBranchedSession(session.leafId), from: session.id })
    }),
  erase: () => eraseOne(['active', 'archive', 'trash']),
  eraseOpen: () => eraseOne(['active'], (id) => store.open(id)),
}

async function eraseOne(places: readonly Place[], open?: (id: string) => Promise<Session>): Promise<void> {
  await withRow(places[Math.floor(random() * places.length)]!, async ({ id, parentSession: parent }) => {
    const session = await open?.(id)
    report({ type: 'erasing', id, ...(parent !== undefined && { parent }) })
    isErasing = true
    try {
      const { forks } = await (session ?? { erase: () => store.erase(id) }).erase()
      report({ type: 'erased', id, forks })
    } catch (error) {
      if (!(error instanceof SessionError)) throw error
      report({ type: 'refused', id, code: error.code })
      await session?.close()
    } finally {
      isErasing = false
    }
  })
}

type Place = 'active' | 'archive' | 'trash'

/** A canary in every kind of place that a session has. */
async function fill(session: Session, canary: string): Promise<void> {
  const first = await session.appendMessage('user', [text(`Remember ${canary}.`)])
  const places: (() => Promise<unknown>)[] = [
    () => session.appendMessage('assistant', [text(`"${canary}"\nü`)]),
    () => session.appendMessage('user', [text(`${'long '.repeat(50_000)}${canary}`)]),
    () => session.appendSessionInfo(`About ${canary}`),
    () => session.setLabel(first, canary),
    () => session.submit(`Later ${canary}`),
    () => session.appendCompaction(`It was about ${canary}`, first, 100),
    () => session.branchWithSummary(first, `Tried ${canary}`),
    () => session.appendCustomEntry('note', { text: canary }),
    () => session.putBlob(Buffer.from(Buffer.from(`..${canary}`).toString('base64'))),
    () => session.append({ type: 'error', error: { message: canary } }),
    () => session.saveDerived(),
    async () => {
      const spool = join(session.localFolder!, 'spool', 'job-0123456789ab')
      await mkdir(spool, { recursive: true })
      await writeFile(join(spool, 'output'), canary)
    },
    async () => appendFileSync(join(session.localFolder!, 'draft.jsonl'), `{"text":"${canary}"}\n`),
    async () => appendFileSync(join(session.localFolder!, 'events.jsonl.torn-1'), `{"seq":9,"${canary}`),
  ]
  for (const put of places) if (chance(0.6)) await put()
}

async function withSession(act: (session: Session, canary: string) => Promise<void>): Promise<void> {
  await withRow('active', async ({ id }) => {
    await using session = await store.open(id)
    const canary = canaries.get(id)
    if (session.readOnlyReason === undefined && canary !== undefined) await act(session, canary)
  })
}

async function withRow(place: Place, act: (row: SessionInfo) => Promise<void>): Promise<void> {
  const [row] = pick((await store.list({ place, limit: Infinity })).sessions) ?? []
  if (row) await act(row)
}

function pick<T>(items: readonly T[]): [T] | undefined {
  return items.length === 0 ? undefined : [items[Math.floor(random() * items.length)]!]
}

function chance(share: number): boolean {
  return random() < share
}

/** Another process may move, hold or erase the session in between. */
const expectedCodes = new Set(['session-not-found', 'session-owned', 'session-exists', 'session-closed'])

async function actOnce(name: keyof typeof acts): Promise<void> {
  try {
    await acts[name]()
  } catch (error) {
    const isExpected = error instanceof SessionError && expectedCodes.has(error.code)
    if (!isExpected && !isGone(error)) throw new Error(`${name} failed`, { cause: error })
  }
}

/** The folder was moved while it was read. */
function isGone(error: unknown): boolean {
  const { code, cause } = error as { code?: string; cause?: { code?: string } }
  return code === 'ENOENT' || cause?.code === 'ENOENT'
}

const names = Object.keys(acts) as (keyof typeof acts)[]
for (let number = 0; number < order.operations; number++) {
  await actOnce(number < 2 ? 'make' : names[Math.floor(random() * names.length)]!)
}
await store.close()
report({ type: 'done' })
