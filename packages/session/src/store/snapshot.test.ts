import fc from 'fast-check'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { fromDisk } from '../line/codec.ts'
import type { DiskLine, Line } from '../line/line.ts'
import { text, type Content } from '../line/message.ts'
import type { Session } from './session.ts'
import { openFileStore } from '../stores/file/file-store.ts'
import { memoryStore } from '../stores/memory/memory-store.ts'
import { foldOfTranscript, emptyTranscript, reduceTranscript, type Transcript } from '../view/transcript.ts'

type Step =
  | 'prompt'
  | 'answer'
  | 'call'
  | 'start'
  | 'result'
  | 'late result'
  | 'result of an open call'
  | 'run'
  | 'end'
  | 'fail'
  | 'queue'
  | 'hold'
  | 'plan'
  | 'ask'
  | 'label'
  | 'name'
  | 'back'
  | 'attempt'

const steps: Step[] = [
  'prompt',
  'answer',
  'call',
  'start',
  'result',
  'late result',
  'result of an open call',
  'run',
  'end',
  'fail',
  'queue',
  'hold',
  'plan',
  'ask',
  'label',
  'name',
  'back',
  'attempt',
]

/** Calls that stay open for a while are rare among all steps. */
const work: Step[] = ['run', 'call', 'start', 'answer', 'answer', 'result of an open call']
/** A snapshot need not be ready for these: they reach back to what is not part of the open run. */
const later: ReadonlySet<Step> = new Set(['back', 'late result'])

async function take(session: Session, step: Step, number: number): Promise<void> {
  const usage = { inputTokens: number, outputTokens: 1, totalTokens: number + 1 }
  switch (step) {
    case 'prompt':
      await session.appendMessage('user', [text(`prompt ${number}`)])
      return
    case 'answer':
      await session.appendMessage('assistant', [text(`answer ${number}`)], { with: { usage } })
      return
    case 'call':
      await session.appendMessage('assistant', [{ type: 'tool_use', toolUse: { id: 'c', name: 'a', input: {} } }])
      return
    case 'start':
      await session.append({ type: 'tool_start', toolStart: { runId: 'r', callId: 'c', name: 'a' } })
      return
    case 'result':
      if (!(await endsWithCall(session))) return
      await session.appendMessage('tool', [result])
      return
    case 'late result':
      if (await hasOpenCall(session)) await session.appendMessage('tool', [result])
      return
    case 'result of an open call':
      if (await runHasOpenCall(session)) await session.appendMessage('tool', [result])
      return
    case 'run':
      await session.append({ type: 'run_start', runStart: { runId: `r${number}`, leafId: session.leafId } })
      return
    case 'end':
      await session.append({ type: 'run_end', runEnd: { runId: 'r', outcome: number % 2 ? 'completed' : 'failed' } })
      return
    case 'fail':
      await session.append({ type: 'error', error: { message: `broken ${number}`, kind: 'network' } })
      return
    case 'queue':
      await session.submit(`later ${number}`, { delivery: number % 2 ? 'steer' : 'follow-up' })
      return
    case 'hold':
      await session.changeInbox({ action: number % 2 ? 'hold' : 'release' })
      return
    case 'plan':
      await session.append({ type: 'plan', plan: { items: [{ text: `step ${number}`, status: 'pending' }] } })
      return
    case 'ask':
      await session.append({
        type: 'permission_request',
        permissionRequest: { requestId: `q${number}`, tool: 'a', title: 't', options: [] },
      })
      return
    case 'label':
      if (session.leafId !== null) await session.setLabel(session.leafId, `label ${number}`)
      return
    case 'name':
      await session.appendSessionInfo(`name ${number}`)
      return
    case 'back': {
      if (session.openRun) return
      const path = await session.getContextPath()
      await session.branch(path.at(-2)?.id ?? null)
      return
    }
    case 'attempt':
      await session.append({
        type: 'attempt',
        attempt: { runId: 'r', item: `i${number}`, content: [], error: { kind: 'network', message: 'cut' } },
      })
      return
    default:
      step satisfies never
  }
}

const result: Content = { type: 'tool_result', toolResult: { toolUseId: 'c', content: 'x' } }

/** Whether the open run has asked for a call that has no result. */
async function runHasOpenCall(session: Session): Promise<boolean> {
  const { run, path } = await wholeOf(session)
  return [...path.items].some(
    (item) =>
      run &&
      item.seq > run.seq &&
      item.type === 'assistant' &&
      item.parts.some((part) => part.type === 'tool_call' && !part.result),
  )
}

async function wholeOf(session: Session): Promise<Transcript> {
  let whole = emptyTranscript()
  for (const line of await linesOf(session, 0)) whole = reduceTranscript(whole, { type: 'line', line })
  return whole
}

async function hasOpenCall(session: Session): Promise<boolean> {
  const blocks = (await session.getContextPath()).flatMap((entry) =>
    entry.type === 'message' ? entry.message.content.map(({ type }) => type) : [],
  )
  return blocks.lastIndexOf('tool_use') > blocks.lastIndexOf('tool_result')
}

async function endsWithCall(session: Session): Promise<boolean> {
  const last = (await session.getContextPath()).at(-1)
  return last?.type === 'message' && last.message.content.some(({ type }) => type === 'tool_use')
}

async function linesOf(session: Session, after: number): Promise<Line[]> {
  const lines: Line[] = []
  for await (const line of session.lines({ after })) {
    if (line.type === 'line') lines.push(fromDisk(JSON.parse(line.text) as DiskLine, line.seq))
  }
  return lines
}

