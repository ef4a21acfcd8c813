import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openFileStore } from '@tapetree/session/stores/file'
import { afterEach, describe, expect, test } from 'vitest'
import { createRedactor } from '@tapetree/redact'
import { canary } from '../testing/canary.ts'
import { script, scriptedModel, type ScriptBuilder, type ScriptedModel } from '../testing/scripted-model.ts'
import { dismissSupervisor } from '../tools/commands/supervisor-process.ts'
import { allowAll } from '../tools/tool.ts'
import { AgentSession } from './agent-session.ts'
import type { AgentEvent } from '../run/events.ts'
import { onlyModel } from './model-choice.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

interface Opened {
  agent: AgentSession
  model: ScriptedModel
  folder: string
  cwd: string
  events: AgentEvent[]
}

async function open(said: ScriptBuilder, allow: string[] = []): Promise<Opened> {
  const root = await mkdtemp(join(tmpdir(), 'redaction-'))
  const folder = join(root, 'sessions')
  const cwd = await mkdtemp(join(root, 'work-'))
  // The sessions stay on disk: after all tests, the remaining files are searched for canaries.
  cleanUps.push(() => rm(cwd, { recursive: true }))
  const store = openFileStore({ folder })
  cleanUps.push(() => store.close())
  const model = scriptedModel(said)
  const agent = await AgentSession.open({
    store,
    models: onlyModel(model),
    gate: () => allowAll,
    cwd,
    hasSubagents: false,
    redactor: createRedactor({ secrets: {}, allow }),
  })
  cleanUps.push(() => agent.close())
  const events: AgentEvent[] = []
  agent.subscribe((event) => events.push(event))
  return { agent, model, folder, cwd, events }
}

async function run(agent: AgentSession, words: string): Promise<void> {
  const outcome = await agent.prompt(words)
  if (outcome.type === 'started') await outcome.run.done
}

/** The files that contain a text after the session was closed, since an open one still writes in the background. */
async function keptIn({ agent, folder }: Opened, text: string): Promise<string[]> {
  await agent.close()
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const found: string[] = []
  for (const file of files) if ((await readFile(file)).includes(text)) found.push(file)
  return found
}

describe('a secret', () => {
  test('in a prompt is in neither the log nor the request', async () => {
    const key = canary()
    const opened = await open(script().text('ok'))
    const { agent, model } = opened
    await run(agent, `use ${key} please`)
    expect(JSON.stringify(model.requests)).not.toContain(key)
    expect(JSON.stringify(model.requests)).toContain('redacted')
    expect(await keptIn(opened, key)).toEqual([])
  })

  test('in the command of a check is not in the log, and the check still names its trees', async () => {
    const key = canary()
    const opened = await open(script().text('ok'))
    const { agent } = opened
    const tree = 'a1b2c3d4e5f60718293a4b5c6d7e8f9001122334'
    const command = `API_KEY=${key} npm test`
    const line = await agent.session.append({ type: 'check', check: { command, exitCode: 0, durationMs: 1, tree } })
    expect(line).toMatchObject({ check: { command: expect.stringMatching(/^API_KEY=.*redacted.* npm test$/), tree } })
    expect(await keptIn(opened, key)).toEqual([])
  })

  test('in a queued message is in neither the log nor the queue', async () => {
    const key = canary()
    const opened = await open(script().text('ok'))
    const { agent } = opened
    await agent.session.submit(`later ${key}`)
    await agent.session.saveDerived()
    expect(await keptIn(opened, key)).toEqual([])
  })

  test('in a file that a tool reads or writes is not kept, and the file itself is unchanged', async () => {
    const key = canary()
    const said = script()
      .toolCall('1', 'read', { path: 'a.env' })
      .step()
      .toolCall('2', 'edit', { path: 'a.env', oldText: 'NAME=one', newText: 'NAME=two' })
      .step()
      .text('done')
    const opened = await open(said)
    const { agent, model, cwd } = opened
    await writeFile(join(cwd, 'a.env'), `NAME=one\nTOKEN=${key}\n`)
    await run(agent, 'go')
    expect(JSON.stringify(model.requests)).not.toContain(key)
    expect(await keptIn(opened, key)).toEqual([])
    expect(await readFile(join(cwd, 'a.env'), 'utf8')).toContain(key)
  })

  test('in the output of a command is neither kept nor shown', async () => {
    cleanUps.push(() => dismissSupervisor())
    const key = canary()
    const opened = await open(script().toolCall('1', 'bash', { command: 'cat k' }).step().text('ok'))
    const { agent, model, cwd, events } = opened
    await writeFile(join(cwd, 'k'), `${key}\n`)
    await run(agent, 'go')
    await agent.executeBash('cat k')
    expect(JSON.stringify(model.requests)).not.toContain(key)
    expect(JSON.stringify(events)).not.toContain(key)
    expect(await keptIn(opened, key)).toEqual([])
  })

  test('in a streamed answer is not shown, drafted or kept', async () => {
    const key = canary()
    const pieces = [...`The key is ${key}, I think.`]
    const opened = await open(script().text(...pieces))
    const { agent, events } = opened
    await run(agent, 'go')
    const shown = events.flatMap((event) => (event.type === 'delta' ? [event.text] : [])).join('')
    expect(shown).toMatch(/^The key is \[redacted[^\]]*\], I think\.$/)
    expect(await keptIn(opened, key)).toEqual([])
  })

  test('in the error of a model is in no line of the log', async () => {
    const key = canary()
    const opened = await open(script().error('invalid-request', `The header X-Key: ${key} is not valid.`))
    await run(opened.agent, 'go')
    expect((await keptIn(opened, 'attempt')).length).toBeGreaterThan(0)
    expect(await keptIn(opened, key)).toEqual([])
  })

  test('that the user allows by name is kept', async () => {
    const key = canary()
    const { agent, model, folder } = await open(script().text('ok'), ['DEMO_TOKEN'])
    cleanUps.unshift(() => rm(folder, { recursive: true }))
    await run(agent, `DEMO_TOKEN=${key}`)
    expect(JSON.stringify(model.requests)).toContain(key)
  })
})

test('signed content is sent back unchanged', async () => {
  const signature = canary()
  const { agent, model, folder } = await open(
    script().reasoning(`I think of ${signature}`, signature).text('one').step().text('two'),
  )
  cleanUps.unshift(() => rm(folder, { recursive: true }))
  await run(agent, 'first')
  await run(agent, 'second')
  expect(JSON.stringify(model.requests[1])).toContain(`"signature":"${signature}"`)
})
