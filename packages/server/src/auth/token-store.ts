import { parseJson } from '@tapetree/session/util/json'
import { systemClock, type Clock } from '@tapetree/agent/run'
import { Listeners } from '@tapetree/session/util/listeners'
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { RequestProblem, emitWarning } from '../util/problem-error.ts'
import { limitsSchema, type LimitName, type Limits, type TokenInfo } from '@tapetree/client/protocol'
import { isInside } from '@tapetree/agent/util/is-inside'
import { mayDo, roles, type Role } from './operation-roles.ts'
import { FileDocument, type SharedDocument } from './shared-document.ts'

/** A token's record. Only the holder has the token itself. */
export interface TokenRecord {
  id: string
  tenant: string
  role: Role
  /** For people: its owner or device. */
  name?: string
  /** Absolute and real. The token reaches only sessions inside of it. */
  folder?: string
  limits?: Limits
  /** The token that created this one. */
  parentId?: string
  /** Milliseconds since 1970. */
  createdAt: number
  expiresAt?: number
}

export interface NewToken {
  tenant: string
  role: Role
  name?: string
  folder?: string
  limits?: Limits
  expiresAt?: number
}

export interface TokenStoreOptions {
  /** The path of a file, or a document that the servers of a service share. */
  file: string | SharedDocument
  /** The token that the first start creates; null: none. */
  first?: NewToken | null
  clock?: Clock
}

/**
 * Tokens by hash, in one file that only its owner can read, or in a database. Several processes may share it: changes read
 * and write in one step, and every lookup sees the current file.
 */
export class TokenStore {
  readonly #file: SharedDocument
  readonly #clock: Clock
  /** The tokens as last read from the file. */
  #tokens = new Map<string, StoredToken>()
  /** The version of the file that was read. */
  #version: string | undefined
  /** False after a failed read: `#tokens` may be outdated. */
  #isReadable = true
  /** Tokens revoked by this process. They stay revoked even if the file could not be written. */
  readonly #revoked = new Set<string>()
  readonly #listeners = new Listeners<string>(emitWarning)
  readonly #changeListeners = new Listeners<void>(emitWarning)
  #firstToken: string | undefined
  #writing = Promise.resolve()

  private constructor({ file, clock = systemClock }: TokenStoreOptions) {
    this.#file = typeof file === 'string' ? new FileDocument(file) : file
    this.#clock = clock
  }

  /** Reads the file, or creates it with one token of role `drive`. An unreadable file admits no token. */
  static async open(options: TokenStoreOptions): Promise<TokenStore> {
    const store = new TokenStore(options)
    const { first = { tenant: defaultTenant, role: 'drive', name: 'first start' } } = options
    const file = store.#file
    const text = file.content()
    if (text === undefined) await store.#makeFile(first)
    else parseTokens(file.name, text)
    if (file instanceof FileDocument) await file.protect()
    store.refresh()
    return store
  }

  /** The token created on the first start. Returned only once. */
  takeFirstToken(): string | undefined {
    const token = this.#firstToken
    this.#firstToken = undefined
    return token
  }

