import {
  client,
  methods,
  ndJsonStream,
  PROTOCOL_VERSION,
  type ClientCapabilities,
  type ClientConnection,
  type ClientContext,
  type CreateElicitationRequest,
  type CreateElicitationResponse,
  type InitializeResponse,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionNotification,
  type SessionUpdate,
  type Stream,
} from '@agentclientprotocol/sdk/unstable'
import { createWebSocketStream, type WebSocketConstructor } from '@agentclientprotocol/sdk/experimental/ws-client'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { Readable, Writable } from 'node:stream'
import { WebSocket } from 'ws'
import { bundle } from '../../testing/bundled-command.ts'
import type { FakeHome } from '../../testing/fake-home.ts'

export interface TestEditorOptions {
  args?: readonly string[]
  capabilities?: ClientCapabilities
  name?: string
  /** Answers permission requests. Default: never. */
  permit?: (
    request: RequestPermissionRequest,
    signal: AbortSignal,
  ) => Promise<RequestPermissionResponse> | RequestPermissionResponse
  elicit?: (request: CreateElicitationRequest) => Promise<CreateElicitationResponse> | CreateElicitationResponse
}

interface Agent {
  stream: Stream
  /** Ends like an editor that quits, and resolves when the agent has noticed. */
  quit: () => Promise<void>
  kill: () => Promise<void>
  /** Absent if the agent is at a server. */
  child?: ChildProcess
}

/** An editor: the client side of the SDK, with the real command as its agent. */
export class TestEditor implements AsyncDisposable {
  readonly agent: ClientContext
  /** Resolves when the agent has closed the connection. */
  readonly closed: Promise<unknown>
  readonly updates: SessionNotification[] = []
  readonly permissions: RequestPermissionRequest[] = []
  /** Permission requests that the agent took back. */
  withdrawn = 0
  /** What the process of the agent has written besides messages. */
  stderr = ''
  readonly #connection: ClientConnection
  readonly #agent: Agent
  #listeners = new Set<() => void>()

