import {
  createLog,
  DatabaseDocument,
  defaultTenant,
  Metrics,
  startServer,
  storeInside,
  TokenStore,
  folderInside,
  type LiveSessions,
  type LogOptions,
  type Role,
  type ServerOptions,
  type TlsOptions,
} from '@tapetree/server'
import { listAgents } from '@tapetree/server/acp'
import { ToolHosts } from '@tapetree/server/tool-hosts'
import { systemClock } from '@tapetree/agent/run'
import type { SessionStore } from '@tapetree/session'
import { changeUserSettings, type ProjectTrust } from '@tapetree/agent/settings'
import { once } from 'node:events'
import { join, resolve } from 'node:path'
import { flag, listOption, textOption, type Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { openStore } from '../../host/open-store.ts'
import { openNodeStore, type NodeStore } from '../../host/node-store.ts'
import { chosenStore, type StoreAddress } from '../../host/store-address.ts'
import { openTraces, traceUrlOf } from '../../host/otlp.ts'
import { SessionHost } from '../../host/session-host.ts'
import type { Io } from '../../command-line/io.ts'
import { placesOf } from '../../host/places.ts'
import { surroundingsOf } from '../../host/surroundings.ts'
import { Failure, usageFailure } from '../../command-line/failure.ts'
import { failureOf } from '../../command-line/failure-of.ts'
import { realpath } from 'node:fs/promises'
import { version } from '../../command-line/version.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { limitsOf } from '../tokens/limits.ts'
import { announce, type Reach } from './announce.ts'
import { clusterOptions, openBus, type ClusterOptions } from './cluster.ts'
import { readCertificate, reloadOnDemand } from './certificate.ts'

/** Serves sessions until it is told to stop. */
export async function serve(invocation: Invocation, io: Io): Promise<ExitCode> {
  const options = await serveOptions(invocation, io)
  const traceUrl = traceUrlOf(invocation)
  const places = placesOf(io)
  // Everything below sees only sessions of the roots.
  if (options.drainMs > 0) io.extendStop?.(options.drainMs)
  const address = await chosenStore(invocation, io)
  const cluster = await clusterOptions(invocation, io, address)
  const opened = await openServedStore(address, io, cluster)
  const { snapshotsFolder, document, nodes } = opened
  const store = storeInside(opened.store, options.roots)
  const tenants = new Map<string, LiveSessions>()
  const metrics = new Metrics(tenants)
  const log = createLog({ level: logLevelOf(invocation) })
  const traces =
    traceUrl === undefined ? undefined : await openTraces(traceUrl, (message) => log.warn({ source: 'otlp' }, message))
  const closing = new AbortController()
  let stoppedAt = performance.now()
  const bus = await openBus(cluster, { log, ...(document && { document }), ...(nodes && { nodes }) }).catch(
    async (error: unknown) => {
      await store.close()
      throw error
    },
  )
  const toolHosts = new ToolHosts(bus ? { bus } : {})
  const host = await SessionHost.open({
    io,
    store,
    owner: 'server',
    ...(snapshotsFolder !== undefined && { snapshotsFolder }),
    checkFolder: options.checkFolder,
    observers: [metrics.observe, ...(traces ? [traces.observe] : [])],
    workspaces: toolHosts.of(defaultTenant),
    onProblem: ({ source, message }) => log.warn({ source }, message),
  })
  tenants.set(defaultTenant, host.sessions)
  try {
    const server = await startServer({
      tenants,
      metrics,
      log,
      ...(traces && { tracerProvider: traces.provider }),
      ...(await openTokens({ file: join(places.state, 'tokens.json'), document, closing: closing.signal })),
      api: serveApi(io, { ...options, snapshotsFolder: snapshotsFolder ?? places.workspaces }),
      push: { file: join(places.state, 'push.json') },
      ...(bus && { bus }),
      toolHosts,
      editors: async (link) => (await import('../../acp/serve-from.ts')).serveEditor(link),
      ...options.server,
      ...(host.socketPath !== undefined && { unixSocket: host.socketPath }),
    }).catch((error: unknown) => {
      throw serveFailure(error, options)
    })
    try {
      const stop = reloadOnDemand(server, { invocation, io, log })
      try {
        const { pairRole: role, reach } = options
        await announce(server, { io, role, reach, asJson: flag(invocation, 'json') })
        // Which snapshots are needed is read from logs in files.
        if (snapshotsFolder === undefined) host.retainSnapshots()
        if (!io.signal.aborted) await once(io.signal, 'abort')
        if (options.drainMs > 0) await server.drain(options.drainMs)
      } finally {
        stoppedAt = performance.now()
        stop()
      }
    } finally {
      await server.close()
    }
    return exitCodes.ok
  } finally {
    closing.abort()
    await host.close()
    await store.close()
    await traces?.close(Math.max(0, maxStopMs - (performance.now() - stoppedAt)))
  }
}

/** The sessions of the user, of another folder, or of a database, by option or environment. */
async function openServedStore(
  address: StoreAddress | undefined,
  io: Io,
  { node, address: reachedAt }: ClusterOptions,
): Promise<{ store: SessionStore } & Partial<NodeStore>> {
  const places = placesOf(io)
  if (!address) return { store: await openStore(places) }
  if (address.type === 'postgres') {
    const named = { ...(node !== undefined && { node }), ...(reachedAt !== undefined && { address: reachedAt }) }
    return openNodeStore(address, places, named)
  }
  return { store: await openStore({ ...places, sessions: address.folder }) }
}

/** Servers of one database share tokens and pairing codes; others have a file. */
async function openTokens({
  file,
  document,
  closing,
}: {
  file: string
  document: NodeStore['document'] | undefined
  closing: AbortSignal
}): Promise<Pick<ServerOptions, 'pairingCodes'> & { tokens: TokenStore }> {
  if (!document) return { tokens: await TokenStore.open({ file, first: null }) }
  const open = (name: string): Promise<DatabaseDocument> =>
    DatabaseDocument.open({ name, table: document(name), clock: systemClock, closing })
  return {
    tokens: await TokenStore.open({ file: await open('tokens'), first: null }),
    pairingCodes: await open('pairing'),
  }
}

/** A process that got SIGTERM has 5 s. */
const maxStopMs = 4800

/** What the routes need besides sessions. Read each time, so that a new key takes effect. */
function serveApi(
  io: Io,
  { roots, snapshotsFolder }: Pick<ServeOptions, 'roots'> & { snapshotsFolder: string },
): NonNullable<ServerOptions['api']> {
  const around = (cwd: string | undefined): ReturnType<typeof surroundingsOf> =>
    surroundingsOf(io, { cwd: cwd ?? roots[0] ?? io.cwd })
  return {
    roots: () => roots,
    version: { version },
    snapshotsFolder: () => snapshotsFolder,
    models: async () => {
      const { registry } = await around(undefined)
      await registry.discover()
      return registry.list()
    },
    openModel: async (_tenant, { provider, modelId }) => {
      const { registry } = await around(undefined)
      return (await registry.open({ provider, id: modelId })).model
    },
    agents: async () => listAgents((await around(undefined)).settings.values.agents, io.env),
    settings: async (_tenant, cwd) => (await around(cwd)).settings,
    changeSettings: (_tenant, change) => changeUserSettings(change, io),
    workspace: async (_tenant, cwd) => {
      const { trust, settings } = await around(cwd)
      const gitProblem = gitProblemOf(trust)
      return { rules: settings.rules, ...(gitProblem !== undefined && { gitProblem }) }
    },
  }
}

/** Why git does not run in a project, if there is a reason. A repository without settings has nothing to trust. */
function gitProblemOf(trust: ProjectTrust): string | undefined {
  const advice = 'Git does not run before you trust the project: start tapetree in its folder.'
  if (trust.state === 'untrusted') return `${trust.reason} ${advice}`
  if (trust.state === 'changed') return `The settings of the project have changed since you trusted them. ${advice}`
  return undefined
}

/** Why the server cannot listen, with commands to try. */
function serveFailure(cause: unknown, { server }: Pick<ServeOptions, 'server'>): Failure {
  const { code, name, message } = cause as NodeJS.ErrnoException
  if (name === 'OptionError') return usageFailure(harmlessLine(message))
  const { host, port } = server
  switch (code) {
    case 'EADDRINUSE':
      return new Failure(exitCodes.configuration, `Port ${port} on ${host} is already in use.`, {
        type: 'port-taken',
        why: 'Another program, perhaps another tapetree server, listens there.',
        next: ['tapetree serve --port 0', `tapetree attach http://localhost:${port}`],
        cause,
      })
    case 'EACCES':
      return new Failure(exitCodes.configuration, `You do not have permission to listen on port ${port}.`, {
        type: 'port-forbidden',
        next: ['tapetree serve --port 8787'],
        cause,
      })
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new Failure(exitCodes.configuration, `${host} is not an address of this machine.`, {
        type: 'no-such-address',
        next: ['tapetree serve', 'tapetree serve --host 0.0.0.0 --self-signed'],
        cause,
      })
    default:
      return failureOf(cause)
  }
}

/** The command line options of `serve`. */
interface ServeOptions {
  /** Real and absolute. */
  roots: readonly string[]
  /** Rejects paths outside the roots. */
  checkFolder: (cwd: string) => Promise<unknown>
  server: Pick<
    ServerOptions,
    | 'host'
    | 'port'
    | 'tls'
    | 'allowInsecure'
    | 'allowedHosts'
    | 'allowedOrigins'
    | 'publicUrl'
    | 'trustedProxies'
    | 'recovery'
    | 'tenantLimits'
  > & { host: string; port: number }
  reach: Reach
  /** The role that the first link grants. */
  pairRole: Role
  /** How long runs may take to finish when the server is stopped. */
  drainMs: number
}

export async function serveOptions(invocation: Invocation, io: Io): Promise<ServeOptions> {
  const host = textOption(invocation, 'host') ?? '127.0.0.1'
  const tls = await tlsOf(invocation, io)
  const allowInsecure = flag(invocation, 'allow-insecure')
  const isHere = host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host)
  if (!isHere && !tls && !allowInsecure) throw withoutTls(host)
  const publicUrl = publicUrlOf(invocation, { allowInsecure })
  const roots = await rootsOf(invocation, io)
  const limits = limitsOf(invocation)
  return {
    roots,
    checkFolder: (cwd) => folderInside(cwd, roots),
    server: {
      host,
      port: portOf(invocation),
      ...(tls && { tls }),
      allowInsecure,
      allowedHosts: listOption(invocation, 'allowed-host'),
      allowedOrigins: originsOf(invocation),
      trustedProxies: listOption(invocation, 'trusted-proxy'),
      ...(publicUrl !== undefined && { publicUrl }),
      ...(limits && { tenantLimits: new Map([[defaultTenant, limits]]) }),
      ...(!flag(invocation, 'no-recovery') && { recovery: 'resume' as const }),
    },
    reach: publicUrl !== undefined ? 'proxy' : isHere ? 'this-machine' : tls ? 'network' : 'insecure-network',
    // The parser accepts no other value.
    pairRole: (textOption(invocation, 'pair-role') ?? 'drive') as Role,
    drainMs: drainMsOf(invocation),
  }
}

