import { systemClock, type Clock } from '@tapetree/agent/run'
import type { LimitName, Limits, LimitUsage, Operation } from '@tapetree/client/protocol'
import { newId, type SessionInfo, type SessionStore } from '@tapetree/session'
import type { Line } from '@tapetree/session/format'
import { Listeners } from '@tapetree/session/util/listeners'
import { localUser } from '../live/driver.ts'
import type { LiveSession } from '../live/live-session.ts'
import type { LiveSessions } from '../live/live-sessions.ts'
import { SessionsInside, type ReachableSessions } from '../live/reachable-sessions.ts'
import { Spending } from '../live/spending.ts'
import { insideOf } from '../live/store-inside.ts'
import { emitWarning, RequestProblem } from '../util/problem-error.ts'
import type { Caller } from './operation-roles.ts'
import type { TokenRecord, TokenStore } from './token-store.ts'

export interface UsageLimitsOptions {
  tenants: ReadonlyMap<string, LiveSessions>
  tokens: TokenStore | undefined
  /** Limits of whole tenants, besides those of their tokens. */
  tenantLimits?: ReadonlyMap<string, Limits> | undefined
  clock: Clock
}

/** The limits of a request's caller. */
export interface CallerLimits {
  /** Rejects unless another session may be stored. */
  checkNewSession(): Promise<void>
  /** Rejects unless more data may be stored. */
  checkStorage(): Promise<void>
  /** Rejects unless the caller may start work with this operation. */
  checkCommand(op: Operation): Promise<void>
  /** What applies to the caller: of each limit the one that is nearest to being reached. */
  show(): Promise<{ limits: Limits; usage: LimitUsage }>
}

/** What the servers of a service tell each other, so that limits hold for all of them together. Keys name tokens and tenants. */
export interface CountedRequest {
  key: string
  perMinute: number
}

/** A token or tenant with limits. */
interface Holder {
  key: string
  limits: Limits
  tenant: string
  tokenId?: string
  folder?: string
}

/** Operations that may call a model or run a command. */
const startsWork: ReadonlySet<Operation> = new Set([
  'prompt',
  'steer',
  'follow_up',
  'retry',
  'resume',
  'compact',
  'branch',
  'rewind',
  'bash',
  'queue.add',
  'queue.release',
])

/** Storage is measured at most this often. */
const measureMs = 10_000
const dayMs = 24 * 60 * 60_000
const minuteMs = 60_000

/**
 * Limits of tokens and tenants. What a token uses also counts for the tokens that it derives from, so creating
 * tokens gains nothing. The user of the Unix socket has no limits.
 */
export class UsageLimits {
  readonly #options: UsageLimitsOptions
  readonly #rates = new Map<string, RequestRate>()
  /** The sessions that each holder has opened. */
  readonly #opened = new Map<string, Set<string>>()
  /** The live sessions on other servers, by server and holder. */
  readonly #elsewhere = new Map<string, ReadonlyMap<string, readonly string[]>>()
  readonly #requestListeners = new Listeners<readonly CountedRequest[]>(emitWarning)
  readonly #openListeners = new Listeners<void>(emitWarning)
  readonly #stores = new Map<string, SessionStore>()
  readonly #sizes = new Map<string, { at: number; bytes: Promise<number> }>()
  readonly #spending = new WeakMap<LiveSessions, Spending>()
  readonly #stops: (() => void)[] = []

  constructor(options: UsageLimitsOptions) {
    this.#options = options
    // A run may be resumed before the first request.
    for (const [tenant, sessions] of options.tenants) this.#spendingOf(tenant, sessions)
    const stop = options.tokens?.onRevoked((tokenId) => {
      this.#rates.delete(tokenId)
      this.#opened.delete(tokenId)
    })
    if (stop) this.#stops.push(stop)
  }

