import {
  Client,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  UnauthorizedError,
  type RequestOptions,
} from '@modelcontextprotocol/client'
import { untilAborted, withDeadline } from '@tapetree/session/util/deadline'
import { z } from 'zod'
import type { Clock } from '@tapetree/session/util/wait'
import { inBox, type BoxProgram } from '../tools/commands/program-box.ts'
import { withoutHidden } from './foreign-text.ts'
import { HttpTransport, streamEndedCode } from './http-transport.ts'
import type { McpLimits } from './limits.ts'
import type { ResolvedServer } from './resolve-server.ts'
import { ServerProblem, SessionForgotten } from './server-problem.ts'
import { SignIn, type SignInOptions } from './sign-in.ts'
import { StdioTransport } from './stdio-transport.ts'

export interface ConnectionOptions {
  /** The server's name in the settings. */
  name: string
  server: ResolvedServer
  limits: McpLimits
  clock: Clock
  /** How users sign in, if they can. */
  signIn?: Pick<SignInOptions, 'store' | 'openUrl'>
  /** The sandbox of a server that is a program. Absent: it runs outside. */
  box?: BoxProgram
  onToolsChanged: () => void
  onSigningIn: () => void
}

const toolPage = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().optional() })
const callResult = z.looseObject({
  content: z.array(z.unknown()).default([]),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().optional(),
})

export type CallResult = z.output<typeof callResult>

/** The signal ends requests; the client's own timer would not use our clock. */
const noTimeout = 2 ** 31 - 1
/** How long a server has to acknowledge our close. */
const goodbyeMs = 1000
const maxReasonLength = 2000

/** One connection to a running server, from its handshake to its end. */
export class McpConnection {
  readonly #options: ConnectionOptions
  readonly #client: Client
  readonly #transport: StdioTransport | HttpTransport
  readonly #lost = Promise.withResolvers<string>()
  #isOpen = true

  private constructor(
    options: ConnectionOptions,
    parts: { client: Client; transport: StdioTransport | HttpTransport },
  ) {
    this.#options = options
    this.#client = parts.client
    this.#transport = parts.transport
  }

  static async open(options: ConnectionOptions, signal: AbortSignal): Promise<McpConnection> {
    const { server, limits } = options
    if (server.type === 'stdio') {
      const { maxMessageBytes } = limits
      const box = await options.box?.({ type: 'server', name: options.name, cwd: server.cwd })
      const program = { ...inBox(server, box), cwd: server.cwd, maxMessageBytes }
      return McpConnection.#connect(options, new StdioTransport(program), signal)
    }
    return McpConnection.#openHttp(options, server, signal)
  }

