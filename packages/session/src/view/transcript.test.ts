import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fromDisk, toDisk } from '../line/codec.ts'
import type { DiskLine, Line } from '../line/line.ts'
import { text, type Content, type Message } from '../line/message.ts'
import { SessionState } from '../state/session-state.ts'
import { pathTo } from '../state/tree.ts'
import type { AssistantItem, ToolCallResult, TranscriptItem } from './transcript-items.ts'
import { maxLiveText, type LiveText } from './transcript-live.ts'
import { emptyTranscript, reduceTranscript, type Transcript, type TranscriptInput } from './transcript.ts'

describe('items', () => {
  test('each kind of entry on the path is an item of its own, in order', () => {
    const log = new Log()
    log.user('hi')
    log.node('system', { system: { prompt: 'Be kind.', tools: [], sha256: 'x' } })
    log.node('model_change', { modelChange: { provider: 'p', modelId: 'm' } })
    log.node('thinking_level', { thinkingLevel: { thinkingLevel: 'high' } })
    log.assistant([{ type: 'reasoning', reasoning: { text: 'hm' } }, text('ho')])
    log.message({ role: 'bashExecution', content: [], bashExecution: { command: 'ls', output: 'a', exitCode: 0 } })
    log.message({ role: 'custom', content: [text('note')] })
    log.node('custom', { custom: { customType: 'x', data: { a: 1 } } })
    log.node('compaction', { compaction: { summary: 's', firstKeptEntryId: 'e2', tokensBefore: 9 } })
    log.node('branch_summary', { branchSummary: { summary: 'b', fromId: 'e2' } })
    log.node('unknown', { unknown: { type: 'later', line: {} } })
    log.node('gap', { gap: { reason: 'this line was lost' } })
    expect(fold(log.inputs).path.items.slice().map(withoutBase)).toEqual([
      { type: 'user', content: [text('hi')] },
      { type: 'system', system: { prompt: 'Be kind.', tools: [], sha256: 'x' } },
      { type: 'model', provider: 'p', modelId: 'm' },
      { type: 'thinking_level', thinkingLevel: 'high' },
      {
        type: 'assistant',
        parts: [
          { type: 'reasoning', text: 'hm' },
          { type: 'text', text: 'ho' },
        ],
      },
      { type: 'bash', command: 'ls', output: 'a', exitCode: 0 },
      { type: 'custom', custom: { type: 'message', content: [text('note')] } },
      { type: 'custom', custom: { type: 'entry', customType: 'x', data: { a: 1 } } },
      { type: 'compaction', summary: 's', firstKeptEntryId: 'e2', tokensBefore: 9 },
      { type: 'branch_summary', summary: 'b', fromId: 'e2' },
      { type: 'gap', gap: { type: 'damaged', reason: 'this line was lost' } },
    ])
  })

  test('a call is pending, runs and then has its result', () => {
    const log = new Log()
    log.record('run_start', { runStart: { runId: 'r', leafId: null } })
    log.assistant([call('a'), call('b')])
    const asked = callsOf(fold(log.inputs))
    log.record('tool_start', { toolStart: { runId: 'r', callId: 'a', name: 'read' } })
    const started = callsOf(fold(log.inputs))
    log.result('a', 'fine')
    log.result('b', 'no', true)
    expect([asked, started, callsOf(fold(log.inputs))]).toEqual([
      ['a pending', 'b pending'],
      ['a running', 'b pending'],
      ['a completed fine', 'b failed no'],
    ])
  })

  test('on a branch that starts before the result, the call has none', () => {
    const log = new Log()
    const asked = log.assistant([call('a')])
    log.result('a', 'fine')
    log.leaf(asked)
    const branched = callsOf(fold(log.inputs))
    log.result('a', 'other')
    expect([branched, callsOf(fold(log.inputs))]).toEqual([['a pending'], ['a completed other']])
  })

  test('a result goes to the newest call of its id, and the first result stands', () => {
    const log = new Log()
    log.assistant([call('a')])
    log.result('a', 'one')
    log.assistant([call('a')])
    log.result('a', 'two')
    log.result('a', 'three')
    log.result('missing', 'four')
    expect(shown(fold(log.inputs))).toEqual(['a completed one', 'a completed two', 'unasked three', 'unasked four'])
  })

  test('no call runs after its run ended', () => {
    const log = new Log()
    log.assistant([call('a')])
    log.record('run_start', { runStart: { runId: 'r', leafId: null } })
    log.record('tool_start', { toolStart: { runId: 'r', callId: 'a', name: 'read' } })
    log.record('run_end', { runEnd: { runId: 'r', outcome: 'abandoned' } })
    const state = fold(log.inputs)
    expect([callsOf(state), state.run, state.lastRun]).toEqual([
      ['a pending'],
      null,
      { runId: 'r', outcome: 'abandoned' },
    ])
  })

  test('a running call is shown as running on every branch that has it, and a repeated start does not change the item', () => {
    const log = new Log()
    const asked = log.assistant([call('a')])
    log.user('aside')
    log.record('tool_start', { toolStart: { runId: 'r', callId: 'a', name: 'read' } })
    const started = fold(log.inputs)
    log.leaf(asked)
    const moved = fold(log.inputs, started)
    expect([callsOf(started), callsOf(moved)]).toEqual([['a running'], ['a running']])
    expect(moved.path.items.at(0)).toBe(started.path.items.at(0))
    log.record('tool_start', { toolStart: { runId: 'r', callId: 'a', name: 'read' } })
    const again = fold(log.inputs, moved)
    expect(again.path.items).toBe(moved.path.items)
  })

  test('unchanged items keep their identity when others change, and when the leaf moves', () => {
    const log = new Log()
    log.user('hi')
    log.assistant([call('a')])
    log.result('a', 'fine')
    const kept = log.assistant([call('b')])
    const before = fold(log.inputs)
    const [first, second, third] = before.path.items
    log.result('b', 'fine')
    const answered = fold(log.inputs.slice(-1), before)
    log.user('more')
    log.leaf(kept)
    const moved = fold(log.inputs.slice(-2), answered)
    expect([answered.path.items.at(0) === first, answered.path.items.at(1) === second]).toEqual([true, true])
    expect(answered.path.items.at(2)).not.toBe(third)
    expect([...moved.path.items].map((item, index) => item === before.path.items.at(index))).toEqual([true, true, true])
    expect([...before.path.items]).toEqual([first, second, third])
  })

  test('a leaf move shows the path to its target, and nothing before the first entry', () => {
    const log = new Log()
    const one = log.user('one')
    log.user('two')
    log.leaf(one)
    log.user('three')
    const branched = shown(fold(log.inputs))
    log.leaf(null)
    const before = fold(log.inputs)
    expect([branched, shown(before), before.path.leafId]).toEqual([['one', 'three'], [], null])
  })

  test('lost lines are a gap, and children of a lost entry become children of the gap', () => {
    const log = new Log()
    log.user('one')
    log.lose(3)
    log.user('two', 'lost-entry')
    const state = fold(log.inputs)
    expect([shown(state), state.damage, state.hold]).toEqual([
      ['one', 'gap lost', 'two'],
      { lostLines: 3, throughSeq: 5, seenThrough: 0 },
      null,
    ])
  })

  test('an id that was resolved to one gap stays there when there is another, even one that is itself a line', () => {
    const log = new Log()
    log.user('one')
    log.lose(1)
    log.user('two', 'lost-entry')
    log.node('gap', { gap: { reason: 'this line was lost' } })
    log.user('three', 'other-entry')
    const later = shown(fold(log.inputs))
    log.user('four', 'lost-entry')
    expect([later, shown(fold(log.inputs))]).toEqual([
      ['one', 'gap lost', 'two', 'gap damaged', 'three'],
      ['one', 'gap lost', 'four'],
    ])
  })

  test('a missing entry leaves a gap; one from before the start is not loaded', () => {
    const whole = new Log()
    whole.user('one', 'nowhere')
    const windowed = new Log({ seq: 500 })
    windowed.user('two', 'earlier')
    windowed.user('three')
    expect([shown(fold(whole.inputs)), shown(fold(windowed.inputs))]).toEqual([
      ['gap missing', 'one'],
      ['gap not_loaded', 'two', 'three'],
    ])
  })
})

