import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { SessionError, type SessionErrorCode } from '../errors.ts'
import type { Position } from '../line/line.ts'
import { sealLine, type SealedLine } from '../line/seal-line.ts'
import { localScope, type AppendResult, type Claim, type LogStore, type WritableLog } from '../log/log-store.ts'
import type { CheckpointPieces, ReadableLog, Scope } from '../log/log-store.ts'
import { SessionStore } from '../store/session-store.ts'
import { settledWithin } from '../util/deadline.ts'
import { said, user } from './builders.ts'
import { changedPort } from './changed-port.ts'

/** A store, and the operations that the suite needs. */
export interface StoreUnderTest {
  store: SessionStore
  /** The port of the store. */
  port: LogStore
  /** A second store on the same sessions, as a restarted process opens it. */
  reopen: () => Promise<SessionStore>
  /** Lets a second writer append to a session that is held. */
  writeBehindBack: (sessionId: string) => Promise<void>
  close: () => Promise<void>
}

export type It = (title: string, body: (given: StoreUnderTest) => Promise<void>) => void

/** What a store promises to the code above it, call by call. */
export const portParts = [fencing, claims, batches, reads, waiting, places, tenants, derivedData, outcomes]

function fencing(it: It): void {
  it('a batch is rejected unless it names the term of the writer', async ({ port }) => {
    const log = await create(port)
    const term = log.term ?? 1
    assert.equal((await append(log, [line(2)], { term, head: 1 })).type, 'appended')
    for (const wrong of [term - 1, term + 1]) {
      assert.equal((await append(log, [line(3)], { term: wrong, head: 2 })).type, 'fenced')
    }
    assert.deepEqual(await seqsOf(log), [1, 2])
    assert.equal((await append(log, [line(3)], { term, head: 2 })).type, 'appended')
    await log.close()
  })

  it('a batch is rejected unless it names the last line, and none of its lines is stored', async ({ port }) => {
    const log = await create(port)
    await appendLines(log, { from: 2, count: 3 })
    for (const wrong of [0, 3, 5]) {
      const result = await append(log, [line(wrong + 1), line(wrong + 2)], { term: log.term ?? 1, head: wrong })
      assert.equal(result.type, 'fenced')
    }
    assert.deepEqual(await seqsOf(log), [1, 2, 3, 4])
    await log.close()
  })

  it('of two batches for the same place one is stored completely, and the other one not at all', async ({ port }) => {
    const log = await create(port)
    const expected = { term: log.term ?? 1, head: 1 }
    const results = await Promise.all([
      append(log, [line(2, 'a'), line(3, 'a')], expected),
      append(log, [line(2, 'b'), line(3, 'b'), line(4, 'b')], expected),
    ])
    const stored = results.findIndex(({ type }) => type === 'appended')
    assert.deepEqual(results.map(({ type }) => type).toSorted(), ['appended', 'fenced'])
    const text = (await textsOf(log)).slice(1)
    const wanted = stored === 0 ? [line(2, 'a'), line(3, 'a')] : [line(2, 'b'), line(3, 'b'), line(4, 'b')]
    assert.deepEqual(
      text,
      wanted.map((each) => each.text),
    )
    await log.close()
  })

  it('after a reclaim the writer goes on, and batches of its earlier term are rejected', async ({ port }) => {
    const log = await create(port)
    const before = log.term ?? 1
    await append(log, [line(2)], { term: before, head: 1 })
    const claim = await log.reclaim()
    assert.equal(claim.type, 'claimed')
    assert.notEqual(log.lost?.aborted, true)
    const after = log.term ?? before + 1
    assert.ok(after > before)
    assert.equal((await append(log, [line(3)], { term: after, head: 2 })).type, 'appended')
    assert.equal((await append(log, [line(4)], { term: before, head: 3 })).type, 'fenced')
    assert.deepEqual(await seqsOf(log), [1, 2, 3])
    await log.close()
  })
}

