import type { Operation, WireRewound } from '@tapetree/client/protocol'
import { expect, test } from 'vitest'
import { keys, startChat } from '../testing/chat-driver.ts'
import type { ScriptedHandle } from '../testing/scripted-handle.ts'

type Change = NonNullable<WireRewound['files']>['changes'][number]

/** A session whose last message is "Rename it.", and a server that would put these files back. */
function arranged(changes: Change[], more: Partial<WireRewound['files']> = {}): (handle: ScriptedHandle) => void {
  return (handle) => {
    handle.user('Hello.')
    handle.assistant('Hi.')
    handle.user('Rename it.')
    handle.assistant('Renamed.')
    handle.reply = (op): unknown => {
      if (op !== 'rewind') return undefined
      return { leaf_id: 'e2', text: 'Rename it.', files: { changes, skipped: [], kept_copies: [], ...more } }
    }
  }
}

const argumentsOf = ({ calls }: ScriptedHandle, op: Operation): unknown[] =>
  calls.filter((call) => call.op === op).map(({ args }) => args)

const changed = (path: string): Change => ({ path, change: 'changed', action: 'restored' })

test('/undo shows what goes back, takes it back, and gives the message to the composer', async () => {
  await using chat = startChat({ arrange: arranged([changed('src/a.ts'), changed('src/b.ts')]) })
  const { terminal, handle } = chat
  await terminal.waitFor('Renamed.')
  terminal.type('/undo')
  terminal.press(keys.enter)
  await terminal.waitFor('2 files would go back: src/a.ts, src/b.ts')
  expect(argumentsOf(handle, 'rewind')).toEqual([{ entry_id: 'e3', dry_run: true }])
  terminal.press(keys.enter)
  const screen = await terminal.waitFor('Put back 2 files')
  expect(screen).toContain('/redo takes it back')
  expect(argumentsOf(handle, 'rewind').at(-1)).toEqual({ entry_id: 'e3', what: 'both' })
  terminal.press(keys.enter)
  await expect.poll(() => argumentsOf(handle, 'prompt')).toEqual([{ text: 'Rename it.' }])
})

test('each conflict is asked, and only the conversation goes back on request', async () => {
  const conflict: Change = { path: 'both.ts', change: 'changed', action: 'conflict', can_merge: true }
  await using chat = startChat({ arrange: arranged([changed('a.ts'), conflict]) })
  const { terminal, handle } = chat
  await terminal.waitFor('Renamed.')
  terminal.type('/undo')
  terminal.press(keys.enter)
  await terminal.waitFor('changed by the agent and by others: both.ts')
  terminal.press('1')
  await terminal.waitFor('Conflict in both.ts')
  terminal.press('3')
  await terminal.waitFor('/redo takes it back')
  expect(argumentsOf(handle, 'rewind').at(-1)).toEqual({
    entry_id: 'e3',
    what: 'both',
    choices: [{ path: 'both.ts', choice: 'merge' }],
  })
  terminal.press(keys.ctrlC)
  terminal.type('/undo')
  terminal.press(keys.enter)
  await terminal.waitFor('Only the conversation')
  terminal.press('2')
  await terminal.waitFor('The files stay as they are')
  expect(argumentsOf(handle, 'rewind').at(-1)).toEqual({ entry_id: 'e3', what: 'talk' })
})

test('/undo without recorded files goes back in the conversation and says why', async () => {
  await using chat = startChat({ arrange: arranged([], { problem: 'Snapshots are off.' }) })
  const { terminal, handle } = chat
  await terminal.waitFor('Renamed.')
  terminal.type('/undo')
  terminal.press(keys.enter)
  await terminal.waitFor('The files stay as they are: Snapshots are off.')
  expect(argumentsOf(handle, 'rewind').at(-1)).toEqual({ entry_id: 'e3', what: 'talk' })
})

