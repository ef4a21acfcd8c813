import { afterEach, describe, expect, test } from 'vitest'
import { exitPlanTool, toolsFor, type PermissionMode } from '../permissions/modes.ts'
import { script, scriptedModel } from '../testing/scripted-model.ts'
import { TestAgent } from '../testing/test-agent.ts'
import { askUserTool } from '../tools/builtin/ask-user.ts'

const agents: TestAgent[] = []
afterEach(async () => {
  for (const agent of agents.splice(0)) await agent.close()
})

test('an accepted plan is carried out in the same run, with the tools it needs', async () => {
  let mode: PermissionMode = 'plan'
  const model = scriptedModel(
    script().toolCall('1', 'exit_plan', { plan: 'Write it.' }).step().toolCall('2', 'write').step().text('Written.'),
  )
  const agent = await TestAgent.open({ model })
  agents.push(agent)
  const all = [model.tool('write'), exitPlanTool({ onAccepted: () => void (mode = 'ask') })]
  agent.deps.tools = () => toolsFor(mode, all)
  agent.session.subscribe(({ line }) => {
    if (line.type !== 'permission_request') return
    const { requestId } = line.permissionRequest
    void agent.requests.answer({ requestId, outcome: 'allowed', optionId: '1' })
  })
  expect(await agent.prompt('Make a plan.')).toMatchObject({ outcome: 'completed' })
  expect(model.requests.map(({ tools }) => tools.map(({ name }) => name))).toEqual([
    ['exit_plan'],
    ['write'],
    ['write'],
  ])
  expect((await agent.path()).slice(-2)).toEqual(['tool: 2 ok', 'assistant: Written.'])
})

describe('a question of the model', () => {
  test('is withdrawn when the user sends something else', async () => {
    const agent = await asking()
    const ended = agent.prompt('go')
    await asked(agent)
    await agent.session.submit('never mind', { delivery: 'steer' })
    await ended
    expect((await agent.path()).slice(1)).toEqual([
      'assistant: [ask_user 1]',
      'tool: 1 The user did not answer the question. Continue without it, or stop.',
      'user: never mind',
      'assistant: Very well.',
    ])
    expect(agent.requests.pending).toEqual([])
  })

  test('stays pending if all calls come first', async () => {
    const agent = await asking()
    agent.deps.settings = { ...agent.deps.settings, steerPolicy: 'after-batch' }
    const ended = agent.prompt('go')
    const requestId = await asked(agent)
    await agent.session.submit('and then this', { delivery: 'steer' })
    await agent.requests.answer({ requestId, outcome: 'allowed', text: 'blue' })
    await ended
    expect((await agent.path()).slice(2)).toEqual(['tool: 1 blue', 'user: and then this', 'assistant: Very well.'])
  })
})

async function asking(): Promise<TestAgent> {
  const said = script().toolCall('1', 'ask_user', { question: 'Which colour?' }).step().text('Very well.')
  const agent = await TestAgent.open({ model: scriptedModel(said), tools: [askUserTool] })
  agents.push(agent)
  return agent
}

function asked({ session }: TestAgent): Promise<string> {
  return new Promise((resolve) => {
    session.subscribe(({ line }) => {
      if (line.type === 'permission_request') resolve(line.permissionRequest.requestId)
    })
  })
}
