import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readExit, reserveExit, writeExit, type CommandExit } from './exit-file.ts'

test('the outcome of a command is written to space that was reserved before, because the disk may be full now', async () => {
  const spool = mkdtempSync(join(tmpdir(), 'tapetree-exit-'))
  onTestFinished(() => rmSync(spool, { recursive: true }))
  const ended = { cause: 'exited', code: 3, signal: null, bytes: 0, durationMs: 1, deadlineMs: 1 } as const
  const exit: CommandExit = { ...ended, leftBehind: [], survivors: ['x'.repeat(1000)] }

  reserveExit(spool)
  const reserved = statSync(join(spool, 'exit.prepared'))
  expect(reserved.size).toBeGreaterThan(JSON.stringify(exit).length)
  expect(await readExit(spool)).toBeUndefined()
  writeExit(spool, exit)

  expect(statSync(join(spool, 'exit')).ino).toBe(reserved.ino)
  expect(await readExit(spool)).toEqual(exit)
})
