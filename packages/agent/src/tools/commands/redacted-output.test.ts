import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { createRedactor } from '@tapetree/redact'
import { canary } from '../../testing/canary.ts'
import { callTool, testContext, type TestContext } from '../../testing/tool-context.ts'
import { bashTool } from '../builtin/bash.ts'
import { jobOutputTool } from '../builtin/job-output.ts'
import { Jobs } from './jobs.ts'
import { readClaim } from './claim.ts'
import { attach, startCommand, type Command } from './command.ts'
import { RedactedOutput, OutputWriter } from './spooled-output.ts'
import { dismissSupervisor } from './supervisor-process.ts'

const marker = '[redacted: github-token]'
/** Files here stay on disk: after all tests, the remaining files are searched for canaries. */
let spools: string
/** Files that commands read are removed with the canaries in them. */
let cwd: string
beforeAll(() => void (spools = realpathSync(mkdtempSync(join(tmpdir(), 'tapetree-redacted-')))))
beforeEach(() => {
  cwd = mkdtempSync(join(spools, 'cwd-'))
  return () => rmSync(cwd, { recursive: true })
})
afterAll(() => dismissSupervisor())

describe('a key that a command prints in several writes', () => {
  test('is not in the spool of a running job, and offsets count the stored bytes', async () => {
    const key = inPieces(canary())
    const jobs = new Jobs()
    const context = toolContext()
    const command = `echo before; ${print(key)}; echo; ${untilGo('one')}; printf 'then %s' "$(cat key-0)"; ${untilGo('two')}; echo x`
    const { content } = await callTool(bashTool({ jobs, redaction: {} }), { command, background: true }, context)
    const jobId = /job-\w+/.exec(content as string)?.[0] ?? ''
    const job = (await jobs.find(jobId, spools)) as Command
    const first = `before\n${marker}\n`
    await vi.waitFor(() => expect(spooled(job)).toBe(first), waiting)
    const read = (since: number): Promise<unknown> =>
      callTool(jobOutputTool({ jobs }), { jobId, since }, context).then((output) => output.content)
    expect(await read(0)).toBe(`before\n${marker}\n\n[Still running. Read more with since ${first.length}.]`)
    go('one')
    // A key may have begun: that much is held back, however long nothing more arrives.
    const second = `${first}then `
    await vi.waitFor(() => expect(spooled(job)).toBe(second), waiting)
    expect(await read(first.length)).toBe(`then\n\n[Still running. Read more with since ${second.length}.]`)
    go('two')
    const outcome = await job.wait()
    expect(await read(second.length)).toBe(`${key[0]}x`)
    const whole = `${second}${key[0]}x\n`
    expect(spooled(job)).toBe(whole)
    expect(outcome).toMatchObject({ exit: { bytes: whole.length } })
    expect(searched(spools, key.join(''))).toEqual([])
  })

  test('is neither in the result nor in the live output nor in the blob of the whole output', async () => {
    const key = inPieces(canary())
    const context = toolContext()
    const many = 'for i in $(seq 1 4000); do echo "line $i of many"; done'
    const command = `${many}; ${print(key)}; echo; ${many}`
    const { content } = await callTool(bashTool({ jobs: new Jobs(), redaction: {} }), { command }, context)
    const [blob] = [...context.blobs.values()].map((bytes) => Buffer.from(bytes).toString())
    expect(blob).toContain(`many\n${marker}\nline 1 of`)
    for (const text of [blob, content, context.observed.join('')]) expect(text).not.toContain(key.join(''))
    expect(content).toContain('The whole output is kept as blob')
  })
})

