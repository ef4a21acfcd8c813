import { defaultTenant, LiveSessions, startServer, TokenStore } from '@tapetree/server'
import { memoryStore } from '@tapetree/session'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import type { WebSocket } from 'ws'
import { fakeHome } from '../testing/fake-home.ts'
import { pair, parseServerLink } from './pair.ts'
import { transportFor } from './transport.ts'

afterEach(() => {
  vi.unstubAllEnvs()
})

test('any certificate except the pinned one is rejected, whatever the environment says', async () => {
  await using home = await fakeHome()
  const sessions = new LiveSessions({
    store: memoryStore(),
    openDriver: () => Promise.reject(new Error('nothing is opened here')),
    create: () => Promise.reject(new Error('nothing is made here')),
  })
  const server = await startServer({
    host: '127.0.0.1',
    port: 0,
    tls: { selfSigned: { folder: join(home.home, 'tls') } },
    tokens: await TokenStore.open({ file: join(home.home, 'tokens.json') }),
    tenants: new Map([[defaultTenant, sessions]]),
  })
  try {
    const link = parseServerLink(server.pairingLink({ tenant: defaultTenant, role: 'drive', name: 'test' }))
    const { pinned, url } = await pair(link ?? { url: '' })
    if (!pinned) throw new Error('nothing was pinned')
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
    const health = new URL('/api/health', url)
    expect((await transportFor({ type: 'pinned', ...pinned }).fetch(health)).status).toBe(200)
    const other = transportFor({ type: 'pinned', ...pinned, fingerprint: '00:11' })
    await expect(other.fetch(health)).rejects.toThrow('another certificate')
    const socket = other.connect(url.replace('https', 'wss'), []) as unknown as WebSocket
    const [error] = (await once(socket, 'error')) as [Error]
    expect(error.message).toContain('another certificate')
  } finally {
    await server.close()
  }
})