  /**
   * The record of a token; undefined if it is unknown, was revoked by any process or has expired, or if this is
   * true of the token that created it. Throws `tokens-unreadable` while the file cannot be read.
   */
  verify(token: string): TokenRecord | undefined {
    this.refresh()
    if (!this.#isReadable) throw unreadable()
    const [, id = '', secret = ''] = tokenPattern.exec(token) ?? []
    const stored = this.#tokens.get(id)
    // An unknown id takes as long as a known one.
    const isRight = timingSafeEqual(hashOf(secret), Buffer.from(stored?.hash ?? unknownHash, 'hex'))
    if (!stored || !isRight || this.#isOver(stored, this.#tokens)) return undefined
    return recordOf(stored)
  }

  /** A token and the tokens that it derives from, nearest first. Empty if it is not valid. */
  chainOf(tokenId: string): TokenRecord[] {
    const stored = this.#tokens.get(tokenId)
    if (!stored || this.#isOver(stored, this.#tokens)) return []
    return chainIn(this.#tokens, stored).map(recordOf)
  }

  /** Of one tenant, or of all. Includes expired tokens. */
  list(tenant?: string): TokenRecord[] {
    this.refresh()
    const isWanted = (token: StoredToken): boolean => tenant === undefined || token.tenant === tenant
    return [...this.#tokens.values()].filter(isWanted).map(recordOf)
  }

  /**
   * Only the return value contains the token. If a token creates it (`by`), it inherits what is absent. Rejects
   * with `wider-than-creator` if anything is wider, and with `creator-over` if the creator is no longer valid.
   */
  async create(newToken: NewToken, { by }: { by?: string } = {}): Promise<{ token: string; record: TokenRecord }> {
    const created = this.#newToken(newToken, by)
    await this.#change((tokens) => {
      // Checked under the lock: another process may have revoked the creator by now.
      if (by !== undefined) Object.assign(created.stored, grantOnDisk(this.#narrowed(newToken, by, tokens)))
      tokens.set(created.stored.id, created.stored)
    })
    return { token: created.token, record: recordOf(created.stored) }
  }

  /** Throws as `create` does, without creating anything. */
  checkGrant(newToken: NewToken, { by }: { by: string }): void {
    this.refresh()
    this.#narrowed(newToken, by, this.#tokens)
  }

  /**
   * Revokes a token and all tokens that derive from it. Returns false if this tenant has no such token. Closes
   * their connections at once, before the file is written.
   */
  async revoke(tokenId: string, tenant: string): Promise<boolean> {
    this.refresh()
    if (this.#tokens.get(tokenId)?.tenant !== tenant) return false
    const revokeIn = (tokens: ReadonlyMap<string, StoredToken>): void => {
      for (const id of familyIn(tokens, tokenId)) this.#revoked.add(id)
    }
    revokeIn(this.#tokens)
    this.#take(this.#tokens)
    // Another process may have added to the family by now.
    await this.#change(revokeIn)
    return true
  }

  /**
   * Calls the listener for each revoked token: at once if this process revoked it, and by `refresh` if another
   * one did.
   */
  onRevoked(listener: (tokenId: string) => void): () => void {
    return this.#listeners.add(listener)
  }

  /** Calls the listener when this process has changed the tokens, after other processes can read the change. */
  onChanged(listener: () => void): () => void {
    return this.#changeListeners.add(listener)
  }

  /** Learns what another process has changed at once, instead of some time later. */
  async reload(): Promise<void> {
    await this.#file.reload?.()
    this.refresh()
  }

  /**
   * Reads the file again if another process changed it; otherwise costs one `stat`. A missing file has no tokens. If it is
   * broken or cannot be read, no token is accepted, none counts as revoked, and the next call tries again.
   */
  refresh(): void {
    try {
      this.#read()
      this.#isReadable = true
    } catch {
      this.#isReadable = false
    }
  }

  #read(): void {
    // Read before the content: a later change is read the next time.
    const version = this.#file.version()
    if (version === this.#version) return
    const text = this.#file.content()
    const tokens = text === undefined ? [] : parseTokens(this.#file.name, text)
    this.#version = version
    this.#take(new Map(tokens.map((token) => [token.id, token])))
  }

  /** Whether it has expired, or a token that it derives from is gone or has expired. */
  #isOver(stored: StoredToken, tokens: ReadonlyMap<string, StoredToken>): boolean {
    const chain = chainIn(tokens, stored)
    const now = this.#clock.now()
    return (
      chain.at(-1)?.parent_id !== undefined ||
      chain.some(({ expires_at: expiresAt }) => expiresAt !== undefined && Date.parse(expiresAt) <= now)
    )
  }

  #narrowed(newToken: NewToken, by: string, tokens: ReadonlyMap<string, StoredToken>): NewToken {
    const creator = this.#revoked.has(by) ? undefined : tokens.get(by)
    if (!creator || this.#isOver(creator, tokens)) {
      throw new RequestProblem(401, 'creator-over', 'The token that creates this one was revoked or has expired.')
    }
    if (chainIn(tokens, creator).length >= maxDepth) {
      throw new RequestProblem(403, 'derived-too-often', `A token can be derived from another ${maxDepth} times.`)
    }
    return narrowed(newToken, recordOf(creator))
  }

  #newToken(newToken: NewToken, parentId?: string): { token: string; stored: StoredToken } {
    const secret = randomBytes(32).toString('base64url')
    const stored: StoredToken = {
      id: randomBytes(8).toString('hex'),
      hash: hashOf(secret).toString('hex'),
      ...grantOnDisk(newToken),
      created_at: new Date(this.#clock.now()).toISOString(),
      ...(parentId !== undefined && { parent_id: parentId }),
    }
    return { token: `tapetree_${stored.id}_${secret}`, stored }
  }

  /** Of several processes that start for the first time, one creates the first token. */
  #makeFile(first: NewToken | null): Promise<void> {
    return this.#change((tokens, { isNew }) => {
      if (!isNew) return false
      if (!first) return true
      const { token, stored } = this.#newToken(first)
      this.#firstToken = token
      tokens.set(stored.id, stored)
      return true
    })
  }

  #take(tokens: Map<string, StoredToken>): void {
    const before = this.#tokens
    this.#tokens = new Map([...tokens].filter(([id]) => !this.#revoked.has(id)))
    for (const id of before.keys()) {
      if (!this.#tokens.has(id)) this.#listeners.notify(id)
    }
  }

  /**
   * Changes run one after another in this process, and under a lock across processes. A token is valid when it
   * is on disk. Nothing is written if `change` returns that nothing changed.
   */
  #change(change: (tokens: Map<string, StoredToken>, file: { isNew: boolean }) => unknown): Promise<void> {
    const changed = this.#writing.then(() => this.#changeFile(change))
    this.#writing = changed.catch(() => undefined)
    return changed
  }

  async #changeFile(change: (tokens: Map<string, StoredToken>, file: { isNew: boolean }) => unknown): Promise<void> {
    let changed: Map<string, StoredToken> | undefined
    await this.#file.change((text) => {
      const stored = text === undefined ? [] : parseTokens(this.#file.name, text)
      const tokens = new Map(stored.map((token) => [token.id, token]))
      const hasChanged = change(tokens, { isNew: text === undefined })
      for (const id of this.#revoked) tokens.delete(id)
      changed = hasChanged === false ? undefined : tokens
      return changed && `${JSON.stringify({ version: 1, tokens: [...tokens.values()] }, null, 2)}\n`
    })
    // Another process may have changed it again: the next lookup reads it.
    if (!changed) return
    this.#take(changed)
    this.#changeListeners.notify()
  }
}

export const defaultTenant = 'default'

function unreadable(): RequestProblem {
  return new RequestProblem(503, 'tokens-unreadable', 'The server cannot read its tokens at the moment. Try again.', {
    retry_after_ms: 1000,
  })
}

const tokenPattern = /^tapetree_([0-9a-f]{16})_([A-Za-z0-9_-]{43})$/
/** How many tokens may derive from each other in a row; every lookup follows them. */
const maxDepth = 8
const unknownHash = '0'.repeat(64)

const storedTokenSchema = z.strictObject({
  id: z.string().regex(/^[0-9a-f]{16}$/),
  hash: z.string().regex(/^[0-9a-f]{64}$/),
  tenant: z.string().min(1),
  role: z.enum(roles),
  name: z.string().exactOptional(),
  // Earlier versions, which do not know these members, reject the file instead of ignoring a restriction.
  folder: z.string().min(1).exactOptional(),
  limits: limitsSchema.exactOptional(),
  parent_id: z.string().exactOptional(),
  created_at: z.iso.datetime(),
  expires_at: z.iso.datetime().exactOptional(),
})
type StoredToken = z.infer<typeof storedTokenSchema>

const tokenFileSchema = z.strictObject({ version: z.literal(1), tokens: z.array(storedTokenSchema) })

/** A record as clients see it. */
export function tokenInfo(record: TokenRecord): TokenInfo {
  const { id, role, tenant, name, folder, parentId, limits, createdAt, expiresAt } = record
  return {
    id,
    role,
    tenant,
    created_at: new Date(createdAt).toISOString(),
    ...(name !== undefined && { name }),
    ...(folder !== undefined && { folder }),
    ...(parentId !== undefined && { parent_id: parentId }),
    ...(limits && { limits }),
    ...(expiresAt !== undefined && { expires_at: new Date(expiresAt).toISOString() }),
  }
}

function grantOnDisk({
  tenant,
  role,
  name,
  folder,
  limits,
  expiresAt,
}: NewToken): Omit<StoredToken, 'id' | 'hash' | 'created_at' | 'parent_id'> {
  return {
    tenant,
    role,
    ...(name !== undefined && { name }),
    ...(folder !== undefined && { folder }),
    ...(limits && Object.keys(limits).length > 0 && { limits }),
    ...(expiresAt !== undefined && { expires_at: new Date(expiresAt).toISOString() }),
  }
}

function recordOf(stored: StoredToken): TokenRecord {
  const { id, tenant, role, name, folder, limits, parent_id: parentId } = stored
  const { created_at: createdAt, expires_at: expiresAt } = stored
  return {
    id,
    tenant,
    role,
    createdAt: Date.parse(createdAt),
    ...(name !== undefined && { name }),
    ...(folder !== undefined && { folder }),
    ...(limits && { limits }),
    ...(parentId !== undefined && { parentId }),
    ...(expiresAt !== undefined && { expiresAt: Date.parse(expiresAt) }),
  }
}

/** A token and those that it derives from, nearest first. The last one has a `parent_id` only if that is gone. */
function chainIn(tokens: ReadonlyMap<string, StoredToken>, stored: StoredToken): StoredToken[] {
  const chain = [stored]
  // A file that was edited by hand may contain a cycle.
  for (let { parent_id: next } = stored; next !== undefined && chain.length <= maxDepth;) {
    const parent = tokens.get(next)
    if (!parent) break
    chain.push(parent)
    next = parent.parent_id
  }
  return chain
}

/** The ids of a token and of all tokens that derive from it. */
function familyIn(tokens: ReadonlyMap<string, StoredToken>, tokenId: string): string[] {
  const isOfFamily = (stored: StoredToken): boolean =>
    chainIn(tokens, stored).some(({ id, parent_id: parentId }) => id === tokenId || parentId === tokenId)
  return [tokenId, ...[...tokens.values()].filter(isOfFamily).map(({ id }) => id)]
}

/** What a creator grants: absent members are its own. Throws `wider-than-creator`. */
function narrowed(wanted: NewToken, creator: TokenRecord): NewToken {
  const { folder = creator.folder, expiresAt = creator.expiresAt } = wanted
  if (wanted.tenant !== creator.tenant) throw wider('tenant', creator.tenant)
  if (!mayDo(creator.role, wanted.role)) throw wider('role', creator.role)
  if (creator.folder !== undefined && !isInside(folder ?? '', creator.folder)) throw wider('folder', creator.folder)
  if (creator.expiresAt !== undefined && (expiresAt ?? Infinity) > creator.expiresAt) {
    throw wider('expires_at', new Date(creator.expiresAt).toISOString())
  }
  const limits: Limits = { ...creator.limits, ...wanted.limits }
  for (const [name, most] of Object.entries(creator.limits ?? {}) as [LimitName, number][]) {
    limits[name] ??= most
    if (limits[name] > most) throw wider(`limits.${name}`, most)
  }
  return {
    tenant: wanted.tenant,
    role: wanted.role,
    ...(wanted.name !== undefined && { name: wanted.name }),
    ...(folder !== undefined && { folder }),
    ...(expiresAt !== undefined && { expiresAt }),
    limits,
  }
}

function wider(member: string, most: string | number): RequestProblem {
  const detail = `A token can only create tokens that are at most as wide as itself: ${member} may be at most ${most}.`
  return new RequestProblem(403, 'wider-than-creator', detail, { member })
}

/** The secret has 256 random bits, so a slow hash would not add security. */
function hashOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}

function parseTokens(file: string, text: string): StoredToken[] {
  const parsed = tokenFileSchema.safeParse(parseJson(text))
  if (parsed.success) return parsed.data.tokens
  throw new Error(`${file} is not a valid token file: ${z.prettifyError(parsed.error)}. Repair or remove it.`)
}