function claims(it: It): void {
  it('of racing claims one succeeds, and the others name an owner', async ({ store, port, reopen }) => {
    await (await create(port)).close()
    const racing = await Promise.all(Array.from({ length: 8 }, () => port.claim(localScope, 's')))
    const won = racing.filter((each) => each.type === 'claimed')
    assert.equal(won.length, 1)
    for (const each of racing) if (each.type === 'owned') assert.notEqual(each.owner.reason, '')
    for (const other of [store, await reopen()]) {
      await using session = await other.open('s')
      assert.notEqual(session.owner, undefined)
    }
    for (const { log } of won) await log.close()
    const again = claimed(await port.claim(localScope, 's'))
    assert.ok((again.term ?? 2) > (won[0]?.log.term ?? 1))
    await again.close()
  })

  it('a takeover without a close stops the earlier writer, and its close frees nothing', async ({ port, reopen }) => {
    const session = await new SessionStore(port).create({ id: 's' })
    await user(session, 'mine')
    const takeover = await port.claim(localScope, 's', { insist: true })
    // With a kernel lock nobody can take over from a living process.
    if (takeover.type === 'owned') {
      await user(session, 'still mine')
      return session.close()
    }
    await rejects(user(session, 'late'), 'fenced')
    await session.close()
    const third = await port.claim(localScope, 's')
    assert.equal(third.type, 'owned')
    await takeover.log.close()
    await using again = await (await reopen()).open('s')
    assert.deepEqual(await said(again), ['user: mine'])
    await user(again, 'next')
  })

  it('a writer that was taken over cannot reclaim', async ({ port }) => {
    const first = await create(port)
    const takeover = await port.claim(localScope, 's', { insist: true })
    if (takeover.type === 'owned') return first.close()
    assert.equal((await first.reclaim()).type, 'owned')
    await appendLines(takeover.log, { from: 2, count: 1 })
    assert.equal((await append(first, [line(3)], { term: first.term ?? 1, head: 2 })).type, 'fenced')
    await first.close()
    await takeover.log.close()
  })

  it('a writer that was taken over is told without asking, and the new writer is not', async ({ port }) => {
    const first = await create(port)
    const takeover = await port.claim(localScope, 's', { insist: true })
    if (takeover.type === 'claimed' && first.lost) {
      const { lost } = first
      const told = new Promise((resolve) => lost.addEventListener('abort', resolve, { once: true }))
      if (!lost.aborted) await settledWithin(told, { ms: 10_000 })
      assert.equal((lost.reason as SessionError | undefined)?.code, 'fenced')
      assert.equal(takeover.log.lost?.aborted, false)
    }
    await first.close()
    if (takeover.type === 'claimed') await takeover.log.close()
  })

  it('takeovers that race have different terms, and only the last one writes', async ({ port }) => {
    const first = await create(port)
    const racing = await Promise.all(Array.from({ length: 5 }, () => port.claim(localScope, 's', { insist: true })))
    const logs = [first, ...racing.flatMap((each) => (each.type === 'claimed' ? [each.log] : []))]
    if (logs.length > 1) assert.equal(new Set(logs.map(({ term }) => term)).size, logs.length)
    const results: AppendResult['type'][] = []
    for (const log of logs) results.push((await append(log, [line(2)], { term: log.term ?? 1, head: 1 })).type)
    assert.equal(results.filter((type) => type === 'appended').length, 1)
    for (const log of logs) await log.close()
  })

  it('a session without a writer names no owner', async ({ port }) => {
    const log = await create(port)
    const reader = await port.open(localScope, 's')
    await log.close()
    assert.equal(await reader.owner?.(), undefined)
    await reader.close()
  })

  it('a session with a writer is neither moved, discarded nor erased, and stays as it was', async ({ port }) => {
    const log = await create(port)
    await rejects(port.discard(localScope, 's'), 'session-owned')
    await rejects(port.move(localScope, 's', 'archive'), 'session-owned')
    await rejects(port.erase(localScope, 's'), 'session-owned')
    assert.equal(await port.placeOf(localScope, 's'), 'active')
    await appendLines(log, { from: 2, count: 1 })
    await log.close()
    await port.move(localScope, 's', 'archive')
    await rejects(port.claim(localScope, 's'), 'session-not-found')
  })
}

