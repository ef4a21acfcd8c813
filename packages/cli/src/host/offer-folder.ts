import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { ToolHost, ToolHostInUse, type HostLink, type ToolHostOptions } from '@tapetree/agent/tool-host'
import { closeCodes } from '@tapetree/client/protocol'
import { systemClock } from '@tapetree/session/util/wait'
import { WebSocket } from 'ws'
import { exitCodes } from '../command-line/exit-code.ts'
import { Failure } from '../command-line/failure.ts'
import type { Io } from '../command-line/io.ts'
import { harmlessLine } from '../text/harmless.ts'
import type { KnownServer } from './known-servers.ts'
import { wayTo } from './pair.ts'
import { placesOf, sandboxPlaceOf } from './places.ts'
import { connectionFailure, socketOptions } from './transport.ts'

export interface OfferOptions extends Pick<ToolHostOptions, 'workspaces' | 'mode' | 'rules' | 'name' | 'sharesFiles'> {
  server: KnownServer
  io: Pick<Io, 'home' | 'env'>
  /** Ends the offer. Commands continue. */
  signal: AbortSignal
  /** The connection is open, or it was lost and is tried again. */
  onChange: (state: 'connected' | 'lost') => void
}

export interface Offer {
  host: ToolHost
  /** Resolves when the first connection is open. Rejects if the server does not accept it. */
  connected: Promise<void>
  /** Resolves when the offer has ended. Rejects if the server no longer accepts it. */
  ended: Promise<void>
}

const firstDelayMs = 500
const maxDelayMs = 15_000
/** The server sends a ping every 5 s. */
const silenceMs = 15_000
/** A server that does not read what it is sent is cut off. The journal keeps the results, and calls go on. */
const maxUnsentBytes = 64 * 1024 * 1024

/** Offers folders of this machine to the sessions of a server, and connects again whenever the connection is lost. */
export async function offerFolders({ server, io, signal, onChange, ...options }: OfferOptions): Promise<Offer> {
  const places = placesOf(io)
  // The same offer has the same identity and journal after a restart.
  const offered = createHash('sha256').update(
    JSON.stringify([server.url, Object.entries(options.workspaces).sort(byName)]),
  )
  const dataFolder = join(places.state, 'tool-hosts', offered.digest('hex').slice(0, 16))
  const host = await ToolHost.open({ dataFolder, home: io.home, sandbox: sandboxPlaceOf(places), ...options }).catch(
    (error: unknown) => {
      throw error instanceof ToolHostInUse ? inUse(error) : error
    },
  )
  const first = Promise.withResolvers<void>()
  const keep = async (): Promise<void> => {
    try {
      for (let failures = 0; !signal.aborted; failures++) {
        const openMs = await connectOnce(host, server, signal, () => {
          first.resolve()
          onChange('connected')
        })
        if (signal.aborted) return
        if (openMs > 0) onChange('lost')
        if (openMs > silenceMs) failures = 0
        const delayMs = Math.random() * Math.min(maxDelayMs, firstDelayMs * 2 ** failures)
        await systemClock.wait(delayMs, signal).catch(() => undefined)
      }
    } finally {
      await host.close()
    }
  }
  const ended = keep()
  ended.then(() => first.resolve(), first.reject)
  // Not everybody waits for the first connection.
  first.promise.catch(() => undefined)
  return { host, connected: first.promise, ended }
}

/** Resolves when the connection has ended, with how long it was open. Rejects if the server does not accept it. */
async function connectOnce(
  host: ToolHost,
  server: KnownServer,
  signal: AbortSignal,
  onOpen: () => void,
): Promise<number> {
  const url = `${server.url.replace(/^http/, 'ws')}/api/tool-hosts/ws`
  const socket = new WebSocket(url, {
    ...socketOptions(wayTo(server)),
    headers: { authorization: `Bearer ${server.token}` },
  })
  const end = (): void => socket.terminate()
  signal.addEventListener('abort', end, { once: true })
  let heardAt = performance.now()
  let openedAt: number | undefined
  const link: HostLink = {
    send: (text) => {
      if (socket.bufferedAmount > maxUnsentBytes) socket.terminate()
      else socket.send(text)
    },
  }
  const watch = setInterval(() => {
    if (openedAt !== undefined && performance.now() - heardAt > silenceMs) socket.terminate()
  }, 1000)
  let failure: Failure | undefined
  socket.on('open', () => {
    openedAt = heardAt = performance.now()
    host.join(link)
    onOpen()
  })
  socket.on('ping', () => (heardAt = performance.now()))
  socket.on('message', (data, isBinary) => {
    heardAt = performance.now()
    if (!isBinary) host.take((data as Buffer).toString(), link)
  })
  socket.on('unexpected-response', (_request, response) => {
    failure = refusalOf(response.statusCode ?? 500, server)
    socket.terminate()
  })
  socket.on('error', (error) => (failure ??= openedAt === undefined ? unlessDown(error, server) : undefined))
  // Not `once`, which rejects if there is an error before.
  const code = await new Promise<number>((resolve) => socket.on('close', resolve))
  clearInterval(watch)
  signal.removeEventListener('abort', end)
  host.leave(link)
  if (signal.aborted) return 0
  if (failure !== undefined) throw failure
  if (code === closeCodes.auth) throw notAccepted(server)
  return openedAt === undefined ? 0 : performance.now() - openedAt
}

/** A server that does not answer may be about to start again. A wrong certificate stays wrong. */
function unlessDown(error: Error, { url }: KnownServer): Failure | undefined {
  const failure = connectionFailure(url, error)
  return failure.type === 'unreachable' ? undefined : failure
}

/** Undefined if it is worth trying again. */
function refusalOf(status: number, server: KnownServer): Failure | undefined {
  if (status === 401 || status === 403) return notAccepted(server)
  if (status !== 404) return undefined
  return new Failure(exitCodes.configuration, `${harmlessLine(server.url)} does not accept tool hosts.`, {
    type: 'no-tool-hosts',
    why: 'It may be an older version of tapetree.',
  })
}

function notAccepted({ url }: KnownServer): Failure {
  return new Failure(exitCodes.noModel, `${harmlessLine(url)} does not accept this token for a tool host.`, {
    type: 'not-accepted',
    why: 'It needs the role host or drive.',
    next: ['tapetree tokens create --role host --name <name>'],
  })
}

function byName([left]: readonly [string, unknown], [right]: readonly [string, unknown]): number {
  return left < right ? -1 : 1
}

function inUse(cause: ToolHostInUse): Failure {
  return new Failure(exitCodes.configuration, 'Another tapetree process offers the same folders to this server.', {
    type: 'tool-host-in-use',
    cause,
  })
}
