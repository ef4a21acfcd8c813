import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, closeSync, constants, mkdirSync, openSync, rmSync } from 'node:fs'
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
  ask?: (target: ProxyTarget, signal: AbortSignal) => Promise<boolean>
  onEvent?: (event: ProxyEvent) => void
  /** Addresses of hosts, for tests: they replace the resolver and count as public. */
  hosts?: Readonly<Record<string, string>>
  /** How often the keeper looks whether it is still needed, once no agent is connected. */
  idleMs?: number
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

export type ToKeeper = { type: 'rules'; rules: RuleLayers } | { type: 'answer'; id: number; answer: ProxyAnswer }

export type FromKeeper =
  /** The rules are in force. */
  | { type: 'ready'; namespace: NetworkNamespace }
  | { type: 'question'; id: number; target: ProxyTarget }
  | { type: 'withdrawn'; id: number }
  | { type: 'event'; event: ProxyEvent }

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
  #rules: RuleLayers
  #connection: Promise<Connection> | undefined
  #isClosed = false

  constructor(options: NetworkKeeperOptions) {
    this.#options = options
    this.#rules = options.rules
  }

  /**
   * The command line and environment of a box that joins this network instead of one of its own. Starts the keeper if there is none. Rejects
   * if it cannot be started: a command must never run with the network of the machine instead.
   */
  async join(argv: readonly string[], callId?: string): Promise<CommandBox> {
    const { pid, user, net, port } = (await this.#connect()).namespace
    const enter = [
      findNsenter(),
      '--preserve-credentials',
      `--user=/proc/${pid}/fd/${user}`,
      `--net=/proc/${pid}/fd/${net}`,
      '--',
    ]
    return { argv: [...enter, ...argv.filter((each) => each !== '--unshare-net')], env: proxyVariables(port, callId) }
  }

  /** Resolves when the rules are in force. */
  async setRules(rules: RuleLayers): Promise<void> {
    this.#rules = rules
    const connection = await this.#connection?.catch(() => undefined)
    await connection?.setRules(rules)
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
    let socket = await connectToKeeper(folder)
    if (!socket) {
      await startKeeper(this.#options)
      socket = await connectToKeeper(folder)
    }
    if (!socket) throw new Error('The keeper of the sandbox network has ended at once.')
    const connection = await Connection.open(socket, { ...this.#options, rules: this.#rules })
    socket.once('close', () => {
      this.#connection = undefined
      // A killed keeper leaves its socket.
      if (!this.#isClosed) rmSync(join(folder, controlSocket), { force: true })
    })
    return connection
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
      throw new Error('The keeper of the sandbox network has ended.')
    })
    ended.catch(() => undefined)
    createInterface(socket).on('line', (line) => connection.#receive(JSON.parse(line) as FromKeeper))
    await Promise.race([connection.setRules(options.rules), ended])
    // It must not keep the agent from ending.
    socket.unref()
    return connection
  }

  async setRules(rules: RuleLayers): Promise<void> {
    if (this.#socket.destroyed) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#ready.push(resolve)
    this.#socket.once('close', resolve)
    this.#send({ type: 'rules', rules })
    await promise
    this.#socket.off('close', resolve)
  }

  close(): void {
    this.#socket.destroy()
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
    const answer = await this.#ask(target, controller.signal).catch(() => 'deny' as const)
    this.#asking.delete(id)
    this.#send({ type: 'answer', id, answer })
  }

  async #ask(target: ProxyTarget, signal: AbortSignal): Promise<ProxyAnswer> {
    if (!this.#options.ask) return 'unattended'
    return (await this.#options.ask(target, signal)) ? 'allow' : 'deny'
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
  }
}
