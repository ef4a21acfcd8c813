import { describe, expect, test } from 'vitest'
import { SessionError } from '../errors.ts'
import { GroupCommit, type CommitHost, type Committed, type Pending, type UnsettledLine } from './group-commit.ts'
import type { AppendResult, Durability, LinePosition, WritableLog } from './log-store.ts'
import type { SealedLine } from '../line/seal-line.ts'

describe('group commit', () => {
  test('appends of one tick are written in one batch, in order', async () => {
    const { commit, sent } = setUp()
    const lines = await Promise.all([commit.append(line('a')), commit.append(line('b')), commit.append(line('c'))])
    expect(sent).toEqual([['writer', 'a', 'b', 'c']])
    expect(lines.map(({ sealed }) => sealed.seq)).toEqual([2, 3, 4])
  })

  test('appends that arrive during a write share the next batch', async () => {
    const gate = Promise.withResolvers<void>()
    const { commit, sent } = setUp({ before: () => gate.promise })
    const first = commit.append(line('a'))
    await Promise.resolve().then(() => undefined)
    const rest = [commit.append(line('b')), commit.append(line('c'))]
    gate.resolve()
    await Promise.all([first, ...rest])
    expect(sent).toEqual([
      ['writer', 'a'],
      ['b', 'c'],
    ])
  })

  test('a batch holds no more than 256 lines and about 4 MB', async () => {
    const { commit, sent } = setUp()
    await Promise.all(Array.from({ length: 300 }, (_, index) => commit.append(line(`l${index}`))))
    expect(sent.map((batch) => batch.length)).toEqual([257, 44])
    const large = 'x'.repeat(3 * 1024 * 1024)
    await Promise.all([
      commit.append(line('one', large)),
      commit.append(line('two', large)),
      commit.append(line('three')),
    ])
    expect(sent.slice(2)).toEqual([['one'], ['two', 'three']])
    const huge = 'x'.repeat(5 * 1024 * 1024)
    await Promise.all([commit.append(line('huge', huge)), commit.append(line('after'))])
    expect(sent.slice(4)).toEqual([['huge'], ['after']])
  })

  test('a failed batch rejects everything behind it, and the next append retries', async () => {
    let isFull = true
    const { commit, sent, rejected } = setUp({
      result: () => (isFull ? { type: 'failed', cause: new Error('ENOSPC'), final: false } : undefined),
    })
    const outcomes = await Promise.allSettled([commit.append(line('a')), commit.append(line('b'))])
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(rejected).toEqual([['storage-failed', false]])
    isFull = false
    await commit.append(line('c'))
    expect(sent.at(-1)).toEqual(['writer', 'c'])
  })

  test.each<[AppendResult, string]>([
    [{ type: 'fenced', reason: 'term 9' }, 'fenced'],
    [{ type: 'failed', cause: 'twice', final: true }, 'storage-failed'],
  ])('%j ends the writer', async (result, code) => {
    const { commit, rejected } = setUp({ result: () => result })
    await expect(commit.append(line('a'))).rejects.toMatchObject({ code })
    expect(rejected).toEqual([[code, true]])
  })

  test('an unknown outcome is settled by reading: written lines are acknowledged', async () => {
    const { commit, committed } = setUp({
      result: () => ({ type: 'unknown', cause: new Error('connection lost') }),
      settle: (lines) => lines.map((_, index) => ({ at: index * 10, size: 9, next: index * 10 + 10 })),
    })
    const { position } = await commit.append(line('a'))
    expect(position).toEqual({ at: 10, size: 9, next: 20 })
    expect(committed).toEqual(['writer', 'a'])
  })

  test('an unknown outcome is settled by reading: missing lines are sent again, with the term of the new claim', async () => {
    let isLost = true
    const { commit, sent, committed } = setUp({
      result: () => (isLost ? { type: 'unknown', cause: new Error('connection lost') } : undefined),
      settle: () => void (isLost = false),
    })
    const lines = await Promise.all([commit.append(line('a')), commit.append(line('b'))])
    expect(sent).toEqual([
      ['writer', 'a', 'b'],
      ['writer', 'a', 'b'],
    ])
    expect(lines.map(({ sealed }) => sealed.seq)).toEqual([2, 3])
    expect(committed).toEqual(['writer', 'a', 'b'])
  })

  test('a failure that passes is waited for, and later lines stay behind it', async () => {
    let failures = 3
    const { commit, sent, committed } = setUp({
      result: () =>
        failures-- > 0 ? { type: 'failed', cause: 'unreachable', final: false, isPassing: true } : undefined,
    })
    await Promise.all([commit.append(line('a')), Promise.resolve().then(() => commit.append(line('b')))])
    expect(sent.slice(0, 4)).toEqual(Array.from({ length: 4 }, () => ['writer', 'a']))
    expect(committed).toEqual(['writer', 'a', 'b'])
  })

  test.each<AppendResult>([
    { type: 'unknown', cause: new Error('connection lost') },
    { type: 'failed', cause: new Error('connection lost'), final: false, isPassing: true },
  ])('after a minute of %j the lines are rejected, and the next append tries again', async (result) => {
    let isDown = true
    const { commit, committed, waited, rejected } = setUp({ result: () => (isDown ? result : undefined) })
    await expect(commit.append(line('a'))).rejects.toThrow(/connection lost/)
    expect([waited() > 50_000, waited() <= 60_000]).toEqual([true, true])
    expect(rejected).toEqual([['storage-failed', false]])
    isDown = false
    await commit.append(line('b'))
    expect(committed).toEqual(['writer', 'b'])
  })

  test('a synchronous store is not awaited if lines need only be accepted', async () => {
    const { commit, committed } = setUp({ durability: 'accepted' })
    const done = commit.append(line('a'))
    expect(committed).toEqual(['writer', 'a'])
    await done
  })

  test.each<Durability>(['accepted', 'durable'])('a store that throws fails its batch (%s)', async (durability) => {
    const { commit } = setUp({
      durability,
      result: () => {
        throw new Error('broken')
      },
    })
    await expect(commit.append(line('a'))).rejects.toBeInstanceOf(SessionError)
  })

  test('a store that rejects and an unknown outcome that cannot be settled fail their batch', async () => {
    const { commit } = setUp({ before: () => Promise.reject(new Error('gone')) })
    await expect(commit.append(line('a'))).rejects.toThrow(/gone/)
    const other = setUp({
      durability: 'accepted',
      result: () => ({ type: 'unknown', cause: 'cut' }),
      settle: () => {
        throw new SessionError('fenced', 'another writer')
      },
    })
    await expect(other.commit.append(line('a'))).rejects.toMatchObject({ code: 'fenced' })
  })

  test('a host that throws in expectation fails the batch', async () => {
    const { commit } = setUp({
      expectation: () => {
        throw new Error('no head')
      },
    })
    await expect(commit.append(line('a'))).rejects.toThrow(/no head/)
  })

  test('a listener may append while lines are applied, and its line comes after them', async () => {
    const more: Promise<Committed>[] = []
    const { commit, committed } = setUp({
      durability: 'accepted',
      onCommit: (id) => {
        if (id === 'a') more.push(commit.append(line('from listener')))
      },
    })
    await commit.append(line('a'))
    await Promise.all(more)
    expect(committed).toEqual(['writer', 'a', 'from listener'])
  })

  test('idle waits for all pending lines', async () => {
    const gate = Promise.withResolvers<void>()
    const { commit, committed } = setUp({ before: () => gate.promise })
    void commit.append(line('a'))
    const idle = commit.idle()
    gate.resolve()
    await idle
    expect(committed).toEqual(['writer', 'a'])
  })
})

