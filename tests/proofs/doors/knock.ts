import { Agent, request, type IncomingMessage } from 'node:http'
import type { Scene } from './scene.ts'
import type { Visit, Way } from './visit.ts'

export interface Answer {
  status: number
  /** Of the problem document; empty where there is none. */
  problem: string
  /** Headers that would let foreign pages read it. */
  cors: string[]
}

/** Knocks at one door as somebody in particular. */
export class Knocker {
  readonly #scene: Scene
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 16 })

  constructor(scene: Scene) {
    this.#scene = scene
  }

  knock(way: Way, visit: Visit): Promise<Answer> {
    const scene = this.#scene
    const { port } = scene.server.address
    const body = scene.bodyOf(way)
    const asked = request({
      agent: way.isWebSocket ? false : this.#agent,
      host: '127.0.0.1',
      port,
      method: way.method.toUpperCase(),
      path: scene.pathOf(way),
      setHost: false,
      headers: headersOf(way, visit, { port, body, bearer: scene.bearer(way, visit) }),
    })
    return new Promise((resolve, reject) => {
      asked.on('error', reject)
      asked.on('upgrade', (response, socket) => {
        socket.destroy()
        resolve({ status: 101, problem: '', cors: corsOf(response) })
      })
      asked.on('response', (response) => {
        const { statusCode: status = 0 } = response
        const cors = corsOf(response)
        if (status < 400) {
          // A stream of events would not end.
          response.destroy()
          resolve({ status, problem: '', cors })
          return
        }
        textOf(response).then((text) => resolve({ status, problem: problemType(text), cors }), reject)
      })
      asked.end(body)
    })
  }

  close(): void {
    this.#agent.destroy()
  }
}

function headersOf(
  { isWebSocket, mediaTypes }: Way,
  visit: Visit,
  { port, body, bearer }: { port: number; body: string | undefined; bearer: string | undefined },
): Record<string, string | number> {
  const { token, host, origin, contentType } = visit
  const type = contentType === 'declared' ? mediaTypes[0] : contentType
  const isCookie = token.endsWith('cookie')
  return {
    ...(host !== 'missing' && { host: host === 'good' ? `localhost:${port}` : host }),
    ...(origin !== 'absent' && { origin: originOf(origin, port) }),
    ...(bearer !== undefined &&
      (isCookie ? { cookie: `tapetree-${port}=${bearer}` } : { authorization: `Bearer ${bearer}` })),
    ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
    ...(body !== undefined && type !== undefined && type !== 'absent' && { 'content-type': type }),
    ...(isWebSocket && {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': Buffer.alloc(16).toString('base64'),
    }),
  }
}

function originOf(origin: string, port: number): string {
  return origin === 'own' ? `http://localhost:${port}` : origin.replace('PORT', String(port))
}

async function textOf(response: IncomingMessage): Promise<string> {
  const chunks = (await response.toArray()) as Buffer[]
  return Buffer.concat(chunks).toString()
}

function problemType(text: string): string {
  try {
    const { type } = JSON.parse(text) as { type?: unknown }
    return typeof type === 'string' ? type : ''
  } catch {
    // A refusal that is no problem document shows by its empty type.
    return ''
  }
}

function corsOf({ headers }: IncomingMessage): string[] {
  return Object.keys(headers).filter((name) => name.startsWith('access-control-'))
}
