import { systemClock, type Clock } from '@tapetree/agent'
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { chmod, mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { z } from 'zod'
import { roles, type Role } from './role.ts'

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

/** Tokens by their hashes, in one file that only its owner can read. */
export class TokenStore {
  readonly #file: string
  readonly #clock: Clock
  readonly #tokens = new Map<string, StoredToken>()
  readonly #listeners = new Set<(tokenId: string) => void>()
  #firstToken: string | undefined
  #writing = Promise.resolve()

  private constructor({ file, clock = systemClock }: TokenStoreOptions) {
    this.#file = file
    this.#clock = clock
  }

  /** Reads the file; where there is none, makes it, with one token that drives. A file that cannot be read lets nobody in. */
  static async open(options: TokenStoreOptions): Promise<TokenStore> {
    const store = new TokenStore(options)
    const text = await readFile(options.file, 'utf8').catch(absent)
    if (text === undefined) {
      const { token } = await store.create(
        options.first ?? { tenant: defaultTenant, role: 'drive', name: 'first start' },
      )
      store.#firstToken = token
      return store
    }
    await chmod(options.file, 0o600)
    const parsed = tokenFileSchema.safeParse(parseJson(text))
    if (!parsed.success) {
      throw new Error(`${options.file} is not a file of tokens: ${z.prettifyError(parsed.error)}. Mend or remove it.`)
    }
    for (const token of parsed.data.tokens) store.#tokens.set(token.id, token)
    return store
  }

  /** The token that was made on the first start. It can be had once. */
  takeFirstToken(): string | undefined {
    const token = this.#firstToken
    this.#firstToken = undefined
    return token
  }

  /** Whose token it is; undefined for one that was never made, has been revoked or has expired. */
  verify(token: string): TokenRecord | undefined {
    const [, id = '', secret = ''] = tokenPattern.exec(token) ?? []
    const stored = this.#tokens.get(id)
    // An unknown id takes as long as a known one.
    const isRight = timingSafeEqual(hashOf(secret), Buffer.from(stored?.hash ?? nobody, 'hex'))
    if (!stored || !isRight || this.#isOver(stored)) return undefined
    return recordOf(stored)
  }

  list(tenant: string): TokenRecord[] {
    return [...this.#tokens.values()].filter((token) => token.tenant === tenant).map(recordOf)
  }

  /** The token is in the answer and nowhere else. */
  async create({ tenant, role, name, expiresAt }: NewToken): Promise<{ token: string; record: TokenRecord }> {
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
    await this.#write((tokens) => tokens.set(stored.id, stored))
    return { token: `tapetree_${stored.id}_${secret}`, record: recordOf(stored) }
  }

  /** False where this tenant has no such token. Whoever came in by it is put out at once, before the file is written. */
  async revoke(tokenId: string, tenant: string): Promise<boolean> {
    if (this.#tokens.get(tokenId)?.tenant !== tenant) return false
    this.#tokens.delete(tokenId)
    for (const listener of this.#listeners) listener(tokenId)
    await this.#write((tokens) => tokens.delete(tokenId))
    return true
  }

  onRevoked(listener: (tokenId: string) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  #isOver({ expires_at: expiresAt }: StoredToken): boolean {
    return expiresAt !== undefined && Date.parse(expiresAt) <= this.#clock.now()
  }

  /** One after the other; a token counts when it is on the disk. */
  #write(change: (tokens: Map<string, StoredToken>) => unknown): Promise<void> {
    const written = this.#writing.then(async () => {
      const tokens = new Map(this.#tokens)
      change(tokens)
      await replaceFile(this.#file, `${JSON.stringify({ version: 1, tokens: [...tokens.values()] }, null, 2)}\n`)
      change(this.#tokens)
    })
    this.#writing = written.catch(() => undefined)
    return written
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

/** Whoever reads it sees the old file or the new one. The name of the temporary one cannot be guessed. */
async function replaceFile(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  const temporary = `${file}.${randomBytes(8).toString('hex')}.tmp`
  try {
    await using handle = await open(temporary, 'wx', 0o600)
    await handle.chmod(0o600)
    await handle.writeFile(text)
    await handle.sync()
    await rename(temporary, file)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}
