import {
  hostMessage,
  introduced,
  maxHelloBytes,
  parseMessage,
  RemoteWorkspace,
  toolHostProtocol,
  type ChannelEvent,
  type HostChannel,
  type HostHello,
  type HostRequest,
  type WorkspaceReference,
} from '@tapetree/agent/tool-host'
import { systemClock, type Clock } from '@tapetree/agent/run'
import type { WireSessionSummary } from '@tapetree/client/protocol'
import { Listeners } from '@tapetree/session/util/listeners'
import type { SessionBus } from '../bus/session-bus.ts'
import { emitWarning, RequestProblem } from '../util/problem-error.ts'

/** The connection of a tool host to this server. */
export interface HostConnection {
  send(text: string): void
  close(reason: string): void
}

export interface ToolHostsOptions {
  /** Lets sessions of this server use hosts that are connected to another one. */
  bus?: SessionBus
  clock?: Clock
}

/** The tool hosts that sessions may use. */
export interface WorkspaceSource {
  /** Those that can be reached. */
  list(): HostHello[]
  /** The way to one host, which need not be there. */
  channel(id: string): HostChannel
}

/** Rejects if the host cannot be reached or does not offer the workspace. `host`: its id, or its name. */
export function findWorkspace(
  source: WorkspaceSource | undefined,
  { host, workspace }: { host: string; workspace: string },
): WorkspaceReference {
  const hosts = source?.list() ?? []
  const named = hosts.filter(({ name }) => name === host)
  const found = hosts.find(({ id }) => id === host) ?? (named.length === 1 ? named[0] : undefined)
  if (!found) {
    const detail =
      named.length > 1
        ? `Several tool hosts are called ${JSON.stringify(host)}. Use the id of one.`
        : `No tool host ${JSON.stringify(host)} is connected.`
    throw new RequestProblem(404, 'tool-host-not-found', detail)
  }
  const offered = found.workspaces.find(({ name }) => name === workspace)
  if (!offered) {
    const detail = `The tool host ${JSON.stringify(found.name)} does not offer a workspace ${JSON.stringify(workspace)}.`
    throw new RequestProblem(404, 'workspace-not-found', detail)
  }
  const { id: hostId, name: hostName, platform } = found
  return { name: workspace, hostId, hostName, folder: offered.folder, platform }
}

/** Where the tools of a session work, as clients see it. Undefined if they work on the server. */
export function workspaceOnWire(
  { workspace }: { workspace?: WorkspaceReference | undefined },
  source: WorkspaceSource | undefined,
): WireSessionSummary['workspace'] {
  if (!workspace) return undefined
  const { name, hostName: host, hostId, folder } = workspace
  const problem = RemoteWorkspace.problemOf(
    workspace,
    source?.list().find(({ id }) => id === hostId),
  )
  return { name, host, folder, ...(problem !== undefined && { problem }) }
}

/** A host that is connected to this server or to another one. */
interface KnownHost {
  hello: HostHello
  /** Differs for each connection, and after messages may have been lost. */
  link: string
  /** Of a host that is connected here. */
  connection?: HostConnection
  /** Of a host elsewhere: when its server last mentioned it. */
  heardAt: number
}

/** What servers tell each other about hosts. */
type Announcement =
  | { type: 'up'; tenant: string; link: string; hello: HostHello }
  | { type: 'down'; tenant: string; link: string; id: string }
  | { type: 'who' }

const announcements = 'tool-hosts'
const announceMs = 5000
/** A host whose server has not mentioned it for this long cannot be reached. */
const forgetMs = 12_000

/** More hosts of one tenant are refused, and so are more connections that have not introduced themselves. */
const maxHosts = 64

/**
 * The tool hosts that are connected to this server, and to the other servers of the service. Losing the bus loses nothing: a session that
 * does not hear of its host waits for it, and sends its calls again when it does.
 */
export class ToolHosts {
  readonly #bus: SessionBus | undefined
  readonly #clock: Clock
  readonly #hosts = new Map<string, KnownHost>()
  readonly #channels = new Map<string, Channel>()
  readonly #stops: (() => void)[] = []
  readonly #closing = new AbortController()
  /** By topic: resolves when the subscription is in force. */
  readonly #subscribed = new Map<string, Promise<void>>()
  /** How many connections of each tenant have not introduced themselves. */
  readonly #unknown = new Map<string, number>()
  #links = 0

  constructor({ bus, clock = systemClock }: ToolHostsOptions = {}) {
    this.#bus = bus
    this.#clock = clock
    if (bus) void this.#share(bus).catch(emitWarning)
  }

