import { systemClock, type Clock } from '@tapetree/agent/run'
import { maxHostMessageBytes } from '@tapetree/agent/tool-host'
import type { Problem } from '@tapetree/client'
import { closeCodes, limits } from '@tapetree/client/protocol'
import { isId } from '@tapetree/session'
import { STATUS_CODES, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { WebSocket, WebSocketServer } from 'ws'
import { ourProtocols, speaksOurs } from '../auth/credential.ts'
import type { Caller } from '../auth/operation-roles.ts'
import type { Admitted, Gatekeeper, Identified, Visit } from '../auth/gatekeeper.ts'
import type { UsageLimits } from '../auth/limits.ts'
import type { Peer } from '../auth/peer.ts'
import type { TokenHolders } from '../auth/token-holders.ts'
import type { WaitingRoom } from '../auth/waiting-room.ts'
import type { ReachableSessions } from '../live/reachable-sessions.ts'
import type { ToolHosts } from '../tool-hosts/tool-hosts.ts'
import { emitWarning, RequestProblem, problemOf } from '../util/problem-error.ts'
import { EditorSocket, maxEditorMessageBytes } from './editor-socket.ts'
import type { EditorStream } from './editor-stream.ts'
import { acceptHost } from './host-socket.ts'
import { RemoteScreen, type RemoteScreenOptions } from './remote-screen.ts'

interface Upgrade {
  head: Buffer
  peer: Peer
  requestId: string
  identified?: Identified
}

/** An upgrade that was accepted, with status 101, or refused. */
export interface FinishedUpgrade {
  requestId: string
  path: string
  status: number
  address: string
  tenant: string | undefined
  caller: string | undefined
}

/** An editor whose caller was admitted. */
export interface ConnectedEditor {
  stream: EditorStream
  admitted: Admitted
  peer: Peer
  requestId: string
  sessions: ReachableSessions
  /** Aborted when the token is over or the server shuts down: nothing may be done for it any more. */
  over: AbortSignal
}

export interface WsDoorOptions {
  gatekeeper: Gatekeeper
  holders: TokenHolders
  waitingRoom: WaitingRoom
  limits: UsageLimits
  /** Absent: no tool host can connect. */
  toolHosts?: ToolHosts | undefined
  /** Serves an editor until it disconnects. Absent: no editor can connect. */
  serveEditor?: ((editor: ConnectedEditor) => Promise<void>) | undefined
  clock?: Clock
  /** Called once for every upgrade. */
  onUpgrade?: ((done: FinishedUpgrade) => void) | undefined
}

/** Declared like the routes, for listings of all endpoints. */
export const wsRoute = { method: 'get', path: '/api/sessions/{id}/ws', access: 'view' } as const

/** Where tool hosts connect. */
export const hostRoute = { method: 'get', path: '/api/tool-hosts/ws', access: 'host' } as const

/** Where editors connect. */
export const editorRoute = { method: 'get', path: '/acp', access: 'view' } as const

/** A socket that takes no byte for this long, with some waiting, is ended. */
const stallMs = 60_000
const lookMs = 5000
/** How long a client has to answer our close frame. */
const closeMs = 1000

/** Accepts WebSockets. */
export class WsDoor {
  readonly #options: WsDoorOptions
  readonly #clock: Clock
  readonly #server: WebSocketServer
  readonly #hostServer: WebSocketServer
  readonly #editorServer: WebSocketServer
  readonly #screens = new Set<RemoteScreen>()
  readonly #editors = new Set<(code: number, reason: string) => void>()
  readonly #closing = new AbortController()
  readonly #upgrades = new WeakMap<IncomingMessage, Upgrade>()

  constructor(options: WsDoorOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#server = new WebSocketServer(serverOptions)
    this.#hostServer = new WebSocketServer({ ...serverOptions, maxPayload: maxHostMessageBytes })
    this.#editorServer = new WebSocketServer({ ...serverOptions, maxPayload: maxEditorMessageBytes })
    for (const server of [this.#server, this.#hostServer, this.#editorServer]) {
      server.on('headers', (headers, request) => {
        headers.push(`X-Request-Id: ${this.#upgrades.get(request)?.requestId ?? ''}`)
      })
    }
    void this.#watchStalled()
  }

  get size(): number {
    return this.#screens.size
  }

  /** Accepts a socket, or rejects it with a reason. */
  upgrade(request: IncomingMessage, socket: Socket, upgrade: Upgrade): void {
    const { head, peer } = upgrade
    this.#upgrades.set(request, upgrade)
    socket.on('error', destroyFailed)
    const refuse = (error: unknown): void => this.#refuse(problemOf(error), { request, socket, head })
    try {
      this.#options.gatekeeper.checkHost(peer)
      const asked = this.#options.gatekeeper.identify(request, peer)
      if (!asked) return this.#admit(request, socket, upgrade)
      asked
        .then((identified) => {
          if (!socket.destroyed) this.#admit(request, socket, { ...upgrade, identified })
        })
        .catch(refuse)
    } catch (error) {
      refuse(error)
    }
  }

  /** Nothing is awaited between checking the token and registering the socket under it. */
  #admit(request: IncomingMessage, socket: Socket, { head, peer, identified }: Upgrade): void {
    const visit: Visit = { peer, method: 'GET', isUpgrade: true, header: (name) => headerOf(request, name) }
    try {
      const { toolHosts, serveEditor } = this.#options
      const isHost = toolHosts !== undefined && request.url === hostRoute.path
      const isEditor = serveEditor !== undefined && /^\/acp(?:\?|$)/.test(request.url ?? '')
      const sessionId = isHost || isEditor ? '' : sessionIdIn(request.url)
      const route = isHost ? hostRoute : isEditor ? editorRoute : wsRoute
      const admitted = this.#options.gatekeeper.admit(visit, route.access, identified)
      const { caller } = admitted
      const { limits } = this.#options
      const sessions = limits.sessionsOf(caller)
      if (!sessions) throw new RequestProblem(403, 'tenant-unknown', 'This server hosts no sessions of this tenant.')
      limits.takeRequest(caller)
      if (this.#closing.signal.aborted) throw new RequestProblem(503, 'shutting-down', 'The server is shutting down.')
      this.#options.waitingRoom.admit(socket)
      const clock = this.#clock
      this.#finished(request, 101, caller)
      if (isHost) {
        this.#hostServer.handleUpgrade(request, socket, head, (webSocket) =>
          this.#openHost(webSocket, toolHosts, admitted),
        )
        return
      }
      if (isEditor) {
        const requestId = this.#upgrades.get(request)?.requestId ?? ''
        this.#editorServer.handleUpgrade(request, socket, head, (webSocket) =>
          this.#openEditor(webSocket, serveEditor, { admitted, peer, requestId, sessions }),
        )
        return
      }
      this.#server.handleUpgrade(request, socket, head, (webSocket) =>
        this.#open({ socket: webSocket, stream: socket, caller, sessions, limits, sessionId, clock }, admitted),
      )
    } catch (error) {
      this.#refuse(problemOf(error), { request, socket, head })
    }
  }

  /** A separate method: closures that live as long as the socket would otherwise retain the whole request. */
  #open(options: RemoteScreenOptions, admitted: Admitted): void {
    const screen = new RemoteScreen(options)
    const release = this.#options.holders.hold(admitted, () => screen.close(closeCodes.auth, 'the token is over'))
    this.#screens.add(screen)
    screen.start(() => {
      this.#screens.delete(screen)
      release()
    })
  }

  #openHost(socket: WebSocket, toolHosts: ToolHosts, admitted: Admitted): void {
    const release = this.#options.holders.hold(admitted, () => socket.close(closeCodes.auth, 'the token is over'))
    acceptHost(socket, { toolHosts, tenant: admitted.caller.tenant, clock: this.#clock, closed: release })
  }

  #openEditor(
    webSocket: WebSocket,
    serve: NonNullable<WsDoorOptions['serveEditor']>,
    editor: Omit<ConnectedEditor, 'stream' | 'over'>,
  ): void {
    const socket = new EditorSocket(webSocket, this.#clock)
    const over = new AbortController()
    const end = (code: number, reason: string): void => {
      over.abort('over')
      socket.close(code, reason)
    }
    const release = this.#options.holders.hold(editor.admitted, () => end(closeCodes.auth, 'the token is over'))
    this.#editors.add(end)
    webSocket.once('close', () => {
      this.#editors.delete(end)
      release()
    })
    serve({ ...editor, stream: socket.stream, over: over.signal }).then(
      () => socket.close(1000, 'done'),
      (error: unknown) => {
        emitWarning(error)
        socket.close(1011, 'the server failed')
      },
    )
  }

  /** Closes remaining sockets. Those of live sessions were closed by their session. */
  close(): void {
    this.#closing.abort()
    for (const screen of this.#screens) screen.close(closeCodes.restart, 'the server is restarting')
    for (const end of this.#editors) end(closeCodes.restart, 'the server is restarting')
    for (const server of [this.#server, this.#hostServer, this.#editorServer]) server.close()
  }

  /** Browsers do not see the status of a failed upgrade: clients of our protocol get the reason in a close frame. */
  #refuse(
    problem: Problem,
    { request, socket, head }: { request: IncomingMessage; socket: Socket; head: Buffer },
  ): void {
    this.#finished(request, problem.status)
    const code = codeOf[problem.status]
    if (code === undefined || !speaksOurs(headerOf(request, 'sec-websocket-protocol'))) {
      answer(socket, problem, this.#upgrades.get(request)?.requestId ?? '')
      return
    }
    this.#server.handleUpgrade(request, socket, head, (webSocket) => {
      webSocket.on('error', () => undefined)
      webSocket.close(code, problem.title)
    })
  }

  #finished(request: IncomingMessage, status: number, caller?: Caller): void {
    const { requestId = '', peer } = this.#upgrades.get(request) ?? {}
    const path = request.url?.replace(/\?.*/s, '') ?? ''
    this.#options.onUpgrade?.({
      requestId,
      path,
      status,
      address: peer?.address ?? '',
      tenant: caller?.tenant,
      caller: caller?.tokenId,
    })
  }

  async #watchStalled(): Promise<void> {
    const { signal } = this.#closing
    for (;;) {
      const isOver = await this.#clock.wait(lookMs, signal).then(
        () => false,
        () => true,
      )
      if (isOver) return
      for (const screen of this.#screens) screen.endIfStalled(this.#clock.now(), stallMs)
    }
  }
}

