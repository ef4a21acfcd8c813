import { once } from 'node:events'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { anthropicMessages } from './anthropic-messages.ts'
import type { FakeAnswer, FakeBytes, FakeContent, FakeEnding, FakeFailure, FakeStep } from './fake-script.ts'
import { gemini } from './gemini.ts'
import { openaiChat } from './openai-chat.ts'
import type { FakeHost } from './openai-chat-rules.ts'
import { openaiResponses } from './openai-responses.ts'
import { brokenRules, type BrokenRule } from './request-rule.ts'
import { wholeAnswer, type FrameWriter, type SpokenContent, type WireFormat } from './wire-format.ts'

/** A request as it came in. */
export interface FakeRequest {
  /** Counted from 1. */
  number: number
  api: string
  /** The compatible host that the request was sent to, if its base URL names one. */
  host: string | undefined
  model: string
  /** The rules of the provider that the request breaks. */
  broken: readonly BrokenRule[]
  path: string
  headers: IncomingHttpHeaders
  body: Record<string, unknown>
  bytes: Uint8Array
  /** Resolves when the connection or the answer is over, and says whether the client took it to its end. */
  closed: Promise<'complete' | 'cut'>
}

export type FakeResponder = (request: FakeRequest) => FakeStep | Promise<FakeStep>

const formats = { anthropic: anthropicMessages, openai: openaiResponses, google: gemini, openaiCompatible: openaiChat }
export type FakeApi = keyof typeof formats

export interface FakeProviderOptions {
  /** A free port if absent. */
  port?: number
  /**
   * Whether requests that the real provider would reject are answered with 400 and the broken rule: true if absent. A rejected
   * request takes no step of the script.
   */
  strict?: boolean
}

