import { describe, expect, test } from 'vitest'
import { writeCheckpoint, type CheckpointOptions } from './checkpoint.ts'
import type { DiskLine, Position } from '../line/line.ts'
import { localScope, type ReadableLog, type StoredLine } from './log-store.ts'
import { checksum, sealLine } from '../line/seal-line.ts'
import type { SessionState } from '../state/session-state.ts'
import { Session } from '../store/session.ts'
import { SessionStore } from '../store/session-store.ts'
import { MemoryLogStore } from '../stores/memory/memory-store.ts'
import { user } from '../testing/builders.ts'
import { changedPort } from '../testing/changed-port.ts'
import { SessionReader } from './session-reader.ts'
import { randomFrom } from '../testing/random-from.ts'
import { randomLog } from '../testing/random-log.ts'

describe('a quick open', () => {
  test('equals a full read, over 2,000 random logs with branches, notes, holds, permissions and damage', async () => {
    const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31))
    let quick = 0
    for (let index = 0; index < 2000; index++) {
      const random = randomFrom(seed + index)
      const damage = index % 2 === 0 ? 0 : 0.05
      const lines = randomLog(random, { lines: 10 + Math.floor(random() * 60), damage })
      const log = new TextLog(lines, await checkpointOf(lines, 2 + Math.floor(random() * (lines.length - 2))))
      const reader = await SessionReader.open(log)
      const whole = await SessionReader.open(new TextLog(lines), { whole: true })
      if (!reader.state.tree.isWhole) quick++
      const seen = `seed ${seed + index}`
      expect({ seen, ...(await whatItSays(reader)) }).toEqual({ seen, ...(await whatItSays(whole)) })
    }
    // Most logs must have used the quick open, or nothing was compared.
    expect(quick).toBeGreaterThan(700)
  })

  test('equals a full read if it starts with only the newest nodes, over 1,000 random logs', async () => {
    const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31))
    let brief = 0
    for (let index = 0; index < 1000; index++) {
      const random = randomFrom(seed + index)
      const lines = randomLog(random, { lines: 10 + Math.floor(random() * 60), damage: index % 2 === 0 ? 0 : 0.05 })
      const at = 2 + Math.floor(random() * (lines.length - 2))
      const options = { newestNodes: 1 + Math.floor(random() * 6), nodesPerPiece: 1 + Math.floor(random() * 6) }
      const log = new TextLog(lines, await checkpointOf(lines, at, options))
      const reader = await SessionReader.open(log, { isBrief: true })
      const whole = await SessionReader.open(new TextLog(lines), { whole: true })
      if (!reader.state.tree.isWhole && reader.state.tree.size < whole.state.tree.size) brief++
      const seen = `seed ${seed + index}`
      expect({ seen, ...(await whatItSays(reader)) }).toEqual({ seen, ...(await whatItSays(whole)) })
    }
    expect(brief).toBeGreaterThan(200)
  })

  test('equals a full read if its pieces were saved at several lines, over 1,000 random logs', async () => {
    const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31))
    let kept = 0
    for (let index = 0; index < 1000; index++) {
      const random = randomFrom(seed + index)
      const lines = randomLog(random, { lines: 10 + Math.floor(random() * 60), damage: index % 2 === 0 ? 0 : 0.05 })
      const options = { newestNodes: 1 + Math.floor(random() * 3), nodesPerPiece: 1 + Math.floor(random() * 4) }
      let pieces: string[] = []
      for (let at = 2; at <= lines.length; at += 1 + Math.floor(random() * 10)) {
        const reader = await SessionReader.open(new TextLog(lines.slice(0, at), pieces))
        if (!endsIntact(reader.state)) continue
        const { count, changed } = await reader.ask((state) => writeCheckpoint(state, options))
        kept += count - changed.size
        pieces = Array.from({ length: count }, (_, number) => changed.get(number) ?? pieces[number] ?? '')
      }
      const quick = await SessionReader.open(new TextLog(lines, pieces))
      const whole = await SessionReader.open(new TextLog(lines), { whole: true })
      const seen = `seed ${seed + index}`
      expect({ seen, ...(await whatItSays(quick)) }).toEqual({ seen, ...(await whatItSays(whole)) })
    }
    expect(kept).toBeGreaterThan(1000)
  })

  test('reads only the first piece of the checkpoint when brief, and knows the model choice', async () => {
    const lines = [
      sealed({ type: 'session', id: 's' }, 1),
      sealed(
        { type: 'model_change', id: 'm', parent_id: null, model_change: { provider: 'anthropic', model_id: 'claude' } },
        2,
      ),
      ...Array.from({ length: 5000 }, (_, index) =>
        sealed(said(`e${index}`, index ? `e${index - 1}` : 'm'), 3 + index),
      ),
    ]
    const log = new TextLog(lines, await checkpointOf(lines, lines.length))
    const reader = await SessionReader.open(log, { isBrief: true })
    const session = sessionOn(reader)
    expect(await session.getModelChoice()).toMatchObject({ model: { provider: 'anthropic', modelId: 'claude' } })
    expect({ nodes: reader.state.tree.size, loaded: log.loaded }).toEqual({ nodes: 1001, loaded: [1] })
    expect((await session.getContext()).messages).toHaveLength(5000)
    expect(log.loaded).toEqual([1, 5])
    expect(reader.state.tree.isWhole).toBe(false)
  })

  test('without a checkpoint, messages that opening has parsed give the same context as lines that are read again', async () => {
    const seed = Math.floor(Math.random() * 2 ** 32)
    const random = randomFrom(seed)
    for (let index = 0; index < 100; index++) {
      const lines = randomLog(random, { lines: 5 + Math.floor(random() * 60), damage: index % 2 === 0 ? 0.05 : 0 })
      const parsed = await SessionReader.open(new TextLog(lines))
      const whole = await SessionReader.open(new TextLog(lines), { whole: true })
      expect({ seed, index, ...(await whatItSays(parsed)) }).toEqual({ seed, index, ...(await whatItSays(whole)) })
    }
  })

  test('equals a full read if a compaction keeps from a lost line', async () => {
    const random = randomFrom(1920355143)
    const lines = randomLog(random, { lines: 10 + Math.floor(random() * 60), damage: 0.05 })
    const quick = await SessionReader.open(new TextLog(lines, await checkpointOf(lines, 30)))
    const whole = await SessionReader.open(new TextLog(lines), { whole: true })
    expect(await whatItSays(quick)).toEqual(await whatItSays(whole))
  })

  test('rejects a checkpoint that was changed, truncated, or is of another version or log', async () => {
    const lines = randomLog(randomFrom(7), { lines: 40 })
    const reader = await SessionReader.open(new TextLog(lines), { whole: true })
    const pieces = piecesOf(reader.state, { newestNodes: 1, nodesPerPiece: 1 })
    const isQuick = async (content: string[], log = lines): Promise<boolean> =>
      !(await SessionReader.open(new TextLog(log, content))).state.tree.isWhole
    for (const [number, piece] of pieces.entries()) {
      for (const changed of [piece.replace('"', "'"), piece.slice(0, -1), piece.slice(0, 50), '']) {
        expect([number, changed, await isQuick(pieces.with(number, changed))]).toEqual([number, changed, false])
      }
    }
    const [checkpoint = '', ...older] = pieces
    const body = checkpoint.slice(checkpoint.indexOf('\n') + 1)
    expect(older.length).toBeGreaterThan(2)
    expect(await isQuick(pieces)).toBe(true)
    expect(await isQuick([...pieces, 'a piece that a crash left behind'])).toBe(true)
    expect(await isQuick(pieces.toSpliced(1, 1))).toBe(false)
    expect(await isQuick(pieces.slice(0, -1))).toBe(false)
    expect(await isQuick(pieces.with(1, pieces[2] ?? ''))).toBe(false)
    expect(await isQuick([checkpoint.replace('"term":1', '"term":2'), ...older])).toBe(false)
    expect(await isQuick([body, ...older])).toBe(false)
    expect(await isQuick([])).toBe(false)
    expect(await isQuick([pieces.join('')])).toBe(false)
    expect(await isQuick(pieces, lines.slice(0, 20))).toBe(false)
    expect(await isQuick(pieces, randomLog(randomFrom(8), { lines: 40 }))).toBe(false)
  })

  test('rejects a checkpoint with a valid checksum and invalid content', async () => {
    const lines = [sealed({ type: 'session', id: 's' }, 1)]
    const { state } = await SessionReader.open(new TextLog(lines), { whole: true })
    const [, body = ''] = piecesOf(state).join('').split('\n')
    for (const change of [
      { nodes: 5 },
      { nodes: [5] },
      { labels: {} },
      { inbox: null },
      { above: null },
      { last: null },
      { older: null },
      { older: [null] },
    ]) {
      const text = JSON.stringify({ ...(JSON.parse(body) as object), ...change })
      const reader = await SessionReader.open(new TextLog(lines, [`${checksum(text)}\n${text}\n`]))
      expect([change, reader.state.tree.isWhole]).toEqual([change, true])
    }
  })

  test('detects that a line of its context was damaged since, and reads the whole log', async () => {
    const lines = [
      sealed({ type: 'session', id: 's' }, 1),
      sealed(said('a', null), 2),
      sealed(
        { type: 'compaction', id: 'k', parent_id: 'a', compaction: { summary: 's', first_kept_entry_id: 'a' } },
        3,
      ),
      sealed(said('b', 'k'), 4),
    ]
    const checkpoint = await checkpointOf(lines, lines.length)
    for (const index of [1, 2]) {
      const damaged = lines.with(index, (lines[index] as string).replace('parent', 'parrot'))
      const reader = await SessionReader.open(new TextLog(damaged, checkpoint))
      expect(reader.state.tree.isWhole).toBe(false)
      const whole = await SessionReader.open(new TextLog(damaged), { whole: true })
      expect((await whatItSays(reader))['context']).toEqual((await whatItSays(whole))['context'])
      expect(reader.state.damage).toEqual(whole.state.damage)
    }
  })

  test('is not used if an id occurred twice: its meaning depends on the position in the log', async () => {
    const lines = [
      sealed({ type: 'session', id: 's' }, 1),
      sealed(said('a', null), 2),
      sealed(said('b', 'a'), 3),
      sealed(said('a', null), 4),
      sealed({ type: 'leaf', id: 'l', leaf: { target_id: 'b' } }, 5),
      sealed(said('c', 'a'), 6),
    ]
    const quick = await SessionReader.open(new TextLog(lines, await checkpointOf(lines, 5)))
    const whole = await SessionReader.open(new TextLog(lines), { whole: true })
    expect(await whatItSays(quick)).toEqual(await whatItSays(whole))
  })
})