  static async #openHttp(
    options: ConnectionOptions,
    { url, headers, oauth }: ResolvedServer & { type: 'http' },
    signal: AbortSignal,
  ): Promise<McpConnection> {
    const { name, limits, signIn, onSigningIn } = options
    const { maxMessageBytes } = limits
    if (!oauth || !signIn) {
      return McpConnection.#connect(options, new HttpTransport({ url, headers, maxMessageBytes }), signal)
    }
    const authProvider = await SignIn.open({ server: name, serverUrl: url, settings: oauth, ...signIn })
    const newTransport = (): HttpTransport => new HttpTransport({ url, headers, maxMessageBytes, authProvider })
    const first = newTransport()
    try {
      return await McpConnection.#connect(options, first, signal)
    } catch (error) {
      if (!(error instanceof SignInNeeded)) throw error
      onSigningIn()
      await McpConnection.#finishSignIn(options, { authProvider, transport: first }, signal)
      return await McpConnection.#connect(options, newTransport(), signal)
    } finally {
      await authProvider.finish()
    }
  }

  /** Waits for the user, and passes the browser's answer to the server. */
  static async #finishSignIn(
    { name, limits, clock }: ConnectionOptions,
    { authProvider, transport }: { authProvider: SignIn; transport: HttpTransport },
    signal: AbortSignal,
  ): Promise<void> {
    try {
      const late = `The sign-in to ${name} timed out.`
      const answer = await withDeadline({ ms: limits.signInMs, clock, signal, late: problem(late) }, () =>
        authProvider.answer(),
      )
      const slow = `${name} did not accept the sign-in in time.`
      await withDeadline({ ms: limits.connectMs, clock, signal, late: problem(slow) }, () =>
        transport.finishAuth(answer),
      )
    } catch (error) {
      signal.throwIfAborted()
      // A retry does not open the browser again.
      throw new ServerProblem(problemOf(error, { name, signal }).message, { isFinal: true, cause: error })
    }
  }

  static async #connect(
    options: ConnectionOptions,
    transport: StdioTransport | HttpTransport,
    signal: AbortSignal,
  ): Promise<McpConnection> {
    const { name, limits, clock } = options
    // Offers no capabilities: servers cannot use our model, ask our user or see our folders.
    const client = new Client({ name: 'tapetree', version: '0' }, { capabilities: {} })
    const connection = new McpConnection(options, { client, transport })
    Object.assign(client, {
      onclose: () => connection.#end(),
      onerror: () => undefined, // relevant errors reach the request
    })
    client.setNotificationHandler('notifications/tools/list_changed', () => options.onToolsChanged())
    const late = `${name} did not answer within ${limits.connectMs / 1000} seconds.`
    try {
      await withDeadline({ ms: limits.connectMs, clock, signal, late: problem(late) }, (given) =>
        client.connect(transport, { signal: given, timeout: noTimeout }),
      )
      return connection
    } catch (error) {
      await transport.close()
      if (error instanceof UnauthorizedError && !signal.aborted) throw new SignInNeeded(name)
      throw connection.#problem(error, signal)
    }
  }

  /** Whether a request may still be sent. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Resolves with the reason when the connection was lost or closed. */
  get lost(): Promise<string> {
    return this.#lost.promise
  }

  /** The unvalidated tools of the server; one more than the limit if there are too many. */
  async listTools(signal: AbortSignal): Promise<unknown[]> {
    const { name, limits, clock } = this.#options
    const late = `${name} did not list its tools within ${limits.listMs / 1000} seconds.`
    try {
      return await withDeadline({ ms: limits.listMs, clock, signal, late: problem(late) }, (given) =>
        this.#listPages(given),
      )
    } catch (error) {
      throw this.#problem(error, signal)
    }
  }

  async #listPages(signal: AbortSignal): Promise<unknown[]> {
    if (!this.#client.getServerCapabilities()?.tools) return []
    const tools: unknown[] = []
    const { maxTools } = this.#options.limits
    let cursor: string | undefined
    // Pages may be empty, so their number is limited like that of the tools.
    for (let page = 0; page <= maxTools && tools.length <= maxTools; page += 1) {
      const params = cursor === undefined ? {} : { cursor }
      const answer = await this.#client.request({ method: 'tools/list', params }, toolPage, options(signal))
      tools.push(...answer.tools.slice(0, maxTools + 1))
      cursor = answer.nextCursor
      if (cursor === undefined) break
    }
    return tools.slice(0, maxTools + 1)
  }

  /** Takes as long as the signal allows; on abort, the server is notified. */
  async callTool(call: { name: string; input: Record<string, unknown> }, signal: AbortSignal): Promise<CallResult> {
    try {
      const params = { name: call.name, arguments: call.input }
      return await this.#client.request({ method: 'tools/call', params }, callResult, options(signal))
    } catch (error) {
      throw this.#problem(error, signal, '; the call may have taken effect')
    }
  }

  /** Ends the server or the session with it; resolves when none of its processes is left. */
  async close(): Promise<void> {
    const transport = this.#transport
    const wasOpen = this.#isOpen
    this.#isOpen = false
    if (wasOpen && transport instanceof HttpTransport) {
      const leaving = AbortSignal.timeout(goodbyeMs)
      // A server that does not respond drops the session in its own time.
      await untilAborted(transport.terminateSession(), leaving).catch(() => undefined)
    }
    await transport.close()
    this.#end()
  }

  #end(): void {
    this.#isOpen = false
    const end = this.#transport instanceof StdioTransport ? this.#transport.end : undefined
    this.#lost.resolve(`${this.#options.name} is gone.${end === undefined ? '' : ` ${bounded(end)}`}`)
  }

  /** `effect` is added if the server ended during the call. */
  #problem(error: unknown, signal: AbortSignal, effect = ''): Error {
    const { name } = this.#options
    const problem = problemOf(error, { name, signal, effect })
    const end = this.#transport instanceof StdioTransport ? this.#transport.end : undefined
    if (end !== undefined && problem instanceof ServerProblem) {
      return new ServerProblem(`${problem.message} ${bounded(end)}`, { isFinal: problem.isFinal, cause: error })
    }
    // Over HTTP, only failed requests show that the server is gone or has dropped the session.
    const isRefused = problem instanceof SessionForgotten || (problem instanceof ServerProblem && problem.isFinal)
    if ((isRefused || error instanceof TypeError) && !signal.aborted) void this.close()
    return problem
  }
}

