import { memoryStore, type Content } from '@tapetree/session'
import { AgentSession, allTools, onlyModel, allowAll } from '@tapetree/agent'
import { ExtensionHost, type ExtensionProblem } from '@tapetree/agent/extensions'
import { script, scriptedModel, type ScriptBuilder, type ScriptedModel } from '@tapetree/agent/testing'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, expect, test } from 'vitest'

const cleanUps: (() => Promise<unknown>)[] = []
const problems: ExtensionProblem[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
  expect(problems.splice(0)).toEqual([])
})

interface Opened {
  agent: AgentSession
  host: ExtensionHost
  model: ScriptedModel
  cwd: string
}

/** A session with one of the examples, as somebody would embed it. */
async function open(example: string, answers: ScriptBuilder, files: Record<string, string> = {}): Promise<Opened> {
  const cwd = await mkdtemp(join(tmpdir(), 'tapetree-example-'))
  cleanUps.push(() => rm(cwd, { recursive: true, force: true }))
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(cwd, name)), { recursive: true })
    await writeFile(join(cwd, name), content)
  }
  const host = await ExtensionHost.open({
    extensions: [join(import.meta.dirname, `${example}.ts`)],
    cwd,
    onProblem: (problem) => problems.push(problem),
  })
  cleanUps.push(() => host.close())
  const model = scriptedModel(answers)
  const agent = await AgentSession.open({
    store: memoryStore(),
    models: onlyModel(model),
    cwd,
    hooks: host.hooks,
    tools: ({ jobs }) => host.withTools(allTools({ jobs })),
    systemPrompt: () => 'You are an example.',
    gate: () => allowAll,
  })
  cleanUps.push(() => agent.close())
  return { agent, host, model, cwd }
}

async function say(agent: AgentSession, words: string): Promise<void> {
  const outcome = await agent.prompt(words)
  if (outcome.type !== 'started') throw new Error(`The prompt was ${outcome.type}.`)
  await outcome.run.done
}

/** The results of all calls on the path. */
async function results(agent: AgentSession): Promise<string[]> {
  const entries = await agent.session.getContextPath()
  return entries.flatMap((entry) => (entry.type === 'message' ? entry.message.content.flatMap(resultText) : []))
}

function resultText(block: Content): string[] {
  return block.type === 'tool_result' && typeof block.toolResult.content === 'string' ? [block.toolResult.content] : []
}

test('protect-paths: a protected file is not written, another is', async () => {
  const answers = script()
    .toolCall('1', 'write', { path: './secrets/../.env', content: 'A=1' })
    .toolCall('2', 'write', { path: 'notes.md', content: 'fine' })
    .step()
    .text('done')
  const { agent, cwd } = await open('protect-paths', answers, { '.env': 'A=0' })
  await say(agent, 'Change both.')
  expect((await results(agent))[0]).toBe('.env is protected. Ask the user to change it.')
  expect([await readFile(join(cwd, '.env'), 'utf8'), await readFile(join(cwd, 'notes.md'), 'utf8')]).toEqual([
    'A=0',
    'fine',
  ])
})

test('shorten-results: the middle of a long result is left out', async () => {
  const lines = Array.from({ length: 500 }, (_, index) => `line ${index + 1}`).join('\n')
  const { agent } = await open(
    'shorten-results',
    script().toolCall('1', 'read', { path: 'long.txt' }).step().text('ok'),
    {
      'long.txt': lines,
    },
  )
  await say(agent, 'Read it.')
  const [result = ''] = await results(agent)
  expect(result).toContain('line 1\n')
  expect(result).toMatch(/\[3\d\d lines left out\]/)
  expect(result).not.toContain('line 250\n')
})

test('todo-command: notes are kept beside the conversation, and become a prompt', async () => {
  const { agent, host, model } = await open('todo-command', script().text('I will.'))
  expect(await host.runCommand('todo', 'buy salt')).toEqual({ type: 'done', say: 'Noted. That makes 1.' })
  const outcome = await host.runCommand('todo', '')
  expect(outcome).toEqual({ type: 'prompt', prompt: 'Do these things, one after another:\n- buy salt' })
  if (outcome.type === 'prompt') await say(agent, outcome.prompt)
  const entries = await agent.session.getContextPath()
  expect(entries.flatMap((entry) => (entry.type === 'custom' ? [entry.custom] : []))).toEqual([
    { customType: 'todo', data: { note: 'buy salt' } },
  ])
  expect(model.requests.map(({ messages }) => messages.length)).toEqual([1])
})

