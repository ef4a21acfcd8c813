import fc from 'fast-check'
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { OutputWriter, readOutput } from './spooled-output.ts'

let folder: string
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'tapetree-output-'))))
afterEach(() => rmSync(folder, { recursive: true, force: true }))

describe('output within the cap', () => {
  test('is one file and is read completely', async () => {
    write(100, 'hello ', 'world')
    expect(readdirSync(folder)).toEqual(['output'])
    expect(await read()).toEqual({ pieces: ['0 hello world'], end: 11 })
  })

  test('is read from an offset, or only its end', async () => {
    write(100, 'hello world')
    expect(await read({ from: 6 })).toEqual({ pieces: ['6 world'], end: 11 })
    expect(await read({ limitBytes: 3 })).toEqual({ pieces: ['8 rld'], end: 11 })
    expect(await read({ from: 11 })).toEqual({ pieces: [], end: 11 })
  })

  test('is one piece as long as nothing was dropped', async () => {
    write(16, '0123456789abcdef')
    expect(readdirSync(folder).sort()).toEqual(['output', 'output.12', 'output.8'])
    expect(await read()).toEqual({ pieces: ['0 0123456789abcdef'], end: 16 })
  })
})

describe('output over the cap', () => {
  test('keeps its beginning and its end', async () => {
    expect(write(16, '0123456789abcdefghijklmn').bytes).toBe(24)
    expect(await read()).toEqual({ pieces: ['0 01234567', '16 ghijklmn'], end: 24 })
  })

  test('is read from its stored end if the requested part is gone', async () => {
    write(16, '0123456789abcdefghijklmn')
    expect(await read({ from: 10 })).toEqual({ pieces: ['16 ghijklmn'], end: 24 })
  })
})

test('without a folder there is no output', async () => {
  expect(await readOutput(join(folder, 'gone'))).toEqual({ pieces: [], end: 0 })
})

test('a writer that cannot write reports why and keeps counting', () => {
  const writer = new OutputWriter(folder, 16)
  writer.write(Buffer.from('01234567'))
  rmSync(folder, { recursive: true })
  writer.write(Buffer.from('89'))
  writer.write(Buffer.from('ab'))
  writer.close()
  expect(writer.bytes).toBe(12)
  expect(writer.error).toContain('ENOENT')
})

test('for any chunks, the stored output is the true beginning and end, within the cap', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 4, max: 64 }), fc.array(fc.integer({ min: 0, max: 40 })), async (cap, sizes) => {
      const place = mkdtempSync(join(folder, 'case-'))
      const writer = new OutputWriter(place, cap)
      const whole = Buffer.from(Array.from({ length: sizes.reduce((sum, size) => sum + size, 0) }, (_, at) => at % 251))
      let at = 0
      for (const size of sizes) writer.write(whole.subarray(at, (at += size)))
      writer.close()
      const { pieces, end } = await readOutput(place)
      expect(end).toBe(whole.length)
      for (const { offset, bytes } of pieces) expect(bytes).toEqual(whole.subarray(offset, offset + bytes.length))
      expect(pieces[0]?.bytes.length ?? 0).toBeGreaterThanOrEqual(Math.min(whole.length, cap / 2))
      const last = pieces.at(-1)
      expect((last?.offset ?? 0) + (last?.bytes.length ?? 0)).toBe(end)
      const onDisk = readdirSync(place).reduce((sum, name) => sum + statSync(join(place, name)).size, 0)
      expect(onDisk).toBeLessThanOrEqual(cap + 4)
    }),
  )
})

function write(capBytes: number, ...chunks: string[]): OutputWriter {
  const writer = new OutputWriter(folder, capBytes)
  for (const chunk of chunks) writer.write(Buffer.from(chunk))
  writer.close()
  return writer
}

async function read(options?: Parameters<typeof readOutput>[1]): Promise<{ pieces: string[]; end: number }> {
  const { pieces, end } = await readOutput(folder, options)
  return { pieces: pieces.map(({ offset, bytes }) => `${offset} ${bytes.toString()}`), end }
}
