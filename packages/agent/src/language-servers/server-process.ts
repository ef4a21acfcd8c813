import type { Clock } from '@tapetree/session/util/wait'
import { z } from 'zod'
import { OwnProcess, type OwnProcessOptions } from '../tools/commands/own-process.ts'

export interface ServerProcessOptions {
  program: OwnProcessOptions
  clock: Clock
  onNotification: (method: string, params: unknown) => void
  /** Answers a request of the server. */
  onRequest: (method: string, params: unknown) => unknown
}

/** A larger message ends the server: it is no diagnostic that a model could read. */
const maxMessageBytes = 2 * 1024 * 1024
const maxHeaderBytes = 4096
/** A server that sends more than this in the time of one window is ended. */
const floodBytes = 4 * 1024 * 1024
const floodWindowMs = 5000

/** A request, a notification or an answer. */
const messageSchema = z.object({
  id: z.union([z.number(), z.string()]).nullish(),
  method: z.string().optional(),
  params: z.unknown().optional(),
  result: z.unknown().optional(),
  error: z.object({ message: z.unknown().optional(), code: z.unknown().optional() }).nullish(),
})

/** A server answered with an error, and runs on. */
export class ServerError extends Error {
  override readonly name = 'ServerError'
  readonly code: unknown

  constructor(message: string, code: unknown) {
    super(message)
    this.code = code
  }
}

/** A language server as a program: JSON-RPC with `Content-Length` headers over its stdin and stdout. None of its processes outlives it. */
export class ServerProcess {
  /** Resolves with a sentence when it has ended, by itself or because of `end`. */
  readonly ended: Promise<string>
  readonly #options: ServerProcessOptions
  readonly #process: OwnProcess
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>()
  #buffer: Buffer = Buffer.alloc(0)
  #nextId = 1
  #windowStart = 0
  #windowBytes = 0
  #isOver = false

  constructor(options: ServerProcessOptions) {
    this.#options = options
    this.#process = new OwnProcess(options.program)
    this.ended = this.#process.ended
    void this.ended.then((reason) => this.#forget(reason))
    this.#process.stdout.on('data', (chunk: Buffer) => this.#read(chunk))
  }

  /** Rejects with a `ServerError`, or with another error when the server ends. */
  request(method: string, params: unknown): Promise<unknown> {
    const answer = Promise.withResolvers<unknown>()
    answer.promise.catch(() => undefined)
    if (this.#isOver) answer.reject(new Error('The language server has ended.'))
    else {
      const id = this.#nextId++
      this.#waiting.set(id, answer)
      this.#send({ id, method, params })
    }
    return answer.promise
  }

  notify(method: string, params: unknown): void {
    if (!this.#isOver) this.#send({ method, params })
  }

  /** Ends it and all its processes; resolves when they are gone. */
  end(reason: string): Promise<void> {
    this.#forget(reason)
    return this.#process.end(reason)
  }

  #forget(reason: string): void {
    this.#isOver = true
    this.#buffer = Buffer.alloc(0)
    for (const { reject } of this.#waiting.values()) reject(new Error(reason))
    this.#waiting.clear()
  }

  #send(message: object): void {
    const { stdin } = this.#process
    if (stdin.writableLength > maxMessageBytes) return void this.end('It no longer reads what is sent to it.')
    const body = JSON.stringify({ jsonrpc: '2.0', ...message })
    stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
  }

  #read(chunk: Buffer): void {
    if (this.#isOver) return
    const now = this.#options.clock.now()
    if (now - this.#windowStart > floodWindowMs) {
      this.#windowStart = now
      this.#windowBytes = 0
    }
    this.#windowBytes += chunk.length
    if (this.#windowBytes > floodBytes) return void this.end('It sent more than a run can read.')
    this.#buffer = Buffer.concat([this.#buffer, chunk])
    for (let body = this.#nextBody(); body !== undefined; body = this.#nextBody()) this.#take(body)
  }

  #nextBody(): Buffer | undefined {
    if (this.#isOver) return undefined
    const end = this.#buffer.indexOf('\r\n\r\n')
    if (end < 0 && this.#buffer.length <= maxHeaderBytes) return undefined
    const [, digits] =
      /^Content-Length: *(\d{1,10})\r?$/im.exec(this.#buffer.subarray(0, Math.max(0, end)).toString('latin1')) ?? []
    const length = Number(digits)
    if (digits === undefined || length > maxMessageBytes) {
      void this.end(digits === undefined ? 'It does not speak the protocol.' : `It sent a message of ${length} bytes.`)
      return undefined
    }
    const start = end + 4
    if (this.#buffer.length < start + length) return undefined
    const body = this.#buffer.subarray(start, start + length)
    this.#buffer = this.#buffer.subarray(start + length)
    return body
  }

  #take(body: Buffer): void {
    const message = readMessage(body)
    if (!message) return void this.end('It sent a message that does not fit the protocol.')
    const { id, method, params, result, error } = message
    if (method !== undefined) {
      if (id === undefined) return this.#options.onNotification(method, params)
      return this.#send({ id, result: this.#options.onRequest(method, params) ?? null })
    }
    if (typeof id !== 'number') return
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (error) waiting?.reject(new ServerError(typeof error.message === 'string' ? error.message : '', error.code))
    else waiting?.resolve(result)
  }
}

function readMessage(body: Buffer): z.output<typeof messageSchema> | undefined {
  try {
    return messageSchema.parse(JSON.parse(body.toString()))
  } catch {
    return undefined // not JSON, or no message
  }
}