function shown(state: Transcript, items: number): Record<string, unknown> {
  const { tree: _, finished: __, path, labels, ...rest } = state
  const all = [...path.items].filter(({ type }) => type !== 'gap')
  return { ...rest, labels: new Map(labels), leafId: path.leafId, items: all.slice(all.length - items) }
}

describe('a snapshot', () => {
  test('and the lines after it give the same transcript as the whole log', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(fc.constantFrom(...steps), fc.constantFrom(...work)), { maxLength: 25 }),
        fc.array(fc.oneof(fc.constantFrom(...steps.filter((step) => !later.has(step))), fc.constantFrom(...work)), {
          maxLength: 8,
        }),
        fc.record({
          entries: fc.oneof(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 1, max: 3 })),
          bytes: fc.oneof(fc.integer({ min: 1, max: 6000 }), fc.constant(1_000_000)),
        }),
        async (before, after, options) => {
          const session = await memoryStore().create()
          for (const [index, step] of before.entries()) await take(session, step, index)
          const { lines, ...snapshot } = await session.snapshot(options)
          const parsed = lines.map(({ seq, text: line }) => fromDisk(JSON.parse(line) as DiskLine, seq))
          let begun = reduceTranscript(emptyTranscript(), {
            type: 'snapshot',
            snapshot: { ...snapshot, lines: parsed },
          })
          for (const [index, step] of after.entries()) await take(session, step, 100 + index)
          for (const line of await linesOf(session, snapshot.head.seq))
            begun = reduceTranscript(begun, { type: 'line', line })
          const whole = await wholeOf(session)
          const items = [...begun.path.items].filter(({ type }) => type !== 'gap').length
          expect(shown(begun, items)).toEqual(shown(whole, items))
          await session.close()
        },
      ),
      { numRuns: 1000 },
    )
  })

  test('equals the fold of a transcript that has all lines', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom(...steps), { maxLength: 25 }), async (taken) => {
        const session = await memoryStore().create()
        for (const [index, step] of taken.entries()) await take(session, step, index)
        const { fold } = await session.snapshot({ entries: 1 })
        const own = foldOfTranscript(await wholeOf(session))
        expect({ ...own, labels: new Map(own.labels) }).toEqual({ ...fold, labels: new Map(fold.labels) })
        await session.close()
      }),
      { numRuns: 300 },
    )
  })

  test('has the entry from which readers page back, and null if it has all entries', async () => {
    const session = await memoryStore().create()
    const first = await session.appendMessage('user', [text('one')])
    await session.appendMessage('assistant', [text('two')])
    expect(await session.snapshot({ entries: 2 })).toMatchObject({ before: null, lines: [{ seq: 3 }, { seq: 4 }] })
    expect(await session.snapshot({ entries: 1 })).toMatchObject({ before: session.leafId })
    expect(session.leafId).not.toBe(first)
    await session.close()
  })

  test('limits the newest entries by bytes, but has at least one', async () => {
    const session = await memoryStore().create()
    for (let index = 0; index < 5; index++)
      await session.appendMessage('user', [text(`${index} ${'word '.repeat(1000)}`)])
    const { head } = session
    const seqs = async (bytes: number): Promise<number[]> => {
      const snapshot = await session.snapshot({ entries: 50, bytes })
      expect(JSON.parse(snapshot.lines[0]?.text ?? '')).toMatchObject({ id: snapshot.before })
      return snapshot.lines.map(({ seq }) => seq)
    }
    expect(await seqs(11_000)).toEqual([head.seq - 1, head.seq])
    expect(await seqs(100)).toEqual([head.seq])
    expect(await session.snapshot({ entries: 50, bytes: 100_000 })).toMatchObject({ before: null })
    await session.close()
  })

  test.each<Step>(['start', 'fail'])('includes a call whose result is to come (after %s)', async (step) => {
    const session = await memoryStore().create()
    await take(session, 'run', 1)
    const { seq } = session.head
    await take(session, 'call', 2)
    await take(session, step, 3)
    await take(session, 'answer', 4)
    const { lines } = await session.snapshot({ entries: 1 })
    expect(lines.map((line) => line.seq)).toEqual([seq + 1, seq + 3])
    await take(session, 'result of an open call', 5)
    expect((await session.snapshot({ entries: 1 })).fold.running).toEqual([])
    await session.close()
  })

  test('includes the call of a result, with the entries in between', async () => {
    const session = await memoryStore().create()
    const call: Content = { type: 'tool_use', toolUse: { id: 'c', name: 'a', input: {} } }
    await session.appendMessage('user', [text('one')])
    const { seq } = session.head
    await session.appendMessage('assistant', [call])
    await session.appendMessage('user', [text('two')])
    await session.appendMessage('tool', [result])
    const { lines } = await session.snapshot({ entries: 1 })
    expect(lines.map((line) => line.seq)).toEqual([seq + 1, seq + 2, seq + 3])
    await session.close()
  })

  test('is made of a file by another program, also if a message there has no content', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'snapshot-'))
    const lines = [
      { type: 'session', version: 1, id: 's', timestamp: '', cwd: '/' },
      { type: 'message', id: 'a', parent_id: null, message: { role: 'assistant' } },
      { type: 'message', id: 'b', parent_id: 'a', message: { role: 'tool', content: [null, { type: 'tool_result' }] } },
      { type: 'message', id: 'c', parent_id: 'b', message: { role: 'user', content: [text('go')] } },
    ]
    await mkdir(join(folder, 's'))
    await writeFile(join(folder, 's', 'events.jsonl'), lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
    const store = openFileStore({ folder })
    const session = await store.open('s', { readOnly: true })
    const { lines: shown } = await session.snapshot({ entries: 50 })
    expect(shown.map((line) => line.seq)).toEqual([2, 3, 4])
    await session.close()
    await store.close()
    await rm(folder, { recursive: true })
  })
})