test('word-count: the model uses a tool that is not ours', async () => {
  const answers = script()
    .toolCall('1', 'word_count', { path: 'poem.txt' })
    .toolCall('2', 'word_count', {})
    .step()
    .text('7')
  const { agent, model } = await open('word-count', answers, { 'poem.txt': 'Roses are red,\nviolets are blue\n' })
  await say(agent, 'How long is it?')
  // Who only reads runs side by side, and who is refused is done first.
  expect((await results(agent)).sort()).toEqual([
    '6 words, 2 lines, 32 characters',
    expect.stringMatching(/^The input of word_count is not valid\./),
  ])
  expect(model.requests[0]?.tools.map(({ name }) => name)).toContain('word_count')
})

test('review-marks: a changed migration is marked, the agent is told to stop, and a command clears the mark', async () => {
  const write = (id: string, path: string): [string, string, { path: string; content: string }] => [
    id,
    'write',
    { path, content: 'x' },
  ]
  const answers = script()
    .toolCall(...write('1', 'migrations/7.sql'))
    .toolCall(...write('2', 'other.ts'))
    .step()
    .text('I wait.')
  const { agent, host, cwd, model } = await open('review-marks', answers)
  await say(agent, 'Go on.')
  expect([[...agent.session.getLabels().values()], agent.session.name]).toEqual([
    ['needs_review'],
    'Review: migrations/7.sql',
  ])
  expect(JSON.stringify(model.requests[1]?.messages.at(-1))).toContain('A migration was changed.')
  await expect(readFile(join(cwd, 'other.ts'))).rejects.toThrow('ENOENT')
  expect(await host.runCommand('reviewed', '')).toEqual({ type: 'done', say: 'Reviewed: 1.' })
  expect(agent.session.getLabels().size).toBe(0)
})

test('branch-note: the model is told the branch, and the session does not keep it', async () => {
  const { agent, model } = await open('branch-note', script().text('ok'), { '.git/HEAD': 'ref: refs/heads/soup\n' })
  await say(agent, 'Hello.')
  expect(JSON.stringify(model.requests[0]?.messages)).toContain('The branch of this moment is soup.')
  const { messages } = await agent.session.getContext()
  expect(JSON.stringify(messages)).not.toContain('soup')
})

test('keep-decisions: the prompt and the instructions for a summary say what must stay', async () => {
  const long = 'We talked about it at length. '.repeat(3000)
  const summary = '## Goal\nSoup.'
  const answers = script().text(long).step().text(long).step().text(summary).step().text(summary)
  const { agent, model } = await open('keep-decisions', answers)
  await say(agent, 'Decide.')
  await say(agent, 'And then?')
  expect(model.requests[0]?.system).toMatch(/^You are an example\.\n\nWhen you decide something/)
  await agent.compact('Be brief.')
  expect(JSON.stringify(model.requests.slice(2))).toContain('Be brief.\\nKeep every decision with its reason')
})

test('release-freeze: a hook tells the model, a tool has the reason, a rule blocks the push, and a command ends it', async () => {
  const answers = script()
    .toolCall('1', 'freeze_reason', {})
    .step()
    .toolCall('2', 'bash', { command: 'git push origin main' })
    .step()
    .text('I will wait.')
    .step()
    .text('Now?')
  const { agent, host, model } = await open('release-freeze', answers)
  expect(await host.runCommand('freeze', 'release on Friday')).toEqual({ type: 'done', say: 'The project is frozen.' })
  await say(agent, 'Push it.')
  expect(model.requests[0]?.system).toContain('The project is frozen.')
  expect(await results(agent)).toEqual(['release on Friday', 'The project is frozen: release on Friday. Do not push.'])
  await host.runCommand('freeze', 'off')
  await say(agent, 'And now?')
  expect(model.requests.at(-1)?.system).not.toContain('frozen')
})