test('/redo takes the last step back again, and says if there is none', async () => {
  await using chat = startChat({ arrange: arranged([changed('a.ts')]) })
  const { terminal, handle } = chat
  await terminal.waitFor('Renamed.')
  terminal.type('/redo')
  terminal.press(keys.enter)
  await terminal.waitFor('Put back 1 file: a.ts.')
  expect(argumentsOf(handle, 'rewind')).toEqual([{ dry_run: true }, { choices: [] }])
  handle.reply = () => {
    throw new Error('There is nothing to take back.')
  }
  terminal.type('/redo')
  terminal.press(keys.enter)
  await terminal.waitFor('There is nothing to take back.')
})

test('a message in the tree goes to the composer, and an older server still moves the conversation', async () => {
  await using chat = startChat({
    arrange: (handle, source) => {
      arranged([])(handle)
      const path = handle.transcript.path.items.slice()
      source.nodes = path.reduceRight<typeof source.nodes>((children, { id, type }) => {
        const message = { role: type === 'user' ? 'user' : 'assistant', content: [] }
        const entry = { type: 'message', id, parentId: null, seq: 1, timestamp: '', message } as never
        return [{ entry, children }]
      }, [])
    },
  })
  const { terminal, handle } = chat
  await terminal.waitFor('Renamed.')
  terminal.type('/tree')
  terminal.press(keys.enter)
  await terminal.waitFor('Session tree')
  terminal.press(keys.up)
  terminal.press(keys.enter)
  await terminal.waitFor('The files stay as they are.')
  expect(argumentsOf(handle, 'rewind').at(-1)).toEqual({ entry_id: 'e3', what: 'talk' })
  handle.reply = (op) => {
    if (op !== 'rewind') return undefined
    throw Object.assign(new Error('The operation does not exist.'), { problem: { type: 'invalid-command' } })
  }
  terminal.press(keys.ctrlC)
  terminal.type('/tree')
  terminal.press(keys.enter)
  await terminal.waitFor('Session tree')
  terminal.press(keys.up)
  terminal.press(keys.enter)
  await expect.poll(() => argumentsOf(handle, 'branch')).toEqual([{ entry_id: 'e3' }])
})

test('an interrupted restore is offered to be finished or undone', async () => {
  await using chat = startChat({
    arrange: (handle) => {
      arranged([changed('a.ts')])(handle)
      handle.setState('config', { model: null, thinkingLevel: null, mode: null, openRestore: 'x' })
    },
  })
  const { terminal, handle } = chat
  await terminal.waitFor('Putting files back was interrupted')
  terminal.press('2')
  await terminal.waitFor('Put back 1 file: a.ts.')
  expect(argumentsOf(handle, 'rewind')).toEqual([{ interrupted: 'undo' }])
})

test('c in the tree compares an entry with the current one, and d shows the changed lines', async () => {
  const side = {
    entryCount: 1,
    messageCount: 2,
    entries: [],
    usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2, cost: 0.5 },
    runMs: 61_000,
    checks: [{ command: 'npm test', exitCode: 1, durationMs: 10, timestamp: '' }],
  }
  const change = { path: 'src/a.ts', change: 'changed', addedLines: 1, removedLines: 0, isBinary: false } as const
  await using chat = startChat({
    size: { columns: 100, rows: 30 },
    arrange: (handle, source) => {
      arranged([])(handle)
      const message = { role: 'assistant', content: [] }
      const entry = { type: 'message', id: 'e4', parentId: null, seq: 1, timestamp: '', message } as never
      source.nodes = [{ entry, children: [] }]
      source.comparison = {
        commonAncestor: 'e1',
        left: { ...side, leafId: 'e4' },
        right: { ...side, leafId: 'e4', checks: [] },
        files: {
          changes: [{ ...change, patch: '@@\n+added line\n' }],
          changedCount: 1,
          addedLines: 1,
          removedLines: 0,
        },
      }
    },
  })
  const { terminal, source } = chat
  await terminal.waitFor('Renamed.')
  terminal.type('/tree')
  terminal.press(keys.enter)
  await terminal.waitFor('Session tree')
  terminal.press('c')
  const screen = await terminal.waitFor('1 file from left to right, +1 -0')
  expect(screen).toContain('1 of 1 failed: npm test (exit code 1)')
  expect(source.calls).toContain('compare e4 e4')
  terminal.press('d')
  await terminal.waitFor('+added line')
})
