import {
  agent,
  methods,
  ndJsonStream,
  PROTOCOL_VERSION,
  RequestError,
  type AgentContext,
  type AnyMessage,
  type InitializeRequest,
  type InitializeResponse,
  type JsonRpcId,
  type Stream,
} from '@agentclientprotocol/sdk/unstable'
import { Readable } from 'node:stream'
import { exitCodes } from '../command-line/exit-code.ts'
import { usageFailure } from '../command-line/failure.ts'
import { write, type Io } from '../command-line/io.ts'
import { version } from '../command-line/version.ts'
import { choiceOf } from './config-options.ts'
import type { Editor, EditorFeatures } from './editor.ts'
import type { EditorSession } from './editor-session.ts'
import type { EditorSessions } from './editor-sessions.ts'

export interface ServeAcpOptions {
  stream: Stream
  /** Aborting it closes the connection. */
  signal?: AbortSignal
  /** Whether sessions of the editor can use its MCP servers over HTTP. */
  takesServers: boolean
  /** What to do without a key for a model. */
  login: string
  /** Loads the runtime. Called after `initialize` was answered, so that an editor sees the agent at once. */
  open: (editor: Editor, editorName: string) => Promise<EditorSessions>
}

/** Serves one editor until the connection is closed. */
export async function serveAcp(options: ServeAcpOptions): Promise<void> {
  const { stream, signal } = options
  const answered = new Map<JsonRpcId, () => void>()
  const service = new AcpService(options, answered)
  const connection = service.app().connect(telling(stream, answered))
  const stop = (): void => connection.close()
  signal?.addEventListener('abort', stop, { once: true })
  if (signal?.aborted) stop()
  await connection.closed
  signal?.removeEventListener('abort', stop)
  await service.close()
}

/** One JSON-RPC message a line. */
export function stdioOf({ stdin, stdout }: Pick<Io, 'stdin' | 'stdout'>): Stream {
  const output = new WritableStream<Uint8Array>({ write: (bytes) => write(stdout, bytes) })
  return ndJsonStream(output, Readable.toWeb(stdin) as ReadableStream<Uint8Array>)
}

/** Calls back when a response is written: an editor knows a new session only from then on. */
function telling({ readable, writable }: Stream, answered: Map<JsonRpcId, () => void>): Stream {
  const writer = writable.getWriter()
  const told = new WritableStream<AnyMessage>({
    write: async (message) => {
      await writer.write(message)
      if (!('id' in message) || 'method' in message || message.id === undefined) return
      answered.get(message.id)?.()
      answered.delete(message.id)
    },
    close: () => writer.close(),
    abort: (reason) => writer.abort(reason),
  })
  return { readable, writable: told }
}

class AcpService {
  readonly #options: ServeAcpOptions
  readonly #answered: Map<JsonRpcId, () => void>
  #features: EditorFeatures = { terminals: false, notices: false, compaction: false, forms: false }
  #editorName = 'editor'
  #sessions: Promise<EditorSessions> | undefined
  #isClosed = false

  constructor(options: ServeAcpOptions, answered: Map<JsonRpcId, () => void>) {
    this.#options = options
    this.#answered = answered
  }