describe('a checkpoint of 100,000 entries', () => {
  test('is saved in small parts: after a turn, when a piece fills up, and after a branch', async () => {
    const port = new MemoryLogStore()
    const sizes: { pieces: number; bytes: number }[] = []
    const counted = changedPort(port, {
      log: (log) => ({
        saveDerived: async (data) => {
          const contents = [...(data.checkpoint?.changed.values() ?? [])]
          sizes.push({ pieces: contents.length, bytes: Buffer.byteLength(contents.join('')) })
          await log.saveDerived(data)
        },
      }),
    })
    const lines = Array.from({ length: 100_000 }, (_, index) =>
      sealLine(said(idOf(index), index ? idOf(index - 1) : null), 2 + index),
    )
    await port.create(localScope, 's', sealLine({ type: 'session', id: 's' }, 1))
    const claim = await port.claim(localScope, 's')
    if (claim.type === 'owned') throw new Error(claim.owner.reason)
    await claim.log.append(lines, { term: 1, head: 1, durability: 'durable' })
    await claim.log.close()
    const store = new SessionStore(counted)
    const session = await store.open('s')
    await session.saveDerived()
    const [all] = sizes.splice(0)
    expect(all?.bytes).toBeGreaterThan(5_000_000)
    for (let turn = 0; turn < 12; turn++) {
      await Promise.all(Array.from({ length: 100 }, () => user(session, `turn ${turn}`)))
      await session.saveDerived()
    }
    expect(Math.max(...sizes.map(({ bytes }) => bytes))).toBeLessThan(200_000)
    expect(sizes.splice(0).map(({ pieces }) => pieces)).toContain(2)
    await session.close()

    const again = await store.open('s')
    await again.branch(idOf(99_000))
    await again.saveDerived()
    await again.branch(idOf(50_000))
    await again.saveDerived()
    expect(Math.max(...sizes.splice(0).map(({ bytes }) => bytes))).toBeLessThan(200_000)
    const expected = await again.getContext()
    await again.close()
    const quick = await SessionReader.open(await port.open(localScope, 's'))
    expect(quick.state.tree.isWhole).toBe(false)
    expect((await whatItSays(quick))['context']).toEqual(expected)
  })
})

