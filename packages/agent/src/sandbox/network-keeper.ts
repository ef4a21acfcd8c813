import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, closeSync, constants, mkdirSync, openSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { RuleLayers } from '../permissions/rules.ts'
import type { CommandBox } from '../tools/commands/command.ts'
import { programUrl } from '../util/program-url.ts'
import type { ProxyAnswer, ProxyEvent, ProxyTarget } from './proxy.ts'

export interface NetworkKeeperOptions {
  /** A private folder of the session that no command sees. The keeper's socket and the list of what was reached are in it. */
  folder: string
  /** The path of bubblewrap. */
  bwrap: string
  /** Those of type `fetch` say which hosts are allowed and denied. */
  rules: RuleLayers
  /** Asks the user about a host while the command waits. Without it, hosts that no rule allows are refused. */
  ask?: (target: ProxyTarget, signal: AbortSignal) => Promise<HostAnswer>
  onEvent?: (event: ProxyEvent) => void
  /** Addresses of hosts, for tests: they replace the resolver and count as public. */
  hosts?: Readonly<Record<string, string>>
  /** How often the keeper looks whether it is still needed, once no agent is connected. */
  idleMs?: number
}

/** An object denies with a sentence that says why. Undefined: nobody can be asked about this call. */
export type HostAnswer = boolean | { denied: string } | undefined

/** What the commands of a call reached through the proxy, and what it refused to them. */
export interface CallTraffic {
  reached: readonly string[]
  refused: readonly { host: string; count: number; reason: string }[]
}

/** The order to the keeper, sent through a pipe. */
export type KeeperOrder = Pick<NetworkKeeperOptions, 'folder' | 'bwrap' | 'hosts'> & { idleMs: number }

/** A namespace, as files that are open in the keeper, and the port of the proxy on its loopback. */
export interface NetworkNamespace {
  pid: number
  user: number
  net: number
  port: number
}

export type ToKeeper =
  | { type: 'rules'; rules: RuleLayers }
  | { type: 'answer'; id: number; answer: ProxyAnswer }
  /** The agent ends in order. */
  | { type: 'leave' }

export type FromKeeper =
  /** The rules are in force. */
  | { type: 'ready'; namespace: NetworkNamespace }
  | { type: 'question'; id: number; target: ProxyTarget }
  | { type: 'withdrawn'; id: number }
  | { type: 'event'; event: ProxyEvent }

/** What rules allow, as they write it. */
export function allowedHosts({ user, session, project, trustsProject }: RuleLayers): string[] {
  const allowing = [...user, ...session, ...(trustsProject ? project : [])]
  const hosts = allowing.flatMap(({ effect, type, match }) =>
    effect === 'allow' && type === 'fetch' && typeof match === 'string' ? [match] : [],
  )
  return [...new Set(hosts)]
}

const defaultIdleMs = 5000
export const controlSocket = 'keeper.sock'
/** One JSON object in a line for each event of the proxy, with its time. */
export const eventsFile = 'network.jsonl'

/**
 * The network of a session's commands: a namespace that they share, with no way out but a proxy. A process of its own keeps it. That process
 * outlives the agent and filters by the last rules that it knows.
 */
export class NetworkKeeper {
  readonly #options: NetworkKeeperOptions
  readonly #traffic: TrafficLog
  #rules: RuleLayers
  #connection: Promise<Connection> | undefined
  #isClosed = false

  constructor(options: NetworkKeeperOptions) {
    this.#options = options
    this.#rules = options.rules
    this.#traffic = new TrafficLog(join(options.folder, eventsFile))
  }

  /** No command may see it. */
  get folder(): string {
    return this.#options.folder
  }

