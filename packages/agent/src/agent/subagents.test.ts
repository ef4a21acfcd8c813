import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryStore, newId, text, type Session, type SessionStore } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { afterEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { ModelRequest } from '../models/model.ts'
import { script, scriptedModel, type ScriptBuilder, type ScriptedModel } from '../testing/scripted-model.ts'
import { allowAll, defineTool, type Tool } from '../tools/tool.ts'
import { diagnosticsTool } from '../language-servers/diagnostics-tool.ts'
import { EditDiagnostics } from '../language-servers/edit-diagnostics.ts'
import type { LanguageServers } from '../language-servers/language-servers.ts'
import { FakeClock } from '../testing/fake-clock.ts'
import type { RunEnd } from '../run/run-settings.ts'
import { AgentSession } from './agent-session.ts'
import type { AgentSessionOptions } from './agent-session-options.ts'
import { onlyModel } from './model-choice.ts'
import { Subagents, type Subagent } from './subagents.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

const write = defineTool({
  name: 'write_note',
  description: 'Writes.',
  schema: z.strictObject({ path: z.string() }),
  access: ({ path }) => [{ type: 'write', path }],
  run: ({ path }) => Promise.resolve({ content: `wrote ${path}` }),
})

/** Answers according to the last message, since parent and children share the model. */
function modelThat(answer: (last: string, request: ModelRequest) => ScriptBuilder): ScriptedModel {
  return scriptedModel([], { otherwise: (request) => answer(lastWords(request), request) })
}

function lastWords({ messages }: ModelRequest): string {
  const last = messages.at(-1)
  return (last?.content ?? [])
    .map((block) => {
      if (block.type === 'text') return block.text.content
      return block.type === 'tool_result' && typeof block.toolResult.content === 'string'
        ? block.toolResult.content
        : ''
    })
    .join('|')
}

async function open(model: ScriptedModel, options: Partial<AgentSessionOptions> = {}): Promise<AgentSession> {
  const agent = await AgentSession.open({
    store: memoryStore(),
    models: onlyModel(model),
    tools: () => [model.tool('look', { readOnly: true }), write],
    gate: () => allowAll,
    cwd: '/',
    ...options,
  })
  cleanUps.push(() => agent.close())
  return agent
}

async function prompt(agent: AgentSession, words: string): Promise<string[]> {
  const outcome = await agent.prompt(words)
  if (outcome.type === 'started') await outcome.run.done
  return path(agent.session)
}

async function path(session: Session): Promise<string[]> {
  const { messages } = await session.getContext()
  return messages.map(
    ({ message }) => `${message.role}: ${lastWords({ messages: [message] } as unknown as ModelRequest)}`,
  )
}

const task = (id: string, words: string, tools?: string[]): [string, string, Record<string, unknown>] => [
  id,
  'task',
  { description: `about ${words}`, prompt: words, ...(tools && { tools }) },
]

describe('a subagent', () => {
  test('works in its own session below its parent, and its answer is the result of the call', async () => {
    const store = memoryStore()
    const model = modelThat((last) => {
      if (last === 'go') return script().toolCall(...task('1', 'count the trees'))
      if (last === 'count the trees') return script().text('Seven trees.')
      return script().text(`It says: ${last}`)
    })
    const agent = await open(model, { store })
    expect(await prompt(agent, 'go')).toEqual([
      'user: go',
      'assistant: ',
      'tool: Seven trees.',
      'assistant: It says: Seven trees.',
    ])
    const { sessions } = await store.list()
    const child = sessions.find(({ id }) => id !== agent.session.id)
    expect(child).toMatchObject({ name: 'about count the trees', parentSession: agent.session.id, subagent: true })
    const opened = await store.open(child?.id ?? '')
    expect(await path(opened)).toEqual(['user: count the trees', 'assistant: Seven trees.'])
    await opened.close()
  })

  test('has the given tools but no tool `task`, and sees nothing of its parent', async () => {
    const model = modelThat((last) =>
      last === 'go' ? script().toolCall(...task('1', 'look about', ['look', 'task', 'rm'])) : script().text('ok'),
    )
    const agent = await open(model)
    await prompt(agent, 'go')
    expect(model.requests.map(({ tools }) => tools.map(({ name }) => name))).toEqual([
      ['look', 'write_note', 'task'],
      ['look'],
      ['look', 'write_note', 'task'],
    ])
    expect(model.requests[1]?.messages).toHaveLength(1)
  })

  test('asks through its parent, and continues after the answer', async () => {
    const model = modelThat((last) => {
      if (last === 'go') return script().toolCall(...task('1', 'write it'))
      if (last === 'write it') return script().toolCall('1', 'write_note', { path: '/tmp/note' })
      return script().text(`then ${last}`)
    })
    const agent = await AgentSession.open({
      store: memoryStore(),
      models: onlyModel(model),
      tools: () => [write],
      cwd: '/',
    })
    cleanUps.push(() => agent.close())
    agent.subscribe((event) => {
      if (event.type !== 'line' || event.committed.line.type !== 'permission_request') return
      const { requestId } = event.committed.line.permissionRequest
      void agent.answer({ requestId, outcome: 'allowed', optionId: 'allow_once' })
    })
    expect(await prompt(agent, 'go')).toContain('tool: then wrote /tmp/note')
  })

  test('waits if four are already running', async () => {
    let atWork = 0
    let most = 0
    const finish = Promise.withResolvers<void>()
    const model = modelThat((last) => {
      if (last === 'go') {
        const said = script()
        for (let i = 0; i < 6; i++) said.toolCall(...task(String(i), `task ${i}`))
        return said
      }
      if (!last.startsWith('task ')) return script().text('all done')
      return script()
        .do(() => {
          most = Math.max(most, ++atWork)
          if (atWork === 4) setImmediate(() => finish.resolve())
          return finish.promise
        })
        .do(() => void atWork--)
        .text(`did ${last}`)
    })
    const agent = await open(model)
    const said = await prompt(agent, 'go')
    expect(most).toBe(4)
    expect(said.filter((line) => line.startsWith('tool: did task'))).toHaveLength(6)
  })

  test('that is aborted while it waits does not take the slot of the next one', async () => {
    const store = memoryStore()
    const parent = await store.create()
    const opened: { sessionId: string; end: (error: Error) => void }[] = []
    let onOpen = (): void => undefined
    const open = ({ sessionId }: { sessionId: string }): Promise<AgentSession> => {
      const { promise, reject } = Promise.withResolvers<AgentSession>()
      opened.push({ sessionId, end: reject })
      onOpen()
      return promise
    }
    const nextOpened = (): Promise<void> => new Promise((resolve) => (onOpen = resolve))
    const subagents = new Subagents({ store, parent, cwd: '/', open, tools: () => [], gate: allowAll, maxAtOnce: 1 })
    const work = (id: string, signal: AbortSignal): Promise<unknown> =>
      subagents.work(id, { description: id, prompt: id }, signal)
    const [first, second, third] = [newId(), newId(), newId()]
    const { signal } = new AbortController()
    const impatient = new AbortController()
    const firstOpened = nextOpened()
    const firstWork = work(first, signal)
    await firstOpened
    const secondWork = work(second, impatient.signal)
    const thirdWork = work(third, signal)
    impatient.abort(new Error('not any more'))
    await expect(secondWork).rejects.toThrow('not any more')
    const thirdOpened = nextOpened()
    opened[0]?.end(new Error('first is over'))
    await expect(firstWork).rejects.toThrow('first is over')
    await thirdOpened
    opened[1]?.end(new Error('third is over'))
    await expect(thirdWork).rejects.toThrow('third is over')
    expect(opened.map(({ sessionId }) => sessionId)).toEqual([first, third])
  })

  test('whose parent is stopped while it begins does not work on', async () => {
    const store = memoryStore()
    const parent = await store.create()
    const stopping = new AbortController()
    const done = Promise.withResolvers<RunEnd>()
    let isRunning = false
    const open = async ({ sessionId }: { sessionId: string }): Promise<Subagent> => ({
      session: await store.open(sessionId),
      resume: async () => undefined,
      prompt: async () => {
        stopping.abort()
        isRunning = true
        return { type: 'started', run: { id: 'r', done: done.promise } }
      },
      setName: async () => undefined,
      // Before the run, there is nothing to stop.
      abort: async () => void (isRunning && done.resolve({ runId: 'r', outcome: 'aborted' })),
      suspend: async () => undefined,
      close: async () => undefined,
    })
    const subagents = new Subagents({ store, parent, cwd: '/', open, tools: () => [], gate: allowAll })
    const work = subagents.work(newId(), { description: 'wander', prompt: 'wander' }, stopping.signal)
    expect(await work).toMatchObject({ end: { outcome: 'aborted' } })
  })

  test('can be steered and aborted while it works', async () => {
    const asked = Promise.withResolvers<void>()
    const go = Promise.withResolvers<void>()
    const model = modelThat((last) => {
      if (last === 'go') return script().toolCall(...task('1', 'wander'))
      if (last === 'wander') {
        return script()
          .do(() => {
            asked.resolve()
            return go.promise
          })
          .text('wandering')
      }
      return script().text(`heard ${last}`)
    })
    const agent = await open(model)
    const outcome = await agent.prompt('go')
    await asked.promise
    const [child] = [...agent.subagents.values()]
    await child?.session.submit('come back', { delivery: 'steer' })
    go.resolve()
    if (outcome.type === 'started') await outcome.run.done
    expect(await path(agent.session)).toContain('tool: heard come back')
    expect(agent.subagents.size).toBe(0)
  })

  test('whose run fails reports that to its parent', async () => {
    const model = modelThat((last) => {
      if (last === 'go') return script().toolCall(...task('1', 'fail'))
      return last === 'fail' ? script().error('auth', 'no key') : script().text('I see')
    })
    const agent = await open(model)
    expect(await prompt(agent, 'go')).toContain('tool: The subagent did not finish: no key')
  })
})

describe('two subagents that edit at the same time', () => {
  const tasks = script()
    .toolCall(...task('1', '/project/a.ts'))
    .toolCall(...task('2', '/project/b.ts'))

  /** Every file has an error. */
  async function openChecked(model: ScriptedModel): Promise<AgentSession> {
    const servers = {
      workspace: '/project',
      publishedLate: 0,
      problems: [],
      diagnose: async (paths: readonly string[]) => ({
        found: new Map(paths.map((path) => [path, [{ line: 1, column: 1, severity: 'error', message: 'bad' }]])),
        unanswered: [],
      }),
    } as unknown as LanguageServers
    const clock = new FakeClock()
    const diagnostics = new EditDiagnostics(servers, { cwd: '/project', clock })
    return open(model, { cwd: '/project', clock, diagnostics, tools: [bothWrite(), diagnosticsTool(diagnostics)] })
  }

  /** Finishes when both have called it. */
  function bothWrite(): Tool {
    const both = Promise.withResolvers<void>()
    let calls = 0
    return {
      ...write,
      check: (input, place) => {
        const checked = write.check(input, place)
        if (typeof checked === 'string') return checked
        return {
          ...checked,
          run: async (context) => {
            if (++calls === 2) both.resolve()
            await both.promise
            return checked.run(context)
          },
        }
      },
    }
  }

  test('are each told of their own errors', async () => {
    const model = modelThat((last) => {
      if (last === 'go') return tasks
      if (last.startsWith('/project/')) return script().toolCall('1', 'write_note', { path: last })
      return script().text(last)
    })
    const told = (name: string): string =>
      `tool: <diagnostics>\nAfter your changes the language server reports new errors:\n${name}:1:1 error: bad\n</diagnostics>`
    expect((await prompt(await openChecked(model), 'go')).slice(2, 4)).toEqual([told('a.ts'), told('b.ts')])
  })

  test('each check their own files with the tool', async () => {
    const model = modelThat((last) => {
      if (last === 'go') return tasks
      if (last.startsWith('/project/')) return script().toolCall('1', 'write_note', { path: last })
      if (last.startsWith('wrote ')) return script().toolCall('2', 'diagnostics', {})
      return script().text(last)
    })
    expect((await prompt(await openChecked(model), 'go')).slice(2, 4)).toEqual([
      'tool: a.ts:1:1 error: bad',
      'tool: b.ts:1:1 error: bad',
    ])
  })
})

describe('after a crash', () => {
  /** A parent whose process died while it waited for a subagent. */
  async function interrupted(
    childHas: (child: Session) => Promise<void>,
  ): Promise<{ store: SessionStore; id: string }> {
    const folder = await mkdtemp(join(tmpdir(), 'subagents-'))
    cleanUps.push(() => rm(folder, { recursive: true }))
    const store = openFileStore({ folder })
    cleanUps.push(() => store.close())
    const parent = await store.create()
    const [id, name, input] = task('1', 'count')
    const leafId = await parent.appendMessage('user', [text('go')])
    await parent.append({ type: 'run_start', runStart: { runId: 'p', leafId } })
    await parent.appendMessage('assistant', [{ type: 'tool_use', toolUse: { id, name, input } }], {
      with: { runId: 'p' },
    })
    const child = await store.create({ parentSession: parent.id })
    await parent.append({ type: 'tool_start', toolStart: { runId: 'p', callId: id, name, childSession: child.id } })
    await childHas(child)
    await child.close()
    await parent.close()
    return { store, id: parent.id }
  }

  const model = (): ScriptedModel =>
    modelThat((last) => {
      if (last === 'count') return script().text('counted')
      return last === 'half' ? script().text('the other half') : script().text(`parent heard ${last}`)
    })

  test('a running subagent is resumed, not started again', async () => {
    const { store, id } = await interrupted(async (child) => {
      const leafId = await child.appendMessage('user', [text('count')])
      await child.append({ type: 'run_start', runStart: { runId: 'c', leafId } })
      await child.appendMessage('assistant', [{ type: 'tool_use', toolUse: { id: 'x', name: 'look', input: {} } }], {
        with: { runId: 'c' },
      })
      await child.appendMessage('tool', [{ type: 'tool_result', toolResult: { toolUseId: 'x', content: 'half' } }], {
        with: { runId: 'c' },
      })
    })
    const scripted = model()
    const agent = await open(scripted, { store, sessionId: id })
    await (
      await agent.resume()
    )?.done
    expect(await path(agent.session)).toContain('tool: the other half')
    expect(scripted.requests).toHaveLength(2)
  })

  test('the run of a subagent ends with that of its parent if nobody resumes it', async () => {
    const { store, id } = await interrupted(async (child) => {
      const leafId = await child.appendMessage('user', [text('half')])
      await child.append({ type: 'run_start', runStart: { runId: 'c', leafId } })
    })
    const agent = await open(model(), { store, sessionId: id })
    const { sessions } = await store.list()
    const childId = sessions.find((session) => session.id !== id)?.id ?? ''
    await agent.abandon()
    await using child = await store.open(childId)
    expect([agent.session.openRun, child.openRun]).toEqual([null, null])
  })

  test('a subagent that had finished reports its answer without a request to the model', async () => {
    const { store, id } = await interrupted(async (child) => {
      await child.appendMessage('user', [text('count')])
      await child.appendMessage('assistant', [text('Seven.')])
      await child.append({ type: 'run_start', runStart: { runId: 'c', leafId: child.leafId } })
      await child.append({ type: 'run_end', runEnd: { runId: 'c', outcome: 'completed' } })
    })
    const scripted = model()
    const agent = await open(scripted, { store, sessionId: id })
    await (
      await agent.resume()
    )?.done
    expect(await path(agent.session)).toEqual([
      'user: go',
      'assistant: ',
      'tool: Seven.',
      'assistant: parent heard Seven.',
    ])
    expect(scripted.requests).toHaveLength(1)
  })

  test('a subagent whose run had failed reports the failure', async () => {
    const { store, id } = await interrupted(async (child) => {
      const leafId = await child.appendMessage('user', [text('count')])
      await child.append({ type: 'run_start', runStart: { runId: 'c', leafId } })
      const runEnd = { runId: 'c', outcome: 'failed' as const, reason: 'auth', message: 'no key' }
      await child.append({ type: 'run_end', runEnd })
    })
    const agent = await open(model(), { store, sessionId: id })
    await (
      await agent.resume()
    )?.done
    expect(await path(agent.session)).toContain('tool: The subagent did not finish: no key')
  })

  test('a subagent that had not started starts', async () => {
    const { store, id } = await interrupted(() => Promise.resolve())
    const agent = await open(model(), { store, sessionId: id })
    await (
      await agent.resume()
    )?.done
    expect(await path(agent.session)).toContain('tool: counted')
  })
})
