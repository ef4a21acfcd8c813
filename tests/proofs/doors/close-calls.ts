import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import type { Scene } from './scene.ts'
import { allGood, tokenKinds, type TokenKind, type Way } from './visit.ts'

/** How a WebSocket that speaks a protocol of ours and brings no good token is put out, by path and kind of token. */
export async function closeCodeFor(scene: Scene): Promise<Record<string, number>> {
  const codes: Record<string, number> = {}
  for (const way of scene.ways.filter(({ isWebSocket }) => isWebSocket)) {
    for (const [token, code] of Object.entries(await closeCodesAt(scene, way))) codes[`${way.path} ${token}`] = code
  }
  return codes
}

async function closeCodesAt(scene: Scene, way: Way): Promise<Partial<Record<TokenKind, number>>> {
  const protocol = way.path === '/acp' ? 'acp.v1' : 'tapetree.v1'
  const url = `ws://localhost:${scene.server.address.port}${scene.pathOf(way)}`
  const codes: Partial<Record<TokenKind, number>> = {}
  for (const token of tokenKinds) {
    if (!['none', 'nonsense', 'wrong secret', 'expired', 'revoked'].includes(token)) continue
    const bearer = scene.bearer(way, { ...allGood, token })
    const socket = new WebSocket(url, [protocol, ...(bearer === undefined ? [] : [`bearer.${bearer}`])])
    let heard = 0
    socket.addEventListener('message', () => heard++)
    const [closed] = (await once(socket, 'close')) as [CloseEvent]
    codes[token] = heard === 0 ? closed.code : -1
  }
  return codes
}

/** A route that several operations come through asks for the role of each. */
export async function mayAsQueue(scene: Scene): Promise<number | undefined> {
  const way = scene.ways.find(({ method, path }) => method === 'patch' && path === '/api/sessions/{id}') as Way
  const body = JSON.stringify({ mode: 'auto' })
  const asked = request({
    host: '127.0.0.1',
    port: scene.server.address.port,
    method: 'PATCH',
    path: scene.pathOf(way),
    headers: {
      host: 'localhost',
      authorization: `Bearer ${scene.bearer({ ...way, access: 'approve' }, { ...allGood, token: 'lesser role' })}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    },
  })
  asked.end(body)
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  response.resume()
  return response.statusCode
}
