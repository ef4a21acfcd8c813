import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { runCli, reportFailure } from './cli.ts'
import { Failure, usageFailure } from './command-line/failure.ts'
import { exitCodes } from './command-line/exit-code.ts'
import { OutputError } from './command-line/io.ts'
import { testIo } from './testing/test-io.ts'
import { version } from './command-line/version.ts'

test('the version is that of the package', async () => {
  const manifest = await readFile(new URL('../package.json', import.meta.url), 'utf8')
  expect(JSON.parse(manifest)).toMatchObject({ version })
  const io = testIo()
  expect(await runCli(['version'], io)).toBe(exitCodes.ok)
  expect(io.out()).toBe(`${version}\n`)
})

test('help goes to stdout; a usage error goes to stderr with a helpful command', async () => {
  const help = testIo()
  expect(await runCli(['help', 'doctor'], help)).toBe(exitCodes.ok)
  expect(help.out()).toContain('Usage: tapetree doctor [options]')
  const wrong = testIo()
  expect(await runCli(['docter'], wrong)).toBe(exitCodes.usage)
  expect(wrong.out()).toBe('')
  expect(wrong.err()).toContain('Did you mean doctor?')
  expect(wrong.err()).toContain('Try:\n  tapetree doctor --help')
})

test('with --json a usage error is JSON, too', async () => {
  const io = testIo()
  expect(await runCli(['doctor', '--nonsense', '--json'], io)).toBe(exitCodes.usage)
  expect(JSON.parse(io.err())).toEqual({
    error: {
      code: 2,
      type: 'usage',
      message: 'tapetree doctor has no option --nonsense.',
      next: ['tapetree doctor --help'],
    },
  })
})

test('a failure names what, why and what next, and cannot control the terminal', async () => {
  const io = testIo({ isTTY: true, env: { NO_COLOR: '1' } })
  const failure = new Failure(exitCodes.notFound, 'No \u001b]0;x\u0007such thing.', {
    type: 'x',
    why: 'Because.',
    next: ['tapetree'],
  })
  expect(await reportFailure(failure, io, { asJson: false })).toBe(exitCodes.notFound)
  expect(io.err()).toBe('tapetree: No ␛]0;x␇such thing.\nBecause.\nTry:\n  tapetree\n')
})

test('an interruption and a closed pipe print no error', async () => {
  const io = testIo()
  const aborted = new DOMException('This operation was aborted', 'AbortError')
  expect(await reportFailure(aborted, io, { asJson: false })).toBe(exitCodes.interrupted)
  const gone = new OutputError(Object.assign(new Error('write'), { code: 'EPIPE' }), { isTTY: false })
  expect(await reportFailure(gone, io, { asJson: false })).toBe(exitCodes.ok)
  expect(io.err()).toBe('')
  expect(await reportFailure(usageFailure('Wrong.'), io, { asJson: false })).toBe(exitCodes.usage)
})
