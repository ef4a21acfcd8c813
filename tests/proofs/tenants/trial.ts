import { isId } from '@tapetree/session'
import { MemoryLogStore } from '@tapetree/session/log-store'
import { PostgresLogStore } from '@tapetree/session/stores/postgres'
import { newCanary } from '../erase/canary.ts'
import { Actor, bytesIn, headerOf, messageLine, type Operation } from './actor.ts'
import { attackTenant } from './attack.ts'
import { openRole, tenantNames, type TenantDatabases } from './databases.ts'
import { hostileNames } from './hostile-names.ts'

interface Tenant {
  name: string
  canary: string
  /** Ids that this tenant may create. Some of them the other tenant has, too. */
  ids: readonly string[]
  real: Actor
  /** The same calls to a store in memory that has this tenant alone. */
  model: Actor
  /** The number of lines of each session. */
  heads: Map<string, number>
  held: Set<string>
  hashes: string[]
}

const places = ['active', 'archive', 'trash'] as const
const sharedIds = Array.from({ length: 20 }, (_, index) => `s${index}`)
/** Calls that run beside each other, each on a session of its own. */
const writesAtOnce = 40
const readsAtOnce = 40
/** A session with more lines is erased, so that the last calls cost what the first ones do. */
const maxLines = 12

/** Random calls of two tenants, and of others that have nothing, on one database. */
export class TenantTrial {
  readonly problems: string[] = []
  readonly figures = { calls: 0, hostile: 0, searchedMb: 0, statements: 0 }
  readonly #databases: TenantDatabases
  readonly #database: string
  readonly #store: PostgresLogStore
  readonly #random: () => number
  readonly #tenants: Tenant[]
  readonly #outsiders: Tenant[]
  readonly #hostile = hostileNames(tenantNames)
  readonly #cursors: string[] = []
  #clockMs = 0

  private constructor(databases: TenantDatabases, { database, random }: { database: string; random: () => number }) {
    this.#databases = databases
    this.#database = database
    this.#random = random
    const url = databases.server.urlFor(openRole, database)
    // A busy machine must not end a lease.
    this.#store = new PostgresLogStore({ url, leaseMs: 600_000, connections: 12 })
    this.#tenants = tenantNames.map((name, index) => this.#tenant(name, [...sharedIds, ...ownIds(index)]))
    this.#outsiders = this.#hostile.map((name) => this.#tenant(name, []))
  }

  static async start(
    databases: TenantDatabases,
    { random, change }: { random: () => number; change?: string },
  ): Promise<TenantTrial> {
    return new TenantTrial(databases, { database: await databases.create(change), random })
  }

  async play(calls: number): Promise<void> {
    const end = this.figures.calls + calls
    while (this.figures.calls < end && this.problems.length === 0) {
      const taken = new Set<string>()
      await this.#together(writesAtOnce, (tenant) => this.#write(tenant, taken))
      await this.#together(readsAtOnce, (tenant) => this.#read(tenant))
    }
  }