  private constructor(agent: Agent, options: TestEditorOptions) {
    this.#agent = agent
    agent.child?.stderr?.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()))
    const { permit, elicit } = options
    const app = client({ name: 'test-editor' })
      .onNotification(methods.client.session.update, ({ params }) => {
        this.updates.push(params)
        this.#tell()
      })
      .onRequest(methods.client.session.requestPermission, async ({ params, signal }) => {
        this.permissions.push(params)
        this.#tell()
        const cancelled = new Promise<RequestPermissionResponse>((resolve) =>
          signal.addEventListener('abort', () => {
            this.withdrawn++
            this.#tell()
            resolve({ outcome: { outcome: 'cancelled' } })
          }),
        )
        return permit ? Promise.race([permit(params, signal), cancelled]) : cancelled
      })
    if (elicit) app.onRequest(methods.client.elicitation.create, ({ params }) => elicit(params))
    this.#connection = app.connect(agent.stream)
    this.closed = this.#connection.closed
    this.agent = this.#connection.agent
  }

  static async start(home: Pick<FakeHome, 'cwd' | 'env'>, options: TestEditorOptions = {}): Promise<TestEditor> {
    const editor = new TestEditor(spawned(home, options.args ?? []), options)
    await editor.initialize(options)
    return editor
  }

  /** Connects to `/acp` of a server. */
  static async dial(url: string, token: string, options: TestEditorOptions = {}): Promise<TestEditor> {
    const editor = new TestEditor(dialed(url, token), options)
    await editor.initialize(options)
    return editor
  }

  /** The process of the agent. */
  get child(): ChildProcess {
    const { child } = this.#agent
    if (!child) throw new Error('This agent is at a server.')
    return child
  }

  async initialize({ capabilities = {}, name = 'Test Editor' }: TestEditorOptions = {}): Promise<InitializeResponse> {
    return this.agent.request(methods.agent.initialize, {
      protocolVersion: PROTOCOL_VERSION,
      clientCapabilities: capabilities,
      clientInfo: { name, version: '1.0.0' },
    })
  }

  /** Creates a session and returns its id. */
  async session(cwd: string): Promise<string> {
    return (await this.agent.request(methods.agent.session.new, { cwd, mcpServers: [] })).sessionId
  }

  async prompt(sessionId: string, text: string): Promise<string> {
    const { stopReason } = await this.agent.request(methods.agent.session.prompt, {
      sessionId,
      prompt: [{ type: 'text', text }],
    })
    return stopReason
  }

  /** Resolves with what is found as soon as it is there. */
  until<T>(find: () => T | undefined | false): Promise<T> {
    const { promise, resolve } = Promise.withResolvers<T>()
    const look = (): void => {
      const found = find()
      if (found === undefined || found === false) return
      this.#listeners.delete(look)
      resolve(found)
    }
    this.#listeners.add(look)
    look()
    return promise
  }

  /** The updates of these kinds. */
  told<Kind extends SessionUpdate['sessionUpdate']>(
    ...kinds: Kind[]
  ): Extract<SessionUpdate, { sessionUpdate: Kind }>[] {
    return this.updates.flatMap(({ update }) =>
      kinds.includes(update.sessionUpdate as Kind) ? [update as Extract<SessionUpdate, { sessionUpdate: Kind }>] : [],
    )
  }

  /** The text of all chunks of a kind, joined. */
  text(kind: 'agent_message_chunk' | 'agent_thought_chunk' | 'user_message_chunk'): string {
    return this.told(kind)
      .map(({ content }) => (content.type === 'text' ? content.text : `[${content.type}]`))
      .join('')
  }

  /** The tool calls, each with all of its updates applied. */
  calls(): Record<string, unknown>[] {
    const calls = new Map<string, Record<string, unknown>>()
    for (const { sessionUpdate: _kind, ...update } of this.told('tool_call', 'tool_call_update')) {
      const before = calls.get(update.toolCallId)
      const meta = { ...(before?.['_meta'] as object), ...update._meta }
      calls.set(update.toolCallId, { ...before, ...update, ...(Object.keys(meta).length > 0 && { _meta: meta }) })
    }
    return [...calls.values()]
  }

  /** Ends like an editor that quits, and resolves when the agent has ended. */
  async quit(): Promise<void> {
    await this.#agent.quit()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.kill()
    this.#connection.close()
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener()
  }
}

function spawned({ cwd, env }: Pick<FakeHome, 'cwd' | 'env'>, args: readonly string[]): Agent {
  const child = spawn(process.execPath, [bundle, 'acp', ...args], { cwd, env, stdio: 'pipe' })
  const exited = once(child, 'close')
  return {
    stream: ndJsonStream(
      Writable.toWeb(child.stdin) as WritableStream<Uint8Array>,
      Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>,
    ),
    quit: async () => {
      child.stdin.end()
      await exited
    },
    kill: async () => {
      child.kill('SIGKILL')
      await exited
    },
    child,
  }
}

function dialed(url: string, token: string): Agent {
  const closed = Promise.withResolvers<void>()
  let socket: WebSocket | undefined
  const stream = createWebSocketStream(`${url.replace(/^http/, 'ws')}/acp`, {
    headers: { authorization: `Bearer ${token}` },
    WebSocket: opening((made) => {
      socket = made
      made.on('error', () => undefined)
      made.once('close', () => closed.resolve())
    }),
  })
  const end = async (how: 'close' | 'terminate'): Promise<void> => {
    socket?.[how]()
    await closed.promise
  }
  return { stream, quit: () => end('close'), kill: () => end('terminate') }
}

/** The class of sockets; tells of each that is made. */
function opening(told: (socket: WebSocket) => void): WebSocketConstructor {
  const made = (...args: ConstructorParameters<typeof WebSocket>): WebSocket => {
    const socket = new WebSocket(...args)
    told(socket)
    return socket
  }
  return new Proxy(WebSocket, {
    construct: (_target, args) => made(...(args as ConstructorParameters<typeof WebSocket>)),
  })
}
