import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SessionError, SessionStore } from '@tapetree/session'
import { MemoryLogStore } from '@tapetree/session/log-store'
import { changedPort } from '@tapetree/session/testing'
import { FileLogStore } from '@tapetree/session/stores/file'
import { expect, test, vi } from 'vitest'
import { script, scriptedModel } from '../testing/scripted-model.ts'
import { allowAll, type Tool } from '../tools/tool.ts'
import { AgentSession } from './agent-session.ts'
import { onlyModel } from './model-choice.ts'

test('a run stops at once when another process has taken its session over, and records nothing more', async () => {
  const lost = new AbortController()
  const memory = new MemoryLogStore()
  const store = new SessionStore(changedPort(memory, { log: () => ({ lost: lost.signal }) }))
  const started = Promise.withResolvers<void>()
  const tool: Tool = {
    ...scriptedModel(script()).tool('act'),
    check: () => ({
      access: [],
      run: async ({ signal }) => {
        started.resolve()
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
        return { content: 'stopped' }
      },
    }),
  }
  await using agent = await AgentSession.open({
    models: onlyModel(scriptedModel(script().toolCall('c', 'act').toolResult('c', 'done').step().text('never'))),
    tools: () => [tool],
    gate: () => allowAll,
    hasSubagents: false,
    store,
  })
  const outcome = await agent.prompt('go')
  if (outcome.type !== 'started') throw new Error(outcome.type)
  await started.promise
  const before = agent.session.head.seq
  lost.abort(new SessionError('fenced', 'Another writer has taken over this session.'))
  await expect(outcome.run.done).rejects.toMatchObject({ code: 'fenced' })
  await using reader = await new SessionStore(memory).open(agent.session.id, { readOnly: true })
  expect(reader.head.seq).toBe(before)
  await expect(agent.prompt('more')).rejects.toMatchObject({ code: 'fenced' })
})

test('a call that was recorded before the process was paused does not start if another process has taken over meanwhile', async () => {
  const lost = new AbortController()
  const memory = new MemoryLogStore()
  const taken = new SessionError('fenced', 'Another writer has taken over this session.')
  let started = 0
  const confirm = async (): Promise<void> => {
    lost.abort(taken)
    throw taken
  }
  const store = new SessionStore(changedPort(memory, { log: () => ({ lost: lost.signal, confirm }) }))
  const tool: Tool = {
    ...scriptedModel(script()).tool('act'),
    check: () => ({ access: [], run: async () => ({ content: String(++started) }) }),
  }
  await using agent = await AgentSession.open({
    models: onlyModel(scriptedModel(script().toolCall('c', 'act'))),
    tools: () => [tool],
    gate: () => allowAll,
    hasSubagents: false,
    store,
  })
  const outcome = await agent.prompt('go')
  if (outcome.type !== 'started') throw new Error(outcome.type)
  await expect(outcome.run.done).rejects.toMatchObject({ code: 'fenced' })
  expect(started).toBe(0)
  await using reader = await new SessionStore(memory).open(agent.session.id, { readOnly: true })
  let last = ''
  for await (const line of reader.lines()) if (line.type === 'line') last = line.text
  expect(last).toContain('"type":"tool_start"')
})

test('a call starts in the same step in which this process was found to be the owner', async () => {
  const isSure: boolean[] = []
  // Sure only until the end of the step, as if the process were paused after it.
  let sure = false
  let asked = 0
  const confirm = (): Promise<void> | undefined => {
    if (++asked === 1) return Promise.resolve()
    sure = true
    queueMicrotask(() => (sure = false))
    return undefined
  }
  const store = new SessionStore(changedPort(new MemoryLogStore(), { log: () => ({ confirm }) }))
  const tool: Tool = {
    ...scriptedModel(script()).tool('act'),
    check: () => ({
      access: [],
      run: async () => {
        isSure.push(sure)
        return { content: 'done' }
      },
    }),
  }
  await using agent = await AgentSession.open({
    models: onlyModel(scriptedModel(script().toolCall('c', 'act').toolResult('c', 'done').step().text('done'))),
    tools: () => [tool],
    gate: () => allowAll,
    hasSubagents: false,
    store,
  })
  const outcome = await agent.prompt('go')
  if (outcome.type !== 'started') throw new Error(outcome.type)
  await outcome.run.done
  expect(isSure).toEqual([true])
})

test('a running command of the user continues when another process has taken over, which makes it a job', async () => {
  const cwd = await mkdtemp(join(tmpdir(), 'lost-session-'))
  const lost = new AbortController()
  const files = new FileLogStore({ folder: join(cwd, 'data') })
  const store = new SessionStore(changedPort(files, { log: () => ({ lost: lost.signal }) }))
  try {
    const agent = await AgentSession.open({ models: onlyModel(scriptedModel(script())), tools: () => [], store, cwd })
    const begun = new Promise<void>((resolve) => {
      agent.subscribe((event) => event.type === 'delta' && resolve())
    })
    const running = agent.executeBash('echo begun; until test -e go; do sleep 0.02; done; echo over > made')
    const left = expect(running).rejects.toMatchObject({ name: 'SessionSuspended' })
    await begun
    lost.abort(new SessionError('fenced', 'Another writer has taken over this session.'))
    await left
    await agent.close()
    await writeFile(join(cwd, 'go'), '')
    await vi.waitFor(() => expect(existsSync(join(cwd, 'made'))).toBe(true))
  } finally {
    await rm(cwd, { recursive: true, force: true })
  }
})

test('a command of the user does not start if another process has taken over meanwhile', async () => {
  const cwd = await mkdtemp(join(tmpdir(), 'lost-session-'))
  const lost = new AbortController()
  const memory = new MemoryLogStore()
  const taken = new SessionError('fenced', 'Another writer has taken over this session.')
  const confirm = async (): Promise<void> => {
    lost.abort(taken)
    throw taken
  }
  const store = new SessionStore(changedPort(memory, { log: () => ({ lost: lost.signal, confirm }) }))
  try {
    await using agent = await AgentSession.open({
      models: onlyModel(scriptedModel(script())),
      tools: () => [],
      store,
      cwd,
    })
    await expect(agent.executeBash('touch made', { cause: { cmd: '1' } })).rejects.toMatchObject({ code: 'fenced' })
    expect(existsSync(join(cwd, 'made'))).toBe(false)
    await using reader = await new SessionStore(memory).open(agent.session.id, { readOnly: true })
    expect(await reader.lastLine()).toMatchObject({ type: 'bash_start', cause: { cmd: '1' } })
  } finally {
    await rm(cwd, { recursive: true, force: true })
  }
})