  /** Lets all outsiders look for sessions, and sends SQL as the application, for each tenant against the other one. */
  async attack(): Promise<void> {
    for (const outsider of this.#outsiders) {
      const ids = this.#tenants.map(({ held }) => this.#pick([...held, 's0']))
      await Promise.all([
        this.#call(outsider, { type: 'list', query: {} }),
        ...ids.map((id) => this.#call(outsider, { type: 'read', id, place: 'active' })),
      ])
    }
    const [first, second] = this.#tenants.map(({ canary }) => canary) as [string, string]
    const [one, two] = tenantNames
    for (const [attacker, victim, canary] of [[one, two, second] as const, [two, one, first] as const]) {
      const found = await attackTenant(this.#databases.server, { database: this.#database, attacker, victim, canary })
      this.figures.statements += found.statements
      this.problems.push(...found.problems)
    }
  }

  /** Compares every session with the model once more, and closes the store. */
  async finish(): Promise<void> {
    for (const tenant of this.#tenants) {
      await tenant.real
        .close()
        .catch((error: unknown) => this.problems.push(`a writer did not close: ${String(error)}`))
      await tenant.model.close()
      if (this.problems.length > 0) continue
      for (const id of this.#tenants.flatMap(({ ids }) => ids)) {
        for (const place of places) await this.#call(tenant, { type: 'read', id, place })
      }
    }
    await this.#store.close()
  }

  #tenant(name: string, ids: readonly string[]): Tenant {
    return {
      name,
      ids,
      canary: newCanary(this.#random),
      real: new Actor(this.#store, name),
      model: new Actor(new MemoryLogStore(), name),
      heads: new Map(),
      held: new Set(),
      hashes: [],
    }
  }

  async #together(count: number, next: (tenant: Tenant) => Operation | undefined): Promise<void> {
    const running: Promise<void>[] = []
    for (let index = 0; index < count; index++) {
      const tenant = this.#random() < 0.06 ? this.#pick(this.#outsiders) : this.#pick(this.#tenants)
      const operation = next(tenant)
      if (operation) running.push(this.#call(tenant, operation))
    }
    await Promise.all(running)
  }

  async #call(tenant: Tenant, operation: Operation): Promise<void> {
    const expecting = isRefused(tenant.name, operation)
      ? Promise.resolve({ error: 'invalid-id', messages: [] })
      : tenant.model.run(operation)
    const [expected, actual] = await Promise.all([expecting, tenant.real.run(operation)])
    this.figures.calls++
    const bytes = bytesIn(actual)
    this.figures.searchedMb += bytes.length / 1e6
    const what = `${JSON.stringify(operation).slice(0, 200)} of ${JSON.stringify(tenant.name).slice(0, 40)}`
    for (const { name, canary } of this.#tenants) {
      if (name !== tenant.name && bytes.includes(canary)) this.problems.push(`${what} gave bytes of ${name}`)
    }
    if ('error' in actual) {
      const isUnstorable = actual.error === 'storage-failed' && hasZero(tenant.name, operation)
      const isExpected = 'error' in expected && expected.error === actual.error
      if (!isExpected && !isUnstorable) this.problems.push(`${what} failed: ${actual.error} ${actual.messages.join()}`)
    } else if ('error' in expected) {
      this.problems.push(`${what} gave ${bytes.slice(0, 300)} instead of the error ${expected.error}`)
    } else {
      const difference = isPart(operation, actual.value, expected.value)
        ? undefined
        : firstDifference(bytesIn(actual.value), bytesIn(expected.value))
      if (difference !== undefined) this.problems.push(`${what} gave ${difference}`)
    }
    this.#note(tenant, operation, actual)
  }

  #note(tenant: Tenant, operation: Operation, result: Awaited<ReturnType<Actor['run']>>): void {
    if ('error' in result) return
    const { heads, held, hashes } = tenant
    switch (operation.type) {
      case 'create':
        heads.set(operation.id, 1)
        return
      case 'append':
        if (result.value === 'appended') heads.set(operation.id, operation.head + operation.lines.length)
        return
      case 'claim':
        if (result.value === 'claimed') held.add(operation.id)
        return
      case 'release':
        held.delete(operation.id)
        return
      case 'discard':
      case 'erase':
        held.delete(operation.id)
        heads.delete(operation.id)
        return
      case 'put':
        hashes.push((result.value as { sha256: string }).sha256)
        return
      case 'list': {
        const { cursor } = result.value as { cursor?: string }
        if (cursor !== undefined && this.#cursors.push(cursor) > 20) this.#cursors.shift()
        return
      }
      default:
    }
  }

  /** A call that may change a session which no other call of this round uses; undefined if the session is taken. */
  #write(tenant: Tenant, taken: Set<string>): Operation | undefined {
    const held = [...tenant.held]
    const isWriter = held.length > 0 && this.#random() < 0.55
    const id = isWriter ? this.#pick(held) : this.#anyId(tenant)
    const key = `${tenant.name}/${id}`
    if (taken.has(key)) return undefined
    taken.add(key)
    return isWriter ? this.#writerCall(tenant, id) : this.#storeCall(tenant, id)
  }

  #writerCall(tenant: Tenant, id: string): Operation {
    const dice = this.#random()
    const head = tenant.heads.get(id) ?? 1
    if (head > maxLines) return { type: 'release', id }
    if (dice < 0.6) {
      const count = 1 + Math.floor(this.#random() * 3)
      const lines = Array.from({ length: count }, (_, index) =>
        messageLine(head + 1 + index, { said: this.#sentence(tenant), ms: ++this.#clockMs }),
      )
      return { type: 'append', id, lines, head }
    }
    if (dice < 0.7) return { type: 'put', id, bytes: Buffer.from(`${this.#sentence(tenant)} ${++this.#clockMs}`) }
    if (dice < 0.78) return { type: 'save', id, content: this.#sentence(tenant) }
    if (dice < 0.82) return { type: 'reclaim', id }
    return { type: 'release', id }
  }

  #storeCall(tenant: Tenant, id: string): Operation {
    const dice = this.#random()
    const isOwn = tenant.ids.includes(id)
    if ((tenant.heads.get(id) ?? 0) > maxLines && !tenant.held.has(id)) return { type: 'erase', id }
    if (dice < 0.35 && (isOwn || this.#hostile.includes(id))) {
      return { type: 'create', id, header: headerOf(id, `/home/${tenant.canary}`) }
    }
    if (dice < 0.75) return { type: 'claim', id }
    // Whether a move to where a session is already needs a free session is up to the store.
    if (dice < 0.9) return { type: 'move', id, place: this.#pick(tenant.held.has(id) ? places.slice(1) : places) }
    return { type: dice < 0.97 ? 'erase' : 'discard', id }
  }

  #read(tenant: Tenant): Operation {
    const dice = this.#random()
    if (dice < 0.06) return { type: 'list', query: this.#listQuery() }
    if (dice < 0.12) return { type: 'search', query: this.#searchQuery() }
    const id = this.#anyId(tenant)
    const place = this.#random() < 0.7 ? 'active' : this.#pick(places)
    if (dice < 0.45) return { type: 'read', id, place }
    if (dice < 0.6) return { type: 'seek', id, place, seq: 1 + Math.floor(this.#random() * 9) }
    if (dice < 0.68) return { type: 'checkpoint', id, place }
    if (dice < 0.76) return { type: 'owner', id }
    if (dice < 0.84) return { type: 'place', id }
    const hashes = this.#tenants.flatMap((each) => each.hashes)
    const sha256 = hashes.length > 0 && this.#random() < 0.9 ? this.#pick(hashes) : this.#pick(this.#hostile)
    return { type: 'blob', id, place, sha256 }
  }

  #listQuery(): Extract<Operation, { type: 'list' }>['query'] {
    const owner = this.#pick(this.#tenants)
    const hasCursor = this.#cursors.length > 0 && this.#random() < 0.3
    return {
      ...(this.#random() < 0.4 && { place: this.#pick(places) }),
      ...(this.#random() < 0.3 && { limit: 1 + Math.floor(this.#random() * 5) }),
      ...(this.#random() < 0.3 && { text: this.#pick(['word', owner.canary, this.#pick(this.#hostile)]) }),
      ...(this.#random() < 0.2 && { cwd: this.#pick([`/home/${owner.canary}`, this.#pick(this.#hostile)]) }),
      ...(hasCursor && { cursor: this.#pick(this.#cursors) }),
    }
  }

  #searchQuery(): Extract<Operation, { type: 'search' }>['query'] {
    const { canary, ids } = this.#pick(this.#tenants)
    if (this.#random() < 0.3) return { text: this.#pick(this.#hostile), limit: Infinity }
    return {
      text: this.#pick([canary, canary.slice(0, 7), `word${Math.floor(this.#random() * 30)}`]),
      ...(this.#random() < 0.3 && { place: this.#pick(places) }),
      ...(this.#random() < 0.3 && { limit: 1 + Math.floor(this.#random() * 10) }),
      ...(this.#random() < 0.3 && { among: new Set([this.#pick(ids), this.#pick(ids), this.#pick(this.#hostile)]) }),
    }
  }

  #anyId(tenant: Tenant): string {
    const dice = this.#random()
    if (dice < 0.7 && tenant.ids.length > 0) return this.#pick(tenant.ids)
    if (dice < 0.85) return this.#pick(this.#pick(this.#tenants).ids)
    this.figures.hostile++
    return this.#pick(this.#hostile)
  }

  #sentence({ canary }: Tenant): string {
    return `word${Math.floor(this.#random() * 30)} ${canary} it's 100 % of "a_b"`
  }

  #pick<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.#random() * choices.length)] as T
  }
}

/** Ids that the other tenant never has. */
function ownIds(tenant: number): string[] {
  return Array.from({ length: 6 }, (_, index) => `own-${tenant}-${index}`)
}

/** A store in memory takes any id; one that other processes use does not. */
function isRefused(tenant: string, operation: Operation): boolean {
  return operation.type === 'create' && !(isId(tenant) && isId(operation.id))
}

/** PostgreSQL has no character 0, so it rejects the call. */
function hasZero(tenant: string, operation: Operation): boolean {
  const { among } = 'query' in operation && 'among' in operation.query ? operation.query : {}
  return [tenant, JSON.stringify(operation), ...(among ?? [])].some(
    (each) => each.includes('\0') || each.includes('\\u0000'),
  )
}

/** Of words with one or two characters, a database finds the beginnings alone. */
function isPart(operation: Operation, actual: unknown, expected: unknown): boolean {
  if (operation.type !== 'search' || operation.query.limit !== Infinity) return false
  const known = new Set((expected as unknown[]).map(bytesIn))
  return (actual as unknown[]).every((hit) => known.has(bytesIn(hit)))
}

function firstDifference(actual: string, expected: string): string | undefined {
  if (actual === expected) return undefined
  let at = 0
  while (actual[at] === expected[at]) at++
  const from = Math.max(0, at - 40)
  return `…${actual.slice(from, at + 100)}… instead of …${expected.slice(from, at + 100)}…`
}