  get allowedHosts(): string[] {
    return allowedHosts(this.#rules)
  }

  /** Starts the keeper if there is none. Rejects if it cannot be started. */
  async start(): Promise<void> {
    findNsenter()
    await this.#connect()
  }

  /**
   * The command line and environment of a box, made without a network of its own, that enters this one. Starts the keeper if there is none. Rejects
   * if it cannot be started: a command must never run with the network of the machine instead.
   */
  async join(argv: readonly string[], callId?: string): Promise<CommandBox> {
    const { pid, user, net, port } = (await this.#connect()).namespace
    const [userFile, netFile] = [`/proc/${pid}/fd/${user}`, `/proc/${pid}/fd/${net}`]
    const enter = [
      ...['/bin/sh', '-c', unlessKeeperEnded, 'sh', userFile, netFile],
      ...[findNsenter(), '--preserve-credentials', `--user=${userFile}`, `--net=${netFile}`, '--'],
    ]
    return { argv: [...enter, ...argv], env: proxyVariables(port, callId) }
  }

  /** Resolves when the rules are in force. */
  async setRules(rules: RuleLayers): Promise<void> {
    this.#rules = rules
    const connection = await this.#connection?.catch(() => undefined)
    await connection?.setRules(rules)
  }

  trafficOf(callId: string): Promise<CallTraffic> {
    return this.#traffic.of(callId)
  }

  /** Leaves the keeper to itself. It ends with the last command of the session. */
  async close(): Promise<void> {
    this.#isClosed = true
    const connection = await this.#connection?.catch(() => undefined)
    connection?.close()
  }

  async #connect(): Promise<Connection> {
    if (this.#isClosed) throw new Error('The network of this session is closed.')
    this.#connection ??= this.#open()
    try {
      return await this.#connection
    } catch (error) {
      this.#connection = undefined
      throw error
    }
  }

  async #open(): Promise<Connection> {
    const { folder } = this.#options
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#openOnce()
      } catch (error) {
        // A keeper that was about to end may have taken the connection.
        if (!(error instanceof KeeperEnded) || attempt === maxAttempts) throw error
      }
    }
  }

  async #openOnce(): Promise<Connection> {
    const { folder } = this.#options
    let socket = await connectToKeeper(folder)
    if (!socket) {
      await startKeeper(this.#options)
      socket = await connectToKeeper(folder)
    }
    if (!socket) throw new KeeperEnded()
    const connection = await Connection.open(socket, { ...this.#options, rules: this.#rules })
    socket.once('close', () => void (this.#connection = undefined))
    return connection
  }
}

const maxAttempts = 3

/** Runs its other arguments if the namespaces of the keeper, the first two, are still there. The keeper may have been killed since the box was made. */
const unlessKeeperEnded = `if [ -e "$1" ] && [ -e "$2" ]; then shift 2; exec "$@"; fi
echo "The command did not start, because the network of the sandbox has ended. The next command gets a new one, so run this one again." >&2
exit 1`

class KeeperEnded extends Error {
  constructor() {
    super('The keeper of the sandbox network has ended.')
  }
}

class Connection {
  namespace: NetworkNamespace = { pid: 0, user: 0, net: 0, port: 0 }
  readonly #socket: Socket
  readonly #options: Pick<NetworkKeeperOptions, 'ask' | 'onEvent'>
  readonly #asking = new Map<number, AbortController>()
  #ready: (() => void)[] = []

  private constructor(socket: Socket, options: Pick<NetworkKeeperOptions, 'ask' | 'onEvent'>) {
    this.#socket = socket
    this.#options = options
  }

  static async open(socket: Socket, options: NetworkKeeperOptions): Promise<Connection> {
    const connection = new Connection(socket, options)
    const ended = once(socket, 'close').then(() => {
      for (const controller of connection.#asking.values()) controller.abort()
      throw new KeeperEnded()
    })
    ended.catch(() => undefined)
    // If the keeper was killed, a close event follows. The reader emits the error of its socket again.
    socket.on('error', () => undefined)
    const reader = createInterface(socket).on('error', () => undefined)
    reader.on('line', (line) => connection.#receive(JSON.parse(line) as FromKeeper))
    await Promise.race([connection.setRules(options.rules), ended])
    return connection
  }

  async setRules(rules: RuleLayers): Promise<void> {
    if (this.#socket.destroyed) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#ready.push(resolve)
    this.#socket.once('close', resolve)
    // The agent must not end while it waits, and the connection must not keep it from ending otherwise.
    this.#socket.ref()
    this.#send({ type: 'rules', rules })
    await promise
    this.#socket.off('close', resolve)
    if (this.#ready.length === 0) this.#socket.unref()
  }

  close(): void {
    this.#send({ type: 'leave' })
    this.#socket.end()
  }

  #send(message: ToKeeper): void {
    if (this.#socket.writable) this.#socket.write(`${JSON.stringify(message)}\n`)
  }

  #receive(message: FromKeeper): void {
    switch (message.type) {
      case 'ready':
        this.namespace = message.namespace
        return this.#ready.shift()?.()
      case 'question':
        return void this.#answer(message.id, message.target)
      case 'withdrawn':
        return this.#asking.get(message.id)?.abort()
      case 'event':
        return this.#options.onEvent?.(message.event)
      default:
        message satisfies never
    }
  }

  async #answer(id: number, target: ProxyTarget): Promise<void> {
    const controller = new AbortController()
    this.#asking.set(id, controller)
    const answer = await this.#ask(target, controller.signal).catch(() => 'unattended' as const)
    this.#asking.delete(id)
    this.#send({ type: 'answer', id, answer })
  }

  async #ask(target: ProxyTarget, signal: AbortSignal): Promise<ProxyAnswer> {
    if (!this.#options.ask) return 'unattended'
    const answer = await this.#options.ask(target, signal)
    return typeof answer === 'boolean' ? (answer ? 'allow' : 'deny') : (answer ?? 'unattended')
  }
}

/** Reads the file of events as it grows. The keeper writes to it before it answers a request, so it is complete when a command has ended. */
class TrafficLog {
  readonly #file: string
  readonly #calls = new Map<string, { reached: Set<string>; refused: Map<string, { count: number; reason: string }> }>()
  #offset = 0
  #reading: Promise<void> = Promise.resolve()

  constructor(file: string) {
    this.#file = file
  }

  async of(callId: string): Promise<CallTraffic> {
    this.#reading = this.#reading.catch(() => undefined).then(() => this.#read())
    await this.#reading
    const { reached = [], refused = [] } = this.#calls.get(callId) ?? {}
    return { reached: [...reached], refused: Array.from(refused, ([host, rest]) => ({ host, ...rest })) }
  }

  async #read(): Promise<void> {
    await using file = await open(this.#file).catch(() => undefined)
    if (!file) return
    const bytes = Buffer.alloc(Math.max(0, (await file.stat()).size - this.#offset))
    const { bytesRead } = await file.read(bytes, 0, bytes.length, this.#offset)
    const end = bytes.subarray(0, bytesRead).lastIndexOf('\n') + 1
    this.#offset += end
    for (const line of bytes.subarray(0, end).toString().split('\n')) {
      const event = parseEvent(line)
      if (event) this.#take(event)
    }
  }

  #take(event: ProxyEvent): void {
    const { host, callId } = event
    if (callId === undefined || (event.type !== 'opened' && event.type !== 'refused')) return
    const call = this.#calls.get(callId) ?? { reached: new Set(), refused: new Map() }
    this.#calls.set(callId, call)
    if (event.type === 'opened') call.reached.add(host)
    else call.refused.set(host, { count: (call.refused.get(host)?.count ?? 0) + 1, reason: event.reason })
  }
}

/** Undefined if the line is empty or incomplete, as on a disk that was full. */
function parseEvent(line: string): ProxyEvent | undefined {
  try {
    return JSON.parse(line) as ProxyEvent
  } catch {
    return undefined
  }
}

/** In a session of its own, so that it survives the agent, and without the agent's environment. */
async function startKeeper({ folder, bwrap, hosts, idleMs = defaultIdleMs }: NetworkKeeperOptions): Promise<void> {
  const program = fileURLToPath(programUrl('network-keeper-process', import.meta.url))
  const args = program.endsWith('.ts') ? ['-C', '@tapetree/source', program] : [program]
  const { PATH, NODE_COMPILE_CACHE } = process.env
  const env = { PATH, NODE_COMPILE_CACHE }
  const keeper = spawn(process.execPath, args, { cwd: '/', env, stdio: ['pipe', 'pipe', 'ignore'], detached: true })
  keeper.stdin.on('error', () => undefined)
  const order: KeeperOrder = { folder, bwrap, idleMs, ...(hosts && { hosts }) }
  keeper.stdin.end(`${JSON.stringify(order)}\n`)
  let said = ''
  keeper.stdout.on('data', (chunk: Buffer) => void (said += chunk.toString()))
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  keeper.on('error', reject)
  keeper.on('close', () => resolve())
  keeper.stdout.on('data', () => said.includes('\n') && resolve())
  await promise
  keeper.stdout.destroy()
  keeper.unref()
  const { problem } =
    said === '' ? { problem: 'It has ended without a word.' } : (JSON.parse(said) as { problem?: string })
  if (problem !== undefined) throw new Error(`The sandbox has no network: ${problem}`)
}

/** Undefined if no keeper is listening. */
export async function connectToKeeper(folder: string): Promise<Socket | undefined> {
  const { path, close } = shortPath(folder)
  try {
    return await new Promise((resolve) => {
      const socket = connect(path)
      socket.once('connect', () => resolve(socket))
      socket.once('error', () => resolve(undefined))
    })
  } finally {
    close()
  }
}

/** The path of a socket may have 107 bytes, and folders of sessions may be deeper. */
export function shortPath(folder: string): { path: string; close: () => void } {
  const descriptor = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY)
  return { path: `/proc/self/fd/${descriptor}/${controlSocket}`, close: () => closeSync(descriptor) }
}

/** Never from the PATH of a command, which may begin with a folder that commands can write to. */
const systemFolders = ['/usr/bin', '/bin', '/usr/sbin', '/sbin', '/usr/local/bin', '/run/current-system/sw/bin']

function findNsenter(): string {
  const found = systemFolders
    .map((folder) => join(folder, 'nsenter'))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK)
        return true
      } catch {
        return false
      }
    })
  if (found === undefined) throw new Error('The sandbox has no network: nsenter (package util-linux) is not installed.')
  return found
}

/**
 * Most programs read some of these. Node does only with NODE_USE_ENV_PROXY, which is left out because every start of Node would take three
 * times as long. Servers that commands start on loopback are reached without the proxy.
 */
function proxyVariables(port: number, callId?: string): Record<string, string> {
  const proxy = `http://${callId === undefined ? '' : `${encodeURIComponent(callId)}@`}127.0.0.1:${port}`
  const none = 'localhost,127.0.0.1,::1'
  return {
    ...Object.fromEntries(
      ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'].flatMap((name) => [
        [name, proxy],
        [name.toLowerCase(), proxy],
      ]),
    ),
    NO_PROXY: none,
    no_proxy: none,
    // Otherwise git asks the proxy first how to name the call.
    GIT_HTTP_PROXY_AUTHMETHOD: 'basic',
  }
}
