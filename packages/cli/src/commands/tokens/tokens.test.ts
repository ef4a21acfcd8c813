import { TokenStore } from '@tapetree/server'
import { existsSync } from 'node:fs'
import { mkdir, realpath, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { runCli } from '../../cli.ts'
import { openStore } from '../../host/open-store.ts'
import { placesOf } from '../../host/places.ts'
import { fakeHome, type FakeHome } from '../../testing/fake-home.ts'
import { testIo } from '../../testing/test-io.ts'
import { expiryOf } from './tokens.ts'

interface Ran {
  code: number
  out: string
  err: string
}

async function run(home: FakeHome, ...args: string[]): Promise<Ran> {
  const io = testIo(home)
  return { code: await runCli(['tokens', ...args], io), out: io.out(), err: io.err() }
}

async function made(
  home: FakeHome,
  ...args: string[]
): Promise<{ id: string; token: string; [member: string]: unknown }> {
  return JSON.parse((await run(home, 'create', '--json', ...args)).out) as { id: string; token: string }
}

function fileIn(home: FakeHome): string {
  return join(placesOf(home).state, 'tokens.json')
}

describe('tapetree tokens', () => {
  test('creates a token, prints it once, lists it without its secret, and revokes it', async () => {
    await using home = await fakeHome()
    const created = await run(home, 'create', '--name', 'screen')
    expect(created).toMatchObject({ code: 0 })
    const token = created.out.trim()
    expect(token).toMatch(/^tapetree_[0-9a-f]{16}_[\w-]{43}$/)
    const id = token.slice(9, 25)
    expect(created.err).toContain(`This is token ${id} of role view`)
    expect((await stat(fileIn(home))).mode & 0o777).toBe(0o600)
    const tokens = await TokenStore.open({ file: fileIn(home) })
    expect(tokens.verify(token)).toMatchObject({ id, role: 'view', tenant: 'default', name: 'screen' })
    const listed = await run(home, 'list')
    expect(listed.out).toContain(id)
    expect(listed.out).not.toContain(token.slice(26))
    const revoked = await run(home, 'revoke', id)
    expect(revoked).toMatchObject({ code: 0, out: `Revoked 1 token: ${id}\n` })
    expect(tokens.verify(token)).toBeUndefined()
    expect((await run(home, 'list')).err).toContain('There are no tokens')
  })

  test('creates a token with a role, a folder, an expiry and limits', async () => {
    await using home = await fakeHome()
    await mkdir(join(home.cwd, 'inside'))
    await symlink('inside', join(home.cwd, 'link'))
    const created = await made(
      home,
      ...['--role', 'drive', '--folder', 'link', '--expires', '30d'],
      ...['--limit', 'spend-per-day=2.5', '--limit', 'storage-bytes=1.5MB', '--limit', 'requests-per-minute=60'],
    )
    expect(created).toMatchObject({
      role: 'drive',
      folder: await realpath(join(home.cwd, 'inside')),
      limits: { spend_per_day: 2.5, storage_bytes: 1_500_000, requests_per_minute: 60 },
    })
    const days = (Date.parse(created['expires_at'] as string) - Date.now()) / 86_400_000
    expect(days).toBeGreaterThan(29.9)
    expect(days).toBeLessThanOrEqual(30)
    const tokens = await TokenStore.open({ file: fileIn(home) })
    expect(tokens.verify(created.token)).toMatchObject({ id: created.id, limits: created['limits'] })
  })

  test('lists how much of its limits a token uses', async () => {
    await using home = await fakeHome()
    const inside = await realpath(home.cwd)
    await made(home, '--folder', '.', '--limit', 'sessions=3')
    const store = await openStore(placesOf(home))
    for (const cwd of [inside, inside, '/elsewhere']) await (await store.create({ cwd })).close()
    await store.close()
    const { tokens } = JSON.parse((await run(home, 'list', '--json')).out) as { tokens: object[] }
    expect(tokens).toMatchObject([{ limits: { sessions: 3 }, usage: { sessions: 2 } }])
    expect((await run(home, 'list')).out).toContain('sessions 2 of 3')
  })

  test('revokes the tokens that derive from a token', async () => {
    await using home = await fakeHome()
    const { id } = await made(home, '--role', 'drive')
    const tokens = await TokenStore.open({ file: fileIn(home) })
    const child = await tokens.create({ tenant: 'default', role: 'view' }, { by: id })
    const other = await made(home)
    const { out } = await run(home, 'revoke', id, '--json')
    expect(JSON.parse(out)).toEqual({ revoked: [id, child.record.id] })
    expect(tokens.verify(child.token)).toBeUndefined()
    expect(tokens.verify(other.token)).toBeDefined()
  })

  test('uses another token file, and tenants that it has', async () => {
    await using home = await fakeHome()
    const file = join(home.cwd, 'other.json')
    await TokenStore.open({ file, first: { tenant: 'team', role: 'drive' } })
    expect(await made(home, '--file', 'other.json', '--tenant', 'team')).toMatchObject({ tenant: 'team' })
    const refused = await run(home, 'create', '--file', 'other.json', '--tenant', 'nobody')
    expect([refused.code, refused.err]).toEqual([2, expect.stringContaining('Its tenants are: default, team.')])
    expect((await run(home, 'create', '--tenant', 'team')).code).toBe(2)
  })

  test('creates no file for a list or a revocation, and rejects a broken one', async () => {
    await using home = await fakeHome()
    expect(JSON.parse((await run(home, 'list', '--json')).out)).toEqual({ tokens: [] })
    expect(await run(home, 'revoke', '0123456789abcdef')).toMatchObject({ code: 5 })
    expect(existsSync(fileIn(home))).toBe(false)
    await mkdir(placesOf(home).state, { recursive: true })
    await writeFile(fileIn(home), '{')
    expect(await run(home, 'list')).toMatchObject({ code: 3, out: '' })
  })

  test.each([
    [['--limit', 'money=3'], 'The limits are live-sessions, sessions'],
    [['--limit', 'spend-per-day'], 'is not an amount'],
    [['--limit', 'sessions=1.5'], 'is not an amount'],
    [['--limit', 'sessions=5MB'], 'is not an amount'],
    [['--limit', 'sessions=-1'], 'is not an amount'],
    [['--expires', 'tomorrow'], '--expires must be a period'],
    [['--expires', '2020-01-01'], 'is in the past'],
    [['--role', 'owner'], 'role'],
    [['--role', 'metrics', '--folder', '.'], 'has no --folder'],
    [['--name', ''], '--name must have'],
  ])('rejects %j', async (args, message) => {
    await using home = await fakeHome()
    const { code, err, out } = await run(home, 'create', ...args)
    expect([code, out]).toEqual([2, ''])
    expect(err).toContain(message)
    expect(existsSync(fileIn(home))).toBe(false)
  })
})

test('an expiry is a period, a day or a time', () => {
  const now = Date.parse('2027-01-01T12:00:00Z')
  expect(expiryOf('2d', now) - now).toBe(172_800_000)
  expect(expiryOf('3h', now) - now).toBe(10_800_000)
  expect(expiryOf('4m', now) - now).toBe(240_000)
  expect(expiryOf('2027-02-01', now)).toBe(new Date(2027, 1, 1).getTime())
  expect(expiryOf('2027-02-01T10:00Z', now)).toBe(Date.parse('2027-02-01T10:00:00Z'))
})
