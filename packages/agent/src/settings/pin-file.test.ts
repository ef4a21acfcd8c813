import { expect, test } from 'vitest'
import { startServers, stdioServer } from '../mcp/testing/test-servers.ts'
import { TestFolder } from '../testing/test-folder.ts'
import { PinFile } from './pin-file.ts'

test('pins that several processes set at once are all kept', async () => {
  await using folder = await TestFolder.make()
  const names = Array.from({ length: 12 }, (_, index) => `server-${index}`)
  await Promise.all(names.map((name) => new PinFile(folder.path).set(name, { origin: `https://${name}.example` })))
  const pins = new PinFile(folder.path)
  const origins = await Promise.all(names.map(async (name) => (await pins.get(name))?.origin))
  expect(origins).toEqual(names.map((name) => `https://${name}.example`))
})

test.each([
  ['malformed', '{ "test": '],
  ['not what we write', '{ "test": { "tools": {} } }'],
  ['too large', ' '.repeat(5 * 1024 * 1024)],
])('servers stay withheld, and pins unchanged, while the pin file cannot be read: %s', async (_, text) => {
  await using folder = await TestFolder.make({ 'mcp-pins.json': text })
  const pins = new PinFile(folder.path)
  await using started = startServers({ test: stdioServer('serve', folder.at('notes')) }, { pins })
  expect(await started.reached('test', 'failed')).toMatchObject({
    isGivenUp: true,
    reason: expect.stringContaining(`${folder.at('mcp-pins.json')} cannot be read, so no server is started.`),
  })
  expect(started.servers.tools()).toEqual([])
  await expect(folder.read('notes')).rejects.toThrow('ENOENT')
  await expect(pins.set('other', { origin: 'https://other.example' })).rejects.toThrow('cannot be read')
  expect(await folder.read('mcp-pins.json')).toBe(text)
})
