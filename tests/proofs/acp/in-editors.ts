import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { methods, type RequestPermissionResponse } from '@agentclientprotocol/sdk/unstable'
import type { FakeContent, FakeStep } from '@tapetree/agent/testing'
import { randomFrom } from '../../../scripts/figure/random.ts'
import { TestEditor } from '../../../packages/cli/src/acp/testing/test-editor.ts'
import { fakeHome, type FakeHome } from '../../../packages/cli/src/testing/fake-home.ts'
import { checkLog } from '../sync/check-log.ts'
import { foldOf } from '../sync/referee.ts'
import { readLog } from '../sync/stage.ts'
import type { Violation } from '../sync/violation.ts'
import { callsHaveOneResult, logLines, runsHaveOneEnd, type LogLine } from './judge.ts'
import { words } from './steps.ts'

export interface EditorsResult {
  violations: Violation[]
  figures: Record<'editors' | 'editorKills' | 'prompts' | 'cancels' | 'lines', number>
}

const restMs = 120_000
/** What waits is delivered within this time, or after the next prompt. */
const queuedMs = 2000
const { session: sessionMethods } = methods.agent
const saidTokens = /<said\.\d+>/g

/** `tapetree acp` in one or more editors that prompt, cancel, answer, come back, quit and are killed, as a seed has it. */
export async function playInEditors({ seed }: { seed: number }): Promise<EditorsResult> {
  await using home = await fakeHome()
  const editors = new Editors(seed, home)
  try {
    await editors.play()
    await editors.settle()
    return await editors.judge()
  } finally {
    await editors.close()
  }
}

interface Prompt {
  word: string
  /** Undefined while there is none; `gone` if the command was killed, and `refused` for an error. */
  answer?: string
  text?: string
}

class Editors {
  readonly #random: () => number
  readonly #answers: () => number
  readonly #home: FakeHome
  readonly #all: TestEditor[] = []
  readonly #open: TestEditor[] = []
  readonly #prompts: Prompt[] = []
  readonly #violations: Violation[] = []
  #sessionId = ''
  #said = 0
  #commands = 0
  #cancels = 0
  #kills = 0
  #isSettling = false

