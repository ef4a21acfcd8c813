import { chmod, readFile, stat } from 'node:fs/promises'
import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { TestFolder } from '../testing/test-folder.ts'
import { Credentials, KeyringProblem, systemKeyring, type Keyring } from './credentials.ts'

const owner = { id: 'anthropic', keyVariables: ['ANTHROPIC_API_KEY', 'OTHER_KEY'] }
/** Assembled from pieces, so that no secret scanner finds a key here. */
const fake = (name: string): string => ['fake', name, 'value'].join('-')

const memoryKeyring = (entries: Record<string, string> = {}): Keyring & { entries: Map<string, string> } => {
  const kept = new Map(Object.entries(entries))
  return {
    entries: kept,
    get: (account) => Promise.resolve(kept.get(account)),
    set: (account, secret) => Promise.resolve(void kept.set(account, secret)),
    remove: (account) => Promise.resolve(kept.delete(account)),
  }
}

const lockedKeyring: Keyring = {
  get: () => Promise.reject(new KeyringProblem('The keyring cannot be used (AccessDenied).')),
  set: () => Promise.reject(new KeyringProblem('The keyring cannot be used (AccessDenied).')),
  remove: () => Promise.reject(new KeyringProblem('The keyring cannot be used (AccessDenied).')),
}

test('a variable wins over the keyring, the keyring over the file, and the source is reported', async () => {
  await using folder = await TestFolder.make()
  const configFolder = folder.path
  await new Credentials({ env: {}, configFolder }).store('anthropic', fake('file'))
  const found = async (env: Record<string, string>, keyring: Keyring): Promise<unknown> => {
    const result = await new Credentials({ env, configFolder, keyring }).credentialFor(owner)
    return result.type === 'found' && [result.credential.reveal(), result.credential.source, result.credential.origin]
  }
  const full = memoryKeyring({ anthropic: fake('keyring') })
  const inVariable = [fake('env'), 'environment', 'the environment variable OTHER_KEY']
  expect(await found({ OTHER_KEY: ` ${fake('env')}\n`, ANTHROPIC_API_KEY: '' }, full)).toEqual(inVariable)
  expect(await found({}, full)).toEqual([fake('keyring'), 'keyring', 'the keyring'])
  expect(await found({}, memoryKeyring())).toEqual([fake('file'), 'file', `the file ${folder.at('credentials.json')}`])
})

test('a missing key is reported with the variable to set', async () => {
  await using folder = await TestFolder.make()
  const credentials = new Credentials({ env: {}, configFolder: folder.path })
  expect(await credentials.credentialFor(owner)).toEqual({
    type: 'missing',
    message: 'There is no key for anthropic. Set the environment variable ANTHROPIC_API_KEY.',
    notes: [],
  })
})

test('a key is stored in the keyring, and an older one in the file is removed', async () => {
  await using folder = await TestFolder.make()
  await new Credentials({ env: {}, configFolder: folder.path }).store('anthropic', fake('old'))
  const keyring = memoryKeyring()
  const credentials = new Credentials({ env: {}, configFolder: folder.path, keyring })
  expect(await credentials.store('anthropic', `${fake('new')}\n`)).toEqual({ source: 'keyring', notes: [] })
  expect([keyring.entries.get('anthropic'), await folder.read('credentials.json')]).toEqual([fake('new'), '{}\n'])
  expect(await credentials.remove('anthropic')).toEqual({ removedFrom: ['keyring'], notes: [] })
  expect((await credentials.credentialFor(owner)).type).toBe('missing')
})

test('if the keyring is not available, the file is used, and a note says so', async () => {
  await using folder = await TestFolder.make()
  const credentials = new Credentials({ env: {}, configFolder: folder.path, keyring: lockedKeyring })
  const why = 'The keyring cannot be used (AccessDenied).'
  expect(await credentials.store('anthropic', fake('key'))).toEqual({
    source: 'file',
    notes: [why, `The key for anthropic is stored in ${folder.at('credentials.json')}, which only you can read.`],
  })
  expect((await stat(folder.at('credentials.json'))).mode & 0o777).toBe(0o600)
  expect(await credentials.credentialFor(owner)).toMatchObject({
    type: 'found',
    credential: { source: 'file' },
    notes: [why],
  })
  expect(await credentials.keyFor('anthropic')).toEqual({
    value: fake('key'),
    origin: `the file ${folder.at('credentials.json')}`,
  })
  expect(await credentials.remove('anthropic')).toEqual({ removedFrom: ['file'], notes: [why] })
})