describe('state beside the path', () => {
  test('labels, name, plan, usage and the end follow their lines', () => {
    const log = new Log()
    const one = log.user('one')
    const two = log.message({ role: 'assistant', content: [], usage: { inputTokens: 5, cost: 0.5 } })
    log.note('label', { label: { targetId: one, label: 'start' } })
    log.note('label', { label: { targetId: two, label: 'end' } })
    log.note('label', { label: { targetId: two, label: '' } })
    log.note('session_info', { sessionInfo: { name: 'Greeting' } })
    log.record('plan', { plan: { items: [{ text: 'greet', status: 'completed' }] } })
    log.record('usage', { usage: { purpose: 'title', tokens: { inputTokens: 2, outputTokens: 1 } } })
    log.record('session_end', { sessionEnd: { reason: 'done' } })
    const { labels, name, plan, usage, ended, path } = fold(log.inputs)
    expect({ labels: [...labels], name, plan, usage, ended, leaf: path.leafId }).toEqual({
      labels: [[one, 'start']],
      name: 'Greeting',
      plan: [{ text: 'greet', status: 'completed' }],
      usage: { ...emptyTranscript().usage, inputTokens: 7, outputTokens: 1, cost: 0.5 },
      ended: 'done',
      leaf: two,
    })
  })

  test('a message is queued until the line that delivers it', () => {
    const log = new Log()
    const added = { action: 'add', delivery: 'follow-up', imageIds: [], queuedAt: '' } as const
    log.record('submission', { submission: { ...added, id: 'q-1', message: 'later' } })
    log.record('submission', { submission: { ...added, id: 'q-2', message: 'last' } })
    const waiting = fold(log.inputs)
    log.message({ role: 'user', content: [text('later')], submissionId: 'q-1' })
    const delivered = fold(log.inputs, waiting)
    expect([waiting, delivered].map((state) => state.waiting.map(({ id }) => id))).toEqual([['q-1', 'q-2'], ['q-2']])
  })

  test('a permission is pending until its first answer', () => {
    const log = new Log()
    const request = { requestId: 'p', tool: 'bash', title: 'Run ls', options: [] }
    log.record('permission_request', { permissionRequest: request })
    const asked = fold(log.inputs)
    log.record('permission_result', { permissionResult: { requestId: 'p', outcome: 'rejected' } })
    expect([asked.permissions, fold(log.inputs).permissions]).toEqual([[{ ...request, seq: 2, timestamp: '' }], []])
  })

  test('an error stays until the model answers or the next run starts', () => {
    const log = new Log()
    const error = { kind: 'overloaded', message: 'Too busy.' }
    log.record('attempt', { attempt: { runId: 'r', item: 'i', error, content: [] } })
    const failed = fold(log.inputs).lastError
    log.assistant([text('ok')])
    const answered = fold(log.inputs).lastError
    log.record('error', { error: { message: 'No key.' } })
    const told = fold(log.inputs).lastError
    log.record('run_start', { runStart: { runId: 'r2', leafId: null } })
    expect([failed, answered, told, fold(log.inputs).lastError]).toEqual([
      { ...error, seq: 2, timestamp: '' },
      null,
      { message: 'No key.', seq: 4, timestamp: '' },
      null,
    ])
  })

  test('damage is new until it is acknowledged', () => {
    const log = new Log()
    log.lose(2)
    log.record('damage', { damage: { throughSeq: 3, lostLines: 2, places: [] } })
    expect(fold(log.inputs).damage).toEqual({ lostLines: 2, throughSeq: 3, seenThrough: 3 })
  })
})

