import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryStore, text, type SessionStore } from '@tapetree/session'
import type { Line } from '@tapetree/session/format'
import { openFileStore } from '@tapetree/session/stores/file'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { noHooks } from '../run/hooks.ts'
import { FakeClock } from '../testing/fake-clock.ts'
import { ScriptedModel, script, scriptedModel, type ScriptBuilder } from '../testing/scripted-model.ts'
import { allowAll } from '../tools/tool.ts'
import { dismissSupervisor } from '../tools/commands/supervisor-process.ts'
import { AgentSession } from './agent-session.ts'
import type { AgentSessionOptions, PromptOptions } from './agent-session-options.ts'
import type { AgentEvent } from '../run/events.ts'
import { onlyModel } from './model-choice.ts'
import { parseShellInput } from './shell.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

interface Opened {
  agent: AgentSession
  events: AgentEvent[]
  store: SessionStore
}

async function open(model: ScriptedModel | ScriptBuilder, options: Partial<AgentSessionOptions> = {}): Promise<Opened> {
  const scripted = model instanceof ScriptedModel ? model : scriptedModel(model)
  const store = options.store ?? memoryStore()
  const agent = await AgentSession.open({
    models: onlyModel(scripted),
    tools: () => [scripted.tool('look', { readOnly: true }), scripted.tool('act')],
    systemPrompt: () => 'You are a test.',
    gate: () => allowAll,
    hasSubagents: false,
    ...options,
    store,
  })
  const events: AgentEvent[] = []
  agent.subscribe((event) => events.push(event))
  cleanUps.push(() => agent.close())
  return { agent, events, store }
}

async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'agent-session-'))
  cleanUps.push(() => rm(made, { recursive: true, force: true }))
  return made
}

/** The run that a prompt started, after it has ended. */
async function finished(agent: AgentSession, words: string): Promise<void> {
  const outcome = await agent.prompt(words)
  if (outcome.type !== 'started') throw new Error(`it was ${outcome.type}`)
  await outcome.run.done
}

async function path(agent: AgentSession): Promise<string[]> {
  const entries = await agent.session.getContextPath()
  return entries.flatMap((entry) => {
    if (entry.type !== 'message') return []
    const { role, content, bashExecution } = entry.message
    const said = content.map((block) => (block.type === 'text' ? block.text.content : `<${block.type}>`)).join(' ')
    return [`${role}: ${bashExecution ? `${bashExecution.command} → ${bashExecution.output}` : said}`]
  })
}

function linesOf(events: AgentEvent[], type: Line['type']): Line[] {
  return events.flatMap((event) =>
    event.type === 'line' && event.committed.line.type === type ? [event.committed.line] : [],
  )
}

test('a session that cannot get a model is not kept open', async () => {
  const root = await folder()
  const store = openFileStore({ folder: root })
  cleanUps.push(() => store.close())
  const { id } = await store.create().then(async (session) => (await session.close(), session))
  const models = { open: () => Promise.reject(new Error('no key')), choices: () => Promise.resolve([]) }
  await expect(AgentSession.open({ store, sessionId: id, models })).rejects.toThrow('No model is available.')
  await store.archive(id)
  expect((await store.list({ place: 'archive' })).sessions).toMatchObject([{ id }])
})

test.each<[string, Partial<AgentSessionOptions>, string]>([
  [
    'no model',
    { models: { open: () => Promise.reject(new Error('Set KEY.')), choices: async () => [] } },
    'No model is available',
  ],
  ['an unknown model', { model: { provider: 'scripted', modelId: 'nosuch' } }, 'There is no model'],
  [
    'a gate that fails',
    {
      gate: () => {
        throw new Error('no gate today')
      },
    },
    'no gate today',
  ],
  [
    'two tools with the same name',
    { tools: () => [scriptedModel([]).tool('a'), scriptedModel([]).tool('a')] },
    'named a',
  ],
])('a start that fails because of %s creates no session', async (_, options, problem) => {
  const store = memoryStore()
  await expect(open(script(), { store, ...options })).rejects.toThrow(problem)
  expect((await store.list()).sessions).toEqual([])
})