function batches(it: It): void {
  it('a batch is stored in order, and its positions lead to its bytes', async ({ port }) => {
    const log = await create(port)
    const lines = Array.from({ length: 40 }, (_, index) => line(index + 2, `Zeile ${index} 漢字 🙂 "\\ \u2028`))
    const positions: Position[] = []
    for (const [from, to] of [
      [0, 1],
      [1, 17],
      [17, 40],
    ] as const) {
      const result = await append(log, lines.slice(from, to), { term: log.term ?? 1, head: from + 1 })
      assert.equal(result.type, 'appended')
      if (result.type === 'appended') positions.push(...result.positions)
    }
    const texts = lines.map(({ text }) => text)
    assert.deepEqual((await textsOf(log)).slice(1), texts)
    const bytes = await log.readAt(positions)
    assert.deepEqual(
      bytes.map((each) => Buffer.from(each).toString()),
      texts,
    )
    assert.deepEqual(
      positions.map(({ size }) => size),
      texts.map((text) => Buffer.byteLength(text)),
    )
    await log.close()
  })

  it('batches of many sessions at once stay apart', async ({ port }) => {
    const names = Array.from({ length: 12 }, (_, index) => `s${index}`)
    const logs = await Promise.all(names.map((name) => create(port, { id: name })))
    await Promise.all(
      logs.map(async (log, index) => {
        for (let seq = 2; seq < 6; seq++) {
          const text = line(seq, `of ${index}`)
          assert.equal((await append(log, [text], { term: log.term ?? 1, head: seq - 1 })).type, 'appended')
        }
      }),
    )
    for (const [index, log] of logs.entries()) {
      const wanted = [2, 3, 4, 5].map((seq) => line(seq, `of ${index}`).text)
      assert.deepEqual((await textsOf(log)).slice(1), wanted)
      await log.close()
    }
  })
}

function reads(it: It): void {
  it('a long log is read to its end, from every line on', async ({ port }) => {
    const log = await create(port)
    const count = 2600
    await appendLines(log, { from: 2, count: count - 1 })
    assert.deepEqual(
      await seqsOf(log),
      Array.from({ length: count }, (_, index) => index + 1),
    )
    for (const seq of [1, 2, 500, 501, 1024, 1025, count]) {
      const at = await log.seek(seq)
      assert.ok(at !== undefined)
      const rest = await seqsOf(log, at)
      assert.deepEqual([rest[0], rest.at(-1), rest.length], [seq, count, count - seq + 1])
    }
    assert.equal(await log.seek(count + 1), undefined)
    assert.equal(await log.unfinishedBytes(), 0)
    await log.close()
  })

  it('lines are read in the requested order, also twice', async ({ port }) => {
    const log = await create(port)
    await appendLines(log, { from: 2, count: 30 })
    const positions: Position[] = []
    for await (const batch of log.lines(0)) positions.push(...batch.map(({ at, size }) => ({ at, size })))
    const wanted = [29, 3, 3, 0, 17]
    const found = await log.readAt(wanted.map((index) => positions[index] as Position))
    assert.deepEqual(
      found.map((bytes) => (JSON.parse(Buffer.from(bytes).toString()) as { seq: number }).seq),
      wanted.map((index) => index + 1),
    )
    assert.deepEqual(await log.readAt([]), [])
    await log.close()
  })

  it('a reader that was open before a line was written reads it', async ({ port }) => {
    const log = await create(port)
    const reader = await port.open(localScope, 's')
    assert.deepEqual(await seqsOf(reader), [1])
    await appendLines(log, { from: 2, count: 2 })
    assert.deepEqual(await seqsOf(reader), [1, 2, 3])
    await reader.close()
    await log.close()
  })
}

