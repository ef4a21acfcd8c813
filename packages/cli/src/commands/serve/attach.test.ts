import { expect, test } from 'vitest'
import { serveCommands } from '../table/serve.ts'
import { KnownServers } from '../../host/known-servers.ts'
import { parse } from '../../command-line/parse.ts'
import { parseServerLink } from '../../host/pair.ts'
import { placesOf } from '../../host/places.ts'
import { fakeHome } from '../../testing/fake-home.ts'
import { testIo, type TestIo, type TestIoOptions } from '../../testing/test-io.ts'
import { attach } from './attach.ts'

async function run(args: readonly string[], options: TestIoOptions): Promise<TestIo> {
  const parsed = parse(['attach', ...args], serveCommands)
  if (parsed.type !== 'run') throw new Error(parsed.type)
  const io = testIo(options)
  await attach(parsed.invocation, io)
  return io
}

test('known servers are listed without their tokens, and can be forgotten', async () => {
  await using home = await fakeHome()
  const servers = new KnownServers(placesOf(home))
  await servers.remember({
    url: 'https://tape.example:8787',
    token: 'secret-token',
    pairedAt: '2026-11-15T00:00:00.000Z',
  })
  const { out } = await run(['--list', '--json'], home)
  expect(JSON.parse(out())).toEqual({
    servers: [{ url: 'https://tape.example:8787', paired_at: '2026-11-15T00:00:00.000Z', pinned: null }],
  })
  expect((await run(['--list'], home)).out()).not.toContain('secret-token')
  await run(['--forget', 'https://tape.example:8787/'], home)
  expect(await servers.list()).toEqual([])
  await expect(run(['--forget', 'https://tape.example:8787'], home)).rejects.toMatchObject({ code: 5 })
})

test('a server below a path is known by its whole URL', () => {
  const urlOf = (text: string): unknown => parseServerLink(text)?.url
  expect(urlOf('https://tape.example/agents/#pair=K7QF-3MZD')).toBe('https://tape.example/agents')
  expect(urlOf('https://tape.example/agents')).toBe('https://tape.example/agents')
  expect(urlOf('https://tape.example:8787/#pair=K7QF-3MZD')).toBe('https://tape.example:8787')
  expect(urlOf('https://tape.example:8787')).toBe('https://tape.example:8787')
})

test('a failed attach says what would help', async () => {
  await using home = await fakeHome()
  const terminal = { ...home, isTTY: true }
  await expect(run([], terminal)).rejects.toMatchObject({ code: 2 })
  await expect(run(['last'], home)).rejects.toMatchObject({ code: 2, next: [expect.stringContaining('tapetree run')] })
  await expect(run(['last'], terminal)).rejects.toMatchObject({ code: 5 })
  await expect(run(['http://127.0.0.1:9'], terminal)).rejects.toMatchObject({ code: 4, type: 'not-paired' })
  await expect(run(['http://127.0.0.1:9/#pair=abc'], terminal)).rejects.toMatchObject({ code: 5, type: 'unreachable' })
  await expect(run(['http://127.0.0.1:9', '--token', 't', 'last'], terminal)).rejects.toMatchObject({
    type: 'unreachable',
  })
})

test('a token is never sent to another machine unencrypted or without checking the fingerprint', async () => {
  await using home = await fakeHome()
  const terminal = { ...home, isTTY: true }
  const attached = (...args: string[]): Promise<TestIo> => run(['--token', 't', ...args], terminal)
  const refused = { code: 2, type: 'insecure-link' }
  await expect(attached('http://192.0.2.7:9', 'last')).rejects.toMatchObject(refused)
  await expect(attached('http://127.0.0.1.example:9', 'last')).rejects.toMatchObject(refused)
  await expect(run(['http://127.0.0.1:9/#pair=abc&fingerprint=AA:BB'], terminal)).rejects.toMatchObject(refused)
  for (const here of ['http://127.0.0.1:9', 'http://[::1]:9', 'http://localhost:9']) {
    await expect(attached(here, 'last')).rejects.toMatchObject({ type: 'unreachable' })
  }
  await expect(attached('--allow-insecure', 'http://tape.invalid:9', 'last')).rejects.toMatchObject({
    type: 'unreachable',
  })
})
