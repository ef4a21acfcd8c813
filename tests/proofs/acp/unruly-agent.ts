// A foreign agent without the SDK: it writes its messages by hand, so that it can also write wrong ones. Its prompts tell it what to do. It
// writes down what it does before it does it: `unruly-agent.ts <folder> <load|resume|none> <log>`.
import { appendFileSync, closeSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { stepsIn, words, type Deed, type Step } from './steps.ts'

const [folder = '.', features = 'load', log = ''] = process.argv.slice(2)
const agent = crypto.randomUUID().slice(0, 8)
let said = 0
let asked = 0
let turns = 0
let isDeaf = false
const answers = new Map<number, (answer: { result?: unknown; error?: unknown }) => void>()
const running = new Map<string, Turn>()

type DeedOf<T> = T extends unknown ? Omit<T, 'agent'> : never

function note(deed: DeedOf<Deed>): void {
  appendFileSync(join(folder, 'ledger.jsonl'), `${JSON.stringify({ agent, ...deed })}\n`)
}

function linesOfLog(): number {
  return readFileSync(log).reduce((count, byte) => (byte === 10 ? count + 1 : count), 0)
}

function write(...messages: object[]): void {
  process.stdout.write(messages.map((message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`).join(''))
}

function updateOf(sessionId: string, update: object): object {
  return { method: 'session/update', params: { sessionId, update } }
}

async function request(method: string, params: object): Promise<{ result?: unknown; error?: unknown }> {
  const id = ++asked
  const answer = new Promise<{ result?: unknown; error?: unknown }>((resolve) => answers.set(id, resolve))
  write({ id, method, params })
  return answer
}

class Turn {
  readonly id = `${agent}-${++turns}`
  readonly #session: string
  readonly #prompt: number
  readonly #cancelled = Promise.withResolvers<void>()
  isCancelled = false
  #lingers = false
  #answersTwice = false
  #reason: string | undefined
  readonly #late: ('now' | 'soon')[] = []

  constructor(session: string, prompt: number) {
    this.#session = session
    this.#prompt = prompt
  }

  cancel(): void {
    this.isCancelled = true
    this.#cancelled.resolve()
  }

  async play(steps: readonly Step[]): Promise<void> {
    for (const step of steps) {
      if (!this.isCancelled || step.do === 'late') await this.#take(step)
      if (this.#reason === 'error') break
    }
    if (this.isCancelled && this.#lingers) this.#say('agent_message_chunk')
    const late = (as: 'astray' | 'soon'): object => this.#chunk('agent_message_chunk', this.#token(as))
    const reason = this.isCancelled ? 'cancelled' : (this.#reason ?? 'end_turn')
    note({ type: 'end', turn: this.id, reason })
    running.delete(this.#session)
    const response =
      reason === 'error'
        ? { id: this.#prompt, error: { code: -32603, message: 'This went wrong.' } }
        : { id: this.#prompt, result: { stopReason: reason } }
    write(
      response,
      ...(this.#answersTwice ? [response] : []),
      ...this.#late.flatMap((when) => (when === 'now' ? [late('astray')] : [])),
    )
    for (const when of this.#late) if (when === 'soon') setTimeout(() => write(late('soon')), 5)
  }

  async #take(step: Step): Promise<void> {
    switch (step.do) {
      case 'say':
        for (let count = 0; count < step.count; count++) this.#say('agent_message_chunk')
        return this.#breathe()
      case 'think':
        return this.#say('agent_thought_chunk')
      case 'call':
        return this.#call(step)
      case 'ask':
        return this.#ask(step.id)
      case 'change':
        return this.#tell({ sessionUpdate: 'tool_call_update', toolCallId: step.id, status: 'failed' })
      case 'plan':
        return this.#tell({ sessionUpdate: 'plan', entries: [{ content: 'Look', status: 'pending', priority: 'low' }] })
      case 'commands':
        return this.#tell({
          sessionUpdate: 'available_commands_update',
          availableCommands: [{ name: `go-${said}`, description: 'Goes' }],
        })
      case 'write':
      case 'read':
      case 'run':
        return this.#use(step.do, step.name)
      case 'pause':
        return this.#breathe(step.ms)
      case 'wait':
        return this.#cancelled.promise
      case 'hang':
        note({ type: 'fatal', why: 'hang' })
        return new Promise(() => undefined)
      case 'flood':
        if (step.size * step.count > 16 * 1024 * 1024) note({ type: 'fatal', why: 'flood' })
        for (let count = 0; count < step.count && !this.isCancelled; count++) {
          this.#tell(content('agent_message_chunk', 'x'.repeat(step.size)))
          if (count % 20 === 0) await this.#breathe()
        }
        return this.#say('agent_message_chunk')
      case 'bulky':
        return this.#bulky(step)
      case 'linger':
        this.#lingers = true
        return undefined
      case 'noise':
        return this.#noise(step.kind)
      case 'late':
        this.#late.push(step.when)
        return undefined
      case 'huge':
        note({ type: 'fatal', why: 'huge' })
        process.stdout.write('x'.repeat(17 * 1024 * 1024))
        return this.#cancelled.promise
      case 'error':
      case 'refuse':
        this.#reason = step.do === 'error' ? 'error' : 'refusal'
        return undefined
      case 'die':
        if (step.isDeaf) await this.#goDeaf()
        await new Promise((resolve) => process.stdout.write('', resolve))
        note({ type: 'fatal', why: 'die' })
        if (step.inMessage) process.stdout.write('{"jsonrpc":"2.0","method":"session/upd')
        process.kill(process.pid, 'SIGKILL')
        return new Promise(() => undefined)
      default:
        step satisfies never
    }
  }

  /** Wrong messages, which are answered, show that it no longer reads. */
  async #goDeaf(): Promise<void> {
    note({ type: 'fatal', why: 'deaf' })
    isDeaf = true
    process.stdout.on('error', () => undefined)
    process.stdin.destroy() // which leaves it open
    closeSync(0)
    for (let count = 0; count < 3; count++) {
      await this.#noise('text')
      await this.#breathe(2)
      this.#say('agent_message_chunk')
    }
  }

  async #call({ id: toolCallId, kind, flow, inside }: Extract<Step, { do: 'call' }>): Promise<void> {
    this.#tell({ sessionUpdate: 'tool_call', toolCallId, title: `Call ${toolCallId}`, kind, status: 'pending' })
    if (flow === 'announced') return
    await this.#breathe()
    this.#tell({ sessionUpdate: 'tool_call_update', toolCallId, status: 'in_progress' })
    if (inside) this.#say('agent_message_chunk')
    if (flow === 'open') return
    await this.#breathe()
    const status = flow === 'done' ? 'completed' : 'failed'
    const text = this.#token('told')
    this.#tell({
      sessionUpdate: 'tool_call_update',
      toolCallId,
      status,
      content: [{ type: 'content', content: { type: 'text', text } }],
    })
  }

  async #bulky({ kind, id: toolCallId }: Extract<Step, { do: 'bulky' }>): Promise<void> {
    const call = (rawInput: unknown): void =>
      this.#tell({
        sessionUpdate: 'tool_call',
        toolCallId,
        title: 'Bulky',
        kind: 'other',
        rawInput,
        status: 'completed',
      })
    switch (kind) {
      case 'deep':
        call(JSON.parse(`${'{"in":'.repeat(100)}1${'}'.repeat(100)}`))
        break
      case 'wide':
        call({ numbers: Array.from({ length: 50_000 }, (_, index) => index) })
        break
      case 'plan': {
        const entry = { content: 'x'.repeat(1000), status: 'pending', priority: 'low' }
        this.#tell({ sessionUpdate: 'plan', entries: Array.from({ length: 200 }, () => entry) })
        break
      }
      case 'parts':
        for (let count = 0; count < 250 && !this.isCancelled; count++) {
          this.#tell(content('agent_thought_chunk', '€'.repeat(170)))
          this.#tell(content('agent_message_chunk', '€'.repeat(170)))
          if (count % 20 === 0) await this.#breathe()
        }
        break
      default:
        kind satisfies never
    }
    this.#say('agent_message_chunk')
    return this.#breathe()
  }

  async #ask(toolCallId: string): Promise<void> {
    this.#tell({ sessionUpdate: 'tool_call', toolCallId, title: `Ask ${toolCallId}`, kind: 'other', status: 'pending' })
    const { result } = await request('session/request_permission', {
      sessionId: this.#session,
      toolCall: { toolCallId },
      options: [
        { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
        { optionId: 'no', name: 'No', kind: 'reject_once' },
      ],
    })
    const { outcome } = (result ?? {}) as { outcome?: { outcome: string; optionId?: string } }
    const chosen = outcome?.optionId ?? outcome?.outcome ?? 'error'
    note({ type: 'answer', call: toolCallId, outcome: chosen, lines: linesOfLog() })
    this.#tell({ sessionUpdate: 'tool_call_update', toolCallId, status: chosen === 'yes' ? 'completed' : 'failed' })
  }

  async #use(how: 'write' | 'read' | 'run', name: string): Promise<void> {
    const sessionId = this.#session
    const path = join(folder, '..', name)
    if (how === 'read') return void (await request('fs/read_text_file', { sessionId, path }))
    if (how === 'write') {
      const { error } = await request('fs/write_text_file', { sessionId, path, content: `${this.id}\n` })
      if (!error) note({ type: 'effect', what: 'write' })
      return
    }
    const { result } = await request('terminal/create', { sessionId, command: `echo ${this.id} > ran` })
    const { terminalId } = (result ?? {}) as { terminalId?: string }
    if (terminalId === undefined) return
    note({ type: 'effect', what: 'run' })
    await request('terminal/wait_for_exit', { sessionId, terminalId })
    await request('terminal/release', { sessionId, terminalId })
  }

  async #noise(kind: Extract<Step, { do: 'noise' }>['kind']): Promise<void> {
    const astray = (sessionId: string): object =>
      updateOf(sessionId, content('agent_message_chunk', this.#token('astray')))
    switch (kind) {
      case 'text':
        process.stdout.write('debug: hello\n\n{"jsonrpc":\n')
        return
      case 'json':
        process.stdout.write('[1, 2]\nnull\n"text"\n{}\n')
        return
      case 'another-session':
        return write(astray('another-session'))
      case 'unknown-call':
        return this.#tell({
          sessionUpdate: 'tool_call_update',
          toolCallId: 'unheard-of',
          status: 'completed',
          content: [{ type: 'content', content: { type: 'text', text: this.#token('astray') } }],
        })
      case 'malformed-update':
        this.#tell({ sessionUpdate: 'tool_call', title: this.#token('astray') })
        this.#tell({ sessionUpdate: 'unheard_of', content: { type: 'text', text: this.#token('astray') } })
        return this.#tell({ sessionUpdate: 'agent_message_chunk', content: this.#token('astray') })
      case 'unknown-answer':
        return write({ id: 99_999, result: {} }, { id: 'word', error: { code: 1, message: 'no' } })
      case 'unknown-method':
        return write({ method: 'unheard/of', params: {} }, { id: 77_777, method: 'unheard/of', params: {} })
      case 'another-session-asks': {
        const options = [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' }]
        const toolCall = { toolCallId: 'elsewhere', title: 'Elsewhere', kind: 'other' }
        const { result } = await request('session/request_permission', { sessionId: 'elsewhere', toolCall, options })
        if (result) note({ type: 'answer', call: 'elsewhere', outcome: JSON.stringify(result), lines: linesOfLog() })
        return
      }
      case 'answered-twice':
        this.#answersTwice = true
        return
      default:
        kind satisfies never
    }
  }

  #say(kind: 'agent_message_chunk' | 'agent_thought_chunk'): void {
    write(this.#chunk(kind, `${this.#token('told')} `))
  }

  /** Each token is sent once, except when the agent repeats its history. */
  #token(as: 'told' | 'astray' | 'soon'): string {
    const token = `<${agent}.${++said}>`
    note({ type: 'said', turn: this.id, token, as })
    if (as === 'told') appendFileSync(join(folder, `${this.#session}.session`), `${token}\n`)
    return token
  }

  #tell(update: object): void {
    write(updateOf(this.#session, update))
  }

  #chunk(kind: string, text: string): object {
    return updateOf(this.#session, content(kind, text))
  }

  #breathe(ms = 0): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, ms))
  }
}

function content(sessionUpdate: string, text: string): object {
  return { sessionUpdate, content: { type: 'text', text } }
}

function promptText(prompt: { type: string; text?: string }[]): string {
  return prompt.map(({ text = '' }) => text).join('\n')
}

/** A turn that an agent before this one has begun is not played again. */
function stepsOf(text: string): Step[] {
  const { word, steps } = stepsIn(text) ?? {}
  if (word === undefined || !steps) return [{ do: 'say', count: 1 }]
  const begun = join(folder, `${word}.begun`)
  if (existsSync(begun)) return [{ do: 'say', count: 1 }]
  writeFileSync(begun, '')
  return steps
}

interface Incoming {
  id?: number
  method?: string
  params: { sessionId: string; prompt: { type: string; text?: string }[] }
  result?: unknown
  error?: unknown
}

function take({ id = 0, method, params, ...answer }: Incoming): void {
  switch (method) {
    case undefined:
      answers.get(id)?.(answer)
      return
    case 'initialize': {
      const sessionCapabilities = features === 'resume' ? { resume: {} } : {}
      const agentCapabilities = { loadSession: features === 'load', sessionCapabilities }
      return write({ id, result: { protocolVersion: 1, agentCapabilities } })
    }
    case 'session/new': {
      const session = crypto.randomUUID()
      appendFileSync(join(folder, `${session}.session`), '')
      note({ type: 'session', session, how: 'new' })
      return write({ id, result: { sessionId: session } })
    }
    case 'session/resume':
      note({ type: 'session', session: params.sessionId, how: 'resume' })
      return write({ id, result: {} })
    case 'session/load': {
      note({ type: 'session', session: params.sessionId, how: 'load' })
      const known = readFileSync(join(folder, `${params.sessionId}.session`), 'utf8')
        .split('\n')
        .filter(Boolean)
      const repeated = known.map((token) => updateOf(params.sessionId, content('agent_message_chunk', token)))
      return write(...repeated, { id, result: {} })
    }
    case 'session/prompt': {
      const text = promptText(params.prompt)
      const overlaps = running.has(params.sessionId)
      const turn = new Turn(params.sessionId, id)
      running.set(params.sessionId, turn)
      const lines = linesOfLog()
      const told = [...new Set(text.match(words) ?? [])]
      note({ type: 'prompt', turn: turn.id, session: params.sessionId, words: told, lines, overlaps })
      void turn.play(stepsOf(text))
      return
    }
    case 'session/cancel':
      note({ type: 'cancel' })
      running.get(params.sessionId)?.cancel()
      return
    default:
      return
  }
}

note({ type: 'start', pid: process.pid })
createInterface({ input: process.stdin })
  .on('line', (line) => take(JSON.parse(line) as Incoming))
  .on('close', () => {
    if (!isDeaf) process.exit()
  })