describe('a prompt', () => {
  test('to an idle session starts a run, logs its id, and returns how it ended', async () => {
    const { agent, events } = await open(script().text('hello'))
    const outcome = await agent.prompt('hi')
    if (outcome.type !== 'started') throw new Error(outcome.type)
    expect(await outcome.run.done).toMatchObject({ runId: outcome.runId, outcome: 'completed' })
    expect(linesOf(events, 'run_start')).toMatchObject([{ runStart: { runId: outcome.runId } }])
    expect(await path(agent)).toEqual(['user: hi', 'assistant: hello'])
    expect(agent.state()).toMatchObject({ isBusy: false, openRun: null, waiting: [] })
  })

  test('during a run is queued, steers it, or is rejected, as `whenBusy` says', async () => {
    const asked = Promise.withResolvers<void>()
    const go = Promise.withResolvers<void>()
    const first = script().do(() => {
      asked.resolve()
      return go.promise
    })
    const { agent } = await open(first.text('one').step().text('two').step().text('three'))
    const begun = await agent.prompt('first')
    await asked.promise
    expect(await agent.prompt('later', { whenBusy: 'queue' })).toMatchObject({ type: 'queued', runId: begun.runId })
    expect(await agent.steer('now')).toMatchObject({ type: 'steered', runId: begun.runId })
    await expect(agent.prompt('no', { whenBusy: 'reject' })).rejects.toMatchObject({ code: 'session-busy' })
    go.resolve()
    if (begun.type === 'started') await begun.run.done
    expect(await path(agent)).toEqual([
      'user: first',
      'assistant: one',
      'user: now',
      'assistant: two',
      'user: later',
      'assistant: three',
    ])
  })

  test('that is empty is rejected before anything is appended', async () => {
    const { agent } = await open(script())
    await expect(agent.prompt('  \n')).rejects.toMatchObject({ code: 'empty-prompt' })
    expect(agent.session.head.seq).toBe(1)
  })

  test('is expanded, unless `expandTemplates` is false', async () => {
    const model = scriptedModel(script().text('a').step().text('b'))
    const expand = (typed: string) => Promise.resolve({ type: 'as_typed' as const, text: `expanded ${typed}` })
    const { agent } = await open(model, { expand })
    await finished(agent, '/it')
    const outcome = await agent.prompt('/it', { expandTemplates: false })
    if (outcome.type === 'started') await outcome.run.done
    expect(await path(agent)).toEqual(['user: expanded /it', 'assistant: a', 'user: /it', 'assistant: b'])
  })

  test('that names an unknown skill is rejected with its name', async () => {
    const unknown = { type: 'unknown' as const, text: '', command: { kind: 'skill' as const, name: 'x', typed: '' } }
    const { agent } = await open(script(), { expand: () => Promise.resolve(unknown) })
    await expect(agent.prompt('/skill:x')).rejects.toThrow('There is no skill x.')
  })

  test('keeps its source in the log, unless a cause is given', async () => {
    const { agent, events } = await open(script().text('one').step().text('two'))
    const said = async (options: PromptOptions): Promise<void> => {
      const outcome = await agent.prompt('go', options)
      if (outcome.type === 'started') await outcome.run.done
    }
    await said({ source: 'interactive' })
    await said({ source: 'interactive', cause: { cmd: 'c1', client: 'screen' } })
    const causes = linesOf(events, 'message').flatMap((line) => ('cause' in line && line.cause ? [line.cause] : []))
    expect(causes).toEqual([
      { cmd: expect.any(String) as string, client: 'interactive' },
      { cmd: 'c1', client: 'screen' },
    ])
  })

  test('may have images, also when it is queued', async () => {
    const { promise: go, resolve } = Promise.withResolvers<void>()
    const { agent } = await open(
      script()
        .do(() => go)
        .text('one')
        .step()
        .text('two'),
    )
    const bytes = Buffer.from('\x89PNG\r\n\x1a\nand so on', 'latin1')
    const first = await agent.prompt('see', { images: [{ mediaType: 'image/png', bytes }] })
    await agent.followUp('and this', { images: [{ mediaType: 'image/png', bytes }] })
    resolve()
    if (first.type === 'started') await first.run.done
    expect(await path(agent)).toEqual([
      'user: see <image>',
      'assistant: one',
      'user: and this <image>',
      'assistant: two',
    ])
  })

  test('that arrives after the run has checked the queue for the last time is still delivered', async () => {
    const { agent, events } = await open(script().text('one').step().text('two'))
    const first = await agent.prompt('first')
    // As soon as the run has ended, and before its caller is notified.
    const late = Promise.withResolvers<unknown>()
    const stop = agent.subscribe((event) => {
      if (event.type !== 'line' || event.committed.line.type !== 'run_end') return
      stop()
      late.resolve(agent.followUp('second'))
    })
    if (first.type === 'started') await first.run.done
    await late.promise
    await vi.waitFor(() => expect(linesOf(events, 'run_end')).toHaveLength(2))
    expect(await path(agent)).toEqual(['user: first', 'assistant: one', 'user: second', 'assistant: two'])
  })

  test('completes after a message that new settings released during its run is delivered', async () => {
    let sendsFollowUps = false
    const { agent } = await open(script().text('1').step().text('2'), { settings: () => ({ sendsFollowUps }) })
    const stop = agent.session.subscribe(({ line }) => {
      if (line.type !== 'run_start') return
      stop()
      void agent.session.submit('second').then(() => (sendsFollowUps = true))
    })
    await finished(agent, 'first')
    expect(await path(agent)).toEqual(['user: first', 'assistant: 1', 'user: second', 'assistant: 2'])
  })
})

