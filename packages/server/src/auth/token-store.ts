import { parseJson } from '@tapetree/session/util/json'
import { systemClock, type Clock } from '@tapetree/agent/run'
import { FileLockedError, withFileLock } from '@tapetree/session/stores/file'
import { Listeners } from '@tapetree/session/util/listeners'
import { replaceFile } from '@tapetree/session/util/replace-file'
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { z } from 'zod'
import { RequestProblem, emitWarning } from '../util/problem-error.ts'
import { roles, type Role } from './operation-roles.ts'

/** A token's record. Only the holder has the token itself. */
export interface TokenRecord {
  id: string
  tenant: string
  role: Role
  /** For people: its owner or device. */
  name?: string
  /** Milliseconds since 1970. */
  createdAt: number
  expiresAt?: number
}

export interface NewToken {
  tenant: string
  role: Role
  name?: string
  expiresAt?: number
}

export interface TokenStoreOptions {
  file: string
  /** The token that the first start creates. */
  first?: NewToken
  clock?: Clock
}

/**
 * Tokens by hash, in one file that only its owner can read. Several processes may share the file: changes are
 * read-modify-write under a kernel lock, and every lookup sees the current file.
 */
export class TokenStore {
  readonly #file: string
  readonly #clock: Clock
  /** The tokens as last read from the file. */
  #tokens = new Map<string, StoredToken>()
  /** The version of the file that was read. */
  #version: string | undefined
  /** Tokens revoked by this process. They stay revoked even if the file could not be written. */
  readonly #revoked = new Set<string>()
  readonly #listeners = new Listeners<string>(emitWarning)
  #firstToken: string | undefined
  #writing = Promise.resolve()

  private constructor({ file, clock = systemClock }: TokenStoreOptions) {
    this.#file = file
    this.#clock = clock
  }

  /** Reads the file, or creates it with one token of role `drive`. An unreadable file admits no token. */
  static async open(options: TokenStoreOptions): Promise<TokenStore> {
    const store = new TokenStore(options)
    const { file, first = { tenant: defaultTenant, role: 'drive', name: 'first start' } } = options
    const text = await readFile(file, 'utf8').catch(absent)
    if (text === undefined) await store.#makeFile(first)
    else parseTokens(file, text)
    await chmod(file, 0o600)
    store.refresh()
    return store
  }

  /** The token created on the first start. Returned only once. */
  takeFirstToken(): string | undefined {
    const token = this.#firstToken
    this.#firstToken = undefined
    return token
  }

