import type {
  AnyMessage,
  ClientConnection,
  ContentBlock,
  CreateTerminalRequest,
  InitializeResponse,
  JsonRpcId,
  PromptResponse,
  RequestPermissionRequest,
  RequestPermissionResponse,
  Stream,
  TerminalOutputResponse,
  WaitForTerminalExitResponse,
} from '@agentclientprotocol/sdk/unstable'
import type * as AcpSdk from '@agentclientprotocol/sdk/unstable'
import { OwnProcess, type OwnProcessOptions } from '@tapetree/agent/foreign'
import { settledWithin } from '@tapetree/session/util/deadline'
import { isObject } from '@tapetree/session/util/json'
import type { Clock } from '@tapetree/session/util/wait'
import { Writable } from 'node:stream'

/** `started`: the agent had no turn any more, and has begun another one by itself. */
export type SteerOutcome = 'injected' | 'started' | 'refused'

/** What a turn offers to its agent. */
export interface TurnClient {
  /** Called in the order in which the agent sent them, before the answer to the prompt. */
  update(update: unknown): void
  /** The answer to a steer, in order with the updates. */
  steered(outcome: SteerOutcome): void
  permission(request: RequestPermissionRequest, signal: AbortSignal): Promise<RequestPermissionResponse>
  readFile(path: string, signal: AbortSignal): Promise<string>
  writeFile(path: string, content: string, signal: AbortSignal): Promise<void>
  createTerminal(request: CreateTerminalRequest): Promise<string>
  terminalOutput(id: string): TerminalOutputResponse
  terminalExit(id: string): Promise<WaitForTerminalExitResponse>
  killTerminal(id: string): void
  releaseTerminal(id: string): void
  /** Resolves when the turn can take more. */
  room(): Promise<void>
}

export interface AgentConnectionOptions {
  /** Shown in messages. */
  name: string
  program: OwnProcessOptions
  /** Called for updates outside of a turn, which only tell about the state of a session. */
  onUpdate: (update: unknown) => void
  /** Ends the agent, also while it is being started. */
  signal: AbortSignal
}

/** An agent that does not end its turn in this time after a cancel is ended itself. */
export const cancelMs = 10_000
/** The extension of the protocol that agents share for steering. */
const steerMethod = '_session/steering'
/** A larger message ends the connection. */
const maxMessageBytes = 16 * 1024 * 1024
/** Some agents download their parts when they start. */
const startMs = 60_000
const answerMs = 60_000
/** How long what an agent wrote before it ended may wait for the log. */
const readMs = 10_000
const internalError = -32603

/** An agent that could not be started, does not answer or has ended. */
export class AgentGone extends Error {
  override readonly name = 'AgentGone'
}

type Sdk = typeof AcpSdk

/** An agent as a program, and the connection to it. It serves one turn at a time. */
export class AgentConnection {
  readonly #name: string
  readonly #process: OwnProcess
  readonly #connection: ClientConnection
  readonly #sdk: Sdk
  readonly #onUpdate: AgentConnectionOptions['onUpdate']
  #turn: { client: TurnClient; sessionId: string } | undefined
  /** Set while a prompt has no answer. Updates after the answer are late. */
  #promptId: JsonRpcId | undefined
  /** The newest steer without an answer. */
  #steerId: JsonRpcId | undefined
  #reason: string | undefined
  #idle: Promise<void> = Promise.resolve()
  /** Resolves when everything that the agent wrote has been taken. */
  readonly #read = Promise.withResolvers<void>()
  capabilities: NonNullable<InitializeResponse['agentCapabilities']> = {}
  /** The agent takes messages while a prompt is under way. */
  canSteer = false

