import { FakeClock } from '@tapetree/agent/testing'
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { roles } from './operation-roles.ts'
import { FileDocument } from './shared-document.ts'
import { TokenStore } from './token-store.ts'

let folder: string
let file: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tokens-'))
  file = join(folder, 'deep', 'tokens.json')
})
afterEach(async () => {
  vi.restoreAllMocks()
  await rm(folder, { recursive: true, force: true })
})

describe('a token file', () => {
  test('is created on the first start, with one token of role drive that is returned once', async () => {
    const store = await TokenStore.open({ file })
    const token = store.takeFirstToken() ?? ''
    expect(store.verify(token)).toMatchObject({ tenant: 'default', role: 'drive' })
    expect(store.takeFirstToken()).toBeUndefined()
    const again = await TokenStore.open({ file })
    expect(again.takeFirstToken()).toBeUndefined()
    expect(again.verify(token)).toEqual(store.verify(token))
  })

  test('contains only hashes, and is readable only by its owner', async () => {
    const store = await TokenStore.open({ file })
    const token = store.takeFirstToken() ?? ''
    const secret = token.slice(-43)
    expect(Buffer.from(secret, 'base64url')).toHaveLength(32)
    expect(await readFile(file, 'utf8')).not.toContain(secret)
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect((await stat(join(folder, 'deep'))).mode & 0o777).toBe(0o700)
    await chmod(file, 0o644)
    await TokenStore.open({ file })
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(await readdir(join(folder, 'deep'))).toEqual(['tokens.json', 'tokens.json.lock'])
  })

  test('that is unreadable admits no token and is not replaced', async () => {
    const broken = join(folder, 'tokens.json')
    for (const text of ['', '{', '{"version":1}', '{"version":2,"tokens":[]}']) {
      await writeFile(broken, text)
      await expect(TokenStore.open({ file: broken })).rejects.toThrow('is not a valid token file')
      expect(await readFile(broken, 'utf8')).toBe(text)
    }
  })
})

describe('a token', () => {
  test('that differs in any character is rejected', async () => {
    const store = await TokenStore.open({ file })
    const token = store.takeFirstToken() ?? ''
    for (let index = 0; index < token.length; index++) {
      // The last character of base64 carries four significant bits; 'A' and '8' differ in one of them.
      const other = [...'A8'].find((each) => each !== token[index]) ?? ''
      expect(store.verify(token.slice(0, index) + other + token.slice(index + 1))).toBeUndefined()
    }
    for (const bad of ['', 'tapetree_', `${token} `, `${token}A`, token.slice(0, -1)])
      expect(store.verify(bad)).toBeUndefined()
  })

  test('is valid until it expires', async () => {
    const clock = new FakeClock()
    const store = await TokenStore.open({ file, clock })
    const { token } = await store.create({ tenant: 'a', role: 'view', expiresAt: clock.now() + 1000 })
    clock.advance(999)
    expect(store.verify(token)).toMatchObject({ tenant: 'a', role: 'view' })
    clock.advance(1)
    expect(store.verify(token)).toBeUndefined()
    expect((await TokenStore.open({ file, clock })).verify(token)).toBeUndefined()
  })

  test('that is revoked is rejected from then on, also by a store opened later, and listeners are notified', async () => {
    const store = await TokenStore.open({ file })
    const { token, record } = await store.create({ tenant: 'a', role: 'view', name: 'phone' })
    const told: string[] = []
    store.onRevoked((id) => told.push(id))
    expect(await store.revoke(record.id, 'b')).toBe(false)
    const revoking = store.revoke(record.id, 'a')
    expect(store.verify(token)).toBeUndefined()
    expect(await revoking).toBe(true)
    expect(told).toEqual([record.id])
    expect(await store.revoke(record.id, 'a')).toBe(false)
    expect((await TokenStore.open({ file })).verify(token)).toBeUndefined()
  })

  test('that is revoked is reported to every listener, even if one throws', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockReturnValue()
    const store = await TokenStore.open({ file })
    const { record } = await store.create({ tenant: 'a', role: 'view' })
    const told: string[] = []
    store.onRevoked(() => {
      throw new Error('broken listener')
    })
    store.onRevoked((id) => told.push(id))
    expect(await store.revoke(record.id, 'a')).toBe(true)
    expect(told).toEqual([record.id])
    expect(warned.mock.calls.map(([warning]) => (warning as Error).message)).toEqual(['broken listener'])
    warned.mockRestore()
  })

  test('is kept exactly if it was not revoked, among many concurrent creates and revokes', async () => {
    const store = await TokenStore.open({ file })
    const made = await Promise.all(Array.from({ length: 20 }, () => store.create({ tenant: 'a', role: 'view' })))
    await Promise.all(made.slice(0, 10).map(({ record }) => store.revoke(record.id, 'a')))
    const again = await TokenStore.open({ file })
    expect(made.map(({ token }) => again.verify(token) !== undefined)).toEqual(made.map((_, index) => index >= 10))
    expect(again.list('a')).toEqual(made.slice(10).map(({ record }) => record))
    expect(again.list('default')).toHaveLength(1)
  })
})

