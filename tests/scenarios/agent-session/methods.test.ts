import type { AgentSessionOptions } from '@tapetree/agent'
import { expandPrompt } from '@tapetree/agent/run'
import { createModelRegistry, registryModels } from '@tapetree/agent/models'
import { loadResources } from '@tapetree/agent/settings'
import { script, scriptedModel, type ScriptedModel } from '@tapetree/agent/testing'
import { memoryStore, type SessionStore } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, vi } from 'vitest'
import { stopped, tool } from '../../golden/tool.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { verifies } from '../../support/verifies.ts'
import { door, finish, linesOf, openAgent, pathOf } from './opened-agent.ts'

const long = 'some words to sum up, '.repeat(50)

verifies(
  ['agent-session/1 what-it-manages', 'agent-session/2 lifecycle', 'agent-session/5 close'],
  'an agent is opened, works, is closed in the middle of a run, and another one finds its model, its level and its words',
  async () => {
    const store = openFileStore({ folder: temporaryFolder() })
    onTestFinished(() => store.close())
    const wait = door()
    const { agent } = await openAgent({ store, script: script().text('1').step().text('half').do(wait.pass) })
    await agent.setThinkingLevel('high')
    await finish(agent, 'one')
    await agent.prompt('two')
    await wait.reached
    const closed = agent.close()
    wait.open()
    await closed
    await expect(agent.prompt('three')).rejects.toMatchObject({ code: 'session-closed' })
    const { agent: later } = await openAgent({ store, sessionId: agent.session.id })
    expect(await pathOf(later)).toEqual(['user: one', 'assistant: 1', 'user: two', 'assistant: half'])
    expect(later.state()).toMatchObject({ isBusy: false, openRun: null, thinkingLevel: 'high' })
  },
)

verifies(
  ['agent-session/2 no-storage-of-its-own', 'agent-session/4.1 config-manager'],
  'the same conversation is kept line by line by whatever store is given, in memory or in files',
  async () => {
    const types = async (store: SessionStore): Promise<unknown[]> => {
      onTestFinished(() => store.close())
      const { agent, events } = await openAgent({ store, script: script().toolCall('a', 'write').step().text('ok') })
      await finish(agent, 'go')
      const lines = events.flatMap((event) => (event.type === 'line' ? [event.committed.line.type] : []))
      // The title comes when it comes.
      return lines.filter((type) => type !== 'session_info')
    }
    const inFiles = await types(openFileStore({ folder: temporaryFolder() }))
    expect(inFiles).toEqual(await types(memoryStore()))
    expect(inFiles).toContain('run_end')
  },
)

verifies(
  ['agent-session/2 no-screen', 'agent-session/2 events'],
  'an agent tells who listens, of compactions too, and prints nothing',
  async () => {
    const prints = [vi.spyOn(process.stdout, 'write'), vi.spyOn(process.stderr, 'write'), vi.spyOn(console, 'log')]
    onTestFinished(() => prints.forEach((print) => print.mockRestore()))
    const scripted = scriptedModel(
      script()
        .text(long)
        .usage({ inputTokens: 5000, outputTokens: 1 })
        .step()
        .text('A summary.')
        .step()
        .error('auth', 'no key'),
      { limits: { contextTokens: 4000, outputTokens: 1000 } },
    )
    const { agent, events } = await openAgent({ scripted })
    await finish(agent, long)
    await finish(agent, 'more')
    const types = new Set(events.map(({ type }) => type))
    expect([...types].sort()).toEqual(['agent_idle', 'auto_compaction_end', 'auto_compaction_start', 'delta', 'line'])
    expect(prints.map((print) => print.mock.calls)).toEqual([[], [], []])
  },
)

