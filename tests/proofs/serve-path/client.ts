import { RemoteSession, RestClient } from '@tapetree/client'
import type { WebSocket } from 'ws'
import { addressOfServer, pair, parseServerLink } from '../../../packages/cli/src/host/pair.ts'

/** A program on the other side of the proxy. It pairs as `tapetree attach` does and notes every line that arrives. */
export class PathClient implements AsyncDisposable {
  readonly rest: RestClient
  /** The numbers of the lines, as they came over the WebSocket. */
  readonly bySocket: number[] = []
  /** As they came over server-sent events. */
  readonly byStream: number[] = []
  /** Pieces of streamed text, over server-sent events. */
  #streamed = ''
  #onStreamed = newSignal()
  readonly #address: ReturnType<typeof addressOfServer>
  readonly #stop = new AbortController()
  #session: RemoteSession | undefined

  private constructor(address: ReturnType<typeof addressOfServer>) {
    this.#address = address
    this.rest = new RestClient(address)
  }

  static async pair(link: string): Promise<PathClient> {
    const parsed = parseServerLink(link)
    if (!parsed) throw new Error(`${link} is not a link`)
    return new PathClient(addressOfServer(await pair(parsed)))
  }

  /** A pairing code for another device. */
  async invite(role: string): Promise<string> {
    const { baseUrl, token, fetch } = this.#address
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const response = await fetch(`${baseUrl}/api/pairing`, { method: 'POST', headers, body: JSON.stringify({ role }) })
    return ((await response.json()) as { code: string }).code
  }

  /** Attaches over a WebSocket and over an event stream at the same time. */
  async attach(sessionId: string): Promise<RemoteSession> {
    const { connect } = this.#address
    const session = await RemoteSession.open({
      ...this.#address,
      sessionId,
      connect: (url, protocols) => {
        const socket = connect(url, protocols)
        ;(socket as unknown as WebSocket).on('message', (data: Buffer) => note(this.bySocket, data.toString()))
        return socket
      },
    })
    this.#session = session
    const stream = await this.#fetch(`sessions/${sessionId}/events/stream`)
    this.#read(stream).catch((error: unknown) => this.#onStreamed.reject(error))
    await session.ready
    return session
  }

  /** Resolves when this text has arrived piece by piece over server-sent events. */
  async untilStreamed(text: string): Promise<void> {
    while (!this.#streamed.includes(text)) {
      await this.#onStreamed.promise
      this.#onStreamed = newSignal()
    }
  }

  /** Resolves when both have every line up to this one. */
  async untilLine(seq: number): Promise<void> {
    while ((this.byStream.at(-1) ?? 0) < seq || (this.bySocket.at(-1) ?? 0) < seq) {
      await this.#onStreamed.promise
      this.#onStreamed = newSignal()
    }
  }

  async #fetch(path: string): Promise<Response> {
    const { baseUrl, token, fetch } = this.#address
    const headers = { authorization: `Bearer ${token}`, accept: 'text/event-stream' }
    const response = await fetch(`${baseUrl}/api/${path}`, { headers, signal: this.#stop.signal })
    if (!response.ok) throw new Error(`${path} answered ${response.status}`)
    return response
  }

  async #read(response: Response): Promise<void> {
    let rest = ''
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      rest += Buffer.from(chunk).toString()
      const events = rest.split('\n\n')
      rest = events.pop() ?? ''
      for (const event of events) {
        const data = /^data: (.*)$/m.exec(event)?.[1]
        if (data === undefined) continue
        note(this.byStream, data)
        this.#streamed += (JSON.parse(data) as { data?: { text?: string } }).data?.text ?? ''
      }
      this.#onStreamed.resolve()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#session?.close()
  }
}

/** A failure counts for those who wait for it; the end of the server is none. */
function newSignal(): PromiseWithResolvers<void> {
  const signal = Promise.withResolvers<void>()
  signal.promise.catch(() => undefined)
  return signal
}

/** Only lines of the log have a number. */
function note(seqs: number[], frame: string): void {
  const { seq } = JSON.parse(frame) as { seq?: unknown }
  if (typeof seq === 'number') seqs.push(seq)
}
