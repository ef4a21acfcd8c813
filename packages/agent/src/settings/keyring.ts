/** The keyring of the system. Each method throws `KeyringProblem` if it is not available. */
export interface Keyring {
  get(account: string): Promise<string | undefined>
  set(account: string, secret: string): Promise<void>
  /** False: there was none. */
  remove(account: string): Promise<boolean>
}

/** There is no keyring, it is locked, or we may not use it. The message is a sentence and holds no secret. */
export class KeyringProblem extends Error {
  override readonly name = 'KeyringProblem'
}

const service = 'tapetree'
/** A locked keyring asks the user; one that never answers is none. */
const answerMs = 30_000

/** The part of the package that is used; declared here, because the package is optional and its types may be missing. */
interface KeyringPackage {
  AsyncEntry: new (service: string, account: string) => KeyringEntry
}

interface KeyringEntry {
  getPassword(signal: AbortSignal): Promise<string | null>
  setPassword(secret: string, signal: AbortSignal): Promise<void>
  deleteCredential(signal: AbortSignal): Promise<boolean>
}

/** The keyring of the system by `@napi-rs/keyring`, which need not be installed. It is loaded when it is first asked. */
export function systemKeyring(load: () => Promise<KeyringPackage> = () => import('@napi-rs/keyring')): Keyring {
  const ask = async <T>(
    account: string,
    question: (entry: KeyringEntry, signal: AbortSignal) => Promise<T>,
  ): Promise<T> => {
    const { AsyncEntry } = await load().catch((cause: unknown) => {
      throw new KeyringProblem('The keyring is not used, because the package @napi-rs/keyring is not installed.', {
        cause,
      })
    })
    try {
      return await question(new AsyncEntry(service, account), AbortSignal.timeout(answerMs))
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