verifies(
  ['agent-session/4.1 config', 'agent-session/4.1 config-agent', 'agent-session/4.1 config-cwd'],
  'a session is made of what it is given: model, tools, prompt and the folder in which they work',
  async () => {
    const cwd = temporaryFolder()
    const where = tool('where', ({ cwd: folder }) => ({ content: folder }))
    const steps = script().toolCall('a', 'where').step().text('ok')
    const { agent, model } = await openAgent({ script: steps, cwd, tools: [where], systemPrompt: () => 'Be brief.' })
    await finish(agent, 'Where are we?')
    expect((await pathOf(agent))[2]).toBe(`tool: a ${cwd}`)
    expect(model.requests[0]).toMatchObject({ system: 'Be brief.', tools: [{ name: 'where' }] })
    expect(agent.session.header?.cwd).toBe(cwd)
  },
)

verifies(
  ['agent-session/4.1 config-model-registry', 'agent-session/2 models', 'agent-session/5 set-model'],
  'a model of the registry is refused for want of a key, with the name of the variable, and taken once that is set',
  async () => {
    const env: Record<string, string> = { OPENAI_API_KEY: ['not', 'a', 'key'].join('-') }
    const registry = createModelRegistry({ env })
    const models = registryModels({ registry, cycle: ['openai/gpt-5.5', 'anthropic/claude-opus-5'] })
    const { agent } = await openAgent({ models })
    expect(agent.state().model).toEqual({ provider: 'openai', modelId: 'gpt-5.5' })
    await expect(agent.setModel('anthropic', 'claude-opus-5')).rejects.toThrow('ANTHROPIC_API_KEY')
    expect(agent.state().model.provider).toBe('openai')
    env['ANTHROPIC_API_KEY'] = ['not', 'one', 'either'].join('-')
    await agent.setModel('anthropic', 'claude-opus-5')
    expect(agent.state().model).toEqual({ provider: 'anthropic', modelId: 'claude-opus-5' })
    expect((await agent.session.getContext()).model).toEqual({ provider: 'anthropic', modelId: 'claude-opus-5' })
  },
)

verifies(
  ['agent-session/5 cycle-model', 'agent-session/5 cycle-model-signature'],
  'cycling goes to the next model that can be used, or to the one before, in a circle, and the next run uses it',
  async () => {
    const [a, c] = ['a', 'c'].map((id) => scriptedModel(script().text(`from ${id}`), { id })) as [
      ScriptedModel,
      ScriptedModel,
    ]
    const models: AgentSessionOptions['models'] = {
      open: (_, id) => {
        const model = [a, c].find((each) => each.id === id)
        return model ? Promise.resolve(model) : Promise.reject(new Error('There is no key for b.'))
      },
      choices: () => Promise.resolve(['a', 'b', 'c'].map((modelId) => ({ provider: 'scripted', modelId }))),
    }
    const { agent } = await openAgent({ models })
    expect((await agent.cycleModel('forward')).id).toBe('c')
    await finish(agent, 'Who is there?')
    expect((await pathOf(agent)).at(-1)).toBe('assistant: from c')
    expect((await agent.cycleModel('forward')).id).toBe('a')
    expect((await agent.cycleModel('backward')).id).toBe('c')
  },
)

verifies(
  ['agent-session/5 set-thinking-level'],
  'the model is asked to think as deeply as was set before the run began, and a level that there is not is refused',
  async () => {
    const wait = door()
    const answers = script().text('1').step().do(wait.pass).toolCall('a', 'read').step().text('2').step().text('3')
    const { agent, model } = await openAgent({ script: answers })
    await finish(agent, 'one')
    await agent.setThinkingLevel('high')
    const second = await agent.prompt('two')
    await wait.reached
    await agent.setThinkingLevel('low')
    wait.open()
    if (second.type === 'started') await second.run.done
    await finish(agent, 'three')
    expect(model.requests.map(({ thinkingLevel }) => thinkingLevel)).toEqual(['off', 'high', 'high', 'low'])
    await expect(agent.setThinkingLevel('deepest' as 'max')).rejects.toThrow('There is no thinking level deepest.')
  },
)