describe('live text', () => {
  test('deltas continue where the text ends; repeated text is not added twice', () => {
    const state = fold([
      delta(0, 'Hel'),
      delta(3, 'lo'),
      delta(3, 'lo'),
      delta(1, 'ello'),
      delta(4, 'o you'),
      delta(0, ''),
    ])
    expect(live(state)).toEqual([{ part: 0, kind: 'text', off: 0, text: 'Hello you', needsResync: false }])
  })

  test('a delta after a hole is dropped and needs a resync, until a matching delta or a partial arrives', () => {
    const holed = fold([delta(0, 'Hel'), delta(5, '!')])
    const filled = fold([delta(3, 'lo!')], holed)
    const replaced = fold([{ ...delta(2, 'llo!'), type: 'partial' }], holed)
    expect([holed, filled, replaced].map((state) => state.inFlight.get('i')?.needsResync)).toEqual([true, false, false])
    expect([holed, filled, replaced].map((state) => live(state)[0]?.text)).toEqual(['Hel', 'Hello!', 'Hello!'])
  })

  test('the first text of an item may come after a hole', () => {
    const state = fold([delta(7, 'late')])
    expect([state.inFlight.get('i')?.needsResync, live(state)[0]?.text]).toEqual([true, ''])
  })

  test('a partial that is not contiguous with the held text replaces it', () => {
    const state = fold([delta(0, 'abc'), { ...delta(10, 'xyz'), type: 'partial' }, delta(13, '!')])
    expect(live(state)).toEqual([{ part: 0, kind: 'text', off: 10, text: 'xyz!', needsResync: false }])
  })

  test('the parts of an item are in order, whichever started first', () => {
    const state = fold([delta(0, 'call', { part: 2, kind: 'tool_input' }), delta(0, 'a'), delta(0, 'b', { part: 1 })])
    expect(live(state).map(({ part, text }) => [part, text])).toEqual([
      [0, 'a'],
      [1, 'b'],
      [2, 'call'],
    ])
  })

  test('live text is removed when its entry, its attempt or the result of its call arrives, and late text is dropped', () => {
    const log = new Log()
    const start = fold([delta(0, 'x', { item: 'e2' }), delta(0, 'x', { item: 'try' }), delta(0, 'x', { item: 'a' })])
    log.assistant([call('a')])
    log.record('attempt', { attempt: { runId: 'r', item: 'try', content: [] } })
    log.result('a', 'fine')
    const states = log.inputs.map((_, index) => fold(log.inputs.slice(0, index + 1), start))
    expect(states.map(({ inFlight }) => [...inFlight.keys()])).toEqual([['e2', 'try', 'a'], ['try', 'a'], ['a'], []])
    const late = ['e2', 'try', 'a'].map((item) => delta(0, 'late', { item }))
    expect(fold(late, states.at(-1))).toBe(states.at(-1))
  })

  test('a reused call id may stream again', () => {
    const log = new Log()
    log.assistant([call('a')])
    log.result('a', 'fine')
    log.assistant([call('a')])
    const state = fold([...log.inputs, delta(0, 'more', { item: 'a', kind: 'tool_output' })])
    expect([...state.inFlight.keys()]).toEqual(['a'])
  })

  test('live text of a run ends with it', () => {
    const log = new Log()
    log.record('run_end', { runEnd: { runId: 'r', outcome: 'aborted' } })
    const state = fold([delta(0, 'x', { run: 'r' }), delta(0, 'y', { item: 'mine' }), ...log.inputs])
    expect([...state.inFlight.keys()]).toEqual(['mine'])
  })

  test('of unbounded output the newest is held, and no surrogate pair is split', () => {
    let state = emptyTranscript()
    const chunk = 'x'.repeat(maxLiveText / 4)
    for (let count = 0; count < 20; count++) state = fold([delta(count * chunk.length, chunk)], state)
    const [held] = live(state)
    const [cut] = live(fold([delta(0, `${'😀'.repeat(maxLiveText + 1)}!`)]))
    expect([held!.off + held!.text.length, held!.text.length <= 2 * maxLiveText, held!.needsResync]).toEqual([
      20 * chunk.length,
      true,
      false,
    ])
    expect([cut!.off, cut!.text.isWellFormed(), cut!.text.slice(-3)]).toEqual([maxLiveText + 4, true, '😀!'])
  })

  test('live text does not change the items', () => {
    const log = new Log()
    log.user('hi')
    const before = fold(log.inputs)
    expect(fold([delta(0, 'ho')], before).path).toBe(before.path)
  })
})

