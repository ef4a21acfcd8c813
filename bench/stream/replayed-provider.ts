import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { startFakeProvider } from '../../packages/agent/src/testing/fake-provider/index.ts'

/**
 * A provider that gives one recorded answer to every request. It takes next to none of the process's time, so what is measured is
 * the reader. The bytes come in large pieces, which is the fastest that a reader can be fed.
 */
export class ReplayedProvider implements AsyncDisposable {
  readonly baseUrl: string
  readonly #server: Server

  static async start(chunks: string[]): Promise<ReplayedProvider> {
    const bytes = await recordAnswer(chunks)
    const server = createServer((request, response) => {
      request.resume().on('end', () => {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).end(bytes)
      })
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new ReplayedProvider(server)
  }

  private constructor(server: Server) {
    this.#server = server
    this.baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }
}

/** An answer of these words, a delta each, as Anthropic's Messages API would send it. */
async function recordAnswer(chunks: string[]): Promise<Buffer> {
  await using provider = await startFakeProvider({ strict: false })
  provider.script({ type: 'answer', content: [{ type: 'text', chunks }] })
  const answer = await fetch(`${provider.baseUrl('anthropic')}/messages`, { method: 'POST', body: '{}' })
  return Buffer.from(await answer.arrayBuffer())
}