describe('a token that another one creates', () => {
  const day = 24 * 60 * 60_000
  const clock = new FakeClock()

  async function creator(): Promise<{ store: TokenStore; by: string }> {
    const store = await TokenStore.open({ file, clock })
    const limits = { sessions: 10, spend_per_day: 5 }
    const expiresAt = clock.now() + day
    const { record } = await store.create({ tenant: 'a', role: 'drive', folder: '/srv/one', limits, expiresAt })
    return { store, by: record.id }
  }

  test('inherits tenant, folder, expiry and limits', async () => {
    const { store, by } = await creator()
    const { record, token } = await store.create({ tenant: 'a', role: 'view', limits: { sessions: 3 } }, { by })
    expect(record).toMatchObject({
      parentId: by,
      folder: '/srv/one',
      limits: { sessions: 3, spend_per_day: 5 },
      expiresAt: clock.now() + day,
    })
    expect((await TokenStore.open({ file, clock })).verify(token)).toEqual(record)
  })

  test.each([
    ['tenant', { tenant: 'b' }],
    ['folder', { folder: '/srv' }],
    ['folder', { folder: '/srv/one-too' }],
    ['folder', { folder: '/srv/one/../two' }],
    ['expires_at', { expiresAt: clock.now() + day + 1 }],
    ['limits.sessions', { limits: { sessions: 11 } }],
    ['limits.spend_per_day', { limits: { spend_per_day: 5.01 } }],
  ])('is rejected if its %s is wider: %o', async (member, wider) => {
    const { store, by } = await creator()
    const wanted = { tenant: 'a', role: 'view' as const, ...wider }
    const before = await readFile(file, 'utf8')
    await expect(store.create(wanted, { by })).rejects.toMatchObject({
      problem: { status: 403, type: 'wider-than-creator', member },
    })
    expect(() => store.checkGrant(wanted, { by })).toThrow('at most as wide as itself')
    expect(await readFile(file, 'utf8')).toBe(before)
  })

  test('has at most the role of its creator; of the others, only drive grants metrics and host', async () => {
    const store = await TokenStore.open({ file })
    const granted: string[] = []
    for (const role of roles) {
      const { record } = await store.create({ tenant: 'a', role })
      for (const wanted of roles) {
        const made = store.create({ tenant: 'a', role: wanted }, { by: record.id })
        await made.then(
          () => granted.push(`${role} ${wanted}`),
          () => undefined,
        )
      }
    }
    const ladder = ['view view', 'queue view', 'queue queue', 'approve view', 'approve queue', 'approve approve']
    expect(granted).toEqual([...ladder, ...roles.map((role) => `drive ${role}`), 'metrics metrics', 'host host'])
  })

  test('ends with its creator, over several generations', async () => {
    const { store, by } = await creator()
    const child = await store.create({ tenant: 'a', role: 'drive' }, { by })
    const grandchild = await store.create({ tenant: 'a', role: 'view' }, { by: child.record.id })
    const stranger = await store.create({ tenant: 'a', role: 'view' })
    const other = await TokenStore.open({ file, clock })
    const told: string[] = []
    other.onRevoked((id) => told.push(id))
    expect(await store.revoke(by, 'a')).toBe(true)
    for (const each of [store, other]) {
      expect([child, grandchild].map(({ token }) => each.verify(token))).toEqual([undefined, undefined])
      expect(each.verify(stranger.token)).toBeDefined()
    }
    expect(told.toSorted()).toEqual([by, child.record.id, grandchild.record.id].toSorted())
    expect(await readFile(file, 'utf8')).not.toContain(grandchild.record.id)
  })

  test('is not created after another process has revoked its creator', async () => {
    const { store, by } = await creator()
    const other = await TokenStore.open({ file, clock })
    await other.revoke(by, 'a')
    await expect(store.create({ tenant: 'a', role: 'view' }, { by })).rejects.toMatchObject({
      problem: { status: 401, type: 'creator-over' },
    })
  })

  test('can be derived only a few times in a row', async () => {
    const store = await TokenStore.open({ file })
    let { record } = await store.create({ tenant: 'a', role: 'drive' })
    for (let depth = 1; depth < 8; depth++) {
      ;({ record } = await store.create({ tenant: 'a', role: 'drive' }, { by: record.id }))
    }
    await expect(store.create({ tenant: 'a', role: 'view' }, { by: record.id })).rejects.toMatchObject({
      problem: { type: 'derived-too-often' },
    })
  })

  test('is not valid if the file was edited so that its creators are missing or form a cycle', async () => {
    const { store, by } = await creator()
    const child = await store.create({ tenant: 'a', role: 'drive' }, { by })
    const text = await readFile(file, 'utf8')
    await writeFile(file, text.replaceAll(by, '0'.repeat(16)).replace(`"${'0'.repeat(16)}"`, `"${'1'.repeat(16)}"`))
    expect((await TokenStore.open({ file, clock })).verify(child.token)).toBeUndefined()
    await writeFile(file, text.replaceAll(`"parent_id": "${by}"`, `"parent_id": "${child.record.id}"`))
    expect((await TokenStore.open({ file, clock })).verify(child.token)).toBeUndefined()
  })
})