test('a reset starts from the beginning', () => {
  const log = new Log()
  log.user('hi')
  expect(fold([...log.inputs, { type: 'reset' }])).toEqual(emptyTranscript())
})

test('lines of unknown types move only the cursor', () => {
  const log = new Log()
  log.user('hi')
  const before = fold(log.inputs)
  const disk: DiskLine = { type: 'later', id: 'x', timestamp: '' }
  const after = fold([{ type: 'line', line: fromDisk(disk, 3) }], before)
  expect(after).toEqual({ ...before, seq: 3 })
})

/** A failing property prints its seed and the shrunk log. */
describe('for any log, any branching and any live text', () => {
  test('applied one by one, split anywhere, or replayed after a reset, the transcript is the same', () => {
    fc.assert(
      fc.property(inputsOf(steps), fc.nat(), (inputs, cut) => {
        const whole = view(fold(inputs))
        const at = cut % (inputs.length + 1)
        const prefix = fold(inputs.slice(0, at))
        view(prefix)
        expect(view(fold(inputs.slice(at), prefix))).toEqual(whole)
        expect(view(fold([...inputs, { type: 'reset' }, ...inputs]))).toEqual(whole)
      }),
    )
  })

  test('repeated lines change nothing, not even an identity', () => {
    fc.assert(
      fc.property(inputsOf(steps), (inputs) => {
        const state = fold(inputs)
        expect(fold(inputs.filter(isDurable), state)).toBe(state)
      }),
    )
  })

  test('an earlier state never changes', () => {
    fc.assert(
      fc.property(inputsOf(steps), inputsOf(steps), fc.nat(), (inputs, others, cut) => {
        const held = fold(inputs.slice(0, cut % (inputs.length + 1)))
        const before = view(held)
        fold(inputs, held)
        fold(others, held)
        expect(view(held)).toEqual(before)
      }),
    )
  })

  test('reading the items or not makes no difference', () => {
    fc.assert(
      fc.property(inputsOf(steps), (inputs) => {
        let looked = emptyTranscript()
        for (const input of inputs) {
          const next = reduceTranscript(looked, input)
          const redrawn = [...next.path.items].filter((item, index) => item !== looked.path.items.at(index))
          const before = [...looked.path.items]
          expect(redrawn.filter((item) => before.some((old) => isDeepStrictEqual(old, item)))).toEqual([])
          looked = next
        }
        expect(view(fold(inputs))).toEqual(view(looked))
      }),
    )
  })

  test('the path, labels, name, inbox, permissions, run and usage equal those of the session itself', () => {
    fc.assert(
      fc.property(inputsOf(steps), (inputs) => {
        const state = fold(inputs)
        const session = sessionOf(inputs)
        const shownIds = new Set([...state.path.items].map(({ id }) => id))
        expect([...shownIds]).toEqual(visibleIds(session, inputs).filter((id) => shownIds.has(id)))
        expect(visibleIds(session, inputs).filter((id) => !shownIds.has(id) && !isMerged(id, state, inputs))).toEqual(
          [],
        )
        expect({
          seq: state.seq,
          leafId: state.path.leafId,
          labels: new Map(state.labels),
          name: state.name,
          waiting: state.waiting,
          hold: state.hold,
          permissions: state.permissions.map(({ requestId }) => requestId).sort(),
          run: state.run?.runId,
          usage: Object.values(state.usage),
          ended: state.ended,
        }).toEqual({
          seq: session.seq,
          leafId: session.leaf?.id ?? null,
          labels: session.labels,
          name: session.name,
          waiting: session.inbox.messages,
          hold: session.inbox.hold,
          permissions: session.permissions.pending.map(({ payload }) => String(payload['request_id'])).sort(),
          run: session.run?.runId,
          usage: Object.values(session.totals.usage),
          ended: session.ended,
        })
      }),
      { numRuns: 1000 },
    )
  })

  test('no live text remains for an item that is complete', () => {
    fc.assert(
      fc.property(inputsOf(steps), (inputs) => {
        const complete = new Set<string>()
        for (const line of linesOf(inputs)) {
          for (const id of reopenedBy(line)) complete.delete(id)
          for (const id of completedBy(line)) complete.add(id)
        }
        expect([...fold(inputs).inFlight.keys()].filter((item) => complete.has(item))).toEqual([])
      }),
      { numRuns: 1000 },
    )
  })

  test('shown live text is always a contiguous piece of what was sent', () => {
    const said = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 })
    const pieces = fc.array(fc.record({ from: fc.nat(), to: fc.nat(), isPartial: fc.boolean() }), { maxLength: 20 })
    fc.assert(
      fc.property(said, pieces, (whole, cuts) => {
        const inputs = cuts.map(({ from, to, isPartial }): TranscriptInput => {
          const [start, end] = [from % whole.length, to % (whole.length + 1)].sort((left, right) => left - right) as [
            number,
            number,
          ]
          return { ...delta(start, whole.slice(start, end)), type: isPartial ? 'partial' : 'delta' }
        })
        for (const { off, text } of live(fold(inputs))) expect(text).toBe(whole.slice(off, off + text.length))
      }),
    )
  })
})