  /** Counts one request or command. Throws `too-many-requests`. */
  takeRequest(caller: Caller): void {
    const now = this.#options.clock.now()
    const counted = this.#holdersOf(caller).flatMap(({ key, limits: { requests_per_minute: perMinute } }) =>
      perMinute === undefined ? [] : [{ key, perMinute }],
    )
    const rates = counted.map(({ key, perMinute }) => this.#rateOf(key, perMinute))
    const waitMs = Math.max(0, ...rates.map((rate) => rate.waitMs(now)))
    if (waitMs > 0) {
      const detail = `The limit of requests per minute is reached. Try again in ${Math.ceil(waitMs / 1000)} s.`
      throw new RequestProblem(429, 'too-many-requests', detail, { retry_after_ms: waitMs })
    }
    for (const rate of rates) rate.take(now)
    if (counted.length > 0) this.#requestListeners.notify(counted)
  }

  /** Calls the listener for each request that counts here. */
  onRequest(listener: (counted: readonly CountedRequest[]) => void): () => void {
    return this.#requestListeners.add(listener)
  }

  /** Counts requests that another server has admitted. */
  countElsewhere({ key, perMinute }: CountedRequest, requests: number): void {
    this.#rateOf(key, perMinute).take(this.#options.clock.now(), requests)
  }