  /** The hosts of one tenant. */
  of(tenant: string): WorkspaceSource {
    return { list: () => this.list(tenant), channel: (id) => this.channel(tenant, id) }
  }

  /** The hosts that can be reached. */
  list(tenant: string): HostHello[] {
    return [...this.#hosts].flatMap(([key, { hello }]) => (tenantOf(key) === tenant ? [hello] : []))
  }

  /** The way to one host, which need not be there. */
  channel(tenant: string, id: string): HostChannel {
    const key = keyOf(tenant, id)
    const known = this.#channels.get(key)
    if (known) return known
    const channel = new Channel(
      () => this.#hosts.get(key)?.hello,
      (request) => this.#send(key, request),
    )
    this.#channels.set(key, channel)
    void this.#listenTo(key)
    return channel
  }

  /** A host has connected here. The returned functions take its messages and its end. */
  accept(tenant: string, connection: HostConnection): { take: (text: string) => void; end: () => void } {
    let key: string | undefined
    let state: 'unknown' | 'introduced' | 'refused' = 'unknown'
    this.#countUnknown(tenant, 1)
    const leaveUnknown = (next: 'introduced' | 'refused'): void => {
      if (state === 'unknown') this.#countUnknown(tenant, -1)
      state = next
    }
    const refuse = (reason: string): void => {
      leaveUnknown('refused')
      connection.close(reason)
    }
    if ((this.#unknown.get(tenant) ?? 0) > maxHosts) {
      refuse('Too many tool hosts of this tenant have not introduced themselves.')
    }
    return {
      take: (text) => {
        if (state === 'refused') return
        if (state === 'unknown' && Buffer.byteLength(text) > maxHelloBytes) {
          return refuse(`The introduction of this tool host has more than ${maxHelloBytes} bytes.`)
        }
        const message = parseMessage(hostMessage, text)
        if (!message) return
        if (key !== undefined) {
          if (message.type !== 'hello') this.#received(key, text)
          return
        }
        if (message.type !== 'hello' || message.protocol !== toolHostProtocol) {
          return refuse(`This server speaks version ${toolHostProtocol} of the protocol of tool hosts.`)
        }
        const hello = introduced(message)
        const wanted = keyOf(tenant, hello.id)
        if (!this.#hosts.has(wanted) && this.list(tenant).length >= maxHosts) {
          return refuse(`This tenant has ${maxHosts} tool hosts, the most that a server takes.`)
        }
        leaveUnknown('introduced')
        key = wanted
        this.#joined(key, { hello, link: this.#newLink(), connection, heardAt: Infinity })
      },
      end: () => {
        leaveUnknown('refused')
        if (key !== undefined && this.#hosts.get(key)?.connection === connection) this.#left(key)
      },
    }
  }

  #newLink(): string {
    return `${this.#bus?.node ?? 'here'}-${process.pid}-${++this.#links}`
  }

  #countUnknown(tenant: string, change: 1 | -1): void {
    const count = (this.#unknown.get(tenant) ?? 0) + change
    if (count > 0) this.#unknown.set(tenant, count)
    else this.#unknown.delete(tenant)
  }

  close(): void {
    this.#closing.abort()
    for (const { connection } of this.#hosts.values()) connection?.close('the server is shutting down')
    for (const stop of this.#stops) stop()
  }

  #joined(key: string, host: KnownHost): void {
    const before = this.#hosts.get(key)
    this.#hosts.set(key, host)
    // The host has come back before its old connection was seen to be gone.
    before?.connection?.close('the host has connected again')
    if (host.connection) this.#announce(key, host)
    this.#channels.get(key)?.notify({ type: 'up' })
  }

  #left(key: string): void {
    const host = this.#hosts.get(key)
    this.#hosts.delete(key)
    if (host?.connection) {
      this.#publish({ type: 'down', tenant: tenantOf(key), link: host.link, id: host.hello.id })
    }
    this.#channels.get(key)?.notify({ type: 'down' })
  }

  /** A message of a host that is connected here, for the sessions here and elsewhere. */
  #received(key: string, text: string): void {
    this.#bus?.publish(fromHost(key), Buffer.from(text))
    this.#channels.get(key)?.take(text)
  }

  #send(key: string, request: HostRequest): void {
    const host = this.#hosts.get(key)
    const text = JSON.stringify(request)
    if (host?.connection) host.connection.send(text)
    // The answer would be lost before that.
    else if (host)
      void this.#listenTo(key)
        .then(() => this.#bus?.publish(toHost(key), Buffer.from(text)))
        .catch(emitWarning)
  }

  async #share(bus: SessionBus): Promise<void> {
    const stop = await bus.subscribe(announcements, (message) => this.#heard(message))
    this.#stops.push(
      stop,
      bus.onGap(() => this.#sendAgain()),
    )
    this.#publish({ type: 'who' })
    while (!this.#closing.signal.aborted) {
      await this.#clock.wait(announceMs, this.#closing.signal).catch(() => undefined)
      this.#announceAll()
      for (const [key, { heardAt }] of this.#hosts) if (heardAt < this.#clock.now() - forgetMs) this.#left(key)
    }
  }

  /** Messages in both directions may have been lost: the sessions here and elsewhere send their calls again. */
  #sendAgain(): void {
    for (const host of this.#hosts.values()) if (host.connection) host.link = this.#newLink()
    this.#announceAll()
    for (const [key, channel] of this.#channels) if (this.#hosts.has(key)) channel.notify({ type: 'up' })
  }

  #heard(message: Uint8Array): void {
    const said = JSON.parse(Buffer.from(message).toString()) as Announcement
    switch (said.type) {
      case 'who':
        return this.#announceAll()
      case 'down': {
        const key = keyOf(said.tenant, said.id)
        if (this.#hosts.get(key)?.link === said.link) this.#left(key)
        return
      }
      case 'up': {
        const { tenant, link, hello } = said
        const key = keyOf(tenant, hello.id)
        const known = this.#hosts.get(key)
        const heardAt = this.#clock.now()
        if (known?.link === link) known.heardAt = heardAt
        // A connection here is newer: a host that goes elsewhere ends it first, or it is found to be dead.
        else if (!known?.connection) this.#joined(key, { hello, link, heardAt })
        return
      }
      default:
        said satisfies never
    }
  }

  #announceAll(): void {
    for (const [key, host] of this.#hosts) if (host.connection) this.#announce(key, host)
  }

  /** Not before messages of the others can arrive here: they send their calls at once. */
  #announce(key: string, host: KnownHost): void {
    void this.#forwardTo(key).then(() => {
      if (this.#hosts.get(key) !== host) return
      this.#publish({ type: 'up', tenant: tenantOf(key), link: host.link, hello: host.hello })
    })
  }

  #publish(said: Announcement): void {
    if (!this.#closing.signal.aborted) this.#bus?.publish(announcements, Buffer.from(JSON.stringify(said)))
  }

  /** Takes the messages of sessions elsewhere to a host that is connected here. */
  #forwardTo(key: string): Promise<void> {
    return this.#subscribe(toHost(key), (text) => this.#hosts.get(key)?.connection?.send(text))
  }

