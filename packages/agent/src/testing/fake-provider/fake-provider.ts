import { once } from 'node:events'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { anthropicMessages } from './anthropic-messages.ts'
import type { FakeAnswer, FakeBytes, FakeContent, FakeEnding, FakeFailure, FakeStep } from './fake-script.ts'
import { gemini } from './gemini.ts'
import { openaiChat } from './openai-chat.ts'
import type { FakeHost } from './openai-chat-rules.ts'
import { openaiResponses } from './openai-responses.ts'
import { HttpReply, MemoryReply, type Reply } from './reply.ts'
import { brokenRules, type BrokenRule } from './request-rule.ts'
import { wholeAnswer, type FrameWriter, type SpokenContent, type WireFormat } from './wire-format.ts'

/** A received request. */
export interface FakeRequest {
  /** Counted from 1. */
  number: number
  api: string
  /** The compatible host of the request, if its base URL names one. */
  host: string | undefined
  model: string
  /** The rules of the provider that the request breaks. */
  broken: readonly BrokenRule[]
  path: string
  headers: IncomingHttpHeaders
  body: Record<string, unknown>
  bytes: Uint8Array
  /** Resolves when the connection or the answer has ended, with whether the client read all of it. */
  closed: Promise<'complete' | 'cut'>
}

export type FakeResponder = (request: FakeRequest) => FakeStep | Promise<FakeStep>

const formats = { anthropic: anthropicMessages, openai: openaiResponses, google: gemini, openaiCompatible: openaiChat }
export type FakeApi = keyof typeof formats

export interface FakeProviderOptions {
  /** Default: a free port. */
  port?: number
  /**
   * Whether requests that the real provider would reject are answered with 400 and the broken rule. Default: true. A
   * rejected request takes no step of the script.
   */
  strict?: boolean
}

/**
 * A provider that follows a script: a real HTTP server on this machine, with the wire formats and the rules of several
 * APIs.
 */
export async function startFakeProvider(options: FakeProviderOptions = {}): Promise<FakeProvider> {
  const { port = 0, strict = true } = options
  const server = createServer()
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return new FakeProvider(server, { strict })
}

export class FakeProvider implements AsyncDisposable {
  readonly url: string
  readonly requests: FakeRequest[] = []
  readonly #server: Server
  readonly #isStrict: boolean
  readonly #steps: FakeStep[] = []
  #responder: FakeResponder | undefined
  readonly #gates = new Map<string, Gate>()
  readonly #closing = new AbortController()
  #onRequest: (() => void)[] = []
  readonly #settled = new Map<number, Gate>()
  #connections = 0
  /** The open answers of `fetch`. */
  readonly #replies = new Set<MemoryReply>()

  constructor(server: Server, { strict }: { strict: boolean }) {
    this.#server = server
    this.#isStrict = strict
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    server.on('connection', () => (this.#connections += 1))
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      const { url = '/', headers } = request
      void this.#handle({ url, headers, bytes: readAll(request) }, new HttpReply(response))
    })
  }