describe('an agent session', () => {
  test('stops on abort, and keeps the partial answer', async () => {
    const said = Promise.withResolvers<void>()
    const clock = new FakeClock()
    const model = scriptedModel(
      script()
        .text('so far')
        .do(() => said.resolve())
        .wait(1000),
      { clock },
    )
    const { agent } = await open(model, { clock })
    const outcome = await agent.prompt('go')
    await said.promise
    await agent.abort()
    if (outcome.type === 'started') expect(await outcome.run.done).toMatchObject({ outcome: 'aborted' })
    expect(await path(agent)).toEqual(['user: go', 'assistant: so far'])
  })

  test('retries from the leaf', async () => {
    const { agent } = await open(script().error('auth', 'no key').step().text('now it works'))
    const outcome = await agent.prompt('go')
    if (outcome.type === 'started') expect(await outcome.run.done).toMatchObject({ outcome: 'failed', reason: 'auth' })
    const again = await agent.retry()
    expect(await again.done).toMatchObject({ outcome: 'completed' })
    expect(await path(agent)).toEqual(['user: go', 'assistant: now it works'])
  })

  test('rejects a retry during a run, and the run continues', async () => {
    const { promise: go, resolve } = Promise.withResolvers<void>()
    const { agent, events } = await open(
      script()
        .do(() => go)
        .text('one'),
    )
    const first = await agent.prompt('first')
    await expect(agent.retry()).rejects.toMatchObject({ code: 'session-busy' })
    resolve()
    if (first.type === 'started') expect(await first.run.done).toMatchObject({ outcome: 'completed' })
    expect(linesOf(events, 'run_end')).toMatchObject([{ runEnd: { outcome: 'completed' } }])
    expect(await path(agent)).toEqual(['user: first', 'assistant: one'])
  })

  test('handles two simultaneous prompts one after the other', async () => {
    const { agent, events } = await open(script().text('one').step().text('two'))
    const outcomes = await Promise.all([agent.prompt('first'), agent.prompt('second')])
    expect(outcomes.map(({ type }) => type)).toEqual(['started', 'queued'])
    await vi.waitFor(() => expect(linesOf(events, 'run_end')).toHaveLength(2))
    expect(await path(agent)).toEqual(['user: first', 'assistant: one', 'user: second', 'assistant: two'])
  })

  test('that cannot be opened does not block the session for others', async () => {
    const store = memoryStore()
    const session = await store.create()
    await session.close()
    const models = {
      open: () => Promise.reject(new Error('Set KEY.')),
      choices: () => onlyModel(scriptedModel([])).choices(),
    }
    await expect(open(script(), { store, sessionId: session.id, models })).rejects.toThrow('Set KEY.')
    await store.delete(session.id)
  })

  test('resumes a run whose process died; a prompt closes the run instead', async () => {
    const store = openFileStore({ folder: await folder() })
    cleanUps.push(() => store.close())
    const session = await store.create()
    const leafId = await session.appendMessage('user', [{ type: 'text', text: { content: 'go' } }])
    await session.append({ type: 'run_start', runStart: { runId: 'r1', leafId } })
    await session.close()
    const { agent } = await open(script().text('done').step().text('then that'), { store, sessionId: session.id })
    expect(agent.state()).toMatchObject({ isBusy: false, openRun: 'r1' })
    expect(await agent.planResume()).toMatchObject({ runId: 'r1', matters: [{ type: 'unanswered' }] })
    const run = await agent.resume()
    expect(await run?.done).toMatchObject({ runId: 'r1', outcome: 'completed' })
    expect(await agent.resume()).toBeUndefined()
    await agent.session.append({ type: 'run_start', runStart: { runId: 'r2', leafId: agent.session.leafId } })
    await finished(agent, 'instead')
    expect(await path(agent)).toEqual(['user: go', 'assistant: done', 'user: instead', 'assistant: then that'])
  })

  test('that gets a resume and a new start at the same time does only one of them, and ends no active run', async () => {
    const store = memoryStore()
    const dead = await store.create()
    const leafId = await dead.appendMessage('user', [text('before the crash')])
    await dead.append({ type: 'run_start', runStart: { runId: 'interrupted-run', leafId } })
    await dead.close()
    const answers = script().text('one').step().text('two').step().text('three')
    const { agent, events } = await open(answers, { store, sessionId: dead.id })
    await Promise.allSettled([agent.resume({ byPerson: true }), agent.prompt('anew'), agent.retry()])
    await vi.waitFor(() => expect(agent.state().isBusy).toBe(false))
    const ended = linesOf(events, 'run_end').map((line) => line.type === 'run_end' && line.runEnd.runId)
    expect(new Set(ended).size).toBe(ended.length)
    const last = events.findLast((event) => event.type === 'line')
    expect(last).toMatchObject({ committed: { line: { type: 'run_end', runEnd: { outcome: 'completed' } } } })
  })

  test('does not start anew during a run, and the run continues', async () => {
    const go = Promise.withResolvers<void>()
    const { agent, events } = await open(
      script()
        .do(() => go.promise)
        .text('one'),
    )
    const outcome = await agent.prompt('hi')
    await expect(agent.retry()).rejects.toMatchObject({ code: 'session-busy' })
    go.resolve()
    if (outcome.type === 'started') await outcome.run.done
    expect(linesOf(events, 'run_end')).toMatchObject([{ runEnd: { outcome: 'completed' } }])
  })

  test('moves to any entry, with or without a summary of the abandoned branch', async () => {
    const { agent } = await open(
      script().text('one').step().text('two').step().text('They spoke of two.').step().text('x'),
    )
    await finished(agent, 'first')
    const at = agent.session.leafId
    await finished(agent, 'second')
    await agent.navigate(at, { summarize: true })
    const entries = await agent.session.getContextPath()
    expect(entries.at(-1)).toMatchObject({ type: 'branch_summary' })
    await agent.navigate(at)
    expect(agent.session.leafId).toBe(at)
    await agent.navigate(null)
    expect(await path(agent)).toEqual([])
  })

  test('continues in a copy of a path, in a new session, and in an earlier session', async () => {
    const { agent, events } = await open(script().text('one').step().text('two').step().text('three'))
    const first = agent.session.id
    await finished(agent, 'first')
    const forked = await agent.fork(agent.session.leafId ?? '')
    expect(agent.session.id).toBe(forked)
    await finished(agent, 'in the copy')
    expect(await path(agent)).toEqual(['user: first', 'assistant: one', 'user: in the copy', 'assistant: two'])
    const fresh = await agent.newSession(first)
    expect(agent.session.header?.parentSession).toBe(first)
    expect(await path(agent)).toEqual([])
    await agent.switchSession(first)
    expect(await path(agent)).toEqual(['user: first', 'assistant: one'])
    expect(events.flatMap((event) => (event.type === 'session_switched' ? [event.sessionId] : []))).toEqual([
      forked,
      fresh,
      first,
    ])
  })

  test('compacts on request, but not during a run', async () => {
    const long = 'words '.repeat(2000)
    const said = script().text(long).step().text(long).step().text('A summary.').step().text('ok')
    const { agent } = await open(said, {
      settings: () => ({ compaction: { isEnabled: true, reserveTokens: 100, keepTokens: 100 } }),
    })
    await finished(agent, 'first')
    await finished(agent, 'second')
    expect(await agent.compact('keep the names')).toMatchObject({ type: 'compacted' })
    const outcome = await agent.prompt('third')
    await expect(agent.compact()).rejects.toMatchObject({ code: 'session-busy' })
    if (outcome.type === 'started') await outcome.run.done
  })

  test('labels, names and shows its state', async () => {
    const { agent } = await open(script().text('one'))
    await finished(agent, 'first')
    await agent.setLabel(agent.session.leafId ?? '', 'here')
    await agent.setName('A name')
    expect([...agent.session.getLabels().values()]).toEqual(['here'])
    expect(agent.state()).toMatchObject({ name: 'A name', mode: 'ask', thinkingLevel: 'off', totals: { turns: 1 } })
  })

  test('is not affected by a listener that throws', async () => {
    const { agent } = await open(script().text('one'))
    agent.subscribe(() => {
      throw new Error('broken')
    })
    await finished(agent, 'first')
    expect(await path(agent)).toEqual(['user: first', 'assistant: one'])
  })

  test('reports changes in the environment once, before the message', async () => {
    const changes = ['It is Monday.', undefined]
    const { agent } = await open(script().text('one').step().text('two'), {
      environmentChanges: () => Promise.resolve(changes.shift()),
    })
    await finished(agent, 'first')
    await finished(agent, 'second')
    expect(await path(agent)).toEqual([
      'custom: It is Monday.',
      'user: first',
      'assistant: one',
      'user: second',
      'assistant: two',
    ])
  })
})

