import { lookup } from 'node:dns/promises'
import { createServer, request as requestUpstream, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, isIP, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { effectOf, matchHost, type RuleLayers } from '../permissions/rules.ts'
import { isPublicAddress, type Address } from '../tools/web/fetch-page.ts'
import { messageOf } from '../util/message-of.ts'

/** What a command wants to reach. */
export interface ProxyTarget {
  host: string
  port: number
  /** The call that the command belongs to. The client sends it as its user name, so it is a hint and no proof. */
  callId?: string
}

/** `opened` is reported before the first byte is sent, so that a crash loses none. */
export type ProxyEvent = ProxyTarget &
  (
    | { type: 'opened'; address: string }
    | { type: 'closed'; sentBytes: number; receivedBytes: number }
    | { type: 'refused' | 'failed'; reason: string }
  )

/** `unattended`: there is no agent that could ask the user. An object denies with a sentence that says why. */
export type ProxyAnswer = 'allow' | 'deny' | 'unattended' | { denied: string }

export interface ProxyOptions {
  /** The current rules; those of type `fetch` count. */
  rules: () => RuleLayers
  /** Asks the user while the request waits. The signal aborts when no request waits for the answer any more. */
  ask: (target: ProxyTarget, signal: AbortSignal) => Promise<ProxyAnswer>
  onEvent: (event: ProxyEvent) => void
  /** Default: the resolver of the system. */
  resolve?: (host: string) => Promise<Address[]>
  /** Default: addresses of this machine, of private networks and reserved ranges are not public. */
  isPublic?: (address: string) => boolean
}

/** Of commands and to servers, together. More are closed at once. */
const maxConnections = 512
/** Further questions are refused until one of these is answered. */
const maxPendingQuestions = 20
/** Of answers that count for one call; the oldest are forgotten. */
const maxAnswers = 1000
const connectTimeoutMs = 20_000

/**
 * The only way from a sandbox to the network: a proxy for HTTP and for tunnels (CONNECT). It denies by default, looks up no host before it is
 * allowed, looks it up once, and connects to an address that it has checked.
 */
export class Proxy {
  readonly #options: Required<ProxyOptions>
  readonly #server = createServer({ requestTimeout: 0 })
  readonly #sockets = new Set<Duplex>()
  readonly #questions = new Map<string, Question>()
  readonly #answers = new Map<string, ProxyAnswer>()

  constructor(options: ProxyOptions) {
    this.#options = {
      resolve: (host) => lookup(host, { all: true, order: 'verbatim' }),
      isPublic: isPublicAddress,
      ...options,
    }
    this.#server.on('connect', (request, socket: Duplex, head: Buffer) => {
      void this.#tunnel(request, { socket, head })
    })
    this.#server.on('request', (request, response) => void this.#forward(request, response))
    this.#server.on('clientError', (_error, socket) => {
      if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n')
      else socket.destroy()
    })
  }

  /** Serves a connection of a command. */
  serve(socket: Socket): void {
    if (this.#sockets.size >= maxConnections) {
      socket.destroy()
      return
    }
    this.#hold(socket)
    this.#server.emit('connection', socket)
  }

  /** The rules have changed: questions about hosts that they allow now are answered. */
  reconsider(): void {
    for (const { host, resolve, controller } of this.#questions.values()) {
      if (effectOf(this.#options.rules(), (rule) => matchHost(rule, host)) !== 'allow') continue
      resolve('allow')
      controller.abort()
    }
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy()
    for (const { controller } of this.#questions.values()) controller.abort()
  }

  #hold(socket: Duplex): void {
    this.#sockets.add(socket)
    socket.on('error', () => socket.destroy())
    socket.once('close', () => this.#sockets.delete(socket))
  }

  async #tunnel(request: IncomingMessage, { socket, head }: { socket: Duplex; head: Buffer }): Promise<void> {
    const gone = closing(socket)
    try {
      const target = withCall(parseAuthority(request.url ?? ''), request)
      const upstream = await this.#reach(target, gone)
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      upstream.write(head)
      socket.pipe(upstream).pipe(socket)
      socket.once('close', () => upstream.destroy())
      upstream.once('close', () => socket.destroy())
    } catch (error) {
      const { status, message } = asRefusal(error)
      const body = `${message}\n`
      // Most clients show the status line of a failed tunnel and nothing else.
      socket.end(
        `HTTP/1.1 ${status} ${asciiLine(message)}\r\ncontent-type: text/plain\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
      )
    }
  }

  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const { target, path } = parseUrl(request.url ?? '')
      const socket = await this.#reach(withCall(target, request), closing(response))
      const upstream = requestUpstream({
        createConnection: () => socket,
        method: request.method ?? 'GET',
        path,
        // The host that was judged, whatever the client wrote.
        headers: { ...forwarded(request.headers), host: hostHeader(target), connection: 'close' },
      })
      response.once('close', () => upstream.destroy())
      upstream.on('error', (error) => fail(response, new Refusal(502, `${target.host} failed: ${messageOf(error)}`)))
      upstream.on('response', (answer) => {
        answer.on('error', () => response.destroy())
        try {
          response.writeHead(answer.statusCode ?? 502, answer.statusMessage, forwardedRaw(answer.rawHeaders))
          answer.pipe(response)
        } catch (error) {
          fail(response, new Refusal(502, `${target.host} sent an invalid response: ${messageOf(error)}`))
        }
      })
      request.pipe(upstream)
    } catch (error) {
      request.resume()
      fail(response, asRefusal(error))
    }
  }

  /** A connection to the target, if it is allowed. Throws a `Refusal`. */
  async #reach(target: ProxyTarget, gone: AbortSignal): Promise<Socket> {
    const { onEvent } = this.#options
    try {
      await this.#admit(target, gone)
    } catch (error) {
      onEvent({ ...target, type: 'refused', reason: messageOf(error) })
      throw error
    }
    try {
      const addresses = await this.#addressesOf(target.host)
      if (!addresses.every(({ address }) => this.#options.isPublic(address))) {
        const reason = `${target.host} is on this machine or a private network, which a sandbox cannot reach.`
        onEvent({ ...target, type: 'refused', reason })
        throw new Refusal(403, reason)
      }
      gone.throwIfAborted()
      const { socket, address } = await connectToFirst(addresses, target)
      this.#hold(socket)
      onEvent({ ...target, type: 'opened', address })
      socket.once('close', () => {
        onEvent({ ...target, type: 'closed', sentBytes: socket.bytesWritten, receivedBytes: socket.bytesRead })
      })
      if (gone.aborted) socket.destroy()
      return socket
    } catch (error) {
      if (error instanceof Refusal && error.status === 502)
        onEvent({ ...target, type: 'failed', reason: error.message })
      throw error
    }
  }

  async #admit(target: ProxyTarget, gone: AbortSignal): Promise<void> {
    const { host, port } = target
    if (port < 1024 && port !== 80 && port !== 443)
      throw new Refusal(403, `Port ${port} of ${host} is not reachable from the sandbox; 80, 443 and 1024 upward are.`)
    const effect = effectOf(this.#options.rules(), (rule) => matchHost(rule, host))
    if (effect === 'allow') return
    if (effect === 'deny') throw new Refusal(403, `A rule denies the host ${host}.`)
    const answer = this.#answers.get(answerKey(target)) ?? (await this.#ask(target, gone))
    if (answer === 'allow') return
    if (answer === 'deny') throw new Refusal(403, `The user has denied the host ${host}.`)
    const why =
      answer === 'unattended'
        ? `To allow it, add "fetch ${host}" to permissions.allow in your settings.`
        : answer.denied
    throw new Refusal(403, `The sandbox does not allow the host ${host}. ${why}`)
  }

  /** Requests to one host share one question. The answer then counts for the call, which may open many connections. */
  async #ask(target: ProxyTarget, gone: AbortSignal): Promise<ProxyAnswer> {
    const key = answerKey(target)
    let question = this.#questions.get(key)
    if (!question) {
      if (this.#questions.size >= maxPendingQuestions)
        throw new Refusal(503, `The host ${target.host} is not allowed, and too many questions are pending.`)
      const controller = new AbortController()
      const { promise: answer, resolve } = Promise.withResolvers<ProxyAnswer>()
      this.#options.ask(target, controller.signal).then(resolve, () => resolve('unattended'))
      question = { host: target.host, answer, resolve, controller, waiting: 0 }
      this.#questions.set(key, question)
      void answer.then((said) => {
        if (this.#questions.get(key)?.controller === controller) this.#questions.delete(key)
        if (target.callId !== undefined && said !== 'unattended') this.#remember(key, said)
      })
    }
    const { answer, controller } = question
    question.waiting += 1
    const leave = (): void => {
      question.waiting -= 1
      if (question.waiting > 0) return
      controller.abort()
      if (this.#questions.get(key) === question) this.#questions.delete(key)
    }
    gone.addEventListener('abort', leave, { once: true })
    const said = await answer
    gone.removeEventListener('abort', leave)
    return said
  }

  #remember(key: string, answer: ProxyAnswer): void {
    this.#answers.set(key, answer)
    const [oldest] = this.#answers.keys()
    if (this.#answers.size > maxAnswers && oldest !== undefined) this.#answers.delete(oldest)
  }

  async #addressesOf(host: string): Promise<Address[]> {
    if (isIP(host)) return [{ address: host, family: isIP(host) }]
    try {
      const addresses = await this.#options.resolve(host)
      if (addresses.length > 0) return addresses
    } catch (error) {
      throw new Refusal(502, `There is no address for ${host}: ${messageOf(error)}`)
    }
    throw new Refusal(502, `There is no address for ${host}.`)
  }
}

interface Question {
  host: string
  answer: Promise<ProxyAnswer>
  resolve: (answer: ProxyAnswer) => void
  controller: AbortController
  waiting: number
}

function answerKey({ host, callId = '' }: ProxyTarget): string {
  return `${callId} ${host}`
}

/** What the client is told. */
class Refusal extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

function asRefusal(error: unknown): Refusal {
  return error instanceof Refusal ? error : new Refusal(502, messageOf(error))
}

/** Aborts when the client has gone. */
function closing(stream: Duplex | ServerResponse): AbortSignal {
  const controller = new AbortController()
  stream.once('close', () => controller.abort())
  return controller.signal
}

/** The target of CONNECT. */
function parseAuthority(text: string): ProxyTarget {
  const [, bracketed, name, digits] = /^(?:\[([0-9a-f:.]+)\]|([^:[\]]+)):(\d{1,5})$/i.exec(text) ?? []
  return { host: checkedHost(bracketed ?? name ?? ''), port: checkedPort(Number(digits)) }
}

/** The target of any other method, which must be a whole URL. */
function parseUrl(text: string): { target: ProxyTarget; path: string } {
  const url = URL.parse(text)
  if (url?.protocol !== 'http:')
    throw new Refusal(400, 'This is a proxy: it takes whole http URLs, and CONNECT for https.')
  if (url.username !== '' || url.password !== '')
    throw new Refusal(400, 'The URL contains a user name or a password; leave it out.')
  const host = checkedHost(url.hostname.replace(/^\[(.*)\]$/, '$1'))
  return {
    target: { host, port: checkedPort(url.port === '' ? 80 : Number(url.port)) },
    path: url.pathname + url.search,
  }
}

/** At least two labels, the last of which begins with a letter: `127.1`, `0x7f.1` and `localhost` are no such names. */
const hostName = /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/
const maxHostLength = 253

function checkedHost(text: string): string {
  const host = text.toLowerCase().replace(/(?<=[^.])\.$/, '')
  if (isIP(host) || (host.length <= maxHostLength && hostName.test(host))) return host
  throw new Refusal(400, `${JSON.stringify(text.slice(0, maxHostLength))} is not the name of a host on the internet.`)
}

function checkedPort(port: number): number {
  if (Number.isInteger(port) && port >= 1 && port <= 65_535) return port
  throw new Refusal(400, 'The port is not a number from 1 to 65535.')
}

const maxCallIdLength = 200

/** The id of the call is the user name in the address of the proxy. */
function withCall(target: ProxyTarget, { headers }: IncomingMessage): ProxyTarget {
  const encoded = /^Basic ([A-Za-z0-9+/=]+)$/i.exec(headers['proxy-authorization'] ?? '')?.[1] ?? ''
  const callId = Buffer.from(encoded, 'base64').toString().split(':')[0] ?? ''
  return /^[\w./%!~*'()-]+$/.test(callId) && callId.length <= maxCallIdLength ? { ...target, callId } : target
}

/** In turn, since not every machine can reach IPv6 addresses. */
async function connectToFirst(
  addresses: readonly Address[],
  { host, port }: ProxyTarget,
): Promise<{ socket: Socket; address: string }> {
  let problem = ''
  for (const { address } of addresses) {
    try {
      return { socket: await connectTo(address, port), address }
    } catch (error) {
      problem = messageOf(error)
    }
  }
  throw new Refusal(502, `${host} cannot be reached: ${problem}`)
}

function connectTo(address: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port, noDelay: true, keepAlive: true })
    const timer = setTimeout(() => socket.destroy(new Error('The connection timed out.')), connectTimeoutMs)
    socket.once('error', reject)
    socket.once('close', () => clearTimeout(timer))
    socket.once('connect', () => {
      clearTimeout(timer)
      socket.off('error', reject)
      resolve(socket)
    })
  })
}

/** Headers for one connection only. `transfer-encoding` of a request stays: it says how the body is framed. */
const hopByHop = new Set([
  'connection',
  'expect',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'upgrade',
])

function forwarded(headers: IncomingMessage['headers']): IncomingMessage['headers'] {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !hopByHop.has(name)))
}

function forwardedRaw(headers: readonly string[]): string[] {
  const kept: string[] = []
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const [name = '', value = ''] = headers.slice(index, index + 2)
    const isDropped = hopByHop.has(name.toLowerCase()) || name.toLowerCase() === 'transfer-encoding'
    if (!isDropped) kept.push(name, value)
  }
  return kept
}

function hostHeader({ host, port }: ProxyTarget): string {
  const name = isIP(host) === 6 ? `[${host}]` : host
  return port === 80 ? name : `${name}:${port}`
}

function fail(response: ServerResponse, { status, message }: Refusal): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' }).end(`${message}\n`)
}

function asciiLine(text: string): string {
  return text.replaceAll(/[^ -~]/g, '?')
}