  app(): ReturnType<typeof agent> {
    const { session } = methods.agent
    return this.#withSettings(
      agent({ name: 'tapetree' })
        .onRequest(methods.agent.initialize, ({ params, client, requestId }) => {
          // The runtime takes longer to load than to answer.
          this.#answered.set(requestId, () => void this.#load(client).catch(() => undefined))
          return this.#initialize(params)
        })
        .onRequest(methods.agent.authenticate, () => ({}))
        .onRequest(session.new, ({ params, client, requestId }) =>
          answering(async () => this.#introduce(await (await this.#load(client)).create(params), requestId)),
        )
        .onRequest(session.load, ({ params, client }) =>
          answering(async () => {
            const opened = await (await this.#load(client)).open(params.sessionId, params.mcpServers)
            const choices = opened.choices()
            await opened.replay()
            return choices
          }),
        )
        .onRequest(session.resume, ({ params, client, requestId }) =>
          answering(async () => {
            const opened = await (await this.#load(client)).open(params.sessionId, params.mcpServers)
            const { sessionId: _known, ...choices } = this.#introduce(opened, requestId)
            return choices
          }),
        )
        .onRequest(session.fork, ({ params, client, requestId }) =>
          answering(async () =>
            this.#introduce(await (await this.#load(client)).fork(params.sessionId, params.mcpServers), requestId),
          ),
        )
        .onRequest(session.list, ({ params, client }) => answering(async () => (await this.#load(client)).list(params)))
        .onRequest(session.prompt, ({ params, client, signal }) =>
          answering(async () =>
            (await this.#session(client, params.sessionId)).prompt(params.prompt, ifCancelled(signal)),
          ),
        )
        .onNotification(session.cancel, async ({ params, client }) => {
          // The run may be over already.
          await (await this.#session(client, params.sessionId)).cancel().catch(() => undefined)
        }),
    )
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const sessions = await this.#sessions?.catch(() => undefined)
    await sessions?.closeAll()
  }

  #withSettings(app: ReturnType<typeof agent>): ReturnType<typeof agent> {
    const { session } = methods.agent
    return app
      .onRequest(session.setMode, ({ params, client }) =>
        answering(async () => {
          await (await this.#session(client, params.sessionId)).set(chosen('mode', params.modeId))
          return {}
        }),
      )
      .onRequest(session.setConfigOption, ({ params, client }) =>
        answering(async () => {
          const opened = await this.#session(client, params.sessionId)
          return { configOptions: await opened.set(chosen(params.configId, params.value)) }
        }),
      )
      .onRequest(session.setTitle, ({ params: { sessionId, title }, client }) =>
        answering(async () => {
          await (await this.#load(client)).rename(sessionId, title)
          return { title }
        }),
      )
      .onRequest(session.close, ({ params, client }) =>
        answering(async () => {
          await (await this.#load(client)).end(params.sessionId)
          return {}
        }),
      )
      .onRequest(session.archive, ({ params, client }) =>
        answering(async () => {
          await (await this.#load(client)).putAway(params.sessionId, 'archive')
          return {}
        }),
      )
      .onRequest(session.delete, ({ params, client }) =>
        answering(async () => {
          await (await this.#load(client)).putAway(params.sessionId, 'trash')
          return {}
        }),
      )
  }

  #initialize({ clientCapabilities, clientInfo }: InitializeRequest): InitializeResponse {
    const { session, elicitation, _meta: extra } = clientCapabilities ?? {}
    this.#features = {
      terminals: extra?.['terminal_output'] === true,
      notices: session?.notices != null,
      compaction: session?.compaction != null,
      forms: elicitation?.form != null,
    }
    this.#editorName = clientInfo?.title ?? clientInfo?.name ?? this.#editorName
    return {
      protocolVersion: PROTOCOL_VERSION,
      agentInfo: { name: 'tapetree', title: 'tapetree', version },
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: true, audio: false, embeddedContext: true },
        mcpCapabilities: { http: this.#options.takesServers, sse: false },
        sessionCapabilities: { list: {}, resume: {}, fork: {}, close: {}, delete: {}, archive: {}, title: {} },
      },
      authMethods: [{ id: 'login', name: 'API key', description: this.#options.login }],
    }
  }

  async #load(client: AgentContext): Promise<EditorSessions> {
    if (this.#isClosed) throw new Error('The connection to the editor is closed.')
    this.#sessions ??= this.#options.open(editorOf(client, this.#features), this.#editorName)
    return this.#sessions
  }

  async #session(client: AgentContext, sessionId: string): Promise<EditorSession> {
    return (await this.#load(client)).get(sessionId)
  }

  #introduce(
    session: EditorSession,
    requestId: JsonRpcId,
  ): { sessionId: string } & ReturnType<EditorSession['choices']> {
    this.#answered.set(requestId, () => session.begin())
    return { sessionId: session.handle.sessionId, ...session.choices() }
  }
}

function editorOf(client: AgentContext, features: EditorFeatures): Editor {
  return {
    features,
    update: (sessionId, update) => client.notify(methods.client.session.update, { sessionId, update }),
    requestPermission: (request, signal) =>
      client.request(methods.client.session.requestPermission, request, {
        cancellationSignal: signal,
        stopWaitingOnCancel: true,
      }),
    elicit: (request, signal) =>
      client.request(methods.client.elicitation.create, request, {
        cancellationSignal: signal,
        stopWaitingOnCancel: true,
      }),
  }
}

/** A closed connection aborts the signal too, but leaves the run to be resumed. */
function ifCancelled(signal: AbortSignal): AbortSignal {
  const cancelled = new AbortController()
  signal.addEventListener('abort', () => {
    if (signal.reason instanceof RequestError) cancelled.abort()
  })
  return cancelled.signal
}

function chosen(configId: string, value: unknown): Exclude<ReturnType<typeof choiceOf>, string> {
  const choice = choiceOf(configId, value)
  if (typeof choice === 'string') throw usageFailure(choice)
  return choice
}

/** Errors as the protocol has them. */
async function answering<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw await requestError(error)
  }
}

const authRequired = -32000
const notFound = -32002
const invalidParams = -32602
const internalError = -32603

async function requestError(error: unknown): Promise<RequestError> {
  if (error instanceof RequestError) return error
  const { failureOf } = await import('../command-line/failure-of.ts')
  const { code, message, why, type } = failureOf(error)
  const sentence = why === undefined ? message : `${message} ${why}`
  return new RequestError(codes[code] ?? internalError, sentence, { type })
}

const codes: Partial<Record<number, number>> = {
  [exitCodes.noModel]: authRequired,
  [exitCodes.notFound]: notFound,
  [exitCodes.usage]: invalidParams,
}