describe('stores of several processes over one file', () => {
  const tokensUnreadable = expect.objectContaining({ status: 503, type: 'tokens-unreadable' }) as unknown

  test('see at once what another has created or revoked, and notify listeners', async () => {
    const [one, two] = [await TokenStore.open({ file }), await TokenStore.open({ file })]
    const { token, record } = await one.create({ tenant: 'a', role: 'view' })
    expect(two.verify(token)).toEqual(record)
    expect(two.list('a')).toEqual([record])
    const told: string[] = []
    one.onRevoked((id) => told.push(id))
    expect(await two.revoke(record.id, 'a')).toBe(true)
    expect(one.verify(token)).toBeUndefined()
    expect(told).toEqual([record.id])
    expect(await one.revoke(record.id, 'a')).toBe(false)
  })

  test('never restore what one of them has revoked, and lose nothing that one of them has created', async () => {
    const [one, two] = [await TokenStore.open({ file }), await TokenStore.open({ file })]
    const first = await one.create({ tenant: 'a', role: 'view' })
    two.list('a')
    const [, second] = await Promise.all([
      one.revoke(first.record.id, 'a'),
      two.create({ tenant: 'a', role: 'view' }),
      one.create({ tenant: 'b', role: 'view' }),
      two.create({ tenant: 'b', role: 'view' }),
    ])
    for (const store of [one, two, await TokenStore.open({ file })]) {
      expect(store.verify(first.token)).toBeUndefined()
      expect(store.list('a')).toEqual([second.record])
      expect(store.list('b')).toHaveLength(2)
    }
  })

  test('create one first token together', async () => {
    const stores = await Promise.all(Array.from({ length: 4 }, () => TokenStore.open({ file })))
    expect(stores.map((store) => store.takeFirstToken()).filter((token) => token !== undefined)).toHaveLength(1)
    for (const store of stores) expect(store.list('default')).toHaveLength(1)
  })

  test('admit no token while the file is missing or broken, and do not overwrite a broken one', async () => {
    const store = await TokenStore.open({ file })
    const token = store.takeFirstToken() ?? ''
    const text = await readFile(file, 'utf8')
    const told: string[] = []
    store.onRevoked((id) => told.push(id))
    await writeFile(file, text.slice(0, -20))
    expect(() => store.verify(token)).toThrow(expect.objectContaining({ problem: tokensUnreadable }))
    await expect(store.create({ tenant: 'a', role: 'view' })).rejects.toThrow('is not a valid token file')
    await writeFile(file, text)
    expect(store.verify(token)).toBeDefined()
    expect(told).toEqual([])
    await rm(file)
    expect(store.verify(token)).toBeUndefined()
    expect(store.list('default')).toEqual([])
  })

  test.each(['version', 'content'] as const)(
    'admit tokens again by themselves after the %s of the file could not be read once, and nothing was revoked',
    async (method) => {
      const store = await TokenStore.open({ file })
      const token = store.takeFirstToken() ?? ''
      const told: string[] = []
      store.onRevoked((id) => told.push(id))
      const other = await TokenStore.open({ file })
      const { token: second } = await other.create({ tenant: 'a', role: 'view' })
      vi.spyOn(FileDocument.prototype, method).mockImplementationOnce(() => {
        throw Object.assign(new Error('too many open files'), { code: 'EMFILE' })
      })
      expect(() => store.verify(token)).toThrow(expect.objectContaining({ problem: tokensUnreadable }))
      for (const each of [token, second]) expect(store.verify(each)).toBeDefined()
      expect(told).toEqual([])
    },
  )

  test('remove temporary files of a process that died during a write', async () => {
    const store = await TokenStore.open({ file })
    await writeFile(`${file}.0123456789abcdef.tmp`, 'half a file')
    await store.create({ tenant: 'a', role: 'view' })
    expect(await readdir(join(folder, 'deep'))).toEqual(['tokens.json', 'tokens.json.lock'])
  })
})
