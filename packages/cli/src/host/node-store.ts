import { SessionStore } from '@tapetree/session'
import type {
  AbandonedLog,
  AbandonedOptions,
  Claim,
  ClaimOptions,
  LogStore,
  ReadableLog,
  WritableLog,
} from '@tapetree/session/log-store'
import type { StoredDocument } from '@tapetree/session/stores/postgres'
import type { Place, Scope } from '@tapetree/session'
import { createHash } from 'node:crypto'
import { mkdir, rm } from 'node:fs/promises'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { Places } from './places.ts'
import { requireDatabase, type StoreAddress } from './store-address.ts'

/** A database with sessions, as this machine uses it. */
export interface NodeStore {
  store: SessionStore
  /** File snapshots of the sessions of this store. Those of the user's own sessions are apart: they are cleaned up by their logs. */
  snapshotsFolder: string
  /** A text that all servers of the database share. */
  document: (name: string) => StoredDocument
  /** The servers of the database that can be reached. */
  nodes: () => Promise<{ name: string; address: string }[]>
}

export interface NodeOptions {
  /** The name of this server in the service. Default: that of the machine. */
  node?: string
  /** Where the other servers reach this one. */
  address?: string
}

/**
 * Opens the sessions of a database. What belongs to this machine, such as drafts and the output of commands, is in a folder of
 * its own beside the user's sessions. The caller closes the store.
 */
export async function openNodeStore(
  address: Extract<StoreAddress, { type: 'postgres' }>,
  { sessions }: Pick<Places, 'sessions'>,
  options: NodeOptions = {},
): Promise<NodeStore> {
  await requireDatabase(address)
  const { PostgresLogStore } = await import('@tapetree/session/stores/postgres')
  const folder = join(dirname(sessions), 'nodes', createHash('sha256').update(address.shown).digest('hex').slice(0, 16))
  const local = join(folder, 'sessions')
  await mkdir(local, { recursive: true, mode: 0o700 })
  const logs = new PostgresLogStore({ url: address.url, ...options })
  const store = new SessionStore(new LogsOfNode(logs, local), {
    erasing: async (sessionId) => () => rm(join(local, sessionId), { recursive: true, force: true }),
  })
  return {
    store,
    snapshotsFolder: join(folder, 'workspaces'),
    document: (name) => logs.document(store.scope, name),
    nodes: () => logs.nodes(),
  }
}

/**
 * Adds a local folder to each session, and waits for the lease of a process that died on this machine.
 *
 * @internal Exported for its test.
 */
export class LogsOfNode implements LogStore {
  readonly #logs: LogStore
  readonly #folder: string
  readonly create: LogStore['create']
  readonly discard: LogStore['discard']
  readonly list: LogStore['list']
  readonly search: LogStore['search']
  readonly placeOf: LogStore['placeOf']
  readonly storedBytes: LogStore['storedBytes']
  readonly move: LogStore['move']
  readonly erase: LogStore['erase']
  readonly close: LogStore['close']

  constructor(logs: LogStore, folder: string) {
    this.#logs = logs
    this.#folder = folder
    this.create = logs.create.bind(logs)
    this.discard = logs.discard.bind(logs)
    this.list = logs.list.bind(logs)
    this.search = logs.search.bind(logs)
    this.placeOf = logs.placeOf.bind(logs)
    this.storedBytes = logs.storedBytes.bind(logs)
    this.move = logs.move.bind(logs)
    this.erase = logs.erase.bind(logs)
    this.close = logs.close.bind(logs)
  }

  async open(scope: Scope, sessionId: string, place?: Place): Promise<ReadableLog> {
    return this.#withFolder(await this.#logs.open(scope, sessionId, place), sessionId)
  }

  async claim(scope: Scope, sessionId: string, options?: ClaimOptions): Promise<Claim> {
    const claim = await this.#claimAfterLease(scope, sessionId, options)
    if (claim.type === 'claimed') await this.#makeFolder(claim.log, sessionId)
    return claim
  }

  async claimAbandoned(scope: Scope, options: AbandonedOptions): Promise<AbandonedLog[]> {
    const claimed = (await this.#logs.claimAbandoned?.(scope, options)) ?? []
    const made = await Promise.allSettled(claimed.map(({ log, sessionId }) => this.#makeFolder(log, sessionId)))
    const usable = claimed.filter((_, index) => made[index]?.status === 'fulfilled')
    const failure = made.find((each) => each.status === 'rejected')
    if (failure && usable.length === 0) throw failure.reason
    return usable
  }

  async check(scope: Scope): Promise<void> {
    await this.#logs.check?.(scope)
  }

  /** Never takes a session from a process that may be alive: only its lease decides, and this waits for its end. */
  async #claimAfterLease(scope: Scope, sessionId: string, options?: ClaimOptions): Promise<Claim> {
    const until = Date.now() + longestLeaseMs
    for (;;) {
      const claim = await this.#logs.claim(scope, sessionId, options)
      if (claim.type === 'claimed' || !hasDiedHere(claim.owner) || Date.now() > until) return claim
      await wait(askAgainMs)
    }
  }

  /** Hands the session over if it fails, for example on a full disk: no other server can claim it before. */
  async #makeFolder(log: WritableLog, sessionId: string): Promise<void> {
    try {
      await mkdir(join(this.#folder, sessionId), { recursive: true, mode: 0o700 })
    } catch (error) {
      // If the store does not answer, it finds later that this process does not hold the session.
      await (log.handOver?.() ?? log.close()).catch(() => undefined)
      throw error
    }
    this.#withFolder(log, sessionId)
  }

  #withFolder<Log extends ReadableLog>(log: Log, sessionId: string): Log {
    return Object.assign(log, { localFolder: join(this.#folder, sessionId) })
  }
}

/** Longer than the lease of a server. */
const longestLeaseMs = 5000
const askAgainMs = 100

function hasDiedHere({ host, process: id }: { host?: string; process?: string }): boolean {
  if (host !== hostname() || id === undefined) return false
  try {
    process.kill(Number(id), 0)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'
  }
}
