import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { memoryStore, text, type Session } from '@tapetree/session'
import { checksum } from '@tapetree/session/format'
import type { LogLine } from '@tapetree/session/log-store'
import { WebSocketServer, type WebSocket } from 'ws'
import type { AttachRequest, ClientFrame } from '../protocol/client-frames.ts'
import type { Ack, SnapshotReason } from '../protocol/frames.ts'
import { snapshotToWire } from '../protocol/wire-snapshot.ts'

/** Faults that a test injects. */
export interface Script {
  /** Replaces a frame by the frames that are really sent. */
  outgoing?: (frame: string, screen: ServedScreen) => string[]
  /** False drops the frame. */
  incoming?: (frame: ClientFrame, screen: ServedScreen) => boolean
  /** Longer lines are only announced. */
  maxLineLength?: number
  /** Rejects the upgrade with this status. */
  refuse?: number
  /** Refuses as a proxy does, without a problem document. */
  isProxy?: boolean
}

/** One socket as the server sees it. */
export interface ServedScreen {
  socket: WebSocket
  protocols: string
  /** The client, once it is attached. */
  client?: string
  seq: number
  /** Frames that were sent. */
  sent: string[]
  received: ClientFrame[]
}

/** A minimal server of the protocol, over a real log and real sockets, with scripted faults. */
export class ScriptedServer {
  readonly session: Session
  script: Script
  readonly screens: ServedScreen[] = []
  readonly requests: string[] = []
  /** Command ids, once for each effect. */
  readonly effects: string[] = []
  state: Record<string, { value: unknown; rev: number }> = {
    run: { value: { run_id: null, is_busy: false, waiting_for: null }, rev: 1 },
  }
  readonly #lines: { seq: number; count: number; crc: string; text: string; frame: string }[] = []
  readonly #acks = new Map<string, Ack>()
  readonly #http = createServer((request, response) => void this.#answer(request, response))
  readonly #sockets = new WebSocketServer({
    noServer: true,
    handleProtocols: (protocols) => (protocols.has('tapetree.v1') ? 'tapetree.v1' : false),
  })

  private constructor(session: Session, script: Script) {
    this.session = session
    this.script = script
    session.subscribe(({ seq, crc, text: line }) => {
      this.#add({ seq, crc, text: line, type: 'line' })
      for (const screen of this.screens) this.pump(screen)
    })
    this.#http.on('upgrade', (request, socket, head) => {
      if (this.script.refuse !== undefined) {
        socket.end(`HTTP/1.1 ${this.script.refuse} Refused\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
        return
      }
      this.#sockets.handleUpgrade(request, socket, head, (opened) => this.#serve(opened, request))
    })
  }

  static async open(script: Script = {}): Promise<ScriptedServer> {
    const session = await memoryStore().create()
    const server = new ScriptedServer(session, script)
    for await (const line of session.lines()) server.#add(line)
    await new Promise<void>((resolve) => server.#http.listen(0, '127.0.0.1', resolve))
    return server
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}`
  }

  /** The screens that are not closed. */
  get open(): ServedScreen[] {
    return this.screens.filter(({ socket }) => socket.readyState === socket.OPEN)
  }

  say(frame: unknown): void {
    for (const screen of this.open) if (screen.client !== undefined) this.send(screen, JSON.stringify(frame))
  }

  /** Loses lines, as on a damaged disk. */
  lose(count: number): void {
    this.#add({ type: 'lost', seq: (this.#lines.at(-1)?.seq ?? 0) + 1, count })
    for (const screen of this.screens) this.pump(screen)
  }

  send(screen: ServedScreen, frame: string): void {
    for (const each of this.script.outgoing?.(frame, screen) ?? [frame]) {
      if (screen.socket.readyState !== screen.socket.OPEN) return
      screen.sent.push(each)
      screen.socket.send(each)
    }
  }

  pump(screen: ServedScreen): void {
    if (screen.client === undefined) return
    for (const { seq, count, frame } of this.#lines) {
      if (seq <= screen.seq) continue
      screen.seq = seq + count - 1
      this.send(screen, frame)
    }
  }

  async close(): Promise<void> {
    for (const { socket } of this.screens) socket.terminate()
    this.#http.closeAllConnections()
    await new Promise((resolve) => this.#http.close(resolve))
    await this.session.close()
  }

  #add(line: LogLine): void {
    const { seq } = line
    if (line.type === 'lost') {
      const frame = JSON.stringify({ seq, type: 'lost', count: line.count })
      this.#lines.push({ seq, count: line.count, crc: '', text: frame, frame })
      return
    }
    const { crc = checksum(line.text) } = JSON.parse(line.text) as { crc?: string }
    const isLarge = line.text.length > (this.script.maxLineLength ?? Infinity)
    const named = JSON.stringify({ seq, type: 'large', size: line.text.length, line_crc: crc })
    this.#lines.push({ seq, count: 1, crc, text: line.text, frame: isLarge ? named : line.text })
  }

  #serve(socket: WebSocket, request: IncomingMessage): void {
    const protocols = request.headers['sec-websocket-protocol'] ?? ''
    const screen: ServedScreen = { socket, protocols, seq: 0, sent: [], received: [] }
    this.screens.push(screen)
    socket.on('error', () => undefined)
    socket.on('message', (data: Buffer) => {
      // Frames for a closed socket are lost.
      if (socket.readyState !== socket.OPEN) return
      const frame = JSON.parse(data.toString()) as ClientFrame
      screen.received.push(frame)
      if (this.script.incoming?.(frame, screen) !== false) void this.#take(frame, screen)
    })
  }

  async #take(frame: ClientFrame, screen: ServedScreen): Promise<void> {
    switch (frame.type) {
      case 'attach':
        return this.#attach(frame.data, screen)
      case 'cmd': {
        const ack = await this.#perform(frame.data)
        return this.send(screen, JSON.stringify({ type: 'ack', data: ack }))
      }
      case 'ping': {
        const data = { n: frame.data.n, head: this.session.head, time: new Date(0).toISOString() }
        return this.send(screen, JSON.stringify({ type: 'pong', data }))
      }
      case 'presence':
        return undefined
      default:
        frame satisfies never
    }
  }

  async #attach({ after, client, window = 50 }: AttachRequest, screen: ServedScreen): Promise<void> {
    const reason = this.#reasonFor(after)
    const snapshot = reason && snapshotToWire(await this.session.snapshot({ entries: window }))
    for (const other of this.open) if (other.client === client.id) other.socket.close(4409, 'replaced')
    screen.client = client.id
    screen.seq = snapshot ? snapshot.head.seq : (after?.seq ?? 0)
    const data = {
      session_id: this.session.id,
      client_id: client.id,
      mode: reason ? 'snapshot' : 'tail',
      ...(reason && { reason, snapshot }),
      head: this.session.head,
      from: screen.seq + 1,
      limits: {},
      state: this.state,
    }
    this.send(screen, JSON.stringify({ type: 'attached', data }))
    this.pump(screen)
  }

  #reasonFor(after: AttachRequest['after']): SnapshotReason | undefined {
    if (!after) return 'first'
    const line = this.#lines.find(({ seq }) => seq === after.seq)
    if (!line) return 'cursor_ahead'
    return line.crc === after.crc ? undefined : 'history_changed'
  }

  async #perform({ id, op, args = {} }: Extract<ClientFrame, { type: 'cmd' }>['data']): Promise<Ack> {
    const before = this.#acks.get(id)
    if (before) return { ...before, dup: true }
    const ack: Ack = { id, ok: true, result: { outcome: 'started', run_id: `run-of-${id}` } }
    this.#acks.set(id, ack)
    this.effects.push(id)
    const context = { cause: { cmd: id } }
    if (op === 'prompt') await this.session.appendMessage('user', [text(String(args['text']))], context)
    else if (op === 'rename') await this.session.appendSessionInfo(String(args['name']), context)
    else if (op === 'cancel') {
      const error = { type: 'run-not-current', title: 'Run not current', status: 409, run_id: null }
      this.#acks.set(id, { id, ok: false, error })
    }
    return this.#acks.get(id) ?? ack
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://server')
    this.requests.push(`${request.method} ${url.pathname}${url.search}`)
    const answer = (status: number, body: unknown): void => {
      response.writeHead(status, { 'content-type': status < 400 ? 'application/json' : 'application/problem+json' })
      response.end(JSON.stringify(body))
    }
    const { refuse, isProxy } = this.script
    if (refuse !== undefined)
      return answer(refuse, isProxy ? {} : { type: 'refused', title: 'Refused', status: refuse })
    if (!url.pathname.endsWith('/events')) return answer(404, { type: 'not-found', title: 'Not found', status: 404 })
    const after = Number(url.searchParams.get('after') ?? 0)
    const before = Number(url.searchParams.get('before') ?? Infinity)
    const limit = Number(url.searchParams.get('limit') ?? 100)
    const found = this.#lines.filter(({ seq }) => seq > after && seq < before)
    const page = url.searchParams.has('before') ? found.slice(-limit) : found.slice(0, limit)
    answer(200, { events: page.map(({ text: line }) => JSON.parse(line) as unknown), head: this.session.head })
  }
}
