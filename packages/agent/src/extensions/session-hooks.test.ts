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
