import { systemClock, type Clock } from '@tapetree/agent'
import { FileLockedError, withFileLock } from '@tapetree/session/stores/file'
import { Listeners } from '@tapetree/session/util/listeners'
import { replaceFile } from '@tapetree/session/util/replace-file'
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { z } from 'zod'
import { RequestProblem } from '../util/problem-error.ts'
import { emitWarning } from '../util/emit-warning.ts'
import { roles, type Role } from './operation-roles.ts'

/** What is known of a token. The token itself is known to its holder alone. */
export interface TokenRecord {
  id: string
  tenant: string
  role: Role
  /** For people: whose, or on what device. */
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
  /** Who the token of the first start is for. */
  first?: NewToken
  clock?: Clock
}

/**
 * Tokens by their hashes, in one file that only its owner can read. Any number of processes may share the file: changes are made under a
 * kernel lock to what the file says then, and every look at a token sees the file as it is.
 */
export class TokenStore {
  readonly #file: string
  readonly #clock: Clock
  /** As the file had them when it was last read. */
  #tokens = new Map<string, StoredToken>()
  /** Which version of the file that was. */
  #version: string | undefined
  /** Those that were revoked here. They stay so, also if the file could not be written. */
  readonly #revoked = new Set<string>()
  readonly #listeners = new Listeners<string>(emitWarning)
  #firstToken: string | undefined
  #writing = Promise.resolve()

  private constructor({ file, clock = systemClock }: TokenStoreOptions) {
    this.#file = file
    this.#clock = clock
  }

  /** Reads the file; where there is none, makes it, with one token that drives. A file that cannot be read lets nobody in. */
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

  /** The token that was made on the first start. It can be had once. */
  takeFirstToken(): string | undefined {
    const token = this.#firstToken
    this.#firstToken = undefined
    return token
  }

  /** Whose token it is; undefined for one that was never made, has been revoked by any process or has expired. */
  verify(token: string): TokenRecord | undefined {
    this.refresh()
    const [, id = '', secret = ''] = tokenPattern.exec(token) ?? []
    const stored = this.#tokens.get(id)
    // An unknown id takes as long as a known one.
    const isRight = timingSafeEqual(hashOf(secret), Buffer.from(stored?.hash ?? nobody, 'hex'))
    if (!stored || !isRight || this.#isOver(stored)) return undefined
    return recordOf(stored)
  }

  list(tenant: string): TokenRecord[] {
    this.refresh()
    return [...this.#tokens.values()].filter((token) => token.tenant === tenant).map(recordOf)
  }

  /** The token is in the answer and nowhere else. */
  async create(newToken: NewToken): Promise<{ token: string; record: TokenRecord }> {
    const { token, stored } = this.#newToken(newToken)
    await this.#change((tokens) => tokens.set(stored.id, stored))
    return { token, record: recordOf(stored) }
  }

  /** False where this tenant has no such token. Whoever came in by it is put out at once, before the file is written. */
  async revoke(tokenId: string, tenant: string): Promise<boolean> {
    this.refresh()
    if (this.#tokens.get(tokenId)?.tenant !== tenant) return false
    this.#revoked.add(tokenId)
    this.#take(this.#tokens)
    await this.#change((tokens) => tokens.delete(tokenId))
    return true
  }

  /** Told of each token that is revoked: at once if it was here, and by `refresh` if it was in another process. */
  onRevoked(listener: (tokenId: string) => void): () => void {
    return this.#listeners.add(listener)
  }

  /** Reads the file again if another process has changed it. Costs one `stat` if none has. A file that is gone or broken has no tokens. */
  refresh(): void {
    // Asked before it is read: what changes in between is read the next time.
    const version = versionOf(this.#file)
    if (version === this.#version) return
    this.#version = version
    let tokens: StoredToken[] = []
    try {
      tokens = parseTokens(this.#file, readFileSync(this.#file, 'utf8'))
    } catch {
      // Whoever cannot be looked up is not let in.
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

  /** Of several processes that start for the first time, one makes the first token. */
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
   * One after the other in this process, and under a lock among all. A token counts when it is on the disk. Nothing is written if
   * `change` says that nothing has changed.
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
const nobody = '0'.repeat(64)

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

/** The secret is 256 random bits: a slow hash would protect nothing more. */
function hashOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}

function parseTokens(file: string, text: string): StoredToken[] {
  const parsed = tokenFileSchema.safeParse(parseJson(text))
  if (parsed.success) return parsed.data.tokens
  throw new Error(`${file} is not a file of tokens: ${z.prettifyError(parsed.error)}. Mend or remove it.`)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // No JSON is no file of tokens: the schema says so.
    return undefined
  }
}

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
  return undefined
}

/** Changes with every version of the file: each is a file of its own, and younger than the one before it. */
function versionOf(file: string): string {
  const found = statSync(file, { bigint: true, throwIfNoEntry: false })
  return found ? [found.dev, found.ino, found.size, found.mtimeNs].join(' ') : 'absent'
}

/** Of processes that died while they wrote. Under the lock nobody else is writing. */
async function removeLeftovers(file: string): Promise<void> {
  const folder = dirname(file)
  const isOurs = (name: string): boolean => name.startsWith(`${basename(file)}.`) && name.endsWith('.tmp')
  for (const name of (await readdir(folder)).filter(isOurs)) await rm(join(folder, name), { force: true })
}

/** Replaces the file and gives it a time of its own: the system may give two files written in quick succession one time and one inode. */
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
  throw new RequestProblem(503, 'tokens-locked', 'Another process holds the file of tokens. Try again.')
}