function idOf(index: number): string {
  return `00000000-0000-7000-8000-${String(index).padStart(12, '0')}`
}

function sealed(line: DiskLine, seq: number): string {
  return sealLine(line, seq).text
}

function said(id: string, parent: string | null): DiskLine {
  const content = [{ type: 'text', text: { content: `words of ${id}` } }]
  return { type: 'message', id, parent_id: parent, message: { role: 'user', content } }
}

function piecesOf(state: SessionState, options: CheckpointOptions = {}): string[] {
  const { count, changed } = writeCheckpoint(state, options)
  return Array.from({ length: count }, (_, number) => changed.get(number) ?? '')
}

/** A writer saves its checkpoint after a line that it has just written, so after an intact one. */
async function checkpointOf(lines: readonly string[], at: number, options: CheckpointOptions = {}): Promise<string[]> {
  const { state } = await SessionReader.open(new TextLog(lines.slice(0, at)), { whole: true })
  return endsIntact(state) ? piecesOf(state, options) : checkpointOf(lines, at - 1, options)
}

function endsIntact({ last, seq, end }: SessionState): boolean {
  return last.seq === seq && last.at + last.size + 1 === end
}

async function whatItSays(reader: SessionReader): Promise<Record<string, unknown>> {
  const session = sessionOn(reader)
  const { state } = reader
  const { leaf, seq, end, term, run, totals, permissions } = state
  return {
    leaf: leaf?.id ?? null,
    context: await session.getContext(),
    queue: session.inbox,
    labels: Object.fromEntries(session.getLabels()),
    permissions: permissions.pending,
    grants: permissions.grants,
    mode: session.permissionMode,
    modeReason: session.permissionModeReason,
    name: session.name,
    rest: { seq, end, term, run, totals: totals.toCheckpoint(), head: session.head },
  }
}