describe('models', () => {
  const models = (...given: ScriptedModel[]): NonNullable<AgentSessionOptions['models']> => ({
    open: (provider, modelId) => {
      const found = given.find((each) => each.provider === provider && each.id === modelId)
      return found ? Promise.resolve(found) : Promise.reject(new Error(`Set KEY to use ${modelId}.`))
    },
    choices: () => Promise.resolve(['a', 'b', 'c'].map((modelId) => ({ provider: 'scripted', modelId }))),
  })

  test('are switched, and the next run records it in the log', async () => {
    const a = scriptedModel(script().text('from a'), { id: 'a' })
    const c = scriptedModel(script().text('from c'), { id: 'c' })
    const { agent, events } = await open(a, { models: models(a, c) })
    await finished(agent, 'first')
    await expect(agent.setModel('scripted', 'b')).rejects.toThrow('Set KEY to use b.')
    expect((await agent.cycleModel()).id).toBe('c')
    await finished(agent, 'second')
    expect(await path(agent)).toEqual(['user: first', 'assistant: from a', 'user: second', 'assistant: from c'])
    expect(linesOf(events, 'model_change')).toMatchObject([
      { modelChange: { modelId: 'a' } },
      { modelChange: { modelId: 'c' } },
    ])
    expect((await agent.cycleModel('backward')).id).toBe('a')
  })

  test('and thinking levels that are set during a run take effect with the next one', async () => {
    const { promise: go, resolve } = Promise.withResolvers<void>()
    const a = scriptedModel(
      script()
        .do(() => go)
        .text('one')
        .step()
        .text('two'),
      { id: 'a' },
    )
    const { agent } = await open(a, { models: models(a) })
    const first = await agent.prompt('first')
    await agent.setThinkingLevel('high')
    resolve()
    if (first.type === 'started') await first.run.done
    await finished(agent, 'second')
    expect(a.requests.map(({ thinkingLevel }) => thinkingLevel)).toEqual(['off', 'high'])
  })

  test('are restored from the log when a session is opened again', async () => {
    const store = memoryStore()
    const a = scriptedModel(script().text('one'), { id: 'a' })
    const c = scriptedModel(script().text('two'), { id: 'c' })
    const { agent } = await open(a, { store, models: models(a, c) })
    await agent.setModel('scripted', 'c')
    await agent.setThinkingLevel('low')
    const { id } = agent.session
    const { agent: again } = await open(a, { store, sessionId: id, models: models(a, c) })
    expect(again.state()).toMatchObject({ model: { modelId: 'c' }, thinkingLevel: 'low' })
  })

  test('that are gone are named, and the requested model or the first usable choice replaces them', async () => {
    const store = memoryStore()
    const old = scriptedModel(script().text('from old'), { id: 'old' })
    const { agent } = await open(old, { store })
    await finished(agent, 'first')
    const { id: sessionId } = agent.session
    await agent.close()
    const c = scriptedModel(script().text('from c'), { id: 'c' })
    const { agent: again, events } = await open(c, { store, sessionId, models: models(c) })
    expect(again.state()).toMatchObject({
      model: { modelId: 'c' },
      missingModel: { provider: 'scripted', modelId: 'old', reason: 'Set KEY to use old.' },
    })
    await finished(again, 'second')
    expect(linesOf(events, 'model_change')).toMatchObject([{ modelChange: { modelId: 'c' } }])
    expect(await path(again)).toEqual(['user: first', 'assistant: from old', 'user: second', 'assistant: from c'])
    const wanted = scriptedModel([], { id: 'wanted' })
    await again.close()
    const model = { provider: 'scripted', modelId: 'wanted' }
    const { agent: third } = await open(wanted, { store, sessionId, models: models(wanted), model })
    expect(third.state()).toMatchObject({ model: { modelId: 'wanted' }, missingModel: { modelId: 'c' } })
    await third.setModel('scripted', 'wanted')
    expect(third.state()).toMatchObject({ missingModel: null })
  })

  test('replace one whose quota is exhausted, and the log records it', async () => {
    const a = scriptedModel(script().error('quota', 'used up'), { id: 'a' })
    const c = scriptedModel(script().text('here I am'), { id: 'c' })
    const { agent, events } = await open(a, {
      models: models(a, c),
      fallbackModel: { provider: 'scripted', modelId: 'c' },
    })
    await finished(agent, 'go')
    expect(await path(agent)).toEqual(['user: go', 'assistant: here I am'])
    expect(linesOf(events, 'model_change')).toMatchObject([
      { modelChange: { modelId: 'a' } },
      { modelChange: { modelId: 'c' } },
    ])
  })
})