/** A provider that follows a script: a real HTTP server on this machine, with the wire formats and the rules of four APIs. */
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

  constructor(server: Server, { strict }: { strict: boolean }) {
    this.#server = server
    this.#isStrict = strict
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    server.on('connection', () => (this.#connections += 1))
    server.on('request', (request: IncomingMessage, response: ServerResponse) => void this.#handle(request, response))
  }

  /**
   * What a provider package has to be given as `baseURL`. With a host, `openaiCompatible` has the rules of that host and streams
   * reasoning as it does.
   */
  baseUrl(api: FakeApi, { host }: { host?: FakeHost } = {}): string {
    return `${this.url}${host === undefined ? '' : `/${host}`}${formats[api].basePath}`
  }

  /** Steps for the requests to come, one each, or a function that makes them once the steps are used up. */
  script(...steps: FakeStep[] | [FakeResponder]): void {
    for (const step of steps) {
      if (typeof step === 'function') this.#responder = step
      else this.#steps.push(step)
    }
  }

  /** Lets all go on that wait at this gate, now and later. */
  release(gate: string): void {
    this.#gate(gate).open()
  }

  /** Resolves with the request of this number, counted from 1, when it has come in. */
  async request(number: number): Promise<FakeRequest> {
    while (this.requests.length < number) await new Promise<void>((resolve) => this.#onRequest.push(resolve))
    return this.requests[number - 1]!
  }

  /** How many connections clients have made. */
  get connections(): number {
    return this.#connections
  }

  /** Resolves when everything was written that the step for this request has to say; the stream may hang from then on. */
  async idle(number: number): Promise<void> {
    await this.#idleGate(number).opened
  }

  async close(): Promise<void> {
    this.#closing.abort()
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

  async #handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = new URL(incoming.url ?? '/', this.url).pathname
    const format = Object.values(formats).find((each) => each.route(path))
    try {
      const bytes = await readAll(incoming)
      if (!format) return sendJson(response, 404, { error: { message: `The fake provider has nothing at ${path}.` } })
      const request = this.#take({ format, path, bytes, incoming, response })
      const [broken] = this.#isStrict ? request.broken : []
      const step = broken ? rejection(broken) : await this.#next(request)
      await this.#answer(step, { format, request, response })
      this.#idleGate(request.number).open()
    } catch (error) {
      // A client that goes away is what many tests are about. Anything else is a mistake in a script, and must be seen.
      if (response.destroyed || this.#closing.signal.aborted) return
      if (response.headersSent) response.destroy()
      else sendJson(response, 400, { error: { message: `The fake provider failed: ${String(error)}`, type: 'fake' } })
    }
  }

  #take(from: {
    format: WireFormat
    path: string
    bytes: Buffer
    incoming: IncomingMessage
    response: ServerResponse
  }): FakeRequest {
    const { format, path, bytes, incoming, response } = from
    const body = JSON.parse(bytes.toString('utf8')) as Record<string, unknown>
    const { host, model = typeof body['model'] === 'string' ? body['model'] : 'fake' } = format.route(path) ?? {}
    const request: FakeRequest = {
      number: this.requests.length + 1,
      api: format.api,
      host,
      model,
      broken: brokenRules(format.rules, { body, model, host }),
      path,
      headers: incoming.headers,
      body,
      bytes,
      closed: new Promise((resolve) => {
        response.on('close', () => resolve(response.writableFinished ? 'complete' : 'cut'))
      }),
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
        exchange.response.destroy()
        return
      case 'hang':
        return
      default:
        step satisfies never
    }
  }

  async #stream(answer: FakeAnswer, { format, request, response }: Exchange): Promise<void> {
    const { ending = { type: 'complete' }, paceMs = 0 } = answer
    const { number, model, host } = request
    const whole = wholeAnswer(answer, { number, model, host })
    const frames = format.frames(whole)
    const isComplete = ending.type === 'complete'
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
    response.flushHeaders()
    if (isComplete || whole.content.length > 0) await write(response, frames.begin())
    for (const [place, content] of answer.content.entries()) {
      if (content.type === 'keep_alive') {
        await write(response, Array<string>(content.count).fill(format.keepAlive))
      } else if (content.type === 'wait') {
        await this.#gate(content.gate).opened
      } else {
        const isLast = place === answer.content.findLastIndex(isSpoken)
        await speak(
          { frames, content, index: whole.content.indexOf(content), isOpen: isLast && !isComplete, paceMs },
          response,
        )
      }
    }
    await end(ending, { frames, format, response })
  }
}

function rejection({ rule, at, demand }: BrokenRule): FakeFailure {
  return { type: 'failure', error: 'invalid-request', message: `${at}: ${demand} (rule ${rule})` }
}

interface Exchange {
  format: WireFormat
  request: FakeRequest
  response: ServerResponse
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
  /** It is broken off, and not closed. */
  isOpen: boolean
  paceMs: number
}

async function speak({ frames, content, index, isOpen, paceMs }: Speech, response: ServerResponse): Promise<void> {
  await write(response, frames.open(content, index))
  for (const chunk of content.chunks) {
    if (paceMs > 0) await sleep(paceMs)
    await write(response, frames.chunk(content, index, chunk))
  }
  if (!isOpen) await write(response, frames.close(content, index))
}

async function end(
  ending: FakeEnding,
  { frames, format, response }: { frames: FrameWriter; format: WireFormat; response: ServerResponse },
): Promise<void> {
  switch (ending.type) {
    case 'complete':
      await write(response, frames.end())
      response.end()
      return
    case 'eof':
      response.end()
      return
    case 'cut':
      return breakOff(response)
    case 'hang':
      return
    case 'error':
      await write(response, [format.errorFrame(ending.error, ending.message)])
      response.end()
      return
    case 'malformed':
      await write(response, ['data: {"type": "content_block_delta", "ind\n\n'])
      response.end()
      return
    default:
      ending satisfies never
  }
}

function fail(failure: FakeFailure, { format, response }: Exchange): void {
  const { status, body } = format.error(failure.error, failure.message)
  sendJson(response, failure.status ?? status, body, retryHeaders(failure.retryAfter))
}

async function sendBytes(
  { chunks, status = 200, headers, ending = 'complete' }: FakeBytes,
  { response }: Exchange,
): Promise<void> {
  response.socket?.setNoDelay(true)
  response.writeHead(status, headers ?? { 'content-type': 'text/event-stream' })
  for (const chunk of chunks) {
    await write(response, [chunk])
    // Without this, chunks that are written together arrive together.
    await nextTurn()
  }
  if (ending === 'complete') response.end()
  if (ending === 'cut') await breakOff(response)
}

/** Breaks the connection when everything that was written has left. */
async function breakOff(response: ServerResponse): Promise<void> {
  await new Promise<void>((resolve) => response.write('', () => resolve()))
  response.destroy()
}

function retryHeaders(retryAfter: FakeFailure['retryAfter']): Record<string, string> {
  if (!retryAfter) return {}
  if ('ms' in retryAfter) return { 'retry-after-ms': String(retryAfter.ms) }
  if ('date' in retryAfter) return { 'retry-after': retryAfter.date.toUTCString() }
  return { 'retry-after': String(retryAfter.seconds) }
}

function sendJson(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(body))
}

/** Waits for a slow reader, and gives up on one that went away. */
async function write(response: ServerResponse, frames: readonly (string | Uint8Array)[]): Promise<void> {
  for (const frame of frames) {
    if (response.destroyed) throw new Error('The client went away.')
    if (!response.write(frame)) await drained(response)
  }
}

async function drained(response: ServerResponse): Promise<void> {
  const over = new AbortController()
  const { signal } = over
  await Promise.race([once(response, 'drain', { signal }), once(response, 'close', { signal })])
  over.abort()
}

async function readAll(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}
