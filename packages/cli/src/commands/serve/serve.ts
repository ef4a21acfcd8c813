import {
  createLog,
  defaultTenant,
  Metrics,
  startServer,
  storeInside,
  TokenStore,
  type LiveSessions,
  type RunningServer,
} from '@tapetree/server'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { join } from 'node:path'
import { flag, type Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { openStore } from '../../host/open-store.ts'
import { SessionHost } from '../../host/session-host.ts'
import { write, type Io } from '../../command-line/io.ts'
import { placesOf } from '../../host/places.ts'
import { serveApi } from './serve-api.ts'
import { serveFailure } from './serve-failure.ts'
import { serveOptions, type ServeOptions } from './options.ts'
import { serveText } from './text.ts'
import { printJson } from '../../command-line/print-json.ts'

/** Serves sessions until it is told to stop. */
export async function serve(invocation: Invocation, io: Io): Promise<ExitCode> {
  const options = await serveOptions(invocation, io)
  const places = placesOf(io)
  // Everything below sees only sessions of the roots.
  const store = storeInside(await openStore(places), options.roots)
  const tenants = new Map<string, LiveSessions>()
  const metrics = new Metrics(tenants)
  const log = createLog({ level: 'warn' })
  const host = await SessionHost.open({
    io,
    store,
    owner: 'server',
    checkFolder: options.checkFolder,
    observers: [metrics.observe],
    onProblem: ({ source, message }) => log.warn({ source }, message),
  })
  tenants.set(defaultTenant, host.sessions)
  try {
    const server = await startServer({
      tenants,
      metrics,
      log,
      tokens: await TokenStore.open({ file: join(places.state, 'tokens.json') }),
      api: serveApi(io, options),
      ...options.server,
      ...(host.socketPath !== undefined && { unixSocket: host.socketPath }),
    }).catch((error: unknown) => {
      throw serveFailure(error, options)
    })
    try {
      await announce(server, { options, io, asJson: flag(invocation, 'json') })
      if (!io.signal.aborted) await once(io.signal, 'abort')
    } finally {
      await server.close()
    }
    return exitCodes.ok
  } finally {
    await host.close()
    await store.close()
  }
}

async function announce(
  server: RunningServer,
  { options, io, asJson }: { options: ServeOptions; io: Io; asJson: boolean },
): Promise<void> {
  const newLink = (): string => server.pairingLink({ tenant: defaultTenant, role: 'drive', name: 'paired device' })
  const { url, fingerprint } = server
  if (asJson) {
    const told = {
      url,
      pairing_link: newLink(),
      ...(fingerprint !== undefined && { fingerprint }),
      process: process.pid,
    }
    return printJson(io, told)
  }
  await write(
    io.stdout,
    serveText({ url, fingerprint, link: newLink(), reach: options.reach, isTerminal: io.stdout.isTTY === true }),
  )
  if (io.stdin.isTTY !== true) return
  await write(io.stderr, 'Enter makes another link, Ctrl-C ends the server.\n')
  const lines = createInterface({ input: io.stdin, terminal: false })
  lines.on('line', () => void write(io.stdout, `${newLink()}\n`))
  io.signal.addEventListener('abort', () => lines.close(), { once: true })
}