  constructor(seed: number, home: FakeHome) {
    this.#random = randomFrom(seed)
    // What the model says depends on how often it is asked; what the editors do must not.
    this.#answers = randomFrom(Math.floor(this.#random() * 2 ** 32))
    this.#home = home
    home.provider.script(() => this.#respond())
  }

  async play(): Promise<void> {
    const first = await this.#start()
    this.#sessionId = await telling(first, first.session(this.#home.cwd))
    this.#prompt(first)
    // A session in which nothing was said is discarded with its editor.
    await this.#home.provider.request(1)
    for (let count = 8 + this.#int(14); count > 0; count--) {
      await this.#step()
      await setTimeout(this.#random() * 60)
    }
  }

  /** All quit. The next editor resumes what is open, and prompts until nothing waits. */
  async settle(): Promise<void> {
    this.#isSettling = true
    for (const editor of this.#open.splice(0)) await editor.quit()
    const editor = await this.#start()
    await this.#load(editor)
    await this.#within(
      '/resume',
      editor.prompt(this.#sessionId, '/resume').catch(() => 'refused'),
    )
    for (let tries = 0; tries < 10 && (tries === 0 || !(await this.#isAtRest())); tries++) {
      const prompt = this.#prompt(editor)
      const answer = await this.#within(
        prompt.word,
        until(() => prompt.answer),
      )
      if (answer !== 'end_turn') this.#wrong('I8', `a prompt at the end was answered ${answer}: ${prompt.text ?? ''}`)
    }
    this.#drop(editor)
    await editor.quit()
    const unanswered = this.#prompts.filter((each) => each.answer === undefined)
    if (unanswered.length > 0) this.#wrong('I6', `${unanswered.map(({ word }) => word).join(', ')} had no answer`)
  }

  async judge(): Promise<EditorsResult> {
    const texts = this.#log()
    const lines = logLines(texts)
    this.#violations.push(
      ...checkLog({ lines: texts, commands: new Map(), acks: new Map(), closings: [{ from: 0, to: Infinity }] }),
      ...callsHaveOneResult(lines),
      ...runsHaveOneEnd(lines),
    )
    const users = lines.filter(({ type, payload }) => type === 'message' && payload['role'] === 'user')
    const asked = users.flatMap(({ text }) => text.match(words) ?? [])
    const said = lines.flatMap(({ type, payload, text }) =>
      type === 'message' && payload['role'] === 'assistant' ? (text.match(saidTokens) ?? []) : [],
    )
    this.#checkPrompts(asked)
    this.#checkCommands(lines)
    await this.#checkLoaded(asked, said)
    const figures = {
      editors: this.#all.length,
      editorKills: this.#kills,
      prompts: this.#prompts.length,
      cancels: this.#cancels,
      lines: lines.length,
    }
    return { violations: this.#violations, figures }
  }

  /** No run is open and nothing waits. What others have queued may still be on its way. */
  async #isAtRest(): Promise<boolean> {
    for (const until = performance.now() + queuedMs; performance.now() < until; await setTimeout(20)) {
      const texts = this.#log()
      const { run, waiting } = foldOf(texts)
      const lines = logLines(texts)
      // A message that was just delivered is there before the start of its run.
      const isHeard =
        lines.findLastIndex(({ type, payload }) => type === 'message' && payload['role'] === 'user') <
        lines.findLastIndex(({ type }) => type === 'run_start')
      const isAnswered = this.#prompts.at(-1)?.answer !== undefined
      if (run === null && waiting.length === 0 && isHeard && isAnswered) return true
    }
    return false
  }

  #log(): string[] {
    return readLog(this.#home.env['TAPETREE_HOME'] ?? '', this.#sessionId)
  }

  async close(): Promise<void> {
    this.#open.length = 0
    for (const editor of this.#all) await editor[Symbol.asyncDispose]()
  }

  async #step(): Promise<void> {
    const editor = this.#any(this.#open)
    const step = this.#random()
    if (!editor || (step < 0.12 && this.#open.length < 3)) return this.#comeBack()
    if (step < 0.2) {
      this.#drop(editor)
      this.#kills++
      editor.child.kill('SIGKILL')
      return undefined
    }
    if (step < 0.26) {
      this.#drop(editor)
      return editor.quit()
    }
    const sessionId = this.#sessionId
    if (step < 0.4) {
      this.#cancels++
      return editor.agent.notify(sessionMethods.cancel, { sessionId }).catch(() => undefined)
    }
    if (step < 0.46) {
      const title = `title ${this.#prompts.length}`
      void editor.agent.request(sessionMethods.setTitle, { sessionId, title }).catch(() => undefined)
      return undefined
    }
    if (step < 0.52) {
      void editor.agent.request(sessionMethods.list, {}).catch(() => undefined)
      return undefined
    }
    if (step < 0.58) return void this.#load(editor).catch(() => undefined)
    this.#prompt(editor)
    return undefined
  }

  #prompt(editor: TestEditor): Prompt {
    const prompt: Prompt = { word: `word-${this.#prompts.length + 1}` }
    this.#prompts.push(prompt)
    editor.prompt(this.#sessionId, prompt.word).then(
      (reason) => (prompt.answer = reason),
      (error: unknown) => {
        prompt.answer = this.#open.includes(editor) ? 'refused' : 'gone'
        prompt.text = String(error)
      },
    )
    return prompt
  }

  async #comeBack(): Promise<void> {
    const editor = await this.#start()
    const { cwd } = this.#home
    if (this.#random() < 0.5) return this.#load(editor)
    await telling(editor, editor.agent.request(sessionMethods.resume, { sessionId: this.#sessionId, cwd }))
  }

  async #load(editor: TestEditor): Promise<void> {
    const { cwd } = this.#home
    await telling(
      editor,
      editor.agent.request(sessionMethods.load, { sessionId: this.#sessionId, cwd, mcpServers: [] }),
    )
  }

  async #start(): Promise<TestEditor> {
    const editor = await TestEditor.start(this.#home, { permit: ({ options }) => this.#permit(options) })
    this.#all.push(editor)
    this.#open.push(editor)
    editor.child.once('close', (code, signal) => {
      if (!this.#open.includes(editor)) return
      this.#drop(editor)
      this.#wrong('I10', `tapetree acp ended by itself (${signal ?? code}): ${editor.stderr.slice(0, 1000)}`)
    })
    return editor
  }

  #drop(editor: TestEditor): void {
    this.#open.splice(this.#open.indexOf(editor), 1)
  }

  /** Allows, rejects, or leaves it to somebody else. */
  async #permit(options: readonly { optionId: string; kind: string }[]): Promise<RequestPermissionResponse> {
    const random = this.#isSettling ? 0 : this.#answers()
    if (random > 0.8) return new Promise(() => undefined)
    await setTimeout(random * 20)
    const kind = random < 0.55 ? 'allow_once' : 'reject_once'
    const optionId = options.find((option) => option.kind === kind)?.optionId ?? ''
    return { outcome: { outcome: 'selected', optionId } }
  }

  #respond(): FakeStep {
    const random = this.#answers()
    if (!this.#isSettling && random < 0.04) return { type: 'hang' }
    if (!this.#isSettling && random < 0.08) return { type: 'failure', error: 'invalid-request' }
    const content: FakeContent[] = []
    const count = 1 + Math.floor(this.#answers() * 8)
    content.push({ type: 'text', chunks: Array.from({ length: count }, () => `<said.${++this.#said}> `) })
    if (this.#answers() < (this.#isSettling ? 0.1 : 0.4)) {
      const command = `echo ran-${++this.#commands} >> ran`
      content.push({ type: 'tool_call', id: `c${this.#commands}`, name: 'bash', chunks: [JSON.stringify({ command })] })
    }
    return { type: 'answer', content, paceMs: Math.floor(this.#answers() * 10) }
  }

  /** I6 and I8: each prompt is in the log at most once, and those that were answered are. */
  #checkPrompts(asked: readonly string[]): void {
    for (const { word, answer } of this.#prompts) {
      const times = asked.filter((each) => each === word).length
      if (times > 1) this.#wrong('I6', `${word} is in the log ${times} times`)
      if (answer === 'end_turn' && times === 0) this.#wrong('I8', `${word} was answered, and is not in the log`)
      if (answer === 'cancelled' && this.#cancels === 0) this.#wrong('I6', `${word} was cancelled by nobody`)
    }
  }

  /** I7: a command ran at most once, and only if it was allowed. */
  #checkCommands(lines: readonly LogLine[]): void {
    const file = join(this.#home.cwd, 'ran')
    const ran = existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : []
    const requestOf = new Map<string, string>()
    const allowed = new Set<string>()
    for (const { type, payload, text } of lines) {
      if (type === 'permission_request') {
        const [mark] = /ran-\d+/.exec(text) ?? []
        if (mark !== undefined) requestOf.set(String(payload['request_id']), mark)
      }
      if (type === 'permission_result' && payload['outcome'] === 'allowed')
        allowed.add(requestOf.get(String(payload['request_id'])) ?? '')
    }
    for (const [index, mark] of ran.entries()) {
      if (ran.indexOf(mark) !== index) this.#wrong('I7', `the command of ${mark} ran twice`)
      if (!allowed.has(mark)) this.#wrong('I7', `the command of ${mark} ran and was not allowed`)
    }
  }

  /** I4 and I12: whoever loads the session is told what the log says, once and in order; what was shown was said. */
  async #checkLoaded(asked: readonly string[], said: readonly string[]): Promise<void> {
    const editor = await this.#start()
    await this.#load(editor)
    const differs = (what: string, told: readonly string[], logged: readonly string[]): void => {
      if (told.join() !== logged.join())
        this.#wrong('I4', `load tells other ${what}: ${told.join()} and not ${logged.join()}`)
    }
    differs('prompts', editor.text('user_message_chunk').match(words) ?? [], asked)
    differs('answers', editor.text('agent_message_chunk').match(saidTokens) ?? [], said)
    const open = editor.calls().filter(({ status }) => status !== 'completed' && status !== 'failed')
    if (open.length > 0) this.#wrong('I4', `load tells of calls without an end: ${JSON.stringify(open).slice(0, 300)}`)
    for (const { updates } of this.#all) {
      const shown = updates.map(({ update }) => ('content' in update ? JSON.stringify(update.content) : '')).join('')
      for (const token of shown.match(saidTokens) ?? [])
        if (Number(/\d+/.exec(token)?.[0]) > this.#said) this.#wrong('I5', `${token} was shown, and nobody said it`)
    }
  }

  async #within(what: string, work: Promise<string>): Promise<string> {
    const late = setTimeout(restMs, 'late', { ref: false })
    const answer = await Promise.race([work, late])
    if (answer === 'late') this.#wrong('I4', `${what} was not answered`)
    return answer
  }

  #wrong(invariant: string, message: string): void {
    this.#violations.push({ invariant, message })
  }

  #int(count: number): number {
    return Math.floor(this.#random() * count)
  }

  #any<T>(list: readonly T[]): T | undefined {
    return list[this.#int(list.length)]
  }
}

async function until<T>(find: () => T | undefined): Promise<T> {
  for (;;) {
    const found = find()
    if (found !== undefined) return found
    await setTimeout(5)
  }
}

/** An error with what the command wrote. */
async function telling<T>(editor: TestEditor, answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (cause) {
    const { exitCode, signalCode } = editor.child
    throw new Error(`tapetree acp (${exitCode ?? signalCode ?? 'open'}): ${editor.stderr.slice(0, 1000)}`, { cause })
  }
}