  /** The live sessions of all holders with a limit on them. */
  liveHere(): Map<string, string[]> {
    const { tenants, tenantLimits, tokens } = this.#options
    const live = new Map<string, string[]>()
    for (const [tenant, all] of tenants) {
      if (tenantLimits?.get(tenant)?.live_sessions === undefined) continue
      live.set(tenantKey(tenant), [...this.#liveOf(tenantKey(tenant), all)])
    }
    for (const key of this.#opened.keys()) {
      const all = tenants.get(tokens?.chainOf(key)[0]?.tenant ?? '')
      if (all) live.set(key, [...this.#liveOf(key, all)])
    }
    return live
  }

  /** Calls the listener when `liveHere` has grown. */
  onOpened(listener: () => void): () => void {
    return this.#openListeners.add(listener)
  }

  /** What another server has last said that is live there; nothing if it has said nothing for some time. */
  setLiveElsewhere(server: string, live: ReadonlyMap<string, readonly string[]>): void {
    if (live.size === 0) this.#elsewhere.delete(server)
    else this.#elsewhere.set(server, live)
  }

  /** The sessions that a caller can reach. Undefined if its tenant is unknown. */
  sessionsOf(caller: Caller): ReachableSessions | undefined {
    const all = this.#options.tenants.get(caller.tenant)
    const limited = this.#holdersOf(caller).filter(({ limits }) => limits.live_sessions !== undefined)
    // Tenants may be added while the server runs.
    if (all) this.#spendingOf(caller.tenant, all)
    if (!all || (caller.folder === undefined && limited.length === 0)) return all
    return new SessionsInside(all, {
      store: this.#storeOf(caller.tenant, caller.folder),
      isVisible: caller.folder === undefined ? () => true : insideOf([caller.folder]),
      open: (sessionId) => this.#openLive(sessionId, { all, holders: limited }),
      reserve: async () => {
        await this.#makeRoom(all, limited)
        return all.reserve()
      },
    })
  }

  of(caller: Caller): CallerLimits {
    const check = async (...names: LimitName[]): Promise<void> => {
      for (const holder of this.#holdersOf(caller)) for (const name of names) await this.#check(holder, name)
    }
    return {
      checkNewSession: () => check('sessions', 'storage_bytes'),
      checkStorage: () => check('storage_bytes'),
      checkCommand: async (op) => {
        if (startsWork.has(op)) await check('storage_bytes', 'spend_per_day')
      },
      show: () => this.#show(this.#holdersOf(caller)),
    }
  }

  /** What counts towards the limits of a token. */
  async usageOf(record: TokenRecord): Promise<LimitUsage> {
    const holder = holderOf(record)
    return holder ? (await this.#show([holder])).usage : {}
  }

  close(): void {
    for (const stop of this.#stops.splice(0)) stop()
  }

  #holdersOf({ tokenId, tenant }: Caller): Holder[] {
    if (tokenId === localUser) return []
    const { tokens, tenantLimits } = this.#options
    const limits = tenantLimits?.get(tenant)
    const ofTokens = tokens?.chainOf(tokenId).flatMap((record) => holderOf(record) ?? []) ?? []
    return limits ? [...ofTokens, { key: tenantKey(tenant), tenant, limits }] : ofTokens
  }

  async #check(holder: Holder, name: LimitName): Promise<void> {
    const most = holder.limits[name]
    if (most === undefined) return
    if ((await this.#measure(holder, name)) < most) return
    const { status, type, text } = problems[name]
    const whose = holder.tokenId === undefined ? 'the tenant' : 'the token'
    throw new RequestProblem(status, type, `The limit of ${text(most)} of ${whose} is reached.`, {
      limit: name,
      ...(name === 'spend_per_day' && { retry_after_ms: dayMs - (this.#options.clock.now() % dayMs) }),
    })
  }

  async #measure({ key, limits, tenant, tokenId, folder }: Holder, name: LimitName): Promise<number> {
    const { tenants, clock } = this.#options
    const all = tenants.get(tenant)
    switch (name) {
      case 'live_sessions':
        return all ? this.#liveCount(key, all) : 0
      case 'requests_per_minute':
        return this.#rateOf(key, limits.requests_per_minute ?? 1).used(clock.now())
      case 'sessions':
        return all ? (await rowsOf(this.#storeOf(tenant, folder))).length : 0
      case 'storage_bytes':
        return all ? this.#sizeOf(key, this.#storeOf(tenant, folder)) : 0
      case 'spend_per_day': {
        const spending = all && this.#spendingOf(tenant, all)
        await spending?.refresh()
        return spending?.spentBy(tokenId) ?? 0
      }
      default:
        return name satisfies never
    }
  }

  async #show(holders: readonly Holder[]): Promise<{ limits: Limits; usage: LimitUsage }> {
    const limits: Limits = {}
    const usage: LimitUsage = {}
    for (const holder of holders) {
      for (const [name, most] of Object.entries(holder.limits) as [LimitName, number][]) {
        const used = await this.#measure(holder, name)
        if (most - used >= (limits[name] ?? Infinity) - (usage[name] ?? 0)) continue
        limits[name] = most
        usage[name] = used
      }
    }
    return { limits, usage }
  }

  /** Of the sessions that a holder has opened, those that are still live. */
  #liveOf(key: string, all: LiveSessions): Set<string> {
    const { live } = all
    if (key.startsWith(tenantKey(''))) return new Set(live.keys())
    const open = new Set([...(this.#opened.get(key) ?? [])].filter((id) => live.has(id)))
    this.#opened.set(key, open)
    return open
  }

  /** On all servers. A session that one owns and another shows counts once. */
  #liveCount(key: string, all: LiveSessions): number {
    const live = new Set(this.#liveOf(key, all))
    for (const ofServer of this.#elsewhere.values()) for (const id of ofServer.get(key) ?? []) live.add(id)
    return live.size
  }

  /** Sessions that are live already can be joined. */
  async #openLive(
    sessionId: string,
    { all, holders }: { all: LiveSessions; holders: readonly Holder[] },
  ): Promise<LiveSession> {
    const isLive = (): boolean => all.live.has(sessionId) || this.#isElsewhere(sessionId, holders)
    while (!isLive() && this.#fullOf(all, holders)) await this.#makeRoom(all, holders)
    // Nothing is awaited between the check and the registration.
    const isNew = !all.live.has(sessionId)
    const live = all.get(sessionId)
    for (const { key } of isNew ? holders : []) this.#liveOf(key, all).add(sessionId)
    if (isNew && holders.length > 0) this.#openListeners.notify()
    return live
  }

  /** Whether it counts for all holders already, because another server has it open for them. */
  #isElsewhere(sessionId: string, holders: readonly Holder[]): boolean {
    const servers = [...this.#elsewhere.values()]
    return holders.every(({ key }) => servers.some((live) => live.get(key)?.includes(sessionId)))
  }

  #fullOf(all: LiveSessions, holders: readonly Holder[]): Holder | undefined {
    return holders.find(({ key, limits }) => this.#liveCount(key, all) >= (limits.live_sessions ?? Infinity))
  }

  /** Closes idle sessions of the holders until another one may be opened. */
  async #makeRoom(all: LiveSessions, holders: readonly Holder[]): Promise<void> {
    for (;;) {
      const full = this.#fullOf(all, holders)
      if (!full) return
      const own = this.#liveOf(full.key, all)
      const idle = all.opened.find(({ session, isIdle }) => isIdle && own.has(session.id))
      if (!idle) {
        const { status, type, text } = problems.live_sessions
        const most = full.limits.live_sessions ?? 0
        throw new RequestProblem(status, type, `The limit of ${text(most)} is reached. Close one, then try again.`, {
          limit: 'live_sessions',
        })
      }
      await all.release(idle.session.id)
    }
  }

  #storeOf(tenant: string, folder: string | undefined): SessionStore {
    const { store } = this.#options.tenants.get(tenant) as LiveSessions
    if (folder === undefined) return store
    const key = JSON.stringify([tenant, folder])
    const known = this.#stores.get(key) ?? store.restrictedTo(insideOf([folder]))
    this.#stores.delete(key)
    this.#stores.set(key, known)
    const [oldest] = this.#stores.keys()
    if (this.#stores.size > maxStores && oldest !== undefined) this.#stores.delete(oldest)
    return known
  }

  #rateOf(key: string, perMinute: number): RequestRate {
    const known = this.#rates.get(key)
    if (known?.perMinute === perMinute) return known
    const rate = new RequestRate(perMinute, this.#options.clock.now())
    this.#rates.set(key, rate)
    return rate
  }

  #sizeOf(key: string, store: SessionStore): Promise<number> {
    const now = this.#options.clock.now()
    const known = this.#sizes.get(key)
    if (known && now - known.at < measureMs) return known.bytes
    const bytes = store.storedBytes()
    this.#sizes.set(key, { at: now, bytes })
    return bytes
  }

  #spendingOf(tenant: string, sessions: LiveSessions): Spending {
    const known = this.#spending.get(sessions)
    if (known) return known
    const { tokens, clock } = this.#options
    const ancestorsOf = (tokenId: string): string[] => tokens?.chainOf(tokenId).map(({ id }) => id) ?? []
    const spending = new Spending(sessions, { clock, ancestorsOf })
    this.#spending.set(sessions, spending)
    this.#stops.push(sessions.observe((live) => this.#watch(live, { tenant, spending })))
    return spending
  }

  /** Cancels a run at the model answer that reaches a limit on spending. */
  #watch(live: LiveSession, of: { tenant: string; spending: Spending }): () => void {
    return live.onLine((line) => {
      if (costsSomething(line)) void this.#cancelIfSpent(live, of).catch(emitWarning)
    })
  }

  async #cancelIfSpent(live: LiveSession, { tenant, spending }: { tenant: string; spending: Spending }): Promise<void> {
    const { tokens } = this.#options
    // Reading logs costs time, so only if there is a limit at all.
    const isLimited =
      this.#options.tenantLimits?.get(tenant)?.spend_per_day !== undefined ||
      tokens?.list(tenant).some(({ limits }) => limits?.spend_per_day !== undefined)
    if (!isLimited) return
    await spending.refresh()
    const payer = spending.payerOf(live.session.id)
    try {
      const caller = { tokenId: payer ?? 'unknown', tenant }
      for (const holder of this.#holdersOf({ ...caller, role: 'drive' })) await this.#check(holder, 'spend_per_day')
    } catch (error) {
      if (!(error instanceof RequestProblem)) throw error
      if (live.driver.isBusy) await live.perform(newId(), 'server', { op: 'cancel', args: {} })
    }
  }
}

/**
 * What counts towards the limits of tokens, by id, as far as a store knows it: requests and live sessions are known only
 * to the servers.
 */
export async function storedUsage(
  records: readonly TokenRecord[],
  { tokens, store }: { tokens: TokenStore; store: SessionStore },
): Promise<Map<string, LimitUsage>> {
  const ancestorsOf = (tokenId: string): string[] => tokens.chainOf(tokenId).map(({ id }) => id)
  const spending = new Spending({ store, opened: [] }, { clock: systemClock, ancestorsOf })
  const usages = new Map<string, LimitUsage>()
  for (const { id, folder, limits } of records) {
    if (!limits) continue
    const visible = folder === undefined ? store : store.restrictedTo(insideOf([folder]))
    if (limits.spend_per_day !== undefined) await spending.refresh()
    usages.set(id, {
      ...(limits.sessions !== undefined && { sessions: (await rowsOf(visible)).length }),
      ...(limits.storage_bytes !== undefined && { storage_bytes: await visible.storedBytes() }),
      ...(limits.spend_per_day !== undefined && { spend_per_day: spending.spentBy(id) }),
    })
  }
  return usages
}

const maxStores = 1000

function tenantKey(tenant: string): string {
  return `tenant ${tenant}`
}

const problems: Record<LimitName, { status: number; type: string; text: (most: number) => string }> = {
  live_sessions: { status: 409, type: 'live-session-limit', text: (most) => `${most} live sessions` },
  sessions: { status: 403, type: 'session-limit', text: (most) => `${most} stored sessions` },
  storage_bytes: { status: 403, type: 'storage-limit', text: (most) => `${most} stored bytes` },
  requests_per_minute: { status: 429, type: 'too-many-requests', text: (most) => `${most} requests per minute` },
  spend_per_day: { status: 403, type: 'spend-limit', text: (most) => `${most} US dollars per day` },
}

function holderOf({ id, tenant, folder, limits }: TokenRecord): Holder | undefined {
  return limits && { key: id, tokenId: id, tenant, limits, ...(folder !== undefined && { folder }) }
}

async function rowsOf(store: SessionStore): Promise<SessionInfo[]> {
  const places = ['active', 'archive', 'trash'] as const
  const pages = await Promise.all(places.map((place) => store.list({ place, limit: Infinity })))
  return pages.flatMap(({ sessions }) => sessions)
}

function costsSomething(line: Line): boolean {
  if (line.type === 'message') return (line.message.usage?.cost ?? 0) > 0
  return line.type === 'usage' && (line.usage.tokens.cost ?? 0) > 0
}

/** A bucket that holds the requests of one minute. */
class RequestRate {
  readonly perMinute: number
  #left: number
  #at: number

  constructor(perMinute: number, now: number) {
    this.perMinute = perMinute
    this.#left = perMinute
    this.#at = now
  }

  /** How long until a request may be made; 0: now. */
  waitMs(now: number): number {
    const left = this.#leftAt(now)
    return left >= 1 ? 0 : Math.ceil(((1 - left) * minuteMs) / this.perMinute)
  }

  /** Requests that several servers have admitted at the same time may be more than were left. */
  take(now: number, requests = 1): void {
    this.#left = Math.max(-this.perMinute, this.#leftAt(now) - requests)
    this.#at = now
  }

  used(now: number): number {
    return this.perMinute - Math.floor(this.#leftAt(now))
  }

  #leftAt(now: number): number {
    const refilled = (Math.max(0, now - this.#at) / minuteMs) * this.perMinute
    return Math.min(this.perMinute, this.#left + refilled)
  }
}
