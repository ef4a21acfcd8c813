import { execFile } from 'node:child_process'
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { KnownServers, type KnownServer } from './known-servers.ts'

const server = (name: string): KnownServer => ({
  url: `https://${name}.example`,
  token: `token of ${name}`,
  pairedAt: '2026-01-01T00:00:00Z',
})

async function emptyFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tapetree-servers-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return folder
}

test('servers that several processes add and forget concurrently are all known, or all forgotten', async () => {
  const state = await emptyFolder()
  const names = Array.from({ length: 12 }, (_, index) => `host-${index}`)
  await new KnownServers({ state }).remember(server('first'))
  await Promise.all(names.map((name) => new KnownServers({ state }).remember(server(name))))
  const urls = async (): Promise<string[]> => (await new KnownServers({ state }).list()).map(({ url }) => url).sort()
  expect(await urls()).toEqual(['first', ...names].map((name) => server(name).url).sort())
  await Promise.all(names.map((name) => new KnownServers({ state }).forget(server(name).url)))
  expect(await urls()).toEqual([server('first').url])
  expect((await stat(join(state, 'servers.json'))).mode & 0o777).toBe(0o600)
})

test('a full disk leaves no file with a token behind', async () => {
  const state = await emptyFolder()
  const module = new URL('./known-servers.ts', import.meta.url).href
  const program = `import { KnownServers } from ${JSON.stringify(module)}
    const server = { url: 'https://a.example', token: 'x'.repeat(100_000), pairedAt: '' }
    await new KnownServers({ state: ${JSON.stringify(state)} }).remember(server).catch((error) => console.log(error.code))`
  const flags = ['-C', '@tapetree/source', '--input-type=module', '-e', program]
  const { stdout } = await promisify(execFile)('sh', ['-c', 'ulimit -f 1; exec "$0" "$@"', process.execPath, ...flags])
  expect(stdout).toBe('EFBIG\n')
  expect((await readdir(state)).filter((name) => !name.endsWith('.lock'))).toEqual([])
})