  /**
   * Calls this provider without a socket, for tests with very many requests. The client reads exactly the chunks of the
   * script.
   */
  readonly fetch: typeof globalThis.fetch = (input, init) => {
    const url = input instanceof Request ? input.url : String(input)
    const sent = input instanceof Request ? input : init
    const reply = new MemoryReply(sent?.signal ?? undefined)
    const headers = Object.fromEntries(new Headers(sent?.headers))
    const bytes = new Response(sent?.body ?? null).arrayBuffer().then((buffer) => Buffer.from(buffer))
    this.#replies.add(reply)
    void reply.closed.then(() => this.#replies.delete(reply))
    void this.#handle({ url, headers, bytes }, reply)
    return reply.response
  }

  /**
   * The `baseURL` for a provider package. With a host, `openaiCompatible` has the rules of that host and streams
   * reasoning like it.
   */
  baseUrl(api: FakeApi, { host }: { host?: FakeHost } = {}): string {
    return `${this.url}${host === undefined ? '' : `/${host}`}${formats[api].basePath}`
  }

  /** Steps for the next requests, one each, or a function that creates them after the steps are used up. */
  script(...steps: FakeStep[] | [FakeResponder]): void {
    for (const step of steps) {
      if (typeof step === 'function') this.#responder = step
      else this.#steps.push(step)
    }
  }

  /** Opens this gate, for current and later waiters. */
  release(gate: string): void {
    this.#gate(gate).open()
  }

  /** Resolves with the request with this number, counted from 1, when it has arrived. */
  async request(number: number): Promise<FakeRequest> {
    while (this.requests.length < number) await new Promise<void>((resolve) => this.#onRequest.push(resolve))
    return this.requests[number - 1]!
  }

  /** The number of connections of clients. */
  get connections(): number {
    return this.#connections
  }

  /** Resolves when everything of the step for this request was written; the stream may hang from then on. */
  async idle(number: number): Promise<void> {
    await this.#idleGate(number).opened
  }

  async close(): Promise<void> {
    this.#closing.abort()
    for (const reply of this.#replies) reply.destroy(new TypeError('terminated'))
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #gate(name: string): Gate {
    const gate = this.#gates.get(name) ?? newGate()
    this.#gates.set(name, gate)
    return gate
  }

  #idleGate(number: number): Gate {
    const gate = this.#settled.get(number) ?? newGate()
    this.#settled.set(number, gate)
    return gate
  }

  async #handle(incoming: Incoming, reply: Reply): Promise<void> {
    const path = new URL(incoming.url, this.url).pathname
    const format = Object.values(formats).find((each) => each.route(path))
    try {
      const bytes = await incoming.bytes
      if (!format)
        return await sendJson(reply, { status: 404, body: wrong(`The fake provider has no endpoint ${path}.`) })
      const request = this.#take({ format, path, bytes, headers: incoming.headers, closed: reply.closed })
      const [broken] = this.#isStrict ? request.broken : []
      const step = broken ? rejection(broken) : await this.#next(request)
      await this.#answer(step, { format, request, reply })
      this.#idleGate(request.number).open()
    } catch (error) {
      // Many tests are about clients that disconnect. Any other error is a mistake in a script and must be visible.
      if (reply.isAbandoned || this.#closing.signal.aborted) return
      if (reply.hasBegun) await reply.breakOff()
      else await sendJson(reply, { status: 400, body: wrong(`The fake provider failed: ${String(error)}`) })
    }
  }

  #take(from: {
    format: WireFormat
    path: string
    bytes: Buffer
    headers: IncomingHttpHeaders
    closed: FakeRequest['closed']
  }): FakeRequest {
    const { format, path, bytes, headers, closed } = from
    const body = JSON.parse(bytes.toString('utf8')) as Record<string, unknown>
    const { host, model = typeof body['model'] === 'string' ? body['model'] : 'fake' } = format.route(path) ?? {}
    const request: FakeRequest = {
      number: this.requests.length + 1,
      api: format.api,
      host,
      model,
      broken: brokenRules(format.rules, { body, model, host }),
      path,
      headers,
      body,
      bytes,
      closed,
    }
    this.requests.push(request)
    for (const tell of this.#onRequest.splice(0)) tell()
    return request
  }

  async #next(request: FakeRequest): Promise<FakeStep> {
    const step = this.#steps.shift() ?? (await this.#responder?.(request))
    if (step) return step
    const message = `The fake provider has no step for request ${request.number}.`
    return { type: 'failure', error: 'invalid-request', message }
  }

  async #answer(step: FakeStep, exchange: Exchange): Promise<void> {
    switch (step.type) {
      case 'answer':
        return this.#stream(step, exchange)
      case 'failure':
        return fail(step, exchange)
      case 'bytes':
        return sendBytes(step, exchange)
      case 'cut':
        return exchange.reply.breakOff()
      case 'hang':
        return
      default:
        step satisfies never
    }
  }

  async #stream(answer: FakeAnswer, { format, request, reply }: Exchange): Promise<void> {
    const { ending = { type: 'complete' }, paceMs = 0 } = answer
    const { number, model, host } = request
    const whole = wholeAnswer(answer, { number, model, host })
    const frames = format.frames(whole)
    const isComplete = ending.type === 'complete'
    reply.begin(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
    if (isComplete || whole.content.length > 0) await write(reply, frames.begin())
    for (const [place, content] of answer.content.entries()) {
      if (content.type === 'keep_alive') {
        await write(reply, Array<string>(content.count).fill(format.keepAlive))
      } else if (content.type === 'wait') {
        await this.#gate(content.gate).opened
      } else {
        const isLast = place === answer.content.findLastIndex(isSpoken)
        await speak(
          { frames, content, index: whole.content.indexOf(content), isOpen: isLast && !isComplete, paceMs },
          reply,
        )
      }
    }
    await end(ending, { frames, format, reply })
  }
}