interface Setup {
  durability?: Durability
  before?: () => Promise<void>
  result?: () => AppendResult | undefined
  settle?: (lines: readonly UnsettledLine[]) => LinePosition[] | undefined
  expectation?: CommitHost['expectation']
  onCommit?: (id: string) => void
}

function setUp(options: Setup = {}) {
  const sent: string[][] = []
  const committed: string[] = []
  const rejected: [string, boolean][] = []
  let head = 0
  let hasAnnounced = false
  const answer = (lines: readonly SealedLine[]): AppendResult => {
    sent.push(lines.map(({ text }) => (JSON.parse(text) as { id: string }).id))
    return options.result?.() ?? { type: 'appended', positions: lines.map((_, at) => ({ at, size: 1, next: at + 1 })) }
  }
  const append: WritableLog['append'] = (lines) =>
    options.durability === 'accepted' ? answer(lines) : Promise.resolve(options.before?.()).then(() => answer(lines))
  const host: CommitHost = {
    expectation: options.expectation ?? (() => ({ term: 1, head })),
    preamble: () => (hasAnnounced ? [] : [{ type: 'writer', id: 'writer' }]),
    committed: (lines) => {
      hasAnnounced = true
      head += lines.length
      committed.push(...lines.map((each) => each.line.id))
      for (const each of lines) options.onCommit?.(each.line.id)
    },
    rejected: (error, { isFinal }) => rejected.push([error.code, isFinal]),
    settleUnknown: async (lines) => options.settle?.(lines),
    waiting: () => undefined,
  }
  let nowMs = 0
  const clock = { now: () => nowMs, wait: async (ms: number) => void (nowMs += ms) }
  const commit = new GroupCommit({ append } as WritableLog, host, {
    durability: options.durability ?? 'durable',
    clock,
  })
  return { commit, sent, committed, rejected, waited: () => nowMs }
}

function line(id: string, words = ''): Pending {
  const disk = { type: 'message', id, parent_id: null, words }
  return { line: disk, body: JSON.stringify(disk) }
}
