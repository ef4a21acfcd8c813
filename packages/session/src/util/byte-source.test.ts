import { expect, test, vi } from 'vitest'
import { ByteSource } from './byte-source.ts'

test('a line over the limit is rejected, even if its newline is in the same chunk', async () => {
  const source = new ByteSource(chunks(1, new TextEncoder().encode(`${'a'.repeat(101)}\n`)))
  expect(await source.line(100)).toBeUndefined()
})

test('many bytes in small chunks are copied once', async () => {
  const spy = vi.spyOn(Uint8Array.prototype, 'set')
  const bytes = await new ByteSource(chunks(100, new Uint8Array(1000).fill(7))).bytes(100_000)
  const copied = spy.mock.calls.map(([piece]) => piece.length)
  spy.mockRestore()
  expect(bytes?.every((byte) => byte === 7)).toBe(true)
  expect(copied.reduce((sum, length) => sum + length, 0)).toBe(100_000)
})

async function* chunks(count: number, chunk: Uint8Array): AsyncIterable<Uint8Array> {
  for (let index = 0; index < count; index++) yield chunk
}
