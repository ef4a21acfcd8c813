import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { write } from '../command-line/io.ts'
import { testIo } from '../testing/test-io.ts'
import { paged } from './paged.ts'

test('on a terminal the pager gets the output, and may quit before the end', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tapetree-pager-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const kept = join(folder, 'out')
  const io = testIo({ isTTY: true, env: { PATH: process.env['PATH'], PAGER: `cat > '${kept}'` } })
  await paged(io, (output) => write(output, 'all of it'))
  expect([io.out(), await readFile(kept, 'utf8')]).toEqual(['', 'all of it'])
  const left = testIo({ isTTY: true, env: { PATH: process.env['PATH'], PAGER: 'head -c 1 > /dev/null' } })
  await paged(left, async (output) => {
    for (let index = 0; index < 100; index++) await write(output, 'x'.repeat(100_000))
  })
})

test('without a terminal or a pager the output is written directly', async () => {
  for (const io of [testIo({ env: { PAGER: 'false' } }), testIo({ isTTY: true })]) {
    await paged(io, (output) => write(output, 'all of it'))
    expect(io.out()).toBe('all of it')
  }
})