  #listenTo(key: string): Promise<void> {
    return this.#subscribe(fromHost(key), (text) => this.#channels.get(key)?.take(text))
  }

  /** Resolves when the others know of it. */
  #subscribe(topic: string, take: (text: string) => void): Promise<void> {
    if (!this.#bus) return Promise.resolve()
    const known = this.#subscribed.get(topic)
    if (known) return known
    const subscribed = this.#bus
      .subscribe(topic, (message) => take(Buffer.from(message).toString()))
      .then(
        (stop) => void this.#stops.push(stop),
        // The bus is closed.
        () => undefined,
      )
    this.#subscribed.set(topic, subscribed)
    return subscribed
  }
}

class Channel implements HostChannel {
  readonly #listeners = new Listeners<ChannelEvent>(emitWarning)
  readonly #hello: () => HostHello | undefined
  readonly send: (request: HostRequest) => void

  constructor(hello: () => HostHello | undefined, send: (request: HostRequest) => void) {
    this.#hello = hello
    this.send = send
  }

  get hello(): HostHello | undefined {
    return this.#hello()
  }

  subscribe(listener: (event: ChannelEvent) => void): () => void {
    return this.#listeners.add(listener)
  }

  notify(event: ChannelEvent): void {
    this.#listeners.notify(event)
  }

  /** Ignores what is malformed. */
  take(text: string): void {
    const message = parseMessage(hostMessage, text)
    if (message) this.notify({ type: 'message', message })
  }
}

/** Hosts belong to tenants: two tenants may have hosts with the same id. */
function keyOf(tenant: string, id: string): string {
  return `${encodeURIComponent(tenant)}/${id}`
}

function tenantOf(key: string): string {
  return decodeURIComponent(key.slice(0, key.indexOf('/')))
}

const toHost = (key: string): string => `to-host/${key}`
const fromHost = (key: string): string => `from-host/${key}`
