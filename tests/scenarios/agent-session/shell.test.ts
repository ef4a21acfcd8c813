import { parseShellInput } from '@tapetree/agent/run'
import { script } from '@tapetree/agent/testing'
import { openFileStore } from '@tapetree/session/stores/file'
import { expect, onTestFinished } from 'vitest'
import { storedIn } from '../../support/stored.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'
import { verifies } from '../../support/verifies.ts'
import { finish, openAgent, pathOf } from './opened-agent.ts'

verifies(
  ['agent-session/7 wrapper', 'agent-session/7 prefix', 'agent-session/7 persistence'],
  'a command of the user runs behind the prefix, and is kept with its output and its exit code for the model to see',
  async () => {
    const opened = await openAgent({
      script: script().text('I see.'),
      cwd: temporaryFolder(),
      shellPrefix: 'greet() { echo hello from the prefix; }',
    })
    const { agent, model } = opened
    expect(await agent.executeBash('greet; exit 3')).toEqual({
      command: 'greet; exit 3',
      output: 'hello from the prefix',
      exitCode: 3,
    })
    await finish(agent, 'What was that?')
    expect(await pathOf(agent)).toEqual(['bashExecution: greet; exit 3', 'user: What was that?', 'assistant: I see.'])
    expect(JSON.stringify(model.requests[0]?.messages[0])).toContain('hello from the prefix')
  },
)

verifies(['agent-session/7 streaming'], 'the output of a command is told while the command still runs', async () => {
  const cwd = temporaryFolder()
  const { agent } = await openAgent({ cwd })
  let output = ''
  const begun = Promise.withResolvers<void>()
  agent.subscribe((event) => {
    if (event.type !== 'delta' || event.kind !== 'tool_output') return
    output += event.text
    if (output.includes('first line')) begun.resolve()
  })
  let isOver = false
  const running = agent
    .executeBash('echo first line; until [ -e go ]; do sleep 0.02; done; echo second line')
    .finally(() => (isOver = true))
  await begun.promise
  expect([isOver, output.includes('second line')]).toEqual([false, false])
  await agent.executeBash('touch go')
  expect((await running).output).toBe('first line\nsecond line')
  expect(output).toContain('second line')
})

verifies(
  ['agent-session/7 two-marks', 'agent-session/9 bash'],
  'what is typed with two marks is run, is in the log as soon as it ends, and is never sent to the model',
  async () => {
    const store = openFileStore({ folder: temporaryFolder() })
    onTestFinished(() => store.close())
    const { agent, model } = await openAgent({ store, cwd: temporaryFolder(), script: script().text('ok') })
    const input = parseShellInput('!! echo between us')
    expect([input, parseShellInput('!ls'), parseShellInput('Hello!')]).toEqual([
      { command: 'echo between us', excludeFromContext: true },
      { command: 'ls', excludeFromContext: false },
      undefined,
    ])
    if (input) await agent.executeBash(input.command, input)
    expect((await storedIn(agent.session)).at(-1)).toMatchObject({
      type: 'message',
      message: {
        role: 'bashExecution',
        bash_execution: { command: 'echo between us', output: 'between us', exclude_from_context: true },
      },
    })
    await finish(agent, 'Hi.')
    expect(JSON.stringify(model.requests)).not.toContain('between us')
  },
)
