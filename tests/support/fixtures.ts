import { cpSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Session, SessionStore } from '@tapetree/session'

/** Frozen logs of one version of the format, the blobs they name and what they must mean for ever. */
export function fixtureFolder(format: number): string {
  return join(import.meta.dirname, '..', 'fixtures', 'format', String(format))
}

export function fixtureNames(format: number): string[] {
  return readdirSync(fixtureFolder(format))
    .filter((name) => name.endsWith('.jsonl'))
    .map((name) => name.slice(0, -'.jsonl'.length))
}

export function fixtureBytes(format: number, name: string): Buffer {
  return readFileSync(join(fixtureFolder(format), `${name}.jsonl`))
}

export function expectedOf(format: number, name: string): unknown {
  return JSON.parse(readFileSync(join(fixtureFolder(format), `${name}.expected.json`), 'utf8'))
}

/** Puts a copy of a fixture into a store's folder, as a session that has its name; gives the path of the log. */
export function installFixture(folder: string, format: number, name: string): string {
  const home = join(folder, name)
  mkdirSync(home, { recursive: true })
  cpSync(join(fixtureFolder(format), 'blobs'), join(home, 'blobs'), { recursive: true })
  const path = join(home, 'events.jsonl')
  cpSync(join(fixtureFolder(format), `${name}.jsonl`), path)
  return path
}

/** What a log must mean for ever: context, leaf, labels, queue and what else is folded from its lines. No wording of messages. */
export async function meaningOf(store: SessionStore, session: Session): Promise<unknown> {
  const { repairs, ...context } = await session.getContext()
  const { messages: waiting, hold } = session.inbox
  const { status, messageCount, cost, subagent } = session.info
  const meaning = {
    leafId: session.leafId,
    name: session.name,
    labels: Object.fromEntries(session.getLabels()),
    queue: await store.queue(session.id).list(),
    steers: waiting.filter(({ delivery }) => delivery === 'steer').map(({ id }) => id),
    // Absent from fixtures that were frozen before it was looked at.
    held: waiting.some(({ held }) => held) ? waiting.flatMap(({ id, held }) => (held ? [id] : [])) : undefined,
    isHeld: hold !== null,
    pendingPermissions: session.pendingPermissions.length,
    grants: session.grants,
    // Fixtures with lost lines were frozen before modes were recorded; what loss means for the mode has a test of its own.
    permissionMode: session.damage.length === 0 ? session.permissionMode : undefined,
    openRun: session.openRun?.runId ?? null,
    head: session.head,
    list: { status, messageCount, cost, subagent },
    isReadOnly: session.readOnlyReason !== undefined,
    damage: session.damage.map(({ seq, count, isNew }) => ({ seq, count, isNew })),
    path: (await session.getContextPath()).map(({ id, type }) => `${type} ${id}`),
    repairs: repairs.length,
    context,
  }
  // As JSON has it: without members that are undefined.
  return JSON.parse(JSON.stringify(meaning))
}
