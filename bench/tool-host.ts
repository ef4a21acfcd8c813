import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { RemoteWorkspace } from '@tapetree/agent/tool-host'
import { defaultTenant, LiveSessions, startServer } from '@tapetree/server'
import { ToolHosts } from '@tapetree/server/tool-hosts'
import { memoryStore, newId } from '@tapetree/session'
import { WebSocket, WebSocketServer } from 'ws'
import { offerFolders } from '../packages/cli/src/host/offer-folder.ts'
import { testContext } from '../packages/agent/src/testing/tool-context.ts'
import { allTools } from '../packages/agent/src/tools/builtin/all-tools.ts'
import type { FigureContext, FigureResult } from '../scripts/figure/figure.ts'
import { Front } from '../tests/proofs/tool-host/front.ts'

export const name = 'tool-host'
export const claim =
  'A small call on a tool host takes at most one round trip longer than a call in the process of the session.'
export const sizes = { ci: { calls: 300 }, full: { calls: 1000 } }

/** Of the connection, both ways together. */
const roundTripMs = 20

/** Reads a small file again and again: here, on a host beside, and on a host whose connection takes 20 ms more. */
export async function run({ size, say, temporaryFolder }: FigureContext): Promise<FigureResult> {
  const root = await temporaryFolder()
  const folder = join(root, 'project')
  mkdirSync(folder)
  writeFileSync(join(folder, 'a.txt'), 'one\n')
  const { calls } = sizes[size]
  const local = await perCall(calls, folder, allTools())
  const bareNear = await bareEcho(calls, 0)
  const near = await remotely(root, folder, { calls, delayMs: 0 })
  const bareFar = await bareEcho(calls, roundTripMs / 2)
  const far = await remotely(root, folder, { calls, delayMs: roundTripMs / 2 })
  const roundTrips = (far.medianMs - near.medianMs) / (bareFar - bareNear)
  say(
    `a call takes ${shown(local)} ms here, ${shown(near.medianMs)} ms on a host beside, ${shown(far.medianMs)} ms with ${roundTripMs} ms more`,
  )
  say(
    `a bare echo takes ${shown(bareNear)} ms and ${shown(bareFar)} ms: a call waits for ${shown(roundTrips)} round trips`,
  )
  return {
    ok: roundTrips <= 1.25 && near.messages === 1,
    figures: {
      calls,
      localMs: shown(local),
      remoteMs: shown(near.medianMs),
      farMs: shown(far.medianMs),
      roundTrips: shown(roundTrips),
      messages: near.messages,
    },
  }
}

/** A message to a socket that sends it back. */
async function bareEcho(calls: number, delayMs: number): Promise<number> {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  await once(server, 'listening')
  server.on('connection', (socket) => socket.on('message', (data) => socket.send(data as Buffer)))
  const front = await Front.start(() => [(server.address() as AddressInfo).port], { delayMs })
  const socket = new WebSocket(front.url.replace('http', 'ws'))
  await once(socket, 'open')
  const times: number[] = []
  for (let count = 0; count < calls + warmUp; count++) {
    const startMs = performance.now()
    socket.send('x'.repeat(300))
    await once(socket, 'message')
    if (count >= warmUp) times.push(performance.now() - startMs)
  }
  socket.terminate()
  front.close()
  server.close()
  return median(times)
}

interface Remotely {
  medianMs: number
  /** Sent for each call, by the session. */
  messages: number
}

async function remotely(
  root: string,
  folder: string,
  { calls, delayMs }: { calls: number; delayMs: number },
): Promise<Remotely> {
  const hosts = new ToolHosts()
  const store = memoryStore()
  const sessions = new LiveSessions({
    store,
    create: () => Promise.reject(new Error()),
    openDriver: () => Promise.reject(new Error()),
  })
  const server = await startServer({
    tenants: new Map([[defaultTenant, sessions]]),
    authenticate: () => ({ id: 'bench', tenant: defaultTenant, role: 'host' }),
    toolHosts: hosts,
  })
  const front = await Front.start(() => [server.address.port], { delayMs })
  const leaving = new AbortController()
  const home = join(root, `home-${delayMs}`)
  const { host, connected, ended } = await offerFolders({
    server: { url: front.url, token: 'any', pairedAt: '' },
    io: { home, env: { TAPETREE_HOME: home } },
    workspaces: { app: folder },
    mode: 'auto',
    signal: leaving.signal,
    onChange: () => undefined,
  })
  try {
    await connected
    const channel = hosts.channel(defaultTenant, host.hello.id)
    let messages = 0
    const counted = {
      get hello() {
        return channel.hello
      },
      subscribe: channel.subscribe.bind(channel),
      send: (request: Parameters<typeof channel.send>[0]) => {
        messages++
        channel.send(request)
      },
    }
    const { id: hostId, name: hostName, platform } = host.hello
    const remote = new RemoteWorkspace({ name: 'app', hostId, hostName, folder, platform }, counted)
    await remote.ready(AbortSignal.timeout(10_000))
    const medianMs = await perCall(calls, folder, remote.tools())
    remote.close()
    return { medianMs, messages: messages / (calls + warmUp) }
  } finally {
    leaving.abort()
    await ended
    front.close()
    await server.close()
  }
}

const warmUp = 20

/** The median of all calls, one after the other. */
async function perCall(calls: number, folder: string, tools: ReturnType<typeof allTools>): Promise<number> {
  const read = tools.find((tool) => tool.name === 'read')
  const context = testContext({ cwd: folder, sessionId: newId() })
  const times: number[] = []
  for (let count = 0; count < calls + warmUp; count++) {
    const startMs = performance.now()
    const checked = read?.check({ path: 'a.txt' }, { cwd: folder })
    if (typeof checked !== 'object') throw new Error('The file cannot be read.')
    const { isError } = await checked.run(context)
    if (isError) throw new Error('The file was not read.')
    if (count >= warmUp) times.push(performance.now() - startMs)
  }
  return median(times)
}

function median(times: number[]): number {
  return times.sort((a, b) => a - b)[times.length >> 1] as number
}

function shown(value: number): number {
  return Math.round(value * 100) / 100
}