  private constructor(sdk: Sdk, { name, program, onUpdate }: AgentConnectionOptions) {
    this.#sdk = sdk
    this.#name = name
    this.#onUpdate = onUpdate
    this.#process = new OwnProcess(program)
    this.#connection = this.#app().connect(this.#stream())
    void this.#process.ended.then(async (reason) => {
      const { errors } = this.#process
      this.#reason = `The agent ${name} is gone. ${reason}${errors === '' ? '' : ` It wrote: ${errors}`}`
      await settledWithin(this.#read.promise, { ms: readMs })
      this.#connection.close(new AgentGone(this.#reason))
    })
    // The protocol ended first: a message was too large, or stdout was closed.
    void this.#connection.closed.then(() => this.end('It closed the connection.'))
  }

  /** Starts the agent. Rejects with `AgentGone`. */
  static async start(options: AgentConnectionOptions): Promise<AgentConnection> {
    const { signal } = options
    const connection = new AgentConnection(await loadSdk(), options)
    const end = (): void => void connection.end('The session was closed.')
    signal.addEventListener('abort', end, { once: true })
    void connection.#process.ended.then(() => signal.removeEventListener('abort', end))
    if (signal.aborted) end()
    try {
      await connection.#initialize()
      return connection
    } catch (error) {
      await connection.end('It did not answer to initialize.')
      throw error
    }
  }

  get isGone(): boolean {
    return this.#process.isEnding || this.#connection.signal.aborted
  }

  /** Ends the agent with all its processes. With `isReadToEnd`, its turn gets what it has said until then. */
  async end(reason: string, options?: { isReadToEnd: boolean }): Promise<void> {
    await this.#process.end(reason, options)
  }

  async newSession(cwd: string): Promise<string> {
    const { session } = this.#sdk.methods.agent
    const { sessionId } = await this.#ask(this.#connection.agent.request(session.new, { cwd, mcpServers: [] }))
    return sessionId
  }

  /** Whether it knows the session again. What it tells of the conversation is dropped: it is in the log. */
  async reopenSession(sessionId: string, cwd: string): Promise<boolean> {
    const { session } = this.#sdk.methods.agent
    const { loadSession, sessionCapabilities } = this.capabilities
    const method = sessionCapabilities?.resume ? session.resume : loadSession ? session.load : undefined
    if (method === undefined) return false
    try {
      await this.#ask(this.#connection.agent.request(method, { sessionId, cwd, mcpServers: [] }))
      return true
    } catch (error) {
      if (this.isGone) throw error
      return false
    }
  }

  /** The client gets the updates and requests of the agent until the returned function is called. */
  attach(client: TurnClient, sessionId: string): () => void {
    const turn = { client, sessionId }
    this.#turn = turn
    return () => {
      if (this.#turn === turn) this.#turn = undefined
    }
  }

  /** Rejects with `AgentGone`, or with the error of the agent. */
  async prompt(sessionId: string, prompt: ContentBlock[]): Promise<PromptResponse> {
    const { session } = this.#sdk.methods.agent
    return this.#gone(this.#connection.agent.request(session.prompt, { sessionId, prompt }))
  }

  /** The turn gets the answer. An agent that has no turn any more is told to start none, and to want a prompt. */
  steer(sessionId: string, prompt: ContentBlock[]): void {
    const _meta = { steering: { idleBehavior: 'promptRequired' } }
    this.#connection.agent.request(steerMethod, { sessionId, prompt, _meta }).catch(() => undefined)
  }

  cancel(sessionId: string): void {
    const { session } = this.#sdk.methods.agent
    this.#connection.agent.notify(session.cancel, { sessionId }).catch(() => undefined)
  }

  /** Resolves when no prompt that was abandoned is under way. */
  get idle(): Promise<void> {
    return this.#idle
  }

  /** Cancels a prompt whose answer nobody waits for. Without an answer in time, the agent is ended. */
  abandon(sessionId: string, answer: Promise<unknown>, clock: Clock): void {
    this.cancel(sessionId)
    this.#idle = settledWithin(answer, { ms: cancelMs, clock }).then((outcome) =>
      outcome === 'late' ? this.end('It did not end its turn when it was told to.') : undefined,
    )
  }

  async #initialize(): Promise<void> {
    const { methods, PROTOCOL_VERSION } = this.#sdk
    const asked = this.#connection.agent.request(methods.agent.initialize, {
      protocolVersion: PROTOCOL_VERSION,
      clientInfo: { name: 'tapetree', version: '1' },
      clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
    })
    const { protocolVersion, agentCapabilities, _meta } = await this.#ask(asked, startMs)
    if (protocolVersion !== PROTOCOL_VERSION) {
      throw new AgentGone(
        `The agent ${this.#name} speaks version ${protocolVersion} of the protocol, not ${PROTOCOL_VERSION}.`,
      )
    }
    this.capabilities = agentCapabilities ?? {}
    const steering = _meta?.['steering']
    this.canSteer = isObject(steering) && steering['supported'] === true
  }

  /** Ends an agent that does not answer. */
  async #ask<T>(answer: Promise<T>, ms = answerMs): Promise<T> {
    if ((await settledWithin(answer, { ms })) === 'late') await this.end(`It did not answer for ${ms / 1000} s.`)
    return this.#gone(answer)
  }

  async #gone<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer
    } catch (error) {
      if (this.isGone) {
        await this.#process.ended
        throw new AgentGone(this.#reason ?? `The agent ${this.#name} is gone.`, { cause: error })
      }
      throw error
    }
  }

  #app(): ReturnType<Sdk['client']> {
    const { client, methods } = this.#sdk
    const { fs, terminal, session } = methods.client
    return client({ name: 'tapetree' })
      .onRequest(session.requestPermission, ({ params, signal }) => this.#client(params).permission(params, signal))
      .onRequest(fs.readTextFile, async ({ params, signal }) => {
        const text = await this.#tell(this.#client(params).readFile(params.path, signal))
        return { content: linesOf(text, params) }
      })
      .onRequest(fs.writeTextFile, async ({ params, signal }) => {
        await this.#tell(this.#client(params).writeFile(params.path, params.content, signal))
        return {}
      })
      .onRequest(terminal.create, async ({ params }) => ({
        terminalId: await this.#tell(this.#client(params).createTerminal(params)),
      }))
      .onRequest(terminal.output, ({ params }) => this.#client(params).terminalOutput(params.terminalId))
      .onRequest(terminal.waitForExit, ({ params }) => this.#client(params).terminalExit(params.terminalId))
      .onRequest(terminal.kill, ({ params }) => {
        this.#client(params).killTerminal(params.terminalId)
        return {}
      })
      .onRequest(terminal.release, ({ params }) => {
        this.#client(params).releaseTerminal(params.terminalId)
        return {}
      })
  }

  /** An error with its sentence: the SDK hides others from the agent. */
  async #tell<T>(work: Promise<T>): Promise<T> {
    try {
      return await work
    } catch (error) {
      throw new this.#sdk.RequestError(internalError, error instanceof Error ? error.message : String(error))
    }
  }

  /** Throws if the session of a request has no turn. */
  #client({ sessionId }: { sessionId: string }): TurnClient {
    if (this.#turn?.sessionId === sessionId) return this.#turn.client
    throw this.#sdk.RequestError.invalidParams(undefined, 'No turn of this session is under way.')
  }

  /** Messages of the agent. Updates are taken out here, because the SDK does not keep them in order with responses. */
  #stream(): Stream {
    const { stdin, stdout } = this.#process
    const chunks = stdout[Symbol.asyncIterator]() as AsyncIterator<Buffer>
    const input = new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        await this.#turn?.client.room()
        const next = await chunks.next().catch(() => ({ done: true as const, value: undefined }))
        if (next.done) controller.close()
        else controller.enqueue(next.value)
      },
    })
    const written = (Writable.toWeb(stdin) as WritableStream<Uint8Array>).getWriter()
    const output = new WritableStream<Uint8Array>({
      // An error would make the SDK drop what an agent said before it died. The end of the process is noticed without it.
      write: (chunk) => written.write(chunk).catch(() => undefined),
    })
    const { readable, writable } = this.#sdk.ndJsonStream(output, input, { maxMessageBytes })
    const { methods } = this.#sdk
    const writer = writable.getWriter()
    const asked = new Set<JsonRpcId>()
    const sent = new WritableStream<AnyMessage>({
      write: (message) => {
        if ('method' in message && 'id' in message) {
          asked.add(message.id)
          if (message.method === methods.agent.session.prompt) this.#promptId = message.id
          if (message.method === steerMethod) this.#steerId = message.id
        }
        return writer.write(message)
      },
      close: () => writer.close(),
      abort: (reason) => writer.abort(reason),
    })
    const received = new TransformStream<AnyMessage, AnyMessage>({
      transform: (message, controller) => {
        if ('method' in message && message.method === methods.client.session.update) return this.#take(message.params)
        if (!('method' in message)) {
          // The SDK would write about an answer that nobody waits for to stderr.
          if (!asked.delete(message.id)) return
          if (message.id === this.#promptId) this.#promptId = undefined
          if (message.id === this.#steerId) {
            this.#steerId = undefined
            this.#turn?.client.steered(steerOutcomeOf('result' in message ? message.result : undefined))
          }
        }
        controller.enqueue(message)
      },
      flush: () => this.#read.resolve(),
    })
    return { readable: readable.pipeThrough(received), writable: sent }
  }

  /** Updates without a turn are late, repeat the history, or tell about the session. */
  #take(params: unknown): void {
    if (!isObject(params)) return
    const { sessionId, update } = params
    const isOfTurn = this.#turn?.sessionId === sessionId && this.#promptId !== undefined
    if (isOfTurn) this.#turn?.client.update(update)
    else this.#onUpdate(update)
  }
}

function steerOutcomeOf(result: unknown): SteerOutcome {
  const outcome = isObject(result) ? result['outcome'] : undefined
  if (outcome === 'injected') return outcome
  return outcome === 'startedNewTurn' ? 'started' : 'refused'
}

function linesOf(text: string, { line, limit }: { line?: number | null; limit?: number | null }): string {
  if (line == null && limit == null) return text
  const first = Math.max(0, (line ?? 1) - 1)
  const lines = text.split('\n')
  return lines.slice(first, limit == null ? undefined : first + limit).join('\n')
}

async function loadSdk(): Promise<typeof AcpSdk> {
  try {
    return await import('@agentclientprotocol/sdk/unstable')
  } catch (cause) {
    throw new Error(
      'An agent of others needs the package @agentclientprotocol/sdk. Install it beside @tapetree/server.',
      {
        cause,
      },
    )
  }
}