test('binary output is unchanged except for the removed secret', async () => {
  const secret = canary()
  const value = 'a value that is known, ünïcode'
  const redaction = { secrets: { KNOWN: value } }
  const noise = Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * 7919 + (index >> 8)) & 255))
  const bytes = Buffer.concat([noise, Buffer.from(` ${secret} `), noise, Buffer.from(value), noise])
  writeFileSync(join(cwd, 'bytes'), bytes)
  const command = await start('cat bytes; dd if=bytes bs=777 status=none', { redaction })
  await command.wait()
  const { pieces } = await command.output()
  const expected = Buffer.concat([noise, Buffer.from(` ${marker} `), noise, Buffer.from('[redacted: KNOWN]'), noise])
  expect(Buffer.concat(pieces.map((piece) => piece.bytes)).equals(Buffer.concat([expected, expected]))).toBe(true)
})

test('secrets are sent to the supervisor only: not on its command line, in its environment or on disk', async () => {
  const secret = `known-${canary()}`
  const command = await start(untilGo('end'), { redaction: { secrets: { KNOWN: secret }, allow: ['OTHER'] } })
  const { pid } = readClaim(command.spool).claim ?? {}
  const places = [`/proc/${pid}/cmdline`, `/proc/${pid}/environ`].map((path) => readFileSync(path, 'latin1'))
  expect(places.filter((text) => text.includes(secret))).toEqual([])
  expect(searched(spools, secret)).toEqual([])
  go('end')
  await command.wait()
  expect(searched(spools, secret)).toEqual([])
})

test('a secret of our own environment is redacted by default', async () => {
  process.env['TAPETREE_TEST_TOKEN'] = 'a-token-of-ours-1'
  writeFileSync(join(cwd, 'token'), 'a-token-of-ours-1\n')
  const command = await start('cat token')
  delete process.env['TAPETREE_TEST_TOKEN']
  await command.wait()
  expect(spooled(command)).toBe('[redacted: TAPETREE_TEST_TOKEN]\n')
})

test('text that is not a secret appears after a pause, and a possible secret at the end', async () => {
  const spool = mkdtempSync(join(spools, 'spool-'))
  const output = new RedactedOutput(new OutputWriter(spool, 1_000_000), createRedactor().byteStream())
  // A private key may be this long, and while much is held back not every small piece is examined.
  const beginning = `-----BEGIN ${['PRIVATE', 'KEY'].join(' ')}-----\n${'MIIEvQ'.repeat(500)}\n`
  output.write(Buffer.from(beginning))
  expect(spooled(attach(spool))).toBe('')
  output.write(Buffer.from('no! it is none. ghp_abc'))
  await vi.waitFor(() => expect(spooled(attach(spool))).toMatch(/ it is none\. $/), waiting)
  output.close()
  expect(spooled(attach(spool))).toMatch(/ it is none\. ghp_abc$/)
})

const waiting = { timeout: 20_000, interval: 20 }

function toolContext(): TestContext {
  return testContext({ cwd, localFolder: spools })
}

/** Writes a key into files with a part each. */
function inPieces(key: string): string[] {
  const pieces = [key.slice(0, 7), key.slice(7, 13), key.slice(13, 14), key.slice(14)]
  for (const [index, piece] of pieces.entries()) writeFileSync(join(cwd, `key-${index}`), piece)
  return pieces
}

/** A command that prints the pieces one after the other. */
function print(pieces: readonly string[]): string {
  return pieces.map((_, index) => `cat key-${index}`).join('; sleep 0.1; ')
}

function start(command: string, more: Partial<Parameters<typeof startCommand>[0]> = {}): Promise<Command> {
  const env = { PATH: process.env['PATH'] ?? '' }
  return startCommand({ spool: mkdtempSync(join(spools, 'spool-')), command, cwd, env, deadlineMs: 60_000, ...more })
}

/** The output on disk at this moment. */
function spooled({ spool }: Command): string {
  return readFileSync(join(spool, 'output'), 'utf8')
}

function untilGo(name: string): string {
  return `until [ -e ${cwd}/${name} ]; do sleep 0.02; done`
}

function go(name: string): void {
  writeFileSync(join(cwd, name), '')
}

/** The files that contain a text. */
function searched(folder: string, text: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return files.filter((file) => readFileSync(file).includes(text))
}
