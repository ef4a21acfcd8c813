import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A provider whose answers are Markdown at a fixed rate of tokens, each sent by itself, until they are ended. */
export class TokenStream implements AsyncDisposable {
  readonly #server: Server
  readonly #open = new Map<ServerResponse, NodeJS.Timeout>()

  private constructor(server: Server) {
    this.#server = server
  }

  static async start(tokensPerSecond: number): Promise<TokenStream> {
    const server = createServer((request, response) => {
      request.resume().on('end', () => stream.#answer(response, tokensPerSecond))
    })
    const stream = new TokenStream(server)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return stream
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`
  }

  endAnswers(): void {
    for (const [response, timer] of this.#open) {
      clearInterval(timer)
      response.end(`${frame({}, 'stop')}data: [DONE]\n\n`)
    }
    this.#open.clear()
  }

  /** Late timers are made up for, so the rate is exact over time. */
  #answer(response: ServerResponse, tokensPerSecond: number): void {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const begun = performance.now()
    let sent = 0
    const timer = setInterval(() => {
      const due = Math.floor(((performance.now() - begun) * tokensPerSecond) / 1000)
      for (; sent < due; sent++) response.write(frame({ content: tokenAt(sent) }))
    }, 1000 / tokensPerSecond)
    this.#open.set(response, timer)
    response.on('close', () => {
      clearInterval(timer)
      this.#open.delete(response)
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.endAnswers()
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }
}

function frame(delta: Record<string, string>, finish: string | null = null): string {
  const chunk = { id: 'a', object: 'chat.completion.chunk', created: 0, model: 'model-1' }
  return `data: ${JSON.stringify({ ...chunk, choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
}

/** Paragraphs, lists and code, again and again. */
function tokenAt(index: number): string {
  const place = index % period
  const [, token] = starts.findLast(([start]) => place === start) ?? []
  return token ?? (place > codeStart && place < codeEnd ? codeToken(place) : place % 11 === 3 ? ' **word**' : ' token')
}

function codeToken(place: number): string {
  return place % 8 === 0 ? ' = 1\n' : place % 8 === 1 ? 'const x' : ` /* ${place} */`
}

const period = 400
const codeStart = 200
const codeEnd = 320
const starts: [number, string][] = [
  [0, '\n\n## A heading\n\n'],
  [40, '\n\nAnother paragraph'],
  [80, '\n\n- an item'],
  [100, '\n- the next item'],
  [120, '\n- `code` in an item'],
  [160, '\n\nA paragraph after it'],
  [codeStart, '\n\n```ts\n'],
  [codeEnd, '\n```\n\n'],
]