function waiting(it: It): void {
  it('a waiting reader is woken by a new line, and by its signal', async ({ port }) => {
    const log = await create(port)
    const reader = await port.open(localScope, 's')
    await seqsOf(reader)
    const woken = reader.changed(new AbortController().signal)
    await appendLines(log, { from: 2, count: 1 })
    await woken
    assert.deepEqual(await seqsOf(reader), [1, 2])
    const stop = new AbortController()
    const stopped = reader.changed(stop.signal)
    stop.abort()
    await stopped
    await reader.changed(stop.signal)
    await reader.close()
    await log.close()
  })

  it('a reader without news keeps waiting', async ({ port }) => {
    const log = await create(port, { id: 'quiet' })
    const other = await create(port, { id: 'other' })
    const reader = await port.open(localScope, 'quiet')
    await seqsOf(reader)
    const stop = new AbortController()
    let isWoken = false
    const woken = reader.changed(stop.signal).then(() => (isWoken = true))
    await appendLines(other, { from: 2, count: 3 })
    await seqsOf(other)
    assert.equal(isWoken, false)
    stop.abort()
    await woken
    await reader.close()
    await other.close()
    await log.close()
  })
}

function places(it: It): void {
  it('a session is in one place, and its id is taken in all of them', async ({ port }) => {
    await (await create(port)).close()
    assert.equal(await port.placeOf(localScope, 'nowhere'), undefined)
    for (const place of ['archive', 'trash', 'active', 'active'] as const) {
      await port.move(localScope, 's', place)
      assert.equal(await port.placeOf(localScope, 's'), place)
      await rejects(port.create(localScope, 's', header('s')), 'session-exists')
      for (const each of ['active', 'archive', 'trash'] as const) {
        if (each === place) await (await port.open(localScope, 's', each)).close()
        else await rejects(port.open(localScope, 's', each), 'session-not-found')
      }
      if (place !== 'active') await rejects(port.open(localScope, 's'), 'session-not-found')
    }
    await rejects(port.move(localScope, 'nowhere', 'trash'), 'session-not-found')
  })

  it('a discarded session leaves nothing behind, and its id is free', async ({ port }) => {
    for (const remove of ['discard', 'erase'] as const) {
      const log = await create(port)
      await appendLines(log, { from: 2, count: 2 })
      const { sha256 } = await log.putBlob(new Uint8Array([1, 2]))
      await log.saveDerived({ checkpoint: piecesOf('of an earlier session', 'and its second piece') })
      await log.close()
      await port[remove](localScope, 's')
      assert.equal(await port.placeOf(localScope, 's'), undefined)
      await rejects(port.claim(localScope, 's'), 'session-not-found')
      const again = await create(port)
      assert.deepEqual(await seqsOf(again), [1])
      assert.equal(await again.getBlob(sha256), undefined)
      assert.deepEqual(await again.loadCheckpoint(), [])
      await appendLines(again, { from: 2, count: 1 })
      await again.close()
      await port.erase(localScope, 's')
    }
  })

  it('a writer of an erased session writes nothing into its successor', async ({ port }) => {
    const old = await create(port)
    const takeover = await port.claim(localScope, 's', { insist: true })
    if (takeover.type === 'owned') return old.close()
    await takeover.log.close()
    await port.erase(localScope, 's')
    const again = await create(port)
    const late = await append(old, [line(2, 'late')], { term: old.term ?? 1, head: 1 })
    assert.notEqual(late.type, 'appended')
    await old.close()
    assert.equal((await port.claim(localScope, 's')).type, 'owned')
    assert.deepEqual(await seqsOf(again), [1])
    await again.close()
  })
}

