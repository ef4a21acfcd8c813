import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { boxNotes } from './box-notes.ts'
import type { CommandSandbox, TakenBack } from './command.ts'

const socketIsGone = "bwrap: Can't create file at /run/user/1/bus: Read-only file system\n"

/** The notes about a command that has printed this, and left these control files. */
async function notesOf({ code = 1, taken }: { code?: number; taken?: Partial<TakenBack> }): Promise<string> {
  const spool = realpathSync(mkdtempSync(join(tmpdir(), 'tapetree-notes-')))
  onTestFinished(() => rmSync(spool, { recursive: true }))
  const back = { writes: [], unmoved: [], putBack: () => Promise.resolve([]), leave: () => Promise.resolve(), ...taken }
  const sandbox: CommandSandbox = {
    details: () => ({ backend: 'bubblewrap', writable: [], hosts: [], home: 'read-only' }),
    box: () => Promise.resolve({ argv: [], env: {} }),
    blockedIn: () => [],
    takeBack: () => Promise.resolve(taken && back),
  }
  const exit = { cause: 'exited', code, signal: null, bytes: 0, durationMs: 1, deadlineMs: 1 } as const
  const notes = await boxNotes(
    {
      spool,
      output: () =>
        Promise.resolve({ pieces: [{ offset: 0, bytes: Buffer.from(socketIsGone) }], end: socketIsGone.length }),
      state: () => Promise.resolve({ type: 'ended', exit: { ...exit, leftBehind: [], survivors: [] } }),
    },
    {
      sandbox,
      call: { callId: 'call', kind: 'writable' },
      context: {
        ...{ cwd: spool, callId: 'call', sessionId: 's' },
        ask: () => Promise.resolve({ text: 'Leave them out', isCancelled: false }),
        append: () => Promise.resolve(),
      },
      hasEnded: true,
    },
  )
  return notes.join('\n')
}

test('a command that prints the message of a missing socket still has its control files taken back', async () => {
  const notes = await notesOf({ taken: { writes: [{ id: 'job.0', path: '.vscode' }] } })
  expect(notes).toContain('moved out of the working folder: .vscode')
  expect(notes).not.toContain('did not start')
})

test('a command did not start for want of a socket only if it failed and left nothing', async () => {
  expect(await notesOf({})).toContain('It did not start')
  expect(await notesOf({ code: 0 })).not.toContain('It did not start')
})

test('a control file that cannot be moved is named to the model, beside those that were moved', async () => {
  const unmoved = [{ path: 'a/.vscode', reason: 'EBUSY: it is busy' }]
  expect(await notesOf({ taken: { unmoved } })).toContain('made a/.vscode')
  const notes = await notesOf({ taken: { unmoved, writes: [{ id: 'job.0', path: '.envrc' }] } })
  expect(notes).toContain('made a/.vscode')
  expect(notes).toContain('moved out of the working folder: .envrc')
})