/** Builds lines with stable ids: the entry of seq 2 is `e2`. Nodes are children of the leaf unless specified. */
class Log {
  readonly inputs: TranscriptInput[] = []
  leafId: string | null = null
  #seq: number

  constructor(options: { seq: number } = { seq: 1 }) {
    this.#seq = options.seq
    if (options.seq === 1) this.add({ type: 'session', version: 1 })
  }

  add(members: Record<string, unknown>): string {
    const seq = this.#seq++
    const id = `e${seq}`
    this.inputs.push({ type: 'line', line: { id, timestamp: '', seq, ...members } as unknown as Line })
    return id
  }

  node(type: string, payload: Record<string, unknown>, parentId: string | null = this.leafId): string {
    this.leafId = this.add({ type, parentId, ...payload })
    return this.leafId
  }

  note(type: string, payload: Record<string, unknown>): string {
    return this.add({ type, parentId: this.leafId, ...payload })
  }

  record(type: string, payload: Record<string, unknown>): string {
    return this.add({ type, ...payload })
  }

  message(message: Message, parentId?: string | null): string {
    return this.node('message', { message }, parentId)
  }

  user(words: string, parentId?: string | null): string {
    return this.message({ role: 'user', content: [text(words)] }, parentId)
  }

  assistant(content: Content[], parentId?: string | null): string {
    return this.message({ role: 'assistant', content }, parentId)
  }

