import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryStore, text, type SessionStore } from '@tapetree/session'
import { fromDisk, type DiskLine, type Line } from '@tapetree/session/format'
import { openFileStore } from '@tapetree/session/stores/file'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { FakeClock } from '../testing/fake-clock.ts'
import { script, scriptedModel, type ScriptBuilder, type ScriptedModel } from '../testing/scripted-model.ts'
import { allowAll, defineTool, type Tool } from '../tools/tool.ts'
import { abandonRun } from '../run/abandon-run.ts'
import type { AgentEvent } from '../run/events.ts'
import { AgentSession } from './agent-session.ts'
import type { AgentSessionOptions, PromptOutcome } from './agent-session-options.ts'
import { onlyModel } from './model-choice.ts'
import type { Run } from '../run/run-slot.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

/** A refund that takes as long as the test wants. */
class Refunds {
  readonly made: string[] = []
  readonly #started = Promise.withResolvers<void>()
  readonly #finish = Promise.withResolvers<void>()

  get started(): Promise<void> {
    return this.#started.promise
  }

  finish(): void {
    this.#finish.resolve()
  }

  tool(): Tool {
    return defineTool({
      name: 'refund',
      description: 'Refund an order.',
      schema: z.looseObject({}),
      access: () => [],
      run: async (_, { callId, signal }) => {
        this.made.push(callId)
        this.#started.resolve()
        const stopped = new Promise<never>((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
        })
        await Promise.race([this.#finish.promise, stopped])
        return { content: 'refunded' }
      },
    })
  }
}

/** A session that a test can open as often as it wants, like a program that opens it for each request. */
class Shop {
  readonly refunds = new Refunds()
  readonly store: SessionStore
  readonly sessionId: string
  readonly #model: ScriptedModel

  constructor(store: SessionStore, sessionId: string, model: ScriptedModel) {
    this.store = store
    this.sessionId = sessionId
    this.#model = model
  }

  static async open(answers: ScriptBuilder, store = memoryStore()): Promise<Shop> {
    await using session = await store.create()
    return new Shop(store, session.id, scriptedModel(answers))
  }

  async owner(options: Partial<AgentSessionOptions> = {}): Promise<AgentSession> {
    const agent = await AgentSession.open({
      store: this.store,
      sessionId: this.sessionId,
      models: onlyModel(this.#model),
      tools: () => [this.refunds.tool()],
      gate: () => allowAll,
      hasSubagents: false,
      ...options,
    })
    cleanUps.push(() => agent.close())
    return agent
  }

  async lines(): Promise<Line[]> {
    await using session = await this.store.open(this.sessionId, { readOnly: true })
    const lines: Line[] = []
    for await (const stored of session.lines()) {
      if (stored.type === 'line') lines.push(fromDisk(JSON.parse(stored.text) as DiskLine, stored.seq))
    }
    return lines
  }

  async types(): Promise<string[]> {
    return (await this.lines()).map(({ type }) => type)
  }

  /** The context of the model, in short form. */
  async said(): Promise<string[]> {
    await using session = await this.store.open(this.sessionId, { readOnly: true })
    const { messages } = await session.getContext()
    return messages.map(({ message }) => {
      const words = message.content.map((block) => {
        if (block.type === 'text') return block.text.content
        return block.type === 'tool_result' ? JSON.stringify(block.toolResult.content) : block.type
      })
      return `${message.role}: ${words.join(' ')}`
    })
  }

  async count(type: Line['type']): Promise<number> {
    return (await this.types()).filter((each) => each === type).length
  }
}

function runOf(outcome: PromptOutcome): Run {
  if (outcome.type !== 'started') throw new Error(`it was ${outcome.type}`)
  return outcome.run
}

const refundOnce = (): ScriptBuilder => script().toolCall('c1', 'refund').step().text('Done.').step().text('Welcome.')

/** A model call that starts and then waits for the test. */
function held(): { begun: Promise<void>; go: () => void; wait: () => Promise<void> } {
  const begun = Promise.withResolvers<void>()
  const go = Promise.withResolvers<void>()
  const wait = (): Promise<void> => {
    begun.resolve()
    return go.promise
  }
  return { begun: begun.promise, go: () => go.resolve(), wait }
}

async function fileStore(): Promise<{ folder: string; store: SessionStore }> {
  const folder = await mkdtemp(join(tmpdir(), 'one-session-'))
  const store = openFileStore({ folder })
  cleanUps.push(() => rm(folder, { recursive: true, force: true }))
  cleanUps.push(() => store.close())
  return { folder, store }
}

describe.each(['memory', 'files'])('two agent sessions on one session, in %s', (kind) => {
  const storeOf = async (): Promise<SessionStore> => (kind === 'memory' ? memoryStore() : (await fileStore()).store)

  test('a request that opens, resumes and prompts during the run of another one does not refund twice', async () => {
    const shop = await Shop.open(refundOnce(), await storeOf())
    const handle = async (words: string): Promise<{ resumed: Run | undefined; outcome: PromptOutcome }> => {
      const agent = await shop.owner()
      return { resumed: await agent.resume(), outcome: await agent.prompt(words) }
    }
    const first = await handle('Refund my order.')
    await shop.refunds.started
    const second = await handle('Thanks.')
    shop.refunds.finish()
    expect(await runOf(first.outcome).done).toMatchObject({ outcome: 'completed' })
    expect(second.resumed?.id).toBe(first.outcome.runId)
    expect(second.outcome).toMatchObject({ type: 'queued', runId: first.outcome.runId })
    expect(shop.refunds.made).toEqual(['c1'])
    expect(await shop.said()).toEqual([
      'user: Refund my order.',
      'assistant: tool_use',
      'tool: "refunded"',
      'assistant: Done.',
      'user: Thanks.',
      'assistant: Welcome.',
    ])
    expect(await shop.count('run_end')).toBe(2)
  })

  test('resume during a run of the other one returns that run and appends nothing', async () => {
    const shop = await Shop.open(refundOnce(), await storeOf())
    const [first, second] = [await shop.owner(), await shop.owner()]
    const run = runOf(await first.prompt('Refund my order.'))
    await shop.refunds.started
    const before = await shop.lines()
    const resumed = await second.resume({ byPerson: true })
    expect(await shop.lines()).toEqual(before)
    shop.refunds.finish()
    expect(resumed?.id).toBe(run.id)
    expect(await resumed?.done).toEqual(await run.done)
    expect(JSON.stringify(await shop.lines())).not.toContain('The process ended')
    expect(await shop.count('run_start')).toBe(1)
  })

  test('each message is delivered once when all of them prompt at the same time', async () => {
    const answers = script()
    for (const words of ['one', 'two', 'three', 'four']) answers.text(words).step()
    const shop = await Shop.open(answers, await storeOf())
    const owners = await Promise.all(Array.from({ length: 4 }, () => shop.owner()))
    const outcomes = await Promise.all(owners.map((agent, index) => agent.prompt(`message ${index}`)))
    expect(outcomes.filter(({ type }) => type === 'started')).toHaveLength(1)
    await Promise.all(outcomes.flatMap((outcome) => (outcome.type === 'started' ? [outcome.run.done] : [])))
    const said = await shop.said()
    expect(said.filter((each) => each.startsWith('user')).sort()).toEqual([0, 1, 2, 3].map((n) => `user: message ${n}`))
    expect(said.filter((each) => each.startsWith('assistant'))).toHaveLength(4)
    expect(await shop.count('run_start')).toBe(await shop.count('run_end'))
  })
})

describe('during a run of another agent session', () => {
  async function running(options: Partial<AgentSessionOptions> = {}): Promise<{
    shop: Shop
    starter: AgentSession
    other: AgentSession
    run: Run
  }> {
    const shop = await Shop.open(refundOnce())
    const [starter, other] = [await shop.owner(options), await shop.owner()]
    const run = runOf(await starter.prompt('Refund my order.'))
    await shop.refunds.started
    return { shop, starter, other, run }
  }

  test('nothing can be resumed, and the session is busy', async () => {
    const { other, run } = await running()
    expect(await other.planResume()).toBeUndefined()
    expect(other.state()).toMatchObject({ isBusy: true, openRun: run.id })
  })

  test('the run cannot be abandoned, and nothing is appended about it', async () => {
    const { shop, other } = await running()
    const before = await shop.lines()
    await expect(abandonRun(other.session)).rejects.toMatchObject({ code: 'session-busy' })
    expect(await shop.lines()).toEqual(before)
  })

  test('a prompt is queued, steers or is rejected, as `whenBusy` says', async () => {
    const { shop, other, run } = await running()
    expect(await other.prompt('later')).toMatchObject({ type: 'queued', runId: run.id })
    expect(await other.steer('now')).toMatchObject({ type: 'steered', runId: run.id })
    await expect(other.prompt('no', { whenBusy: 'reject' })).rejects.toMatchObject({ code: 'session-busy' })
    expect(await shop.count('run_start')).toBe(1)
  })

  test('navigate, retry and compact are rejected', async () => {
    const { other } = await running()
    for (const busy of [
      other.navigate(null),
      other.navigate(null, { summarize: true }),
      other.retry(),
      other.compact(),
    ])
      await expect(busy).rejects.toMatchObject({ code: 'session-busy' })
  })

  test('any of them can stop it', async () => {
    const { shop, other, run } = await running()
    await other.abort()
    expect(await run.done).toMatchObject({ outcome: 'aborted' })
    expect(await shop.count('run_end')).toBe(1)
  })

  test('closing an agent session that did not start it does not stop it', async () => {
    const { shop, other, run } = await running()
    await other.close()
    shop.refunds.finish()
    expect(await run.done).toMatchObject({ outcome: 'completed' })
  })

  test('closing the one that started it stops it; messages queued by another one are held, as after any abort', async () => {
    const { shop, starter, other } = await running()
    await other.prompt('And now?')
    await starter.close()
    expect(other.state()).toMatchObject({ isBusy: false, waiting: [{ message: 'And now?' }] })
    expect(other.session.inbox.hold).toEqual({ reason: 'the last run was aborted' })
    const idle = idleOf(other)
    await other.session.changeInbox({ action: 'release' })
    other.wake()
    await idle
    expect((await shop.said()).slice(-2)).toEqual(['user: And now?', 'assistant: Done.'])
    const outcomes = (await shop.lines()).flatMap((line) => (line.type === 'run_end' ? [line.runEnd.outcome] : []))
    expect(outcomes).toEqual(['aborted', 'completed'])
  })

  test('closing the one that started it just before a queued message is delivered leaves the delivery to another one', async () => {
    const clock = new FakeClock()
    const { shop, starter, other } = await running({ clock, settings: () => ({ followUpDelayMs: 1000 }) })
    await other.prompt('And now?')
    const announced = new Promise<void>((resolve) => {
      other.subscribe(({ type }) => type === 'queue_message_sending' && resolve())
    })
    shop.refunds.finish()
    await announced
    const idle = idleOf(other)
    await starter.close()
    await idle
    expect((await shop.said()).slice(-2)).toEqual(['user: And now?', 'assistant: Welcome.'])
    expect(other.session.inbox).toEqual({ messages: [], hold: null })
  })

  test('all of them get its events and its end', async () => {
    const { shop, other, run } = await running()
    const heard: AgentEvent[] = []
    other.subscribe((event) => heard.push(event))
    shop.refunds.finish()
    await run.done
    expect(heard.filter(({ type }) => type === 'delta')).not.toEqual([])
    expect(heard.filter(({ type }) => type === 'agent_idle')).toHaveLength(1)
  })

  test('a run that its owner suspends is resumed by another one, after all its work has ended', async () => {
    const { shop, starter, other, run } = await running()
    await starter.suspend()
    const resumed = await other.resume()
    expect(resumed?.id).toBe(run.id)
    expect(await resumed?.done).toMatchObject({ outcome: 'completed' })
    expect(shop.refunds.made).toEqual(['c1'])
    expect(await shop.count('run_end')).toBe(1)
  })
})

function idleOf(agent: AgentSession): Promise<void> {
  return new Promise((resolve) => {
    let runs = 0
    agent.subscribe((event) => {
      if (event.type === 'line' && event.committed.line.type === 'run_start') runs++
      if (event.type === 'agent_idle' && runs > 0) resolve()
    })
  })
}

describe('a question', () => {
  test('has one answer if two agent sessions answer it at the same time', async () => {
    const shop = await Shop.open(refundOnce())
    const askingGate: AgentSessionOptions['gate'] = (requests) => ({
      admit: async ({ runId, callId, tool, input }, signal) => {
        const question = { runId, callId, tool, input, title: 'Refund it?', options: [] }
        const { outcome } = await requests.ask(question, signal)
        return outcome === 'allowed' ? { type: 'allowed' } : { type: 'denied', reason: 'The user said no.' }
      },
    })
    const [starter, other] = [await shop.owner({ gate: askingGate }), await shop.owner()]
    const asked = new Promise<string>((resolve) => {
      other.subscribe((event) => {
        const line = event.type === 'line' ? event.committed.line : undefined
        if (line?.type === 'permission_request') resolve(line.permissionRequest.requestId)
      })
    })
    const run = runOf(await starter.prompt('Refund my order.'))
    const requestId = await asked
    shop.refunds.finish()
    const answers = await Promise.all([other, starter].map((agent) => agent.answer({ requestId, outcome: 'allowed' })))
    expect(answers.map(({ type }) => type)).toEqual(['taken', 'too-late'])
    await run.done
    expect(await shop.count('permission_result')).toBe(1)
    expect(shop.refunds.made).toEqual(['c1'])
  })
})

describe('an interrupted run', () => {
  async function interrupted(): Promise<Shop> {
    const { store } = await fileStore()
    const shop = await Shop.open(refundOnce(), store)
    await using session = await store.open(shop.sessionId)
    const leafId = await session.appendMessage('user', [text('Refund my order.')])
    await session.append({ type: 'run_start', runStart: { runId: 'r1', leafId } })
    const question = { requestId: 'q1', runId: 'r1', tool: 'refund', title: 'Refund it?', input: {}, options: [] }
    await session.append({ type: 'permission_request', permissionRequest: question })
    return shop
  }

  test('that a prompt closes while its question is answered has one answer to it', async () => {
    const shop = await interrupted()
    const [first, second] = [await shop.owner(), await shop.owner()]
    shop.refunds.finish()
    const [, outcome] = await Promise.all([
      first.answer({ requestId: 'q1', outcome: 'allowed' }),
      second.prompt('Forget it.'),
    ])
    await runOf(outcome).done
    expect(await shop.count('permission_result')).toBe(1)
  })

  test('rejects a resume while the agent session is closed, and stays as it is', async () => {
    const shop = await interrupted()
    const agent = await shop.owner()
    const before = await shop.types()
    const resumed = agent.resume()
    const refused = expect(resumed).rejects.toMatchObject({ code: 'session-closed' })
    await agent.close()
    await refused
    expect(await shop.types()).toEqual(before)
  })
})

describe('a requested summary', () => {
  const longAgo = 'The user wants many things done. '.repeat(400)

  async function summarizing(): Promise<{
    shop: Shop
    first: AgentSession
    second: AgentSession
    summary: ReturnType<typeof held>
    oldest: string
  }> {
    const summary = held()
    const store = memoryStore()
    const session = await store.create()
    for (let turn = 0; turn < 4; turn++) {
      await session.appendMessage('user', [text(longAgo)])
      await session.appendMessage('assistant', [text(longAgo)])
    }
    const [oldest] = await session.getContextPath()
    await session.close()
    const model = scriptedModel(script().do(summary.wait).text('In short.'), {
      otherwise: ({ system }) => script().text(system === '' ? 'Hello.' : 'In short.'),
    })
    const shop = new Shop(store, session.id, model)
    const settings = (): object => ({ compaction: { isEnabled: false, reserveTokens: 100, keepTokens: 100 } })
    const [first, second] = [await shop.owner({ settings }), await shop.owner({ settings })]
    return { shop, first, second, summary, oldest: oldest?.id ?? '' }
  }

  test.each(['compaction', 'branch'] as const)('(%s) queues prompts and delivers them after it', async (what) => {
    const { shop, first, second, summary, oldest } = await summarizing()
    const done = what === 'compaction' ? first.compact() : first.navigate(oldest, { summarize: true })
    await summary.begun
    await expect(first.prompt('no', { whenBusy: 'reject' })).rejects.toMatchObject({ code: 'session-busy' })
    await expect(second.retry()).rejects.toMatchObject({ code: 'session-busy' })
    await expect(second.compact()).rejects.toMatchObject({ code: 'session-busy' })
    expect(await second.prompt('Hi.')).toMatchObject({ type: 'queued', runId: null })
    const idle = idleOf(second)
    summary.go()
    await done
    await idle
    const said = (await shop.said()).map((each) => each.replace(longAgo, '…'))
    expect(said.slice(-2)).toEqual(['user: Hi.', 'assistant: Hello.'])
    expect(said.join('\n')).toContain('In short.')
    expect(await shop.count(what === 'compaction' ? 'compaction' : 'branch_summary')).toBe(1)
  })

  test('is stopped by abort, and leaves no trace', async () => {
    const { shop, first, second, summary } = await summarizing()
    const done = first.compact()
    await summary.begun
    const refused = expect(done).rejects.toMatchObject({ name: 'AbortError' })
    const stopped = second.abort()
    summary.go()
    await Promise.all([refused, stopped])
    expect(await shop.count('compaction')).toBe(0)
    expect(second.state().isBusy).toBe(false)
  })
})

test('an agent session that fails to open leaves nothing behind', async () => {
  const shop = await Shop.open(refundOnce())
  await using session = await shop.store.open(shop.sessionId)
  const tools = (): Tool[] => [shop.refunds.tool(), shop.refunds.tool()]
  await expect(shop.owner({ tools })).rejects.toThrow('refund')
  const agent = await shop.owner()
  shop.refunds.finish()
  const run = runOf(await agent.prompt('Refund my order.'))
  expect(await run.done).toMatchObject({ outcome: 'completed' })
  expect(session.openRun).toBeNull()
})

test('a second store on the same folder in this process cannot run the session, and reports that', async () => {
  const { folder, store } = await fileStore()
  const shop = await Shop.open(refundOnce(), store)
  const agent = await shop.owner()
  const other = openFileStore({ folder })
  cleanUps.push(() => other.close())
  await expect(shop.owner({ store: other })).rejects.toMatchObject({ code: 'read-only' })
  const run = runOf(await agent.prompt('Refund my order.'))
  await shop.refunds.started
  await expect(shop.owner({ store: other })).rejects.toMatchObject({ code: 'read-only' })
  shop.refunds.finish()
  expect(await run.done).toMatchObject({ outcome: 'completed' })
})

test('a user command stays on the path when another agent session prompts at the same time', async () => {
  const shop = await Shop.open(script().text('Hello.'))
  const [first, second] = [await shop.owner(), await shop.owner()]
  const [, outcome] = await Promise.all([first.setThinkingLevel('high'), second.prompt('Hi.')])
  await runOf(outcome).done
  const { messages } = await second.session.getContext()
  expect(messages.map(({ message }) => message.role)).toEqual(['user', 'assistant'])
  const path = (await second.session.getContextPath()).map(({ type }) => type)
  expect(path).toContain('thinking_level')
})