function tenants(it: It): void {
  it('no call reaches a session of another scope', async ({ port }) => {
    const log = await create(port)
    const { sha256 } = await log.putBlob(new Uint8Array([7]))
    await log.saveDerived({ checkpoint: piecesOf('mine') })
    await log.close()
    const other: Scope = { tenant: 'other' }
    assert.equal(await port.placeOf(other, 's'), undefined)
    await rejects(port.open(other, 's'), 'session-not-found')
    await rejects(port.claim(other, 's'), 'session-not-found')
    await rejects(port.move(other, 's', 'trash'), 'session-not-found')
    await rejects(port.erase(other, 's'), 'session-not-found')
    await port.discard(other, 's').catch(() => undefined)
    assert.equal(await port.placeOf(localScope, 's'), 'active')
    const theirs = await create(port, { scope: other })
    assert.equal(await theirs.getBlob(sha256), undefined)
    assert.deepEqual(await theirs.loadCheckpoint(), [])
    await appendLines(theirs, { from: 2, count: 2 })
    await theirs.close()
    await port.move(other, 's', 'archive')
    assert.equal(await port.placeOf(localScope, 's'), 'active')
    const mine = await port.open(localScope, 's')
    assert.deepEqual(await seqsOf(mine), [1])
    await mine.close()
    await port.erase(other, 's')
    assert.equal(await port.placeOf(localScope, 's'), 'active')
  })
}

function derivedData(it: It): void {
  it('a blob has the bytes that were given, in its own session alone', async ({ port }) => {
    const log = await create(port, { id: 'a' })
    const bytes = new Uint8Array([0, 1, 127, 128, 255, 10])
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    assert.deepEqual(await log.putBlob(bytes), { sha256, size: 6 })
    bytes.fill(9)
    assert.deepEqual(Buffer.from((await log.getBlob(sha256)) ?? []), Buffer.from([0, 1, 127, 128, 255, 10]))
    const empty = await log.putBlob(new Uint8Array())
    assert.equal((await log.getBlob(empty.sha256))?.length, 0)
    await log.close()
    const other = await create(port, { id: 'b' })
    assert.equal(await other.getBlob(sha256), undefined)
    await other.close()
  })

  it('a checkpoint is returned as it was saved last, for its own session alone', async ({ port }) => {
    const log = await create(port, { id: 'a' })
    assert.deepEqual(await log.loadCheckpoint(), [])
    await log.saveDerived({ checkpoint: piecesOf('old') })
    const content = 'Prüfpunkt 漢字\n'.repeat(20_000)
    await log.saveDerived({ checkpoint: piecesOf(content) })
    await log.saveDerived({ queue: '{}' })
    assert.deepEqual(await log.loadCheckpoint(), [content])
    await log.close()
    const reader = await port.open(localScope, 'a')
    assert.deepEqual(await reader.loadCheckpoint(), [content])
    await reader.close()
    const other = await create(port, { id: 'b' })
    assert.deepEqual(await other.loadCheckpoint(), [])
    await other.close()
  })

  it('a checkpoint keeps the pieces that did not change, in order, and drops those that it no longer has', async ({
    port,
  }) => {
    const log = await create(port)
    const contents = Array.from({ length: 12 }, (_, index) => `piece ${index} – 漢字\n`)
    await log.saveDerived({ checkpoint: piecesOf(...contents) })
    assert.deepEqual(await log.loadCheckpoint(), contents)
    const changed = new Map([
      [0, 'first'],
      [12, 'new'],
      [2, 'other'],
    ])
    await log.saveDerived({ checkpoint: { count: 13, changed } })
    const grown = [...contents, 'new'].with(0, 'first').with(2, 'other')
    assert.deepEqual(await log.loadCheckpoint(), grown)
    const brief = await log.loadCheckpoint({ isBrief: true })
    assert.deepEqual(brief, grown.slice(0, brief.length))
    assert.ok(brief.length > 0)
    await log.close()
    const again = claimed(await port.claim(localScope, 's'))
    await again.saveDerived({ checkpoint: { count: 3, changed: new Map([[0, 'short']]) } })
    assert.deepEqual(await again.loadCheckpoint(), ['short', ...grown.slice(1, 3)])
    await again.saveDerived({
      checkpoint: {
        count: 4,
        changed: new Map([
          [0, 'long'],
          [3, 'last'],
        ]),
      },
    })
    assert.deepEqual(await again.loadCheckpoint(), ['long', ...grown.slice(1, 3), 'last'])
    await again.close()
  })

  it('a turn of a long session changes few pieces of its checkpoint, from which it opens', async ({ port }) => {
    const saves: CheckpointPieces[] = []
    const counted = changedPort(port, {
      log: (log) => ({
        saveDerived: async (data) => {
          if (data.checkpoint) saves.push(data.checkpoint)
          await log.saveDerived(data)
        },
      }),
    })
    const store = new SessionStore(counted)
    await port.create(localScope, 's', header('s'))
    const log = claimed(await port.claim(localScope, 's'))
    await appendLines(log, { from: 2, count: 4000 }, chained)
    await log.close()
    const first = await store.open('s')
    await user(first, 'one')
    await first.close()
    const [whole] = saves.splice(0)
    assert.ok(whole && whole.count > 3 && whole.changed.size === whole.count)
    const second = await store.open('s')
    await user(second, 'two')
    await second.close()
    const [part] = saves.splice(0)
    assert.deepEqual([part?.count, [...(part?.changed.keys() ?? [])]], [whole.count, [0]])
    const third = await store.open('s', { readOnly: true })
    assert.deepEqual((await said(third)).slice(-2), ['user: one', 'user: two'])
    assert.equal((await third.getContext()).messages.length, 4002)
    await third.close()
  })
}

