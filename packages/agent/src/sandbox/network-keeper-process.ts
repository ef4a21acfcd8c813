// The keeper of one session's network. It holds a network namespace that has a loopback interface and nothing else, and serves a proxy on
// that loopback. It outlives the agent, so that commands that still run stay connected and filtered. It ends when no agent is connected and
// no process is left in the namespace. The namespace has no name on the host: when this process is killed, the kernel removes it.
import { spawn } from 'node:child_process'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { appendFileSync, closeSync, openSync, readdirSync, readlinkSync, rmSync, statSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { noRules, type RuleLayers } from '../permissions/rules.ts'
import { isPublicAddress } from '../tools/web/fetch-page.ts'
import { messageOf } from '../util/message-of.ts'
import {
  connectToKeeper,
  controlSocket,
  eventsFile,
  shortPath,
  type FromKeeper,
  type KeeperOrder,
  type NetworkNamespace,
  type ToKeeper,
} from './network-keeper.ts'
import { Proxy, type ProxyAnswer, type ProxyEvent, type ProxyOptions, type ProxyTarget } from './proxy.ts'

/** Of the file of events. Later events are only sent to the agent. */
const maxEventsBytes = 4 * 1024 ** 2

/** In the namespace: opens the port of the proxy and hands it to the keeper. A socket stays in the namespace where it was made. */
async function openEntrance(): Promise<void> {
  const entrance = createServer().listen(0, '127.0.0.1')
  await once(entrance, 'listening')
  process.send?.({ pid: process.pid }, entrance)
  await once(process, 'message')
}

async function obey(): Promise<void> {
  const order = await readOrder()
  if (!order) return
  try {
    await keep(order)
  } catch (error) {
    process.stdout.write(`${JSON.stringify({ problem: messageOf(error) })}\n`)
  }
}

/** Undefined if the agent ended without sending a complete order. */
async function readOrder(): Promise<KeeperOrder | undefined> {
  let text = ''
  process.stdin.setEncoding('utf8')
  for await (const chunk of process.stdin) text += chunk as string
  return text.endsWith('\n') ? (JSON.parse(text) as KeeperOrder) : undefined
}

async function keep(order: KeeperOrder): Promise<void> {
  const { folder, idleMs } = order
  if (await isKept(folder)) return announce()
  const { entrance, namespace } = await makeNamespace(order.bwrap)
  const agents = new Agents(join(folder, eventsFile), namespace)
  const proxy = new Proxy({
    rules: () => agents.rules,
    ask: (target, signal) => agents.ask(target, signal),
    onEvent: (event) => agents.report(event),
    ...(order.hosts && withTable(order.hosts)),
  })
  agents.onRules = () => proxy.reconsider()
  entrance.on('connection', (socket) => proxy.serve(socket))
  const control = createServer((socket) => agents.add(socket))
  // If another keeper of this session was quicker, the agent connects to that one.
  const isListening = await alone(folder, () => listen(control, folder))
  announce()
  const link = readlinkSync(`/proc/self/fd/${namespace.net}`)
  for (let isNeeded = isListening; isNeeded;) {
    await untilIdle(agents, { link, idleMs })
    // An agent may have connected meanwhile, and a command that it ordered before it died may have entered.
    isNeeded = await alone(folder, async () => {
      if (agents.isAttended || isOccupied(link)) return true
      closeControl(control, folder)
      // From here on, no command can enter.
      for (const descriptor of [namespace.user, namespace.net]) closeSync(descriptor)
      return false
    })
  }
  // A command that entered during the last look is served to its end.
  while (isOccupied(link)) await wait(idleMs)
}

function announce(): void {
  process.stdout.write('{}\n')
}

/** Keepers of one session start and end one after the other, so that none removes the socket of another. */
async function alone<T>(folder: string, work: () => Promise<T>): Promise<T> {
  // Loaded on demand: the program that opens the entrance does not need it.
  const { withFileLock } = await import('@tapetree/session/stores/file')
  return withFileLock(join(folder, 'keeper'), work)
}

async function isKept(folder: string): Promise<boolean> {
  const running = await connectToKeeper(folder)
  running?.destroy()
  return running !== undefined
}

/** False if a keeper of this session is running. The socket of one that was killed is replaced. */
async function listen(control: Server, folder: string): Promise<boolean> {
  if (await isKept(folder)) return false
  rmSync(join(folder, controlSocket), { force: true })
  control.listen(shortPath(folder).path)
  await once(control, 'listening')
  return true
}

function closeControl(control: Server, folder: string): void {
  control.close()
  rmSync(join(folder, controlSocket), { force: true })
}

/** bubblewrap makes the namespace and its loopback. It is held by open files, not by a process. */
async function makeNamespace(bwrap: string): Promise<{ entrance: Server; namespace: NetworkNamespace }> {
  const box = ['--unshare-user', '--unshare-net', '--die-with-parent', '--dev-bind', '/', '/']
  const program = [process.execPath, ...process.execArgv, ...process.argv.slice(1, 2)]
  const child = spawn(bwrap, [...box, '--', ...program], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  let said = ''
  child.stderr?.on('data', (chunk: Buffer) => void (said += chunk.toString()))
  const failed = once(child, 'exit').then(() => {
    throw new Error(`bubblewrap cannot make a network for the sandbox: ${said.trim()}`)
  })
  const [{ pid }, entrance] = (await Promise.race([once(child, 'message'), failed])) as [{ pid: number }, Server]
  failed.catch(() => undefined)
  const open = (kind: string): number => openSync(`/proc/${pid}/ns/${kind}`, 'r')
  const { port } = entrance.address() as { port: number }
  const namespace = { pid: process.pid, user: open('user'), net: open('net'), port }
  child.send('opened')
  await once(child, 'exit')
  return { entrance, namespace }
}

function withTable(hosts: Readonly<Record<string, string>>): Pick<ProxyOptions, 'resolve' | 'isPublic'> {
  const table = new Map(Object.entries(hosts))
  return {
    resolve: async (host) => {
      const address = table.get(host)
      return address === undefined ? lookup(host, { all: true }) : [{ address, family: 4 }]
    },
    isPublic: (address) => [...table.values()].includes(address) || isPublicAddress(address),
  }
}

/** The agents of the session: usually one, none after its death, two for a moment if the next one is quick. */
class Agents {
  rules: RuleLayers = noRules
  readonly #file: string
  readonly #namespace: NetworkNamespace
  readonly #connected = new Set<Socket>()
  readonly #questions = new Map<number, { agent: Socket; resolve: (answer: ProxyAnswer) => void }>()
  onRules: () => void = () => undefined
  /** The last agent said that it ends, so no command is on its way. */
  hasLeft = false
  /** No agent has connected yet. */
  isNew = true
  #onLeave: () => void = () => undefined
  #count = 0

  constructor(file: string, namespace: NetworkNamespace) {
    this.#file = file
    this.#namespace = namespace
  }

  get isAttended(): boolean {
    return this.#connected.size > 0
  }

  add(agent: Socket): void {
    this.#connected.add(agent)
    this.hasLeft = false
    this.isNew = false
    agent.on('error', () => agent.destroy())
    agent.on('close', () => {
      this.#connected.delete(agent)
      for (const question of this.#questions.values()) if (question.agent === agent) question.resolve('unattended')
    })
    // The reader emits the error of its socket again.
    const reader = createInterface(agent).on('error', () => undefined)
    reader.on('line', (line) => this.#receive(agent, JSON.parse(line) as ToKeeper))
  }

  /** Asks the agents, the newest first, until one knows the call. */
  async ask(target: ProxyTarget, signal: AbortSignal): Promise<ProxyAnswer> {
    for (const agent of [...this.#connected].toReversed()) {
      const answer = await this.#askAgent(agent, target, signal)
      if (answer !== 'unattended' || signal.aborted) return answer
    }
    return 'unattended'
  }

  /** Resolves after the time, or soon after the last agent has said that it ends. */
  async wait(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, this.hasLeft ? Math.min(ms, leftMs) : ms)
    this.#onLeave = () => setTimeout(resolve, Math.min(ms, leftMs))
    await promise
    clearTimeout(timer)
    this.#onLeave = () => undefined
  }

  async #askAgent(agent: Socket, target: ProxyTarget, signal: AbortSignal): Promise<ProxyAnswer> {
    const id = ++this.#count
    const { promise, resolve } = Promise.withResolvers<ProxyAnswer>()
    this.#questions.set(id, { agent, resolve })
    signal.addEventListener('abort', () => {
      send(agent, { type: 'withdrawn', id })
      resolve('unattended')
    })
    send(agent, { type: 'question', id, target })
    const answer = await promise
    this.#questions.delete(id)
    return answer
  }

  report(event: ProxyEvent): void {
    const line = { at: Date.now(), ...event }
    try {
      const size = statSync(this.#file, { throwIfNoEntry: false })?.size ?? 0
      if (size < maxEventsBytes) appendFileSync(this.#file, `${JSON.stringify(line)}\n`, { mode: 0o600 })
    } catch {
      // The disk may be full. Commands keep their network, and the results of their calls do not name this host.
    }
    for (const agent of this.#connected) send(agent, { type: 'event', event })
  }

  #receive(agent: Socket, message: ToKeeper): void {
    switch (message.type) {
      case 'rules':
        this.rules = message.rules
        this.onRules()
        return send(agent, { type: 'ready', namespace: this.#namespace })
      case 'answer':
        return this.#questions.get(message.id)?.resolve(message.answer)
      case 'leave':
        this.hasLeft = true
        return this.#onLeave()
      default:
        message satisfies never
    }
  }
}

function send(agent: Socket, message: FromKeeper): void {
  if (agent.writable) agent.write(`${JSON.stringify(message)}\n`)
}

/** How soon a keeper ends after the last agent has said that it ends. */
const leftMs = 100
/** How long the agent that started the keeper may take to connect. */
const firstMs = 30_000

/** Resolves when no agent is connected and no command runs. */
async function untilIdle(agents: Agents, { link, idleMs }: { link: string; idleMs: number }): Promise<void> {
  const started = Date.now()
  // Twice, because a command that the agent ordered before it died may still be on its way into the namespace.
  for (let checks = 0; checks < 2;) {
    await agents.wait(idleMs)
    const isAwaited = agents.isNew && Date.now() - started < firstMs
    const isUsed = agents.isAttended || isAwaited || isOccupied(link)
    checks = isUsed ? 0 : checks + 1
    if (isUsed) agents.hasLeft = false
  }
}

function isOccupied(namespace: string): boolean {
  return readdirSync('/proc').some((name) => {
    try {
      return /^\d+$/.test(name) && readlinkSync(`/proc/${name}/ns/net`) === namespace
    } catch {
      // It has ended, or belongs to another user and cannot be in this namespace.
      return false
    }
  })
}

// Last, because classes cannot be used above their definition.
for (const signal of ['SIGHUP', 'SIGINT'] as const) process.on(signal, () => undefined)
process.stdout.on('error', () => undefined) // the agent may be gone
if (process.send) await openEntrance()
else await obey()
process.exit()
