// An agent that does what its prompt says: the prompt is a list of steps as JSON. Any other prompt is answered with its text. It keeps its
// sessions in the folder of its first argument, one file for each, and appends there what it was sent.
import {
  agent,
  methods,
  ndJsonStream,
  PROTOCOL_VERSION,
  type AgentContext,
  type ContentBlock,
  type RequestPermissionResponse,
  type SessionUpdate,
} from '@agentclientprotocol/sdk/unstable'
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import type { AgentStep } from './agent-steps.ts'

const [folder = '.', features = 'load'] = process.argv.slice(2)
const cancelled = new Map<string, AbortController>()
/** The turns that are under way, by their session. */
const turns = new Map<string, Turn>()
const canSteer = features === 'steer' || features === 'refuse-steer'
const fileOf = (sessionId: string): string => join(folder, `${sessionId}.jsonl`)
const textOf = (prompt: readonly ContentBlock[]): string =>
  prompt.map((block) => (block.type === 'text' ? block.text : `[${block.type}]`)).join('\n')

class Turn {
  readonly #client: AgentContext
  readonly #sessionId: string
  readonly #signal: AbortSignal
  isDeaf = false
  /** Steps that a steer has added. */
  readonly steered: AgentStep[] = []
  #steer: () => void = () => undefined
  readonly after: SessionUpdate[] = []

  constructor(client: AgentContext, sessionId: string, signal: AbortSignal) {
    this.#client = client
    this.#sessionId = sessionId
    this.#signal = signal
  }

  async tell(update: SessionUpdate, sessionId = this.#sessionId): Promise<void> {
    await this.#client.notify(methods.client.session.update, { sessionId, update })
  }

  say(text: string): Promise<void> {
    return this.tell({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } })
  }

  async take(step: AgentStep): Promise<void> {
    switch (step.do) {
      case 'say':
        return this.say(step.text)
      case 'think':
        return this.tell({ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: step.text } })
      case 'update':
        return this.tell(step.update as SessionUpdate, step.sessionId)
      case 'late':
        this.after.push(step.update as SessionUpdate)
        return
      case 'ask':
        return this.#ask(step)
      case 'file':
        return this.#file(step)
      case 'write':
        return this.say(`[${ownWrite(step.path)}]`)
      case 'run':
        return this.#run(step)
      case 'flood':
        for (let count = 0; count < step.count; count++) await this.say('x'.repeat(step.size))
        return
      case 'wait':
        return this.#cancelled()
      case 'await-steer':
        if (this.steered.length > 0) return
        return Promise.race([this.#cancelled(), new Promise<void>((resolve) => (this.#steer = resolve))])
      case 'hang':
        this.isDeaf = true
        return new Promise(() => undefined)
      case 'garbage':
        process.stdout.write(step.text.repeat(step.times ?? 1))
        return
      case 'die':
        process.kill(process.pid, 'SIGKILL')
        return new Promise(() => undefined)
      default:
        step satisfies never
    }
  }

  steer(steps: readonly AgentStep[]): void {
    this.steered.push(...steps)
    this.#steer()
  }

  async #ask({ call }: Extract<AgentStep, { do: 'ask' }>): Promise<void> {
    const { toolCallId } = call
    const { outcome } = await this.#client.request<RequestPermissionResponse>(
      methods.client.session.requestPermission,
      {
        sessionId: this.#sessionId,
        toolCall: call,
        options: [
          { optionId: 'no', name: 'No', kind: 'reject_once' },
          { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
        ],
      },
    )
    const chosen = outcome.outcome === 'selected' ? outcome.optionId : outcome.outcome
    await this.say(`[${chosen}]`)
    if (chosen === 'yes') return
    await this.tell({ sessionUpdate: 'tool_call_update', toolCallId, status: 'failed' })
  }

  async #file({ path, content }: Extract<AgentStep, { do: 'file' }>): Promise<void> {
    const sessionId = this.#sessionId
    const { fs } = methods.client
    const done =
      content === undefined
        ? this.#client.request(fs.readTextFile, { sessionId, path }).then((read) => read.content)
        : this.#client.request(fs.writeTextFile, { sessionId, path, content }).then(() => 'written')
    await this.say(`[${await done.catch((error: unknown) => (error as Error).message)}]`)
  }

  async #run({ command, outputByteLimit }: Extract<AgentStep, { do: 'run' }>): Promise<void> {
    const limit = outputByteLimit === undefined ? {} : { outputByteLimit }
    try {
      const terminal = await this.#client.createTerminal({ sessionId: this.#sessionId, command, ...limit })
      const { exitCode } = await terminal.waitForExit()
      const { output } = await terminal.currentOutput()
      await terminal.release()
      await this.say(`[${exitCode}: ${output.trim()}]`)
    } catch (error) {
      await this.say(`[${(error as Error).message}]`)
    }
  }

  #cancelled(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#signal.aborted) resolve()
      this.#signal.addEventListener('abort', () => resolve(), { once: true })
    })
  }
}

