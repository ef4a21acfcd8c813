import type { RestQueries, RestResults } from '@tapetree/client/types'
import { memoryStore, text, type Session } from '@tapetree/session'
import { fromDisk, type DiskLine, type Line } from '@tapetree/session/format'
import { emptyTranscript, reduceTranscript, type TranscriptItem } from '@tapetree/session/view'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { History, type Tail } from './history.ts'

test('what is loaded joins the newest entries without a gap or a double, on any tree and in any order', async () => {
  const step = fc.record({ kind: fc.constantFrom('say', 'call', 'name', 'back'), back: fc.nat(6) })
  const move = fc.record({ kind: fc.constantFrom('up', 'down', 'jump', 'entry'), at: fc.nat(300) })
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 30, maxLength: 300 }),
      fc.array(move, { minLength: 1, maxLength: 12 }),
      fc.nat(40),
      async (steps, moves, tailLength) => {
        const session = await sessionOf(steps)
        const { ids, tail, items } = await newestOf(session, tailLength)
        if (!tail) return
        const history = new History(await readerOf(session))
        for (const { kind, at } of moves) {
          if (kind === 'up') await history.extendUp(tail)
          else if (kind === 'down') await history.extendDown(tail)
          else if (kind === 'jump') await history.goTo({ seq: 1 + (at % tail.seq) }, tail)
          else await history.goTo({ entryId: ids[at % ids.length] ?? '' }, tail)
          const excerpt = history.excerpt(tail)
          if (!excerpt?.isJoined) continue
          const above = items.filter(({ seq }) => seq < tail.seq)
          expect(excerpt.items.map(told)).toEqual(above.slice(above.length - excerpt.items.length).map(told))
          if (excerpt.from === 1) expect(excerpt.items).toHaveLength(above.length)
        }
        for (let count = 0; count < 10 && history.excerpt(tail)?.isJoined !== true; count++)
          await history.goTo({ seq: tail.seq }, tail)
        while ((history.excerpt(tail)?.from ?? 2) > 1) await history.extendUp(tail)
        expect(history.excerpt(tail)?.items.map(told)).toEqual(items.filter(({ seq }) => seq < tail.seq).map(told))
      },
    ),
    { numRuns: 25 },
  )
})

test('an entry of another branch is shown with its branch, and says so', async () => {
  const session = await memoryStore().create({})
  const first = await session.appendMessage('user', [text('one')])
  const left = await session.appendMessage('assistant', [text('left')])
  await session.branch(first)
  for (let index = 0; index < 10; index++) await session.appendMessage('assistant', [text(`right ${index}`)])
  const { tail } = await newestOf(session, 3)
  if (!tail) throw new Error('the session is too short')
  const history = new History(await readerOf(session))
  await history.goTo({ entryId: left }, tail)
  expect(history.excerpt(tail)).toMatchObject({
    isOtherBranch: true,
    isJoined: false,
    items: [{ id: first }, { id: left }],
  })
})

test('a long past is dropped at the end that the user scrolls away from', async () => {
  const session = await sessionOf(Array.from({ length: 1800 }, () => ({ kind: 'say' as const, back: 0 })))
  const { tail, items } = await newestOf(session, 20)
  if (!tail) throw new Error('the session is too short')
  const history = new History(await readerOf(session))
  for (let count = 0; count < 15; count++) await history.extendUp(tail)
  const up = history.excerpt(tail)
  expect(up?.isJoined).toBe(false)
  expect(up?.items.length).toBeLessThanOrEqual(1200)
  while (history.excerpt(tail)?.isJoined === false) await history.extendDown(tail)
  const down = history.excerpt(tail)
  expect(down?.items.length).toBeLessThanOrEqual(1200)
  expect(down?.items.at(-1)?.id).toBe(items.findLast(({ seq }) => seq < tail.seq)?.id)
})

async function sessionOf(steps: readonly { kind: 'say' | 'call' | 'name' | 'back'; back: number }[]): Promise<Session> {
  const session = await memoryStore().create({})
  const ids: string[] = []
  for (const [index, { kind, back }] of steps.entries()) {
    if (kind === 'say') ids.push(await session.appendMessage('user', [text(`text ${index}`)]))
    if (kind === 'name') await session.appendSessionInfo(`name ${index}`)
    const target = ids.at(-1 - back)
    if (kind === 'back' && target !== undefined) await session.branch(target)
    if (kind === 'call') {
      const id = `c${index}`
      await session.appendMessage('assistant', [{ type: 'tool_use', toolUse: { id, name: 'bash', input: {} } }])
      const result = { type: 'tool_result' as const, toolResult: { toolUseId: id, content: 'x' } }
      ids.push(await session.appendMessage('tool', [result]))
    }
  }
  return session
}

/** All items of the path, and where a page that has loaded the newest of them begins. */
async function newestOf(
  session: Session,
  count: number,
): Promise<{ ids: string[]; tail: Tail | undefined; items: readonly TranscriptItem[] }> {
  let transcript = emptyTranscript()
  const ids: string[] = []
  for (const line of await linesOf(session)) {
    transcript = reduceTranscript(transcript, { type: 'line', line })
    if ('parentId' in line) ids.push(line.id)
  }
  const path = []
  for (let node = transcript.path.leaf; node !== null; node = node.parent) path.push(node)
  // Results stay with their call.
  let index = Math.min(count, path.length - 1)
  while (index < path.length - 1 && (path[index]?.results.length ?? 0) > 0) index++
  const first = path[index]
  const parent = first?.parent
  const tail = first && parent ? { seq: first.seq, parentId: parent.id } : undefined
  return { ids, tail, items: transcript.path.items.slice() }
}

async function linesOf(session: Session): Promise<Line[]> {
  const lines: Line[] = []
  for await (const line of session.lines())
    if (line.type === 'line') lines.push(fromDisk(JSON.parse(line.text) as DiskLine, line.seq))
  return lines
}

/** Answers as the server does. */
async function readerOf(session: Session): Promise<(query: RestQueries['entries']) => Promise<RestResults['entries']>> {
  const all: RestResults['entries']['entries'] = []
  for await (const line of session.lines()) {
    const disk = line.type === 'line' ? (JSON.parse(line.text) as DiskLine) : undefined
    if (disk && 'parent_id' in disk) all.push({ ...disk, seq: line.seq })
  }
  return async ({ seq, entryId, before = 25, after = 25 }) => {
    const place = all.find((each) => each['id'] === entryId)?.seq ?? seq ?? Infinity
    const older = all.filter((each) => each.seq < place)
    const newer = all.filter((each) => each.seq >= place)
    const entries = [...older.slice(Math.max(0, older.length - before)), ...newer.slice(0, after)]
    return {
      entries,
      leafId: session.leafId,
      head: { seq: 0, crc: '' },
      previous: older.length > before ? (entries[0]?.seq ?? place) : null,
      next: newer.length > after ? (entries.at(-1)?.seq ?? place - 1) + 1 : null,
    }
  }
}

function told({ type, id }: TranscriptItem): string {
  return `${type} ${id}`
}