class SignInNeeded extends ServerProblem {
  constructor(name: string) {
    super(`${name} requires a sign-in.`, { isFinal: true })
  }
}

function options(signal: AbortSignal): RequestOptions {
  return { signal, timeout: noTimeout }
}

/** The error as a sentence; the signal's reason if that ended it. */
function problemOf(
  error: unknown,
  { name, signal, effect = '' }: { name: string; signal: AbortSignal; effect?: string },
): Error {
  if (signal.aborted) return signal.reason as Error
  if (error instanceof ServerProblem) return error
  const cause = error instanceof Error && error.cause instanceof ServerProblem ? error.cause : undefined
  if (cause) return cause
  if (error instanceof SdkHttpError && error.status === 404) {
    return new SessionForgotten(`${name} does not know this session, or there is no server at its address.`, {
      cause: error,
    })
  }
  const unauthorized = error instanceof UnauthorizedError || (error instanceof SdkHttpError && error.status === 401)
  if (unauthorized) {
    return new ServerProblem(`${name} requires authentication: add \`oauth\` or a header to its settings.`, {
      isFinal: true,
      cause: error,
    })
  }
  const isEnded =
    (error instanceof SdkError && error.code === SdkErrorCode.ConnectionClosed) ||
    (error instanceof ProtocolError && error.code === streamEndedCode)
  if (isEnded) {
    return new ServerProblem(`${name} ended before it answered${effect}.`, { cause: error })
  }
  if (error instanceof TypeError) {
    const reason = bounded(reasonOf(error))
    const message = wasNotSent(error)
      ? `${name} could not be reached: ${reason}.`
      : `The connection to ${name} broke: ${reason}${effect}.`
    return new ServerProblem(message, { cause: error })
  }
  return new ServerProblem(`${name} answered with an error: ${bounded(reasonOf(error))}`, { cause: error })
}

/** No connection was made, so the server did not get the request. */
function wasNotSent({ cause }: Error): boolean {
  const { code = '' } = (cause ?? {}) as NodeJS.ErrnoException
  return ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT'].includes(code)
}

/** `fetch` reports the reason only in the cause of its error. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { cause } = error
  return cause instanceof Error ? `${error.message}: ${cause.message}` : error.message
}

function bounded(text: string): string {
  const clean = withoutHidden(text).trim()
  return clean.length <= maxReasonLength ? clean : `${clean.slice(0, maxReasonLength)}…`
}

function problem(message: string): () => ServerProblem {
  return () => new ServerProblem(message)
}
