import { inspect } from 'node:util'
import { join } from 'node:path'
import { z } from 'zod'
import { readBounded, changePrivateFile, writePrivateFile, SettingsError, type Environment } from './config-files.ts'

/** A key that is never printed by accident: only `reveal` returns it. */
export class Credential {
  readonly provider: string
  readonly source: 'environment' | 'keyring' | 'file'
  /** The variable, the keyring or the file, for display. */
  readonly origin: string
  readonly #key: string

  constructor(key: string, about: Pick<Credential, 'provider' | 'source' | 'origin'>) {
    this.#key = key
    this.provider = about.provider
    this.source = about.source
    this.origin = about.origin
  }

  reveal(): string {
    return this.#key
  }

  toString(): string {
    return `[the key of ${this.provider} from ${this.origin}]`
  }

  toJSON(): string {
    return this.toString()
  }

  [inspect.custom](): string {
    return this.toString()
  }
}

export interface CredentialOwner {
  /** The provider's id. */
  id: string
  /** In the order in which they are read. */
  keyVariables: readonly string[]
}

/** `notes` are sentences on which sources could not be read, and why. */
export type FoundCredential =
  | { type: 'found'; credential: Credential; notes: string[] }
  | { type: 'missing'; message: string; notes: string[] }

export interface CredentialPlaces {
  env: Environment
  configFolder: string
  /** Absent if there is none. */
  keyring?: Keyring
}

const fileSchema = z.record(z.string(), z.string())
const maxFileBytes = 1024 * 1024

/** Keys of providers: from a variable, else the keyring, else a file that only its owner may read. */
export class Credentials {
  readonly #env: Environment
  readonly #file: string
  readonly #keyring: Keyring | undefined

  constructor({ env, configFolder, keyring }: CredentialPlaces) {
    this.#env = env
    this.#file = join(configFolder, 'credentials.json')
    this.#keyring = keyring
  }

