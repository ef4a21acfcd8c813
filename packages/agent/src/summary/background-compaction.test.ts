import { memoryStore } from '@tapetree/session'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Model } from '../models/model.ts'
import { defaultRunSettings } from '../run/run-settings.ts'
import { script, scriptedModel, type ScriptBuilder, type ScriptedModel } from '../testing/scripted-model.ts'
import { TestAgent } from '../testing/test-agent.ts'
import { BackgroundCompaction } from './background-compaction.ts'
import { needsHeadStart } from './compaction.ts'

/** The summary begins above 2000 tokens, and the run waits for it above 3000. */
const limits = { contextTokens: 4000, outputTokens: 1000 }
const long = 'some words to sum up, '.repeat(50)
const room = { inputTokens: 1500, outputTokens: 1 }
const filling = { inputTokens: 2500, outputTokens: 1 }
const full = { inputTokens: 3500, outputTokens: 1 }

/** A call for a summary, which the test answers. */
interface SummaryCall {
  answer: (words: string) => void
  signal: AbortSignal
}

interface Opened {
  agent: TestAgent
  turns: ScriptedModel
  background: BackgroundCompaction
  /** Calls for a summary so far. */
  calls: SummaryCall[]
  nextCall: () => Promise<SummaryCall>
}

/** Turns are scripted; the test answers summaries whenever it likes. */
async function open(answers: ScriptBuilder, given: { session?: TestAgent['session'] } = {}): Promise<Opened> {
  const turns = scriptedModel(answers, { limits })
  const calls: SummaryCall[] = []
  const heard: ((call: SummaryCall) => void)[] = []
  const model: Model = {
    ...{ provider: turns.provider, id: turns.id, api: turns.api, limits },
    prepare: (request) => {
      if (request.system === 'You are a test.') return turns.prepare(request)
      return {
        reference: { sha256: '0'.repeat(64), adapter: 'test', adapterVersion: '1' },
        async *stream(signal) {
          const said = Promise.withResolvers<string>()
          signal.addEventListener('abort', () => said.reject(signal.reason as Error))
          const call = { answer: said.resolve, signal }
          calls.push(call)
          for (const tell of heard.splice(0)) tell(call)
          yield { type: 'usage', usage: { inputTokens: 700, outputTokens: 70 } }
          yield { type: 'text_delta', part: 0, text: await said.promise }
          yield { type: 'finish', reason: 'stop' }
        },
      }
    },
  }
  const session = given.session ?? (await memoryStore().create())
  const tools = [turns.tool('act')]
  const agent = new TestAgent(session, { model, tools, settings: { compaction: defaultRunSettings.compaction } })
  const background = new BackgroundCompaction()
  agent.deps.background = background
  const nextCall = (): Promise<SummaryCall> => new Promise((resolve) => heard.push(resolve))
  return { agent, turns, background, calls, nextCall }
}

function compactions(agent: TestAgent): Promise<number> {
  return agent.lineTypes().then((types) => types.filter((type) => type === 'compaction').length)
}

test('the head start is limited to a quarter of a small window, and off without a number', () => {
  const settings = defaultRunSettings.compaction
  expect([2000, 2001].map((tokens) => needsHeadStart({ tokens, limits, settings }))).toEqual([false, true])
  expect(needsHeadStart({ tokens: 2999, limits, settings: { ...settings, headStartTokens: 0 } })).toBe(false)
  expect(needsHeadStart({ tokens: 2999, limits, settings: { ...settings, isEnabled: false } })).toBe(false)
})