describe('a title', () => {
  test('is the beginning of the first prompt, or comes from a small model', async () => {
    const { agent } = await open(script().text('ok'))
    await finished(agent, 'Mend the leaking\ntap')
    await vi.waitFor(() => expect(agent.session.name).toBe('Mend the leaking tap'))
    const small = scriptedModel(script().text('"Tap repair."'), { id: 'small' })
    const main = scriptedModel(script().text('ok'))
    const models: NonNullable<AgentSessionOptions['models']> = {
      open: (_, id) => Promise.resolve(id === 'small' ? small : main),
      choices: () => onlyModel(main).choices(),
    }
    const { agent: named } = await open(main, { models, smallModel: { provider: 'scripted', modelId: 'small' } })
    await finished(named, 'Mend the leaking tap')
    await vi.waitFor(() => expect(named.session.name).toBe('Tap repair'))
  })

  test('that cannot be made does not fail the prompt', async () => {
    const main = scriptedModel(script().text('ok'))
    const models: NonNullable<AgentSessionOptions['models']> = {
      open: (_, id) => (id === 'small' ? Promise.reject(new Error('no key')) : Promise.resolve(main)),
      choices: () => onlyModel(main).choices(),
    }
    const { agent } = await open(main, { models, smallModel: { provider: 'scripted', modelId: 'small' } })
    await finished(agent, 'Mend the tap')
    await vi.waitFor(() => expect(agent.session.name).toBe('Mend the tap'))
  })
})