describe('the file', () => {
  test.each([0o640, 0o604, 0o660])('is not used with mode %o, and the error says what to run', async (mode) => {
    await using folder = await TestFolder.make()
    const credentials = new Credentials({ env: {}, configFolder: folder.path })
    await credentials.store('anthropic', fake('key'))
    await chmod(folder.at('credentials.json'), mode)
    const file = folder.at('credentials.json')
    const why = `${file} is not used, because other users can read it. Run: chmod 600 '${file}'`
    expect(await credentials.credentialFor(owner)).toMatchObject({ type: 'missing', notes: [why] })
    await expect(credentials.store('openai', fake('other'))).rejects.toMatchObject({
      code: 'insecure-file',
      message: why,
    })
    expect(await readFile(file, 'utf8')).toContain(fake('key'))
  })

  test('is not overwritten if it cannot be read, and the error does not contain its content', async () => {
    await using folder = await TestFolder.make({ 'credentials.json': `{"anthropic": ${fake('key')}` })
    await chmod(folder.at('credentials.json'), 0o600)
    const credentials = new Credentials({ env: {}, configFolder: folder.path })
    const problem = await credentials.store('openai', fake('other')).catch((error: unknown) => error)
    expect(inspect(problem)).not.toContain(fake('key'))
    expect(problem).toMatchObject({ code: 'malformed-file' })
    expect(await folder.read('credentials.json')).toContain(fake('key'))
  })
})

test('a printed credential does not contain its key', async () => {
  await using folder = await TestFolder.make()
  const credentials = new Credentials({ env: { ANTHROPIC_API_KEY: fake('key') }, configFolder: folder.path })
  const result = await credentials.credentialFor(owner)
  if (result.type !== 'found') throw new Error(result.message)
  const { credential } = result
  const texts = [
    inspect(result, { depth: 9, showHidden: true }),
    JSON.stringify(result),
    String(credential),
    Object.values(credential),
  ]
  expect(texts.join()).not.toContain(fake('key'))
  expect(String(credential)).toBe('[the key of anthropic from the environment variable ANTHROPIC_API_KEY]')
})

test('an empty key is rejected', async () => {
  await using folder = await TestFolder.make()
  const credentials = new Credentials({ env: {}, configFolder: folder.path, keyring: memoryKeyring() })
  await expect(credentials.store('anthropic', ' \n')).rejects.toMatchObject({ code: 'cannot-store' })
})

describe('the system keyring', () => {
  test('is a problem, not a crash, if its package is not installed', async () => {
    const keyring = systemKeyring(() => Promise.reject(new Error('Cannot find package')))
    await expect(keyring.get('anthropic')).rejects.toThrow(
      new KeyringProblem('The keyring is not used, because the package @napi-rs/keyring is not installed.'),
    )
  })

  test('is a problem if it denies access', async () => {
    class Denied {
      getPassword = (): Promise<null> => Promise.reject(new Error("Couldn't access platform storage:\n AccessDenied"))
      setPassword = (): Promise<void> => Promise.reject(new Error('AccessDenied'))
      deleteCredential = (): Promise<boolean> => Promise.reject(new Error('AccessDenied'))
    }
    const keyring = systemKeyring(() => Promise.resolve({ AsyncEntry: Denied }))
    await expect(keyring.get('anthropic')).rejects.toThrow(
      "The keyring cannot be used (Couldn't access platform storage: AccessDenied).",
    )
  })

  test('stores a secret under our name and the name of the provider', async () => {
    const kept = new Map<string, string>()
    class Entry {
      readonly #name: string
      constructor(service: string, account: string) {
        this.#name = `${service}/${account}`
      }
      getPassword = (): Promise<string | null> => Promise.resolve(kept.get(this.#name) ?? null)
      setPassword = (secret: string): Promise<void> => Promise.resolve(void kept.set(this.#name, secret))
      deleteCredential = (): Promise<boolean> => Promise.resolve(kept.delete(this.#name))
    }
    const keyring = systemKeyring(() => Promise.resolve({ AsyncEntry: Entry }))
    expect(await keyring.get('openai')).toBeUndefined()
    await keyring.set('openai', fake('key'))
    expect([...kept]).toEqual([['tapetree/openai', fake('key')]])
    expect([await keyring.get('openai'), await keyring.remove('openai'), await keyring.remove('openai')]).toEqual([
      fake('key'),
      true,
      false,
    ])
  })
})

test('keys that several processes store at once are all kept', async () => {
  await using folder = await TestFolder.make()
  const names = Array.from({ length: 12 }, (_, index) => `provider-${index}`)
  const store = (name: string): Promise<unknown> =>
    new Credentials({ env: {}, configFolder: folder.path }).store(name, fake(name))
  await Promise.all(names.map(store))
  expect(Object.keys(JSON.parse(await folder.read('credentials.json')) as object).sort()).toEqual(names.sort())
})