  /** The record of a token; undefined if it is unknown, was revoked by any process or has expired. */
  verify(token: string): TokenRecord | undefined {
    this.refresh()
    const [, id = '', secret = ''] = tokenPattern.exec(token) ?? []
    const stored = this.#tokens.get(id)
    // An unknown id takes as long as a known one.
    const isRight = timingSafeEqual(hashOf(secret), Buffer.from(stored?.hash ?? unknownHash, 'hex'))
    if (!stored || !isRight || this.#isOver(stored)) return undefined
    return recordOf(stored)
  }

  list(tenant: string): TokenRecord[] {
    this.refresh()
    return [...this.#tokens.values()].filter((token) => token.tenant === tenant).map(recordOf)
  }

  /** Only the return value contains the token. */
  async create(newToken: NewToken): Promise<{ token: string; record: TokenRecord }> {
    const { token, stored } = this.#newToken(newToken)
    await this.#change((tokens) => tokens.set(stored.id, stored))
    return { token, record: recordOf(stored) }
  }

  /** Returns false if this tenant has no such token. Closes its connections at once, before the file is written. */
  async revoke(tokenId: string, tenant: string): Promise<boolean> {
    this.refresh()
    if (this.#tokens.get(tokenId)?.tenant !== tenant) return false
    this.#revoked.add(tokenId)
    this.#take(this.#tokens)
    await this.#change((tokens) => tokens.delete(tokenId))
    return true
  }

  /**
   * Calls the listener for each revoked token: at once if this process revoked it, and by `refresh` if another
   * one did.
   */
  onRevoked(listener: (tokenId: string) => void): () => void {
    return this.#listeners.add(listener)
  }

  /**
   * Reads the file again if another process changed it; otherwise costs one `stat`. A missing or broken file
   * has no tokens.
   */
  refresh(): void {
    // Read before the content: a later change is read the next time.
    const version = versionOf(this.#file)
    if (version === this.#version) return
    this.#version = version
    let tokens: StoredToken[] = []
    try {
      tokens = parseTokens(this.#file, readFileSync(this.#file, 'utf8'))
    } catch {
      // If the tokens cannot be read, none is accepted.
    }
    this.#take(new Map(tokens.map((token) => [token.id, token])))
  }

  #isOver({ expires_at: expiresAt }: StoredToken): boolean {
    return expiresAt !== undefined && Date.parse(expiresAt) <= this.#clock.now()
  }

  #newToken({ tenant, role, name, expiresAt }: NewToken): { token: string; stored: StoredToken } {
    const secret = randomBytes(32).toString('base64url')
    const stored: StoredToken = {
      id: randomBytes(8).toString('hex'),
      hash: hashOf(secret).toString('hex'),
      tenant,
      role,
      created_at: new Date(this.#clock.now()).toISOString(),
      ...(name !== undefined && { name }),
      ...(expiresAt !== undefined && { expires_at: new Date(expiresAt).toISOString() }),
    }
    return { token: `tapetree_${stored.id}_${secret}`, stored }
  }

  /** Of several processes that start for the first time, one creates the first token. */
  #makeFile(first: NewToken): Promise<void> {
    return this.#change((tokens, { isNew }) => {
      if (!isNew) return false
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
    await mkdir(dirname(this.#file), { recursive: true, mode: 0o700 })
    await withFileLock(this.#file, async () => {
      const text = await readFile(this.#file, 'utf8').catch(absent)
      const stored = text === undefined ? [] : parseTokens(this.#file, text)
      const tokens = new Map(stored.map((token) => [token.id, token]))
      const hasChanged = change(tokens, { isNew: text === undefined })
      for (const id of this.#revoked) tokens.delete(id)
      if (hasChanged === false) return
      await removeLeftovers(this.#file)
      await writeTokens(this.#file, `${JSON.stringify({ version: 1, tokens: [...tokens.values()] }, null, 2)}\n`)
      this.#version = versionOf(this.#file)
      this.#take(tokens)
    }).catch(unlessLocked)
  }
}

export const defaultTenant = 'default'

const tokenPattern = /^tapetree_([0-9a-f]{16})_([A-Za-z0-9_-]{43})$/
const unknownHash = '0'.repeat(64)

const storedTokenSchema = z.strictObject({
  id: z.string().regex(/^[0-9a-f]{16}$/),
  hash: z.string().regex(/^[0-9a-f]{64}$/),
  tenant: z.string().min(1),
  role: z.enum(roles),
  name: z.string().exactOptional(),
  created_at: z.iso.datetime(),
  expires_at: z.iso.datetime().exactOptional(),
})
type StoredToken = z.infer<typeof storedTokenSchema>

const tokenFileSchema = z.strictObject({ version: z.literal(1), tokens: z.array(storedTokenSchema) })

function recordOf({ id, tenant, role, name, created_at: createdAt, expires_at: expiresAt }: StoredToken): TokenRecord {
  return {
    id,
    tenant,
    role,
    createdAt: Date.parse(createdAt),
    ...(name !== undefined && { name }),
    ...(expiresAt !== undefined && { expiresAt: Date.parse(expiresAt) }),
  }
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

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
  return undefined
}

/** Identifies a version of the file: each is a new inode with a later time. */
function versionOf(file: string): string {
  const found = statSync(file, { bigint: true, throwIfNoEntry: false })
  return found ? [found.dev, found.ino, found.size, found.mtimeNs].join(' ') : 'absent'
}

/** Removes temporary files of processes that died. Under the lock no other process is writing. */
async function removeLeftovers(file: string): Promise<void> {
  const folder = dirname(file)
  const isOurs = (name: string): boolean => name.startsWith(`${basename(file)}.`) && name.endsWith('.tmp')
  for (const name of (await readdir(folder)).filter(isOurs)) await rm(join(folder, name), { force: true })
}

/** Replaces the file and sets a distinct time: two files written in quick succession may share time and inode. */
async function writeTokens(file: string, text: string): Promise<void> {
  await replaceFile(file, text, {
    prefix: `${basename(file)}.`,
    prepare: async (handle) => {
      const before = statSync(file, { throwIfNoEntry: false })
      const seconds = Math.max(Date.now(), Math.floor(before?.mtimeMs ?? 0) + 1) / 1000
      await handle.utimes(seconds, seconds)
    },
  })
}

function unlessLocked(error: unknown): never {
  if (!(error instanceof FileLockedError)) throw error
  throw new RequestProblem(503, 'tokens-locked', 'Another process holds the lock on the token file. Try again.')
}
