import { onlyModel, type Model } from '@tapetree/agent'
import { anthropic } from '@tapetree/agent/models/anthropic'
import { script, scriptedModel, startFakeProvider } from '@tapetree/agent/testing'
import { expect, onTestFinished } from 'vitest'
import { verifies } from '../../support/verifies.ts'
import { door, finish, linesOf, openAgent, pathOf } from './opened-agent.ts'

const long = 'some words to sum up, '.repeat(50)
const retry = { maxRetries: 3, baseMs: 1000, capMs: 60_000, longestRetryAfterMs: 600_000, jitter: 0 }
const settings = () => ({ retry })
const small = { limits: { contextTokens: 4000, outputTokens: 1000 } }

verifies(
  ['agent-session/6.1 turn-end', 'agent-session/6.1 threshold', 'agent-session/2 context-management'],
  'a turn that filled the window is followed by a compaction in the same run, and the next request begins with its summary',
  async () => {
    const scripted = scriptedModel(
      script()
        .text(long)
        .step()
        .toolCall('a', 'read')
        .usage({ inputTokens: 5000, outputTokens: 1, totalTokens: 5001 })
        .step()
        .text('They spoke at length.')
        .step()
        .text('Go on.'),
      small,
    )
    const { agent, events } = await openAgent({ scripted })
    await finish(agent, long)
    expect(linesOf(events, 'compaction')).toEqual([])
    await finish(agent, 'more')
    expect(linesOf(events, 'compaction')).toMatchObject([{ compaction: { summary: 'They spoke at length.' } }])
    expect(linesOf(events, 'run_end')).toHaveLength(2)
    expect(JSON.stringify(scripted.requests.at(-1)?.messages[0])).toContain('They spoke at length.')
  },
)

verifies(
  ['agent-session/4.2 auto-compaction-start', 'agent-session/4.2 auto-compaction-end'],
  'who listens is told that a compaction begins, why, and what came of it',
  async () => {
    const answers = script().text(long).step().error('context-overflow').step().text('A summary.').step().text('ok')
    const { agent, events } = await openAgent({ script: answers })
    await finish(agent, long)
    const outcome = await agent.prompt('more')
    if (outcome.type === 'started') await outcome.run.done
    const { runId } = outcome
    expect(events.filter(({ type }) => type.startsWith('auto_compaction'))).toEqual([
      { type: 'auto_compaction_start', runId, reason: 'overflow' },
      { type: 'auto_compaction_end', runId, reason: 'overflow', outcome: 'compacted' },
    ])
  },
)

verifies(
  ['agent-session/6.1 threshold', 'session-manager/11.1 when-to-compact'],
  'a context above the threshold is summarized in the background while the agent answers, and the next request begins with the summary',
  async () => {
    const { pass, reached, open } = door()
    const turns = scriptedModel(
      script()
        .text(long)
        .usage({ inputTokens: 2500, outputTokens: 1, totalTokens: 2501 })
        .step()
        .text('At once.')
        .usage({ inputTokens: 2600, outputTokens: 1, totalTokens: 2601 })
        .step()
        .text('Go on.'),
      small,
    )
    const summaries = scriptedModel(script().do(pass).text('They spoke at length.'), small)
    const model: Model = {
      ...{ provider: turns.provider, id: turns.id, api: turns.api, limits: turns.limits },
      prepare: (request) => (request.system === 'You are a test.' ? turns : summaries).prepare(request),
    }
    const { agent, events } = await openAgent({ models: onlyModel(model), tools: [turns.tool('read')] })
    await finish(agent, long)
    // The answer does not wait for the summary.
    expect(await finish(agent, 'more')).toMatchObject({ outcome: 'completed' })
    await reached
    expect(linesOf(events, 'compaction')).toEqual([])
    const paid = new Promise<void>((resolve) => {
      agent.subscribe((event) => {
        if (event.type === 'line' && event.committed.line.type === 'usage') setImmediate(resolve)
      })
    })
    open()
    await paid
    await finish(agent, 'and more')
    expect(linesOf(events, 'compaction')).toMatchObject([
      { compaction: { summary: 'They spoke at length.' }, request: { adapter: 'scripted' } },
    ])
    expect(linesOf(events, 'usage')).toMatchObject([{ usage: { purpose: 'compaction' } }])
    expect(JSON.stringify(turns.requests.at(-1)?.messages[0])).toContain('They spoke at length.')
    expect(turns.requests.at(-1)?.messages.at(-1)).toMatchObject({ content: [{ text: { content: 'and more' } }] })
  },
)

verifies(
  [
    'agent-session/6.1 overflow-error-removed',
    'agent-session/6.1 overflow-compaction',
    'agent-session/6.1 overflow-retry',
  ],
  'a request that does not fit is compacted at once and sent again, and the model never sees the error',
  async () => {
    const answers = script().text(long).step().error('context-overflow', 'Too long.').step().text('A summary.')
    const { agent, model } = await openAgent({ script: answers.step().text('Now it fits.') })
    await finish(agent, long)
    expect(await finish(agent, 'more')).toMatchObject({ outcome: 'completed' })
    expect((await pathOf(agent)).slice(-2)).toEqual(['user: more', 'assistant: Now it fits.'])
    const [, failed, , again] = model.requests
    expect(again?.messages.at(-1)).toEqual(failed?.messages.at(-1))
    expect(JSON.stringify(again)).not.toContain('Too long.')
    expect(JSON.stringify(again).length).toBeLessThan(JSON.stringify(failed).length)
  },
)