/** The server checks its form. */
function publicUrlOf(invocation: Invocation, { allowInsecure }: { allowInsecure: boolean }): string | undefined {
  const given = textOption(invocation, 'public-url')
  const url = given === undefined ? null : URL.parse(given)
  const { protocol, hostname = '' } = url ?? {}
  const isHere = hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(hostname)
  if (protocol === 'http:' && !isHere && !allowInsecure) {
    throw usageFailure('--public-url must start with https://, because anyone on the network could read the tokens.', [
      `tapetree serve --public-url ${harmlessLine(url?.href.replace('http:', 'https:') ?? '')}`,
    ])
  }
  return given
}

/** Browsers write an origin in exactly one way; any other spelling would never match. */
function originsOf(invocation: Invocation): readonly string[] {
  const given = listOption(invocation, 'allowed-origin')
  const wrong = given.find((origin) => !/^https?:/.test(origin) || URL.parse(origin)?.origin !== origin)
  if (wrong === undefined) return given
  const meant = URL.parse(wrong)?.origin
  throw usageFailure(
    `--allowed-origin must be a scheme, a host and perhaps a port, such as https://app.example, not ${JSON.stringify(harmlessLine(wrong))}.`,
    meant === undefined || meant === 'null' ? [] : [`tapetree serve --allowed-origin ${meant}`],
  )
}