function outcomes(it: It): void {
  it('an append with an unknown outcome that took effect is acknowledged once', async ({ port, reopen }) => {
    const { faulty, lose } = losingAnswers(port)
    const session = await new SessionStore(faulty).create({ id: 's' })
    await user(session, 'before')
    lose('answer')
    await user(session, 'in doubt')
    await user(session, 'after')
    await session.close()
    await using again = await (await reopen()).open('s')
    assert.deepEqual(await said(again), ['user: before', 'user: in doubt', 'user: after'])
  })

  it('an append with an unknown outcome that took no effect is repeated', async ({ port, reopen }) => {
    const { faulty, lose } = losingAnswers(port)
    const session = await new SessionStore(faulty).create({ id: 's' })
    await user(session, 'before')
    lose('request')
    await user(session, 'in doubt')
    await user(session, 'after')
    await session.close()
    await using again = await (await reopen()).open('s')
    assert.deepEqual(await said(again), ['user: before', 'user: in doubt', 'user: after'])
  })

  it('a session stays the same if every call of the store takes a while', async ({ port, reopen }) => {
    const store = new SessionStore(slow(port))
    const session = await store.create({ name: 'Slow', cwd: '/slow' })
    const words = Array.from({ length: 30 }, (_, index) => `word${index}`)
    const announced: number[] = []
    session.subscribe(({ seq }) => announced.push(seq))
    await Promise.all(words.map((word) => user(session, word)))
    assert.deepEqual(
      announced,
      announced.map((_, index) => (announced[0] as number) + index),
    )
    const [first, second] = await Promise.all([store.open(session.id), store.open(session.id)])
    await Promise.all([user(first, 'a'), user(second, 'b'), session.putBlob(new Uint8Array(300_000))])
    for (const each of [session, first, second]) await each.close()
    assert.equal((await store.list({ cwd: '/slow' })).sessions[0]?.messageCount, 32)
    assert.equal((await store.search({ text: 'word17' })).length, 1)
    await using again = await (await reopen()).open(session.id)
    assert.deepEqual(
      await said(again),
      [...words, 'a', 'b'].map((word) => `user: ${word}`),
    )
  })
}

/** Loses one answer of `append`, after or before the store has done what it says. */
function losingAnswers(port: LogStore): { faulty: LogStore; lose: (what: 'request' | 'answer') => void } {
  let lost: 'request' | 'answer' | undefined
  const unknown: AppendResult = { type: 'unknown', cause: new Error('The connection was lost.') }
  const faulty = changedPort(port, {
    log: (log) => ({
      append: async (lines, options) => {
        const what = lost
        lost = undefined
        if (what === 'request') return unknown
        const result = await log.append(lines, options)
        return what === 'answer' ? unknown : result
      },
    }),
  })
  return { faulty, lose: (what) => (lost = what) }
}