verifies(
  ['agent-session/5 compact', 'agent-session/5 compact-signature'],
  'a compaction by hand follows the instructions, says what it kept, and is refused while the agent works',
  async () => {
    const answers = script().text(long).step().text(long).step().text('The names: A, B.').step().text('ok')
    const { agent, model } = await openAgent({ script: answers })
    await finish(agent, long)
    await finish(agent, 'more')
    const result = await agent.compact('Keep the names.')
    expect(result).toMatchObject({ type: 'compacted', summary: 'The names: A, B.' })
    expect(JSON.stringify(model.requests.at(-1))).toContain('Keep the names.')
    const outcome = await agent.prompt('go on')
    await expect(agent.compact('')).rejects.toMatchObject({ code: 'session-busy' })
    if (outcome.type === 'started') await outcome.run.done
    expect(JSON.stringify(model.requests.at(-1)?.messages[0])).toContain('The names: A, B.')
  },
)

verifies(
  ['agent-session/6.2 delay', 'agent-session/4.2 auto-retry-start', 'agent-session/4.2 auto-retry-end'],
  'each retry waits twice as long as the one before, and who listens is told of each wait and its end',
  async () => {
    const answers = script().error('overloaded').step().error('network').step().error('rate-limited').step().text('ok')
    const { agent, clock, events } = await openAgent({ script: answers, settings })
    const outcome = await agent.prompt('go')
    const waits = [await clock.skip(), await clock.skip(), await clock.skip()]
    if (outcome.type === 'started') expect(await outcome.run.done).toMatchObject({ outcome: 'completed' })
    expect(waits).toEqual([1000, 2000, 4000])
    const { runId } = outcome
    expect(events.filter(({ type }) => type.startsWith('auto_retry'))).toMatchObject(
      waits.flatMap((delayMs, index) => [
        { type: 'auto_retry_start', runId, attempt: index + 1, delayMs },
        { type: 'auto_retry_end', runId, attempt: index + 1, isAborted: false },
      ]),
    )
  },
)

verifies(
  ['agent-session/6.2 cleanup'],
  'what a failed call had said, and its error, are kept beside the path, and the retry sends the very same request',
  async () => {
    const answers = script().text('Half an ans').error('network', 'The line broke.').step().text('A whole answer.')
    const { agent, model, clock, events } = await openAgent({ script: answers, settings })
    const outcome = await agent.prompt('go')
    await clock.skip()
    if (outcome.type === 'started') await outcome.run.done
    expect(await pathOf(agent)).toEqual(['user: go', 'assistant: A whole answer.'])
    expect(model.requests[1]).toEqual(model.requests[0])
    expect(linesOf(events, 'attempt')).toMatchObject([{ attempt: { error: { message: 'The line broke.' } } }])
  },
)

verifies(
  ['agent-session/6.2 maximum'],
  'after the last retry the run fails, says so in the log, and is tried again only when somebody says so',
  async () => {
    const failing = script().error('network').step().error('network').step().error('network').step().error('network')
    const { agent, clock, events } = await openAgent({ script: failing.step().text('Here I am.'), settings })
    const outcome = await agent.prompt('go')
    for (let attempt = 0; attempt < retry.maxRetries; attempt++) await clock.skip()
    if (outcome.type === 'started') {
      expect(await outcome.run.done).toMatchObject({ outcome: 'failed', reason: 'network' })
    }
    expect(linesOf(events, 'error')).toMatchObject([{ error: { kind: 'network', runId: outcome.runId } }])
    const again = await agent.retry()
    expect(await again.done).toMatchObject({ outcome: 'completed' })
    expect(await pathOf(agent)).toEqual(['user: go', 'assistant: Here I am.'])
  },
)

verifies(
  ['agent-session/6.2 transient', 'agent-session/2 resilience'],
  'a provider that answers 429, 500 or 503, or whose connection breaks, is asked again; one that says 401 is not',
  async () => {
    const provider = await startFakeProvider()
    onTestFinished(() => provider.close())
    provider.script(
      { type: 'failure', error: 'rate-limited', status: 429 },
      { type: 'failure', error: 'server-error', status: 500 },
      { type: 'failure', error: 'unavailable', status: 503 },
      { type: 'cut' },
      { type: 'answer', content: [{ type: 'text', chunks: ['Here I am.'] }] },
      { type: 'failure', error: 'auth', status: 401 },
    )
    const connection = { baseUrl: provider.baseUrl('anthropic'), apiKey: 'test' }
    const { agent, clock } = await openAgent({
      models: onlyModel(anthropic({ ...connection, model: 'claude-opus-5' })),
      settings: () => ({ retry: { ...retry, maxRetries: 4 } }),
    })
    const outcome = await agent.prompt('Hi.')
    const waits: number[] = []
    for (let attempt = 0; attempt < 4; attempt++) waits.push(await clock.skip())
    if (outcome.type === 'started') expect(await outcome.run.done).toMatchObject({ outcome: 'completed' })
    expect(waits).toEqual([1000, 2000, 4000, 8000])
    expect(await pathOf(agent)).toEqual(['user: Hi.', 'assistant: Here I am.'])
    expect(await finish(agent, 'And now?')).toMatchObject({ outcome: 'failed', reason: 'auth' })
    expect(provider.requests).toHaveLength(6)
  },
)