function rejection({ rule, at, demand }: BrokenRule): FakeFailure {
  return { type: 'failure', error: 'invalid-request', message: `${at}: ${demand} (rule ${rule})` }
}

interface Exchange {
  format: WireFormat
  request: FakeRequest
  reply: Reply
}

/** A request before its body was read. */
interface Incoming {
  url: string
  headers: IncomingHttpHeaders
  bytes: Promise<Buffer>
}

interface Gate {
  open: () => void
  opened: Promise<void>
}

function newGate(): Gate {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { open: resolve, opened: promise }
}

function isSpoken(content: FakeContent): content is SpokenContent {
  return content.type === 'text' || content.type === 'reasoning' || content.type === 'tool_call'
}

interface Speech {
  frames: FrameWriter
  content: SpokenContent
  index: number
  /** It was broken off, not closed. */
  isOpen: boolean
  paceMs: number
}

async function speak({ frames, content, index, isOpen, paceMs }: Speech, reply: Reply): Promise<void> {
  await write(reply, frames.open(content, index))
  for (const chunk of content.chunks) {
    if (paceMs > 0) await sleep(paceMs)
    await write(reply, frames.chunk(content, index, chunk))
  }
  if (!isOpen) await write(reply, frames.close(content, index))
}

async function end(
  ending: FakeEnding,
  { frames, format, reply }: { frames: FrameWriter; format: WireFormat; reply: Reply },
): Promise<void> {
  switch (ending.type) {
    case 'complete':
      await write(reply, frames.end())
      return reply.end()
    case 'eof':
      return reply.end()
    case 'cut':
      return reply.breakOff()
    case 'hang':
      return
    case 'error':
      await write(reply, [format.errorFrame(ending.error, ending.message)])
      return reply.end()
    case 'malformed':
      await write(reply, ['data: {"type": "content_block_delta", "ind\n\n'])
      return reply.end()
    default:
      ending satisfies never
  }
}

async function fail(failure: FakeFailure, { format, reply, request }: Exchange): Promise<void> {
  const { status, body } = format.error(failure.error, { message: failure.message, host: request.host })
  await sendJson(reply, { status: failure.status ?? status, body, headers: retryHeaders(failure.retryAfter) })
}

async function sendBytes(
  { chunks, status = 200, headers, ending = 'complete' }: FakeBytes,
  { reply }: Exchange,
): Promise<void> {
  reply.begin(status, headers ?? { 'content-type': 'text/event-stream' })
  for (const chunk of chunks) await reply.writeApart(chunk)
  if (ending === 'complete') reply.end()
  if (ending === 'cut') await reply.breakOff()
}

function retryHeaders(retryAfter: FakeFailure['retryAfter']): Record<string, string> {
  if (!retryAfter) return {}
  if ('ms' in retryAfter) return { 'retry-after-ms': String(retryAfter.ms) }
  if ('date' in retryAfter) return { 'retry-after': retryAfter.date.toUTCString() }
  return { 'retry-after': String(retryAfter.seconds) }
}

function wrong(message: string): unknown {
  return { error: { message, type: 'fake' } }
}

async function sendJson(
  reply: Reply,
  { status, body, headers }: { status: number; body: unknown; headers?: Record<string, string> },
): Promise<void> {
  reply.begin(status, { 'content-type': 'application/json', ...headers })
  await reply.write(JSON.stringify(body))
  reply.end()
}

async function write(reply: Reply, frames: readonly string[]): Promise<void> {
  for (const frame of frames) await reply.write(frame)
}

async function readAll(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}
