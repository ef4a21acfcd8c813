import { expect, test } from 'vitest'
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
