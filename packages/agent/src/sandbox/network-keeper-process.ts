// The keeper of one session's network. It holds a network namespace that has a loopback interface and nothing else, and serves a proxy on
// that loopback. It outlives the agent, so that commands that still run stay connected and filtered. It ends when no agent is connected and
// no process is left in the namespace. The namespace has no name on the host: when this process is killed, the kernel removes it.
import { spawn } from 'node:child_process'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { appendFileSync, openSync, readdirSync, readlinkSync, rmSync, statSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
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
  const control = await listen(folder)
  // Another keeper of this session was quicker.
  if (!control) return announce()
  try {
    const { entrance, namespace } = await makeNamespace(order.bwrap)
    const agents = new Agents(join(folder, eventsFile), namespace)
    const proxy = new Proxy({
      rules: () => agents.rules,
      ask: (target, signal) => agents.ask(target, signal),
      onEvent: (event) => agents.report(event),
      ...(order.hosts && withTable(order.hosts)),
    })
    entrance.on('connection', (socket) => proxy.serve(socket))
    control.on('connection', (socket) => agents.add(socket))
    announce()
    await idle(agents, { namespace, idleMs })
  } finally {
    rmSync(join(folder, controlSocket), { force: true })
  }
}

function announce(): void {
  process.stdout.write('{}\n')
}

/** Undefined if a keeper of this session is running. The socket of one that was killed is replaced. */
async function listen(folder: string): Promise<Server | undefined> {
  const running = await connectToKeeper(folder)
  if (running) {
    running.destroy()
    return undefined
  }
  rmSync(join(folder, controlSocket), { force: true })
  const server = createServer().listen(shortPath(folder).path)
  await once(server, 'listening')
  return server
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
    agent.on('error', () => agent.destroy())
    agent.on('close', () => {
      this.#connected.delete(agent)
      for (const question of this.#questions.values()) if (question.agent === agent) question.resolve('unattended')
    })
    createInterface(agent).on('line', (line) => this.#receive(agent, JSON.parse(line) as ToKeeper))
  }

  /** Asks the agent that came last. */
  async ask(target: ProxyTarget, signal: AbortSignal): Promise<ProxyAnswer> {
    const agent = [...this.#connected].at(-1)
    if (!agent) return 'unattended'
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
    const size = statSync(this.#file, { throwIfNoEntry: false })?.size ?? 0
    if (size < maxEventsBytes) appendFileSync(this.#file, `${JSON.stringify(line)}\n`, { mode: 0o600 })
    for (const agent of this.#connected) send(agent, { type: 'event', event })
  }

  #receive(agent: Socket, message: ToKeeper): void {
    switch (message.type) {
      case 'rules':
        this.rules = message.rules
        return send(agent, { type: 'ready', namespace: this.#namespace })
      case 'answer':
        return this.#questions.get(message.id)?.resolve(message.answer)
      default:
        message satisfies never
    }
  }
}

function send(agent: Socket, message: FromKeeper): void {
  if (agent.writable) agent.write(`${JSON.stringify(message)}\n`)
}

/** Resolves when no agent is connected and no command runs. */
function idle(agents: Agents, { namespace, idleMs }: { namespace: NetworkNamespace; idleMs: number }): Promise<void> {
  const link = readlinkSync(`/proc/self/fd/${namespace.net}`)
  let checks = 0
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      checks = agents.isAttended || isOccupied(link) ? 0 : checks + 1
      // Twice, because a command that the agent ordered before it died may still be on its way into the namespace.
      if (checks < 2) return
      clearInterval(timer)
      resolve()
    }, idleMs)
  })
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