  result(callId: string, content: string, isError = false): string {
    const toolResult = { toolUseId: callId, content, ...(isError && { isError }) }
    return this.message({ role: 'tool', content: [{ type: 'tool_result', toolResult }] })
  }

  leaf(targetId: string | null): void {
    this.record('leaf', { leaf: { targetId } })
    this.leafId = targetId
  }

  lose(count: number): void {
    this.inputs.push({ type: 'lost', seq: this.#seq, count })
    this.leafId = `gap-${this.#seq}`
    this.#seq += count
  }
}

function call(id: string): Content {
  return { type: 'tool_use', toolUse: { id, name: 'read', input: {} } }
}

function delta(off: number, text: string, more: Partial<LiveText> = {}): LiveText {
  return { type: 'delta', item: 'i', part: 0, kind: 'text', off, text, ...more }
}

function fold(inputs: readonly TranscriptInput[], from: Transcript = emptyTranscript()): Transcript {
  return inputs.reduce(reduceTranscript, from)
}

function withoutBase({ id: _id, seq: _seq, timestamp: _timestamp, ...rest }: TranscriptItem): unknown {
  return rest
}

function live(state: Transcript) {
  return [...state.inFlight.values()].flatMap(({ parts }) => parts)
}

function callsOf(state: Transcript): string[] {
  return [...state.path.items].filter((item) => item.type === 'assistant').flatMap(callsIn)
}

function callsIn(item: AssistantItem): string[] {
  return item.parts.flatMap((part) => {
    if (part.type !== 'tool_call') return []
    return [[part.callId, part.status, ...(part.result ? [outputOf(part.result)] : [])].join(' ')]
  })
}

function outputOf({ content }: ToolCallResult): string {
  return typeof content === 'string' ? content : JSON.stringify(content)
}

function shown(state: Transcript): string[] {
  return [...state.path.items].flatMap((item) => {
    if (item.type === 'user')
      return item.content.map((block) => (block.type === 'text' ? block.text.content : block.type))
    if (item.type === 'assistant') return callsIn(item)
    if (item.type === 'gap') return [`gap ${item.gap.type}`]
    if (item.type === 'tool_result') return item.results.map((result) => `unasked ${outputOf(result)}`)
    return [item.type]
  })
}

/** Everything visible to a screen. */
function view({ path, labels, tree: _tree, finished: _finished, ...rest }: Transcript): unknown {
  return { ...rest, items: [...path.items], leafId: path.leafId, labels: new Map(labels) }
}

function isDurable(input: TranscriptInput): boolean {
  return input.type === 'line' || input.type === 'lost'
}

function sessionOf(inputs: readonly TranscriptInput[]): SessionState {
  const session = new SessionState({ isWhole: true })
  for (const input of inputs) {
    if (input.type === 'lost') session.lose([], input.seq + input.count - 1)
    if (input.type !== 'line') continue
    const { line } = input
    const { id, timestamp, ...draft } = line
    const disk = toDisk(draft, { id, timestamp, parentId: 'parentId' in line ? line.parentId : undefined })
    if (line.type === 'unknown') disk.type = 'later'
    session.apply(disk, { seq: line.seq, crc: '', at: line.seq, size: 1 })
  }
  return session
}

/** The visible nodes on the session's path. */
function visibleIds(session: SessionState, inputs: readonly TranscriptInput[]): string[] {
  const unseen = new Set(linesOf(inputs).flatMap((line) => (line.type === 'unknown' ? [line.id] : [])))
  return pathTo(session.leaf).flatMap((node) => (node.isNote || unseen.has(node.id) ? [] : [node.id]))
}

/** A result is shown in its call. */
function isMerged(id: string, state: Transcript, inputs: readonly TranscriptInput[]): boolean {
  const line = linesOf(inputs).find((each) => each.id === id)
  if (line?.type !== 'message' || line.message.role !== 'tool') return false
  return [...state.path.items].some(
    (item) =>
      item.type === 'assistant' && item.parts.some((part) => part.type === 'tool_call' && part.result?.entryId === id),
  )
}

function linesOf(inputs: readonly TranscriptInput[]): Line[] {
  return inputs.flatMap((input) => (input.type === 'line' ? [input.line] : []))
}

function completedBy(line: Line): string[] {
  if (line.type === 'attempt') return [line.attempt.item]
  if (line.type !== 'message') return []
  const results = line.message.content.flatMap((block) =>
    block.type === 'tool_result' ? [block.toolResult.toolUseId] : [],
  )
  return [line.id, ...results]
}

/** A call id may be reused, and a call may run again on another branch. */
function reopenedBy(line: Line): string[] {
  if (line.type === 'tool_start') return [line.toolStart.callId]
  if (line.type !== 'message') return []
  return line.message.content.flatMap((block) => (block.type === 'tool_use' ? [block.toolUse.id] : []))
}

/** One step of a random log; `pick` chooses among what exists when the step runs. */
interface Step {
  kind: string
  pick: number
  other: number
}

const kinds = wordsIn(`
  user user assistant assistant calls calls result result result bash compaction model custom unknown
  elsewhere elsewhere nowhere leaf leaf label name submission deliver run_start run_end attempt
  tool_start tool_start ask answer plan usage error end lost delta delta delta partial
`)

const steps = fc.array(
  fc.record({ kind: fc.constantFrom(...kinds), pick: fc.nat({ max: 99 }), other: fc.nat({ max: 9 }) }),
  {
    maxLength: 60,
  },
)

function inputsOf(random: fc.Arbitrary<Step[]>): fc.Arbitrary<TranscriptInput[]> {
  return random.map((taken) => {
    const log = new Log()
    for (const step of taken) take(log, step)
    return log.inputs
  })
}

function take(log: Log, { kind, pick, other }: Step): void {
  const nodes = linesOf(log.inputs).flatMap((line) => ('parentId' in line ? [line.id] : []))
  const anyNode = nodes.at(pick % Math.max(1, nodes.length)) ?? null
  const callId = `c${pick % 4}`
  const runId = `r${pick % 3}`
  const submissionId = `q-${pick % 4}`
  switch (kind) {
    case 'user':
      log.user(`words ${pick}`)
      return
    case 'assistant':
      log.message({ role: 'assistant', content: [text('ok')], usage: { inputTokens: pick, cost: other } })
      return
    case 'calls':
      log.assistant([text('I do'), call(callId), call(`c${other % 4}`)])
      return
    case 'result':
      log.result(callId, `out ${other}`, other > 5)
      return
    case 'bash':
      log.message({ role: 'bashExecution', content: [], bashExecution: { command: 'ls', output: '' } })
      return
    case 'compaction':
      log.node('compaction', { compaction: { summary: 's', firstKeptEntryId: anyNode ?? 'x', tokensBefore: 1 } })
      return
    case 'model':
      log.node('model_change', { modelChange: { provider: 'p', modelId: `m${pick}` } })
      return
    case 'custom':
      log.node('custom', { custom: { customType: 'x', data: {} } })
      return
    case 'unknown':
      log.node('unknown', { unknown: { type: 'later', line: {} } })
      return
    case 'elsewhere':
      if (other < 5) log.user('branch', anyNode)
      else log.assistant([call(callId)], anyNode)
      return
    case 'nowhere':
      log.user('lost', `nowhere-${other % 3}`)
      return
    case 'leaf':
      log.leaf(other === 0 ? null : other === 1 ? `nowhere-${pick % 3}` : anyNode)
      return
    case 'label':
      log.note('label', { label: { targetId: anyNode ?? 'x', label: other < 3 ? '' : `l${other}` } })
      return
    case 'name':
      log.note('session_info', { sessionInfo: { name: `n${pick}` } })
      return
    case 'submission':
      log.record('submission', { submission: submissionOf(other, submissionId, `q-${other % 4}`) })
      return
    case 'deliver':
      log.message({ role: 'user', content: [text('now')], submissionId })
      return
    case 'run_start':
      log.record('run_start', { runStart: { runId, leafId: log.leafId } })
      return
    case 'run_end':
      log.record('run_end', { runEnd: { runId, outcome: other < 5 ? 'completed' : 'failed' } })
      return
    case 'attempt':
      log.record('attempt', {
        attempt: { runId, item: `try-${other % 3}`, content: [], error: { kind: 'network', message: 'x' } },
      })
      return
    case 'tool_start':
      log.record('tool_start', { toolStart: { runId, callId, name: 'read' } })
      return
    case 'ask':
      log.record('permission_request', {
        permissionRequest: { requestId: `p${other % 3}`, tool: 't', title: 't', options: [] },
      })
      return
    case 'answer':
      log.record('permission_result', { permissionResult: { requestId: `p${other % 3}`, outcome: 'allowed' } })
      return
    case 'plan':
      log.record('plan', { plan: { items: [{ text: `${pick}`, status: 'pending' }] } })
      return
    case 'usage':
      log.record('usage', { usage: { purpose: 'title', tokens: { outputTokens: pick, totalTokens: pick } } })
      return
    case 'error':
      log.record('error', { error: { message: `e${pick}` } })
      return
    case 'end':
      log.record('session_end', { sessionEnd: { reason: 'done' } })
      return
    case 'lost':
      log.lose(1 + (other % 3))
      return
    case 'delta':
    case 'partial': {
      const items = [`e${1 + (pick % 70)}`, `try-${other % 3}`, callId, 'mine']
      const item = items[other % items.length] ?? 'mine'
      log.inputs.push(delta(pick % 12, 'live text'.slice(0, other), { type: kind, item, part: other % 2, run: runId }))
      return
    }
    default:
      throw new Error(`no step ${kind}`)
  }
}

function submissionOf(choice: number, id: string, beforeId: string): Record<string, unknown> {
  if (choice < 4)
    return { action: 'add', id, delivery: choice < 2 ? 'steer' : 'follow-up', message: 'm', imageIds: [], queuedAt: '' }
  const changes: Record<string, unknown>[] = [
    { action: 'edit', id, message: 'edited' },
    { action: 'move', id, beforeId },
    { action: 'hold', ...(beforeId === 'q-2' ? {} : { id }), reason: 'wait' },
    { action: 'release' },
    { action: 'remove', id },
    { action: 'clear' },
  ]
  return changes[choice - 4] ?? { action: 'clear' }
}

function wordsIn(list: string): string[] {
  return list.trim().split(/\s+/)
}