verifies(
  ['agent-session/4.1 config-resource-loader', 'agent-session/4.1 expand-templates', 'agent-session/2 prompting'],
  'a prompt is expanded with what the resources hold, unless its options say not to',
  async () => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, 'config', 'prompts'), { recursive: true })
    writeFileSync(join(folder, 'config', 'prompts', 'review.md'), 'Review $1 with care.')
    const places = { cwd: folder, home: folder, configFolder: join(folder, 'config'), isTrusted: false }
    const resources = await loadResources(places)
    const { agent } = await openAgent({
      script: script().text('1').step().text('2'),
      expand: (typed) => Promise.resolve(expandPrompt(typed, resources)),
    })
    await finish(agent, '/review main.go')
    const asTyped = await agent.prompt('/review main.go', { expandTemplates: false })
    if (asTyped.type === 'started') await asTyped.run.done
    const said = (await pathOf(agent)).filter((line) => line.startsWith('user:'))
    expect(said).toEqual(['user: Review main.go with care.', 'user: /review main.go'])
  },
)

verifies(
  ['agent-session/4.1 prompt-options', 'agent-session/4.1 images', 'agent-session/4.1 source'],
  'a prompt brings its images to the model, and the log says where it came from',
  async () => {
    const { agent, model, events } = await openAgent({ script: script().text('A cat.') })
    const bytes = Buffer.from('\x89PNG\r\n\x1a\nand so on', 'latin1')
    const outcome = await agent.prompt('What is this?', {
      images: [{ mediaType: 'image/png', bytes }],
      source: 'interactive',
    })
    if (outcome.type === 'started') await outcome.run.done
    expect(await pathOf(agent)).toEqual(['user: What is this? <image>', 'assistant: A cat.'])
    expect(model.requests[0]?.messages[0]?.content[1]).toMatchObject({
      image: { source: { type: 'base64', data: bytes.toString('base64') } },
    })
    expect(linesOf(events, 'message')[0]).toMatchObject({ cause: { client: 'interactive' } })
  },
)

verifies(
  ['agent-session/4.1 streaming-behaviour', 'agent-session/4.1 steer', 'agent-session/4.1 follow-up'],
  'a prompt to a busy agent steers, waits or is refused, as its options say',
  async () => {
    const wait = door()
    const { agent } = await openAgent({ script: script().do(wait.pass).text('1').step().text('2').step().text('3') })
    const first = await agent.prompt('one')
    await wait.reached
    expect(await agent.prompt('later', { whenBusy: 'queue' })).toMatchObject({ type: 'queued', runId: first.runId })
    expect(await agent.prompt('now', { whenBusy: 'steer' })).toMatchObject({ type: 'steered', runId: first.runId })
    await expect(agent.prompt('no', { whenBusy: 'reject' })).rejects.toMatchObject({ code: 'session-busy' })
    wait.open()
    if (first.type === 'started') await first.run.done
    const said = (await pathOf(agent)).filter((line) => line.startsWith('user:'))
    expect(said).toEqual(['user: one', 'user: now', 'user: later'])
  },
)

verifies(
  ['agent-session/4.2 event-type', 'agent-session/4.2 event-timestamp', 'agent-session/4.2 event-payload'],
  'every event has a type and its details; those that count are lines, with the time of the log',
  async () => {
    const now = () => new Date('2026-05-04T03:02:01.000Z')
    const { agent, events } = await openAgent({ store: memoryStore({ now }), script: script().text('Hello there.') })
    await finish(agent, 'Hi.')
    expect(events.filter(({ type }) => typeof type !== 'string')).toEqual([])
    const [end] = linesOf(events, 'run_end')
    expect(end).toMatchObject({ timestamp: '2026-05-04T03:02:01.000Z', runEnd: { outcome: 'completed' } })
    expect(events.find(({ type }) => type === 'delta')).toMatchObject({ kind: 'text', off: 0, run: end?.runEnd.runId })
  },
)

verifies(
  ['agent-session/5 prompt', 'agent-session/5 prompt-signature'],
  'a prompt says what became of it: a run that began and how it ends, or an error before anything is in the log',
  async () => {
    const { agent } = await openAgent({ script: script().text('Hello.') })
    await expect(agent.prompt(' \n')).rejects.toMatchObject({ code: 'empty-prompt' })
    expect(agent.session.leafId).toBeNull()
    const outcome = await agent.prompt('Hi.', {})
    if (outcome.type !== 'started') throw new Error(outcome.type)
    expect(await outcome.run.done).toEqual({ runId: outcome.runId, outcome: 'completed' })
  },
)