describe('a command of the user', () => {
  afterEach(() => dismissSupervisor())

  test('runs with its prefix, is shown to the model, and streams its output', async () => {
    const cwd = await folder()
    await writeFile(join(cwd, 'a.txt'), '')
    const model = scriptedModel(script().text('I see'))
    const { agent, events } = await open(model, { cwd, shellPrefix: 'greet() { echo hello from the prefix; }' })
    expect(await agent.executeBash('greet; ls; exit 3')).toMatchObject({
      output: 'hello from the prefix\na.txt',
      exitCode: 3,
    })
    expect(events.some((event) => event.type === 'delta' && event.kind === 'tool_output')).toBe(true)
    await finished(agent, 'look')
    expect(await path(agent)).toEqual([
      'bashExecution: greet; ls; exit 3 → hello from the prefix\na.txt',
      'user: look',
      'assistant: I see',
    ])
    expect(model.requests[0]?.messages).toHaveLength(2)
  })

  test('with two exclamation marks is hidden from the model but recorded in the log', async () => {
    const model = scriptedModel(script().text('ok'))
    const { agent } = await open(model, { cwd: await folder() })
    expect(parseShellInput('!! echo quiet')).toEqual({ command: 'echo quiet', excludeFromContext: true })
    expect(parseShellInput('! ls')).toEqual({ command: 'ls', excludeFromContext: false })
    expect(parseShellInput('hello!')).toBeUndefined()
    await agent.executeBash('echo quiet', { excludeFromContext: true })
    await finished(agent, 'go')
    expect(model.requests[0]?.messages).toHaveLength(1)
    expect(await path(agent)).toContain('bashExecution: echo quiet → quiet')
  })

  test.each(['stopCommands', 'close', 'suspend'] as const)(
    'that is running at %s is stopped and recorded in the log',
    async (end) => {
      const cwd = await folder()
      const store = openFileStore({ folder: join(cwd, 'sessions') })
      const { agent, events } = await open(script().text('ok'), { cwd, store })
      const { id } = agent.session
      const running = agent.executeBash('echo begun; sleep 60; echo late >> late.txt')
      await vi.waitFor(() => expect(events.some((event) => event.type === 'delta')).toBe(true), { timeout: 10_000 })
      await agent[end]()
      expect(await running).toMatchObject({ output: expect.stringContaining('begun'), cancelled: true })
      await agent.close()
      const log = await readFile(join(cwd, 'sessions', id, 'events.jsonl'), 'utf8')
      expect(log.split('\n').findLast((line) => line.includes('echo begun'))).toContain('"cancelled":true')
    },
  )

  test('that ends during a run is on its path', async () => {
    const done = Promise.withResolvers<void>()
    const model = scriptedModel(
      script()
        .do(() => done.promise)
        .text('one')
        .step()
        .text('two'),
    )
    const { agent } = await open(model, { cwd: await folder() })
    const first = await agent.prompt('first')
    await agent.executeBash('echo meanwhile')
    done.resolve()
    if (first.type === 'started') await first.run.done
    await finished(agent, 'second')
    expect(await path(agent)).toEqual([
      'user: first',
      'bashExecution: echo meanwhile → meanwhile',
      'assistant: one',
      'user: second',
      'assistant: two',
    ])
  })
})