describe('a summary in the background', () => {
  test('is begun before the context is full, does not hold up the run, and is appended before a later request', async () => {
    const { agent, turns, calls, nextCall } = await open(
      script().text(long).usage(filling).step().text('two').usage(filling).step().text('three'),
    )
    await agent.prompt(long)
    const called = nextCall()
    expect(await agent.prompt('go')).toMatchObject({ outcome: 'completed' })
    expect([calls.length, await compactions(agent)]).toEqual([1, 0])
    ;(await called).answer('They spoke at length.')
    // The next run takes it, however early that begins: here it is ready.
    await new Promise((resolve) => setImmediate(resolve))
    await agent.prompt('more')
    expect(await agent.lineTypes()).toContain('compaction')
    expect(JSON.stringify(turns.requests.at(-1)?.messages)).toContain('They spoke at length.')
    expect(JSON.stringify(turns.requests.at(-1)?.messages)).not.toContain(long)
    expect(calls).toHaveLength(1)
    expect(agent.events.filter(({ type }) => type.startsWith('auto_compaction'))).toMatchObject([
      { type: 'auto_compaction_start', reason: 'threshold' },
      { type: 'auto_compaction_end', outcome: 'compacted' },
    ])
  })

  test('leaves its usage in the log, with the request, whether it is used or not', async () => {
    const { agent, background, nextCall } = await open(script().text(long).usage(filling).step().text('two'))
    await agent.prompt(long)
    const called = nextCall()
    await agent.prompt('go')
    await called
    await background.stop()
    // The answer, and what the summary had used when it was stopped.
    expect(agent.session.totals.tokens).toBe(2501 + 770)
    expect((await agent.lineTypes()).filter((type) => type === 'usage')).toHaveLength(1)
    expect(await compactions(agent)).toBe(0)
  })

  test('is awaited by a run that reaches the end of its context, and not made twice', async () => {
    const { agent, turns, calls, nextCall } = await open(
      script().text(long).usage(filling).step().toolCall('1', 'act').usage(full).step().text('three'),
    )
    await agent.prompt(long)
    const called = nextCall()
    const isWaiting = Promise.withResolvers<void>()
    agent.deps.observe = ({ type }) => {
      if (type === 'auto_compaction_start') isWaiting.resolve()
    }
    const running = agent.prompt('go')
    await isWaiting.promise
    ;(await called).answer('They spoke at length.')
    expect(await running).toMatchObject({ outcome: 'completed' })
    expect([calls.length, await compactions(agent)]).toEqual([1, 1])
    expect(JSON.stringify(turns.requests.at(-1)?.messages)).toContain('They spoke at length.')
  })

  test('is dropped if the conversation went on from before its cut', async () => {
    const { agent, nextCall } = await open(
      script().text(long).usage(filling).step().text('two').usage(filling).step().text('three').usage(room),
    )
    await agent.prompt(long)
    const [first] = await agent.session.getContextPath()
    const called = nextCall()
    await agent.prompt('go')
    ;(await called).answer('They spoke at length.')
    await agent.session.branch(first?.id ?? null)
    expect(await agent.prompt('elsewhere')).toMatchObject({ outcome: 'completed' })
    expect(await compactions(agent)).toBe(0)
  })

  test('stops with its run, and a later run begins it again', async () => {
    const { agent, calls, nextCall } = await open(
      script()
        .text(long)
        .usage(filling)
        .step()
        .do(() => calls.length === 1 || called)
        .do(() => agent.abort())
        .step()
        .text('three'),
    )
    await agent.prompt(long)
    const called = nextCall()
    expect(await agent.prompt('go')).toMatchObject({ outcome: 'aborted' })
    expect(calls[0]?.signal.aborted).toBe(true)
    const again = nextCall()
    await agent.prompt('more')
    await again
    expect([calls.length, await compactions(agent)]).toEqual([2, 0])
  })

  test('that was lost with its process is made again by the next one', async () => {
    const first = await open(script().text(long).usage(filling).step().text('two').usage(filling))
    await first.agent.prompt(long)
    const called = first.nextCall()
    await first.agent.prompt('go')
    await called
    const second = await open(script().text('three').usage(filling).step().text('four'), {
      session: first.agent.session,
    })
    const again = second.nextCall()
    await second.agent.prompt('more')
    ;(await again).answer('They spoke at length.')
    await new Promise((resolve) => setImmediate(resolve))
    await second.agent.prompt('and more')
    expect([second.calls.length, await compactions(second.agent)]).toEqual([1, 1])
  })

  test('never parts a call from its result and keeps only what is on the path, whenever it ends', async () => {
    const step = fc.record({
      usage: fc.constantFrom(room, filling, full),
      calls: fc.nat(2),
      branches: fc.boolean(),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 6 }), fc.nat(5), async (steps, early) => {
        let answers = script()
        for (const [index, { usage, calls }] of steps.entries()) {
          if (index > 0) answers = answers.step()
          for (let call = 0; call < calls; call++) answers = answers.toolCall(`${index}-${call}`, 'act')
          answers = answers.text(long).usage(usage)
          if (calls > 0) answers = answers.step().text('ok').usage(usage)
        }
        const opened = await open(answers)
        const { agent } = opened
        // Summaries are answered at once, or when the run waits for them.
        let asked = 0
        const stop = setInterval(() => {
          for (const call of opened.calls) if (++asked > early) call.answer('A summary.')
        }, 0)
        try {
          for (const { branches } of steps) {
            await agent.prompt(long)
            const path = await agent.session.getContextPath()
            const said = path.filter((entry) => entry.type === 'message' && entry.message.role === 'user')
            if (branches) await agent.session.branch(said[Math.floor(said.length / 2)]?.id ?? null)
            expect((await agent.session.getContext()).repairs).toEqual([])
          }
        } finally {
          clearInterval(stop)
          await opened.background.stop()
        }
      }),
      { numRuns: 40 },
    )
  })
})