verifies(
  ['agent-session/5 prompt-expands-and-queues', 'agent-session/5 steer', 'agent-session/5 follow-up'],
  'what is typed while the agent works is expanded, too, and waits with how urgent it is',
  async () => {
    const wait = door()
    const { agent } = await openAgent({
      script: script().do(wait.pass).text('1').step().text('2').step().text('3'),
      expand: (typed) => Promise.resolve({ type: 'as_typed', text: typed.replace('/it', 'it, expanded') }),
    })
    const first = await agent.prompt('one')
    await wait.reached
    await agent.followUp('/it later')
    await agent.steer('/it now')
    expect(agent.state().waiting).toMatchObject([
      { message: 'it, expanded later', delivery: 'follow-up' },
      { message: 'it, expanded now', delivery: 'steer' },
    ])
    wait.open()
    if (first.type === 'started') await first.run.done
    expect((await pathOf(agent)).filter((line) => line.startsWith('user:'))).toEqual([
      'user: one',
      'user: it, expanded now',
      'user: it, expanded later',
    ])
  },
)

verifies(
  ['agent-session/5 abort'],
  'an abort ends the run, answers its calls, keeps what was said, and the agent takes the next prompt',
  async () => {
    const write = tool('write', async (context) => {
      void agent.abort()
      await stopped(context)
      return { content: 'half' }
    })
    const { agent } = await openAgent({
      script: script().text('I write.').toolCall('a', 'write').toolCall('b', 'write').step().text('Here.'),
      tools: [write],
    })
    expect(await finish(agent, 'go')).toMatchObject({ outcome: 'aborted' })
    expect(await pathOf(agent)).toEqual([
      'user: go',
      'assistant: I write. [write a] [write b]',
      'tool: a half',
      'tool: b failed: Not run: the user stopped the run.',
    ])
    expect(await finish(agent, 'Are you there?')).toMatchObject({ outcome: 'completed' })
  },
)

verifies(
  ['agent-session/5 new-session', 'agent-session/5 switch-session', 'agent-session/5 fork'],
  'one agent goes on in a copy that ends at an entry, in a fresh session that knows its parent, and in the first again',
  async () => {
    const { agent, events } = await openAgent({ script: script().text('1').step().text('2').step().text('copied') })
    const first = agent.session.id
    await finish(agent, 'one')
    const at = agent.session.leafId ?? ''
    await finish(agent, 'two')
    const forked = await agent.fork(at)
    await finish(agent, 'elsewhere')
    expect(await pathOf(agent)).toEqual(['user: one', 'assistant: 1', 'user: elsewhere', 'assistant: copied'])
    const fresh = await agent.newSession(first)
    expect([await pathOf(agent), agent.session.header?.parentSession]).toEqual([[], first])
    await agent.switchSession(first)
    expect(await pathOf(agent)).toEqual(['user: one', 'assistant: 1', 'user: two', 'assistant: 2'])
    const switched = events.flatMap((event) => (event.type === 'session_switched' ? [event.sessionId] : []))
    expect(switched).toEqual([forked, fresh, first])
  },
)

verifies(
  ['agent-session/5 state'],
  'the state says which session, model, level and mode, what runs, what waits, and what was used',
  async () => {
    const wait = door()
    const answer = script().do(wait.pass).text('1').usage({ inputTokens: 90, outputTokens: 10, totalTokens: 100 })
    const { agent } = await openAgent({ script: answer.step().text('2') })
    const first = await agent.prompt('one')
    await wait.reached
    await agent.followUp('two')
    expect(agent.state()).toMatchObject({
      sessionId: agent.session.id,
      model: { provider: 'scripted', modelId: 'scripted-1' },
      thinkingLevel: 'off',
      mode: 'ask',
      isBusy: true,
      openRun: first.runId,
      waiting: [{ message: 'two' }],
      questions: [],
    })
    wait.open()
    if (first.type === 'started') await first.run.done
    expect(agent.state()).toMatchObject({ isBusy: false, openRun: null, totals: { turns: 2 } })
  },
)