describe('hooks', () => {
  test('may change the prompt, a call, its result and the messages of a request', async () => {
    const model = scriptedModel(
      script().toolCall('1', 'act', { a: 1 }).toolResult('1', 'raw').toolCall('2', 'look').step().text('done'),
    )
    const { agent, events } = await open(model, {
      hooks: {
        ...noHooks,
        beforeAgentStart: ({ systemPrompt }) =>
          Promise.resolve({ systemPrompt: `${systemPrompt} More.`, messages: ['By the way.'] }),
        toolCall: (call) => Promise.resolve(call.name === 'look' ? 'not today' : { ...call, input: { a: 2 } }),
        toolResult: (_, output) => Promise.resolve({ ...output, content: `changed ${JSON.stringify(output.content)}` }),
        context: (messages) => Promise.resolve({ messages: messages.slice(-1), changedBy: ['shortener'] }),
      },
    })
    await finished(agent, 'go')
    expect(model.requests.map(({ system, messages }) => [system, messages.length])).toEqual([
      ['You are a test. More.', 1],
      ['You are a test. More.', 1],
    ])
    expect(linesOf(events, 'tool_start')).toMatchObject([{ toolStart: { callId: '1', input: { a: 2 } } }])
    const results = linesOf(events, 'message').flatMap((line) =>
      line.type === 'message'
        ? line.message.content.flatMap((block) => (block.type === 'tool_result' ? [block.toolResult] : []))
        : [],
    )
    expect(results).toMatchObject([{ content: 'changed "raw"' }, { content: 'not today', isError: true }])
    const requests = linesOf(events, 'message').flatMap((line) =>
      'request' in line && line.request ? [line.request] : [],
    )
    expect(requests).toMatchObject([{ params: { changedBy: ['shortener'] } }, {}])
  })
})
