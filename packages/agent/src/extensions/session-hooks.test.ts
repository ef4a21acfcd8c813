import { memoryStore } from '@tapetree/session'
import { describe, expect, test } from 'vitest'
import { AgentSession } from '../agent/agent-session.ts'
import type { AgentEvent } from '../run/events.ts'
import { onlyModel } from '../agent/model-choice.ts'
import { script, scriptedModel, type ScriptBuilder, type ScriptedModel } from '../testing/scripted-model.ts'
import { allowAll } from '../tools/tool.ts'
import type { Extension } from './extension.ts'
import { ExtensionHost } from './extension-host.ts'

interface Opened extends AsyncDisposable {
  agent: AgentSession
  model: ScriptedModel
  problems: string[]
}

async function open(extension: Extension, answers: ScriptBuilder): Promise<Opened> {
  const problems: string[] = []
  const host = await ExtensionHost.open({
    extensions: [{ name: 'tested', extension }],
    cwd: '/',
    onProblem: ({ message }) => problems.push(message),
  })
  const model = scriptedModel(answers)
  const agent = await AgentSession.open({
    store: memoryStore(),
    models: onlyModel(model),
    cwd: '/',
    hooks: host.hooks,
    tools: () => host.withTools([model.tool('act')]),
    gate: () => allowAll,
  })
  return {
    agent,
    model,
    problems,
    async [Symbol.asyncDispose]() {
      await agent.close()
      await host.close()
    },
  }
}

/** Resolves with the first event that matches. */
function heard(agent: AgentSession, isIt: (event: AgentEvent) => boolean): Promise<AgentEvent> {
  return new Promise((resolve) => {
    const stop = agent.subscribe((event) => {
      if (!isIt(event)) return
      stop()
      resolve(event)
    })
  })
}

function isQuestion(event: AgentEvent): boolean {
  return event.type === 'line' && event.committed.line.type === 'permission_request'
}

const asking: Extension = (api) =>
  api.on('toolCall', async () => {
    const { text } = await api.ask({ question: 'May it act?', options: [{ label: 'yes' }, { label: 'no' }] })
    return text === 'yes' ? undefined : { block: `The user said ${text}.` }
  })

describe('in a session', () => {
  test('a question of an extension is answered like any other', async () => {
    await using opened = await open(asking, script().toolCall('1', 'act').step().text('ok'))
    const { agent, model } = opened
    const asked = heard(agent, isQuestion)
    const outcome = await agent.prompt('go')
    await asked
    const [request] = agent.state().questions
    expect(request).toMatchObject({ tool: 'tested', title: 'May it act?' })
    await agent.answer({ requestId: request!.requestId, outcome: 'allowed', optionId: '2' })
    if (outcome.type === 'started') await outcome.run.done
    expect(JSON.stringify(model.requests[1]?.messages.at(-1))).toContain('The user said no.')
  })

  test('a run can be stopped while an extension waits for an answer, and no call runs', async () => {
    await using opened = await open(asking, script().toolCall('1', 'act'))
    const { agent } = opened
    const started: AgentEvent[] = []
    agent.subscribe((event) => {
      if (event.type === 'line' && event.committed.line.type === 'tool_start') started.push(event)
    })
    const asked = heard(agent, isQuestion)
    const outcome = await agent.prompt('go')
    await asked
    await agent.abort()
    expect(outcome.type === 'started' && (await outcome.run.done).outcome).toBe('aborted')
    expect([started, agent.state().questions, opened.problems]).toEqual([[], [], []])
  })

  test('an extension labels an entry, names the session and steers the run: the calls behind are skipped', async () => {
    const marking: Extension = (api) => {
      api.on('toolResult', async ({ call }) => {
        if (call.id !== '1') return
        await api.setLabel((await api.leafId()) ?? '', 'needs_review')
        await api.setSessionName('Marked')
        await api.steer('Stop and look.')
      })
    }
    const answers = script().toolCall('1', 'act').toolCall('2', 'act').step().text('Looked.')
    await using opened = await open(marking, answers)
    const { agent, model } = opened
    const outcome = await agent.prompt('go')
    if (outcome.type === 'started') await outcome.run.done
    const path = await agent.session.getContextPath()
    const answer = path.find((entry) => entry.type === 'message' && entry.message.role === 'assistant')
    expect([...agent.session.getLabels()]).toEqual([[answer?.id, 'needs_review']])
    expect([agent.session.name, opened.problems]).toEqual(['Marked', []])
    expect(model.requests[1]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool', 'user'])
    expect(JSON.stringify(model.requests[1]?.messages.slice(-2))).toMatch(/not run|skipped[^]*Stop and look\./i)
  })

  test('a steer of an extension starts a run if there is none, and says who sent it', async () => {
    const starting: Extension = (api) =>
      api.registerCommand({ name: 'start', description: '', run: () => api.steer('Begin.') })
    const host = await ExtensionHost.open({ extensions: [{ name: 'starter', extension: starting }], cwd: '/' })
    const model = scriptedModel(script().text('Begun.'))
    const agent = await AgentSession.open({
      store: memoryStore(),
      models: onlyModel(model),
      cwd: '/',
      hooks: host.hooks,
    })
    const senders: unknown[] = []
    agent.subscribe((event) => {
      if (event.type === 'line' && event.committed.line.type === 'submission')
        senders.push(event.committed.line.cause?.client)
    })
    await host.runCommand('start', '')
    await agent.untilIdle()
    const said = (await agent.session.getContext()).messages.map(({ message }) => message.role)
    expect([said, senders]).toEqual([['user', 'assistant'], ['extension:starter']])
    await agent.close()
    await host.close()
  })

  test('a message that an extension appends during a run follows the run', async () => {
    const telling: Extension = (api) => {
      api.on('toolResult', async ({ call }) => {
        await api.appendEntry('seen', { call: call.id })
        await api.appendMessage(`Noticed ${call.id}.`)
      })
    }
    await using opened = await open(telling, script().toolCall('1', 'act').step().text('ok'))
    const outcome = await opened.agent.prompt('go')
    if (outcome.type === 'started') await outcome.run.done
    const path = await opened.agent.session.getContextPath()
    expect(path.flatMap((entry) => (entry.type === 'custom' ? [entry.custom.data] : []))).toEqual([{ call: '1' }])
    expect(opened.model.requests[1]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'custom'])
    expect(opened.problems).toEqual([])
  })
})