/** Lets other tasks run before and after every call. */
function slow(port: LogStore): LogStore {
  const pause = async (): Promise<void> => {
    for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate)
  }
  const later =
    <Given extends unknown[], Result>(call: (...given: Given) => Result | Promise<Result>) =>
    async (...given: Given): Promise<Result> => {
      await pause()
      const result = await call(...given)
      await pause()
      return result
    }
  return changedPort(port, {
    store: (store) => ({
      create: later(store.create.bind(store)),
      open: later(store.open.bind(store)),
      claim: later(store.claim.bind(store)),
      list: later(store.list.bind(store)),
      search: later(store.search.bind(store)),
      move: later(store.move.bind(store)),
    }),
    log: (log) => ({
      append: later(log.append.bind(log)),
      readAt: later(log.readAt.bind(log)),
      seek: later(log.seek.bind(log)),
      putBlob: later(log.putBlob.bind(log)),
      getBlob: later(log.getBlob.bind(log)),
      saveDerived: later(log.saveDerived.bind(log)),
      loadCheckpoint: later(log.loadCheckpoint.bind(log)),
      close: later(log.close.bind(log)),
    }),
  })
}

async function create(port: LogStore, { id = 's', scope = localScope } = {}): Promise<WritableLog> {
  await port.create(scope, id, header(id))
  return claimed(await port.claim(scope, id))
}

function claimed(claim: Claim): WritableLog {
  assert.ok(claim.type === 'claimed')
  return claim.log
}

function piecesOf(...contents: string[]): CheckpointPieces {
  return { count: contents.length, changed: new Map(contents.entries()) }
}

function header(id: string): SealedLine {
  return sealLine({ type: 'session', id, version: 1, timestamp: '2026-01-01T00:00:00.000Z' }, 1)
}

function line(seq: number, words = ''): SealedLine {
  return sealLine({ type: 'custom', id: `e${seq}`, parent_id: null, custom: { words } }, seq)
}

async function append(
  log: WritableLog,
  lines: readonly SealedLine[],
  options: { term: number; head: number },
): Promise<AppendResult> {
  return log.append(lines, { ...options, durability: 'durable' })
}

/** A message after the one before. */
function chained(seq: number): SealedLine {
  const message = { role: 'user', content: [{ type: 'text', text: { content: `message ${seq}` } }] }
  return sealLine({ type: 'message', id: `e${seq}`, parent_id: seq === 2 ? null : `e${seq - 1}`, message }, seq)
}

async function appendLines(
  log: WritableLog,
  { from, count }: { from: number; count: number },
  make: (seq: number) => SealedLine = line,
): Promise<void> {
  for (let seq = from; seq < from + count; seq += 250) {
    const some = Array.from({ length: Math.min(250, from + count - seq) }, (_, index) => make(seq + index))
    assert.equal((await append(log, some, { term: log.term ?? 1, head: seq - 1 })).type, 'appended')
  }
}

async function textsOf(log: ReadableLog, from = 0): Promise<string[]> {
  const texts: string[] = []
  for await (const batch of log.lines(from)) texts.push(...batch.map(({ bytes }) => Buffer.from(bytes).toString()))
  return texts
}

async function seqsOf(log: ReadableLog, from = 0): Promise<number[]> {
  const seqs: number[] = []
  for await (const batch of log.lines(from)) seqs.push(...batch.map(seqOf))
  return seqs
}

function seqOf({ bytes }: { bytes: Uint8Array }): number {
  return (JSON.parse(Buffer.from(bytes).toString()) as { seq: number }).seq
}

export async function rejects(promise: Promise<unknown>, code: SessionErrorCode): Promise<void> {
  await assert.rejects(promise, (error) => error instanceof SessionError && error.code === code)
}