  async credentialFor({ id, keyVariables }: CredentialOwner): Promise<FoundCredential> {
    for (const variable of keyVariables) {
      const key = this.#env[variable]?.trim()
      const about = { provider: id, source: 'environment', origin: `the environment variable ${variable}` } as const
      if (key) return { type: 'found', credential: new Credential(key, about), notes: [] }
    }
    const notes: string[] = []
    const kept = (await this.#fromKeyring(id, notes)) ?? (await this.#fromFile(id, notes))
    if (kept) return { type: 'found', credential: kept, notes }
    const [variable] = keyVariables
    const way =
      variable === undefined
        ? 'Store one in the system keyring or credentials.json'
        : `Set the environment variable ${variable}`
    return { type: 'missing', message: `There is no key for ${id}. ${way}.`, notes }
  }

  /** For a registry that reads the environment itself. */
  async keyFor(provider: string): Promise<{ value: string; origin: string } | undefined> {
    const found = await this.credentialFor({ id: provider, keyVariables: [] })
    if (found.type === 'missing') return undefined
    return { value: found.credential.reveal(), origin: found.credential.origin }
  }

  /** In the keyring if there is one, else in the file. */
  async store(provider: string, key: string): Promise<{ source: 'keyring' | 'file'; notes: string[] }> {
    const trimmed = key.trim()
    if (trimmed === '') throw new SettingsError('cannot-store', `The key for ${provider} is empty.`)
    const notes: string[] = []
    const isKept = await this.#askKeyring(notes, (keyring) => keyring.set(provider, trimmed).then(() => true))
    if (isKept === true) {
      // An older key in the file would remain, and be found if the keyring is locked.
      await this.#changeFile((keys) => keys.delete(provider))
      return { source: 'keyring', notes }
    }
    await this.#changeFile((keys) => {
      keys.set(provider, trimmed)
      return true
    })
    notes.push(`The key for ${provider} is stored in ${this.#file}, which only you can read.`)
    return { source: 'file', notes }
  }

  /** Removes it from the keyring and the file. A variable must be unset by the user. */
  async remove(provider: string): Promise<{ removedFrom: ('keyring' | 'file')[]; notes: string[] }> {
    const notes: string[] = []
    const removedFrom: ('keyring' | 'file')[] = []
    if ((await this.#askKeyring(notes, (keyring) => keyring.remove(provider))) === true) removedFrom.push('keyring')
    if (await this.#changeFile((keys) => keys.delete(provider))) removedFrom.push('file')
    return { removedFrom, notes }
  }

  async #fromKeyring(provider: string, notes: string[]): Promise<Credential | undefined> {
    const key = await this.#askKeyring(notes, (keyring) => keyring.get(provider))
    return key ? new Credential(key, { provider, source: 'keyring', origin: 'the keyring' }) : undefined
  }

  async #fromFile(provider: string, notes: string[]): Promise<Credential | undefined> {
    try {
      const key = (await this.#readFile()).get(provider)
      return key ? new Credential(key, { provider, source: 'file', origin: `the file ${this.#file}` }) : undefined
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error
      notes.push(error.message)
      return undefined
    }
  }

  async #askKeyring<T>(notes: string[], ask: (keyring: Keyring) => Promise<T>): Promise<T | undefined> {
    if (!this.#keyring) return undefined
    try {
      return await ask(this.#keyring)
    } catch (error) {
      if (!(error instanceof KeyringProblem)) throw error
      notes.push(error.message)
      return undefined
    }
  }

  async #readFile(): Promise<Map<string, string>> {
    const result = await readBounded(this.#file, maxFileBytes)
    if (result.type === 'missing') return new Map()
    if (result.type === 'refused')
      throw new SettingsError('insecure-file', `${this.#file} is not used. ${result.reason}`)
    if ((result.mode & 0o077) !== 0) {
      const message = `${this.#file} is not used, because other users can read it. Run: chmod 600 '${this.#file}'`
      throw new SettingsError('insecure-file', message)
    }
    try {
      return new Map(Object.entries(fileSchema.parse(JSON.parse(Buffer.from(result.bytes).toString()))))
    } catch {
      // The message of the parser may contain a part of a key.
      throw new SettingsError('malformed-file', `${this.#file} is not a JSON object with a key for each provider.`)
    }
  }

  /** Writes only if something changed, and never over a file that could not be read. */
  async #changeFile(change: (keys: Map<string, string>) => boolean): Promise<boolean> {
    return changePrivateFile(this.#file, async () => {
      const keys = await this.#readFile()
      if (!change(keys)) return false
      await writePrivateFile(this.#file, `${JSON.stringify(Object.fromEntries(keys), undefined, 2)}\n`)
      return true
    })
  }
}

/** The keyring of the system. Each method throws `KeyringProblem` if it is not available. */
export interface Keyring {
  get(account: string): Promise<string | undefined>
  set(account: string, secret: string): Promise<void>
  /** False if there was none. */
  remove(account: string): Promise<boolean>
}

/** There is no keyring, it is locked, or access is denied. The message is a sentence without secrets. */
export class KeyringProblem extends Error {
  override readonly name = 'KeyringProblem'
}

const service = 'tapetree'
/** A locked keyring asks the user; one that never answers is not available. */
const answerMs = 30_000

/** The used part of the package; declared here, because the package is optional and its types may be missing. */
export interface KeyringPackage {
  AsyncEntry: new (service: string, account: string) => KeyringEntry
}

export interface KeyringEntry {
  getPassword(signal: AbortSignal): Promise<string | null>
  setPassword(secret: string, signal: AbortSignal): Promise<void>
  deleteCredential(signal: AbortSignal): Promise<boolean>
}

/** The system keyring through `@napi-rs/keyring`, which is optional and loaded on first use. */
export function systemKeyring(load?: () => Promise<KeyringPackage>): Keyring {
  const ask = async <T>(
    account: string,
    question: (entry: KeyringEntry, signal: AbortSignal) => Promise<T>,
  ): Promise<T> => {
    let keyring: KeyringPackage
    // Bundlers accept that a package is missing only if `await import` is written inside `try`.
    try {
      keyring = load ? await load() : await import('@napi-rs/keyring')
    } catch (cause) {
      throw new KeyringProblem('The keyring is not used, because the package @napi-rs/keyring is not installed.', {
        cause,
      })
    }
    try {
      return await question(new keyring.AsyncEntry(service, account), AbortSignal.timeout(answerMs))
    } catch (cause) {
      throw new KeyringProblem(`The keyring cannot be used (${reasonOf(cause)}).`, { cause })
    }
  }
  return {
    get: async (account) => (await ask(account, (entry, signal) => entry.getPassword(signal))) ?? undefined,
    set: (account, secret) => ask(account, (entry, signal) => entry.setPassword(secret, signal)),
    remove: (account) => ask(account, (entry, signal) => entry.deleteCredential(signal)),
  }
}

function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error)
  return message.replaceAll(/\s+/g, ' ').slice(0, 200)
}