/** A log made of lines of text. */
class TextLog implements ReadableLog {
  readonly #lines: StoredLine[] = []
  readonly #checkpoint: readonly string[]
  readonly localFolder = undefined
  /** How many pieces of the checkpoint each call returned. */
  readonly loaded: number[] = []

  constructor(lines: readonly string[], checkpoint: readonly string[] = []) {
    this.#checkpoint = checkpoint
    let at = 0
    for (const line of lines) {
      const bytes = new TextEncoder().encode(line)
      const next = at + bytes.length + 1
      this.#lines.push({ at, size: bytes.length, next, bytes })
      at = next
    }
  }

  async *lines(from: number): AsyncIterable<StoredLine[]> {
    yield this.#lines.filter(({ at }) => at >= from)
  }

  async readAt(positions: readonly Position[]): Promise<Uint8Array[]> {
    return positions.map(({ at, size }) => {
      const line = this.#lines.findLast((each) => each.at <= at)
      return line ? line.bytes.subarray(at - line.at, at - line.at + size) : new Uint8Array()
    })
  }

  async loadCheckpoint({ isBrief }: { isBrief?: boolean } = {}): Promise<string[]> {
    const pieces = this.#checkpoint.slice(0, isBrief ? 1 : undefined)
    this.loaded.push(pieces.length)
    return pieces
  }

  async seek(): Promise<number | undefined> {
    return 0
  }

  async unfinishedBytes(): Promise<number> {
    return 0
  }

  async changed(): Promise<void> {}

  async getBlob(): Promise<Uint8Array | undefined> {
    return undefined
  }

  async close(): Promise<void> {}
}

function sessionOn(reader: SessionReader): Session {
  const nothing = async (): Promise<undefined> => undefined
  return new Session({ id: 's', reader, copy: async () => '', completeCopy: nothing, release: nothing })
}