/** The parser has checked the value. */
function logLevelOf(invocation: Invocation): NonNullable<LogOptions['level']> {
  return (textOption(invocation, 'log-level') ?? 'warn') as NonNullable<LogOptions['level']>
}

const defaultPort = 8787

function portOf(invocation: Invocation): number {
  const given = textOption(invocation, 'port')
  const port = given === undefined ? defaultPort : Number(given)
  if (given !== undefined && (!/^\d+$/.test(given) || port > 65_535)) {
    throw usageFailure(`--port must be a number from 0 to 65535, not ${JSON.stringify(harmlessLine(given))}.`)
  }
  return port
}

/** A timer cannot wait longer than 24 days; no service manager waits longer than a day. */
const maxDrainSeconds = 86_400

function drainMsOf(invocation: Invocation): number {
  const given = textOption(invocation, 'drain') ?? '0'
  const seconds = Number(given)
  if (!/^\d+$/.test(given) || seconds > maxDrainSeconds) {
    throw usageFailure(
      `--drain must be a number of seconds from 0 to ${maxDrainSeconds}, not ${JSON.stringify(harmlessLine(given))}.`,
    )
  }
  return seconds * 1000
}

async function tlsOf(invocation: Invocation, io: Io): Promise<TlsOptions | undefined> {
  const [cert, key] = [textOption(invocation, 'tls-cert'), textOption(invocation, 'tls-key')]
  const selfSigned = flag(invocation, 'self-signed')
  if (selfSigned && (cert !== undefined || key !== undefined)) {
    throw usageFailure('--self-signed creates a certificate and --tls-cert names one. Use only one of them.')
  }
  if (selfSigned) return { selfSigned: { folder: join(placesOf(io).state, 'tls') } }
  if (cert === undefined && key === undefined) return undefined
  if (cert === undefined || key === undefined) throw usageFailure('--tls-cert and --tls-key must be used together.')
  return readCertificate({ cert: resolve(io.cwd, cert), key: resolve(io.cwd, key) }, io.signal)
}

function withoutTls(host: string): Failure {
  return new Failure(exitCodes.usage, `${harmlessLine(host)} is reachable from other machines, and TLS is off.`, {
    type: 'no-tls',
    why: 'Anyone on the network could read the tokens.',
    next: [
      `tapetree serve --host ${harmlessLine(host)} --self-signed`,
      `tapetree serve --host ${harmlessLine(host)} --tls-cert <file> --tls-key <file>`,
      'tapetree serve',
    ],
  })
}

async function rootsOf(invocation: Invocation, { cwd }: Io): Promise<string[]> {
  const given = listOption(invocation, 'root')
  return Promise.all(
    (given.length > 0 ? given : [cwd]).map((root) =>
      realpath(resolve(cwd, root)).catch((cause: unknown) => {
        throw new Failure(exitCodes.notFound, `There is no folder ${harmlessLine(root)}.`, {
          type: 'folder-not-found',
          cause,
        })
      }),
    ),
  )
}
