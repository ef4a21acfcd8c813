import { allTools } from '@tapetree/agent'
import { buildSystemPrompt } from '@tapetree/agent/run'
import { anthropic } from '@tapetree/agent/models/anthropic'
import { startFakeProvider } from '@tapetree/agent/testing'
import { expect, onTestFinished } from 'vitest'
import { verifies } from '../../support/verifies.ts'
import { agentWith } from './agents.ts'

const environment = { platform: 'linux', cwd: '/home/me/project', shell: 'bash' }
const prompt = buildSystemPrompt({ environment, instructions: [], skills: [] })

/** What stands below a heading, on one line; empty where there is no such heading. */
function section(heading: string): string {
  const [, below = ''] = prompt.split(`\n# ${heading}\n`)
  return (below.split(/^# /m)[0] ?? '').replace(/\s+/g, ' ')
}

/** The system blocks that reach a provider which has several. */
async function systemBlocks(systemPrompt: string): Promise<string[]> {
  const provider = await startFakeProvider()
  onTestFinished(() => provider.close())
  provider.script({ type: 'answer', content: [{ type: 'text', chunks: ['yes'] }] })
  const model = anthropic({ model: 'claude-opus-5', apiKey: 'test', baseUrl: provider.baseUrl('anthropic') })
  await agentWith({ model, systemPrompt }).ask('go')
  const { body } = await provider.request(1)
  return (body as { system: { text: string }[] }).system.map(({ text }) => text)
}

verifies(
  ['agent-module/prompt two-parts', 'agent-module/prompt vendor-header', 'agent-module/prompt main-block'],
  'a provider gets our prompt as it is, with nothing before it, and the prompt claims to be nobody else',
  async () => {
    expect(await systemBlocks(prompt)).toEqual([prompt])
    expect(prompt).not.toMatch(/\b(claude|anthropic|openai|chatgpt|gemini|copilot|cursor|codex)\b/i)
    expect(prompt.match(/^You are (\w+)/)?.[1]).toBe('tapetree')
  },
)

verifies(
  ['agent-module/prompt who-it-is', 'agent-module/prompt what-it-helps-with'],
  'it begins with who the agent is, where it lives and what it does',
  () => {
    const [beginning = ''] = prompt.split('\n# ')
    for (const words of ['You are tapetree', 'terminal', 'software work', 'change code', 'run commands', 'answer']) {
      expect(beginning).toContain(words)
    }
  },
)

verifies(['agent-module/prompt length'], 'it has about 160 lines, and eight sections before the environment', () => {
  const [own = ''] = prompt.split('\n# Environment\n')
  expect(Math.abs(own.trim().split('\n').length - 160)).toBeLessThanOrEqual(15)
  expect(Array.from(own.matchAll(/^# (.+)$/gm), ([, heading]) => heading)).toHaveLength(8)
})

verifies(
  ['agent-module/prompt section-tone', 'agent-module/prompt says-concise', 'agent-module/prompt says-no-narration'],
  'the section on tone asks for short answers in Markdown, fit for a terminal, and for no narration',
  () => {
    const tone = section('Tone and Style')
    for (const words of ['Be brief', 'terminal', 'Write Markdown', 'Do not narrate', 'the task list']) {
      expect(tone).toContain(words)
    }
  },
)

verifies(
  ['agent-module/prompt section-objectivity'],
  'the section on objectivity puts what is true before what pleases, and asks for honest reports',
  () => {
    const objectivity = section('Professional Objectivity')
    for (const words of ['true comes before what is pleasant', 'mistaken, say so', 'Report what happened']) {
      expect(objectivity).toContain(words)
    }
  },
)

verifies(
  ['agent-module/prompt section-code', 'agent-module/prompt says-read-first', 'agent-module/prompt says-focus'],
  'the section on code asks to read first, to stay with the request, to mind security and to delete cleanly',
  () => {
    const code = section('Working With Code')
    for (const words of [
      'Read it first',
      'Stay with the request',
      'No new features',
      'security in mind',
      'remove all of it',
    ]) {
      expect(code).toContain(words)
    }
  },
)

verifies(
  ['agent-module/prompt section-tools'],
  'the section on tools names tools for files, searches and commands, all of which there are, and calls side by side',
  () => {
    const tools = section('Tool Usage')
    const names = allTools().map(({ name }) => name)
    for (const name of names) expect(tools).toContain(`\`${name}\``)
    expect(names).toEqual(expect.arrayContaining(['read', 'edit', 'write', 'grep', 'find', 'ls', 'bash']))
    expect(tools).toContain('run side by side')
  },
)

verifies(
  ['agent-module/prompt section-tasks', 'agent-module/prompt says-todo-write'],
  'the section on tasks asks for a list with todo_write where there are several steps',
  () => {
    const tasks = section('Task Management')
    for (const words of ['three steps or more', '`todo_write`', '`in_progress`']) expect(tasks).toContain(words)
    expect(allTools().map(({ name }) => name)).toContain('todo_write')
  },
)

verifies(
  ['agent-module/prompt section-questions'],
  'the section on questions says when to ask and when to go on',
  () => {
    const questions = section('Asking Questions')
    for (const words of ['Ask with `ask_user` when', 'Do not ask when', 'say in a line what you assumed']) {
      expect(questions).toContain(words)
    }
  },
)

verifies(
  ['agent-module/prompt section-git', 'agent-module/prompt says-git-safety'],
  'the section on git forbids forced pushes and skipped hooks, and says how commits and pull requests are made',
  () => {
    const git = section('Git Workflows')
    for (const words of ['Safety first', 'Never force-push', 'skip hooks', 'Commits:', 'Pull requests:']) {
      expect(git).toContain(words)
    }
  },
)

verifies(
  ['agent-module/prompt section-errors'],
  'the section on errors asks for the cause, and for another way where one has failed',
  () => {
    const errors = section('Error Handling')
    for (const words of ['name the cause', 'Treat the cause', 'take another way']) expect(errors).toContain(words)
  },
)
