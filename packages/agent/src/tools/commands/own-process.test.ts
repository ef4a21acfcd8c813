import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { OwnProcess } from './own-process.ts'

/** Fits into a pipe, so the program can end before all of it is read. */
const length = 100_000
const script = `process.stdout.write('x'.repeat(${length}))`

function start(): OwnProcess {
  return new OwnProcess({ file: process.execPath, args: ['-e', script], env: {}, cwd: process.cwd() })
}

async function bytesOf({ stdout }: OwnProcess): Promise<number> {
  let read = 0
  for await (const chunk of stdout) read += (chunk as Buffer).length
  return read
}

test('what a program wrote before it ended by itself is read to the end, and only then it has ended', async () => {
  const program = start()
  const chunks = program.stdout[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  const first = await chunks.next()
  while (!program.isEnding) await setTimeout(1)
  expect(await Promise.race([program.ended, setTimeout(50, 'it waits to be read')])).toBe('it waits to be read')
  let read = 0
  for (let next = first; next.done !== true; next = await chunks.next()) read += next.value.length
  expect(read).toBe(length)
  expect(await program.ended).toBe('It ended (exit code 0).')
})

test('a program that is ended has ended at once, unless what it wrote is wanted', async () => {
  const dropped = start()
  const end = dropped.end('Enough.')
  expect(await Promise.race([dropped.ended, end])).toBe('Enough.')
  await end
  const wanted = start()
  await once(wanted.stdout, 'readable')
  const [bytes] = await Promise.all([bytesOf(wanted), wanted.end('Enough.', { isReadToEnd: true })])
  expect([bytes, await wanted.ended]).toEqual([length, 'Enough.'])
})
