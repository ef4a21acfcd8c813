import { createHash } from 'node:crypto'
import { mkdir, realpath } from 'node:fs/promises'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fakeHome } from '../testing/fake-home.ts'
import { offerFolders } from './offer-folder.ts'

test('a server that does not read is cut off before it fills the memory of a host', async () => {
  await using home = await fakeHome()
  const folder = join(await realpath(home.home), 'project')
  await mkdir(folder)
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => undefined)
    socket.once('data', (request: Buffer) => {
      // It goes on to write and reads nothing.
      socket.pause()
      socket.write(upgradeOf(request.toString()))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const over = new AbortController()
  const lost = new AbortController()
  const { host, connected, ended } = await offerFolders({
    server: { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, token: 'secret', pairedAt: '' },
    io: { home: home.home, env: {} },
    workspaces: { app: folder },
    mode: 'auto',
    signal: over.signal,
    onChange: (state) => void (state === 'lost' && lost.abort()),
  })
  try {
    await connected
    const path = join(folder, 'a.txt')
    const ids = { id: 'call-0001', session: 'session-0001', run: 'run-1', call: 'call-1', workspace: 'app' }
    const input = { path: 'a.txt', content: 'some words\n'.repeat(80_000) }
    // The result has the content, and is sent again whenever the call is.
    const call = { type: 'call', ...ids, tool: 'write', input, judged: [{ type: 'write', path }], from: 0 }
    const [first] = sockets
    first?.write(frameOf(JSON.stringify(call)))
    const again = frameOf(JSON.stringify({ ...call, input: {} }))
    for (const begun = performance.now(); !lost.signal.aborted && performance.now() - begun < 40_000;) {
      if (host.running < 16) first?.write(again)
      await new Promise<void>((resolve) => setImmediate(resolve))
    }
    expect(lost.signal.aborted).toBe(true)
  } finally {
    over.abort()
    for (const socket of sockets) socket.destroy()
    await ended
    server.close()
  }
}, 60_000)

function upgradeOf(request: string): string {
  const key = /sec-websocket-key: (.+)/i.exec(request)?.[1]?.trim() ?? ''
  const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
  const lines = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade']
  return [...lines, `Sec-WebSocket-Accept: ${accept}`, '', ''].join('\r\n')
}

/** A text frame, as a server sends it. */
function frameOf(text: string): Buffer {
  const payload = Buffer.from(text)
  const head = Buffer.alloc(10)
  head[0] = 0x81
  head[1] = 127
  head.writeBigUInt64BE(BigInt(payload.length), 2)
  return Buffer.concat([head, payload])
}
