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
} from '@agentclientprotocol/sdk/unstable'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { Readable, Writable } from 'node:stream'
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
  elicit?: (request: CreateElicitationRequest) => CreateElicitationResponse
}

/** An editor: the client side of the SDK, with the real command as its agent. */
export class TestEditor implements AsyncDisposable {
  readonly agent: ClientContext
  readonly child: ChildProcess
  readonly updates: SessionNotification[] = []
  readonly permissions: RequestPermissionRequest[] = []
  /** Permission requests that the agent took back. */
  withdrawn = 0
  stderr = ''
  readonly #connection: ClientConnection
  readonly #exited: Promise<unknown>
  #listeners = new Set<() => void>()

  private constructor(home: Pick<FakeHome, 'cwd' | 'env'>, options: TestEditorOptions) {
    const child = spawn(process.execPath, [bundle, 'acp', ...(options.args ?? [])], {
      cwd: home.cwd,
      env: home.env,
      stdio: 'pipe',
    })
    this.child = child
    this.#exited = once(child, 'close')
    child.stderr.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()))
    const stream = ndJsonStream(
      Writable.toWeb(child.stdin) as WritableStream<Uint8Array>,
      Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>,
    )
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
    this.#connection = app.connect(stream)
    this.agent = this.#connection.agent
  }

  static async start(home: Pick<FakeHome, 'cwd' | 'env'>, options: TestEditorOptions = {}): Promise<TestEditor> {
    const editor = new TestEditor(home, options)
    await editor.initialize(options)
    return editor
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
    this.child.stdin?.end()
    await this.#exited
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.child.kill('SIGKILL')
    await this.#exited
    this.#connection.close()
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener()
  }
}