function ownWrite(path: string): string {
  try {
    writeFileSync(path, 'by the agent')
    return 'written'
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'failed'
  }
}

function stepsIn(text: string): AgentStep[] {
  const [, json] = /(\[\{.*\}\])$/s.exec(text) ?? []
  return json === undefined ? [{ do: 'say', text: `You said: ${text}` }] : (JSON.parse(json) as AgentStep[])
}

async function announce(client: AgentContext, sessionId: string): Promise<void> {
  await client.notify(methods.client.session.update, {
    sessionId,
    update: {
      sessionUpdate: 'available_commands_update',
      availableCommands: [{ name: 'review', description: 'Review the changes' }],
    },
  })
}

const app = agent({ name: 'scripted' })
  .onRequest(methods.agent.initialize, () => ({
    protocolVersion: PROTOCOL_VERSION,
    ...(canSteer && { _meta: { steering: { supported: true } } }),
    agentCapabilities: {
      loadSession: features === 'load',
      ...(features === 'resume' && { sessionCapabilities: { resume: {} } }),
    },
  }))
  .onRequest(methods.agent.session.new, async ({ client }) => {
    const sessionId = crypto.randomUUID()
    appendFileSync(fileOf(sessionId), '')
    await announce(client, sessionId)
    return { sessionId }
  })
  .onRequest(methods.agent.session.resume, ({ params: { sessionId } }) => {
    if (!existsSync(fileOf(sessionId))) throw new Error('unknown session')
    return {}
  })
  .onRequest(methods.agent.session.load, async ({ params: { sessionId }, client }) => {
    for (const line of readFileSync(fileOf(sessionId), 'utf8').split('\n').filter(Boolean)) {
      const content = { type: 'text' as const, text: JSON.parse(line) as string }
      for (const sessionUpdate of ['user_message_chunk', 'agent_message_chunk'] as const)
        await client.notify(methods.client.session.update, { sessionId, update: { sessionUpdate, content } })
    }
    await announce(client, sessionId)
    return {}
  })
  .onRequest(methods.agent.session.prompt, async ({ params: { sessionId, prompt }, client }) => {
    const text = textOf(prompt)
    appendFileSync(fileOf(sessionId), `${JSON.stringify(text)}\n`)
    const cancel = new AbortController()
    cancelled.set(sessionId, cancel)
    const turn = new Turn(client, sessionId, cancel.signal)
    turns.set(sessionId, turn)
    for (const step of stepsIn(text)) {
      if (cancel.signal.aborted && step.do !== 'late') continue
      await turn.take(step)
    }
    for (let step = turn.steered.shift(); step; step = turn.steered.shift()) await turn.take(step)
    turns.delete(sessionId)
    if (turn.after.length > 0) setTimeout(() => void Promise.all(turn.after.map((update) => turn.tell(update))), 1)
    return { stopReason: cancel.signal.aborted ? ('cancelled' as const) : ('end_turn' as const) }
  })
  .onRequest(
    '_session/steering',
    (params) => params as { sessionId: string; prompt: ContentBlock[] },
    ({ params: { sessionId, prompt } }) => {
      const turn = turns.get(sessionId)
      if (features === 'refuse-steer') throw new Error('Not now.')
      if (!turn) return { outcome: 'promptRequired' }
      const text = textOf(prompt)
      appendFileSync(fileOf(sessionId), `${JSON.stringify(`steer: ${text}`)}\n`)
      turn.steer(stepsIn(text))
      return { outcome: 'injected' }
    },
  )
  .onNotification(methods.agent.session.cancel, ({ params }) => cancelled.get(params.sessionId)?.abort())

const connection = app.connect(
  ndJsonStream(
    Writable.toWeb(process.stdout) as WritableStream<Uint8Array>,
    Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>,
  ),
)
await connection.closed
process.exit()