/** Uses our own code for frames that are too large; `ws` detects them by the frame header. */
class DoorSocket extends WebSocket {
  override close(code?: number, data?: string | Buffer): void {
    super.close(code === 1009 ? closeCodes.tooLarge : code, data)
  }
}

const serverOptions = {
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: limits.maxFrameBytes,
  WebSocket: DoorSocket,
  // The offered token is never echoed.
  handleProtocols: (offered: Set<string>): string | false => ourProtocols.find((each) => offered.has(each)) ?? false,
  closeTimeout: closeMs,
}

const codeOf: Record<number, number> = { 401: closeCodes.auth, 404: closeCodes.gone, 429: closeCodes.rate }

const pathPattern = /^\/api\/sessions\/([^/?#]+)\/ws(?:\?|$)/

function sessionIdIn(url: string | undefined): string {
  const id = pathPattern.exec(url ?? '')?.[1]
  if (!isId(id)) throw new RequestProblem(404, 'not-found', 'There is no WebSocket endpoint at this path.')
  return id
}

function destroyFailed(this: Socket): void {
  this.destroy()
}

function headerOf({ headers }: IncomingMessage, name: string): string | undefined {
  const value = headers[name]
  return Array.isArray(value) ? value.join(', ') : value
}

function answer(socket: Socket, problem: Problem, requestId: string): void {
  const body = JSON.stringify({ ...problem, request_id: requestId })
  const head = [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status] ?? ''}`,
    'Connection: close',
    'Content-Type: application/problem+json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'X-Content-Type-Options: nosniff',
    `X-Request-Id: ${requestId}`,
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroySoon())
}
