import { setImmediate } from 'node:timers/promises'
import type { Content, SessionInfo } from '@tapetree/session'
import { expect, test, vi } from 'vitest'
import { startChat, type RunningChat } from '../testing/chat-driver.ts'
import { call } from '../views/testing/talk.ts'

function child(id: string, name: string, firstText: string): SessionInfo {
  const rest = { created: '', modified: '', cost: 0, messageCount: 1, queueLength: 0, damaged: false } as const
  return { id, name, firstText, status: 'idle', parentSession: 'first', subagent: true, ...rest }
}

function task(id: string, description: string, prompt: string): Content {
  return call(id, 'task', { description, prompt })
}

/** A session with subagents of the same name, and with that name elsewhere. */
function startScene(): RunningChat {
  return startChat({
    size: { columns: 170, rows: 40 },
    arrange: (handle, source) => {
      source.sessions = [
        child('twin-2', 'Same task', 'Do it.'),
        child('twin-1', 'Same task', 'Do it.'),
        child('newer', 'Review client', 'Review its tests.'),
        child('older', 'Review client', 'Review its parser.'),
      ]
      handle.record({ type: 'plan', plan: { items: [{ text: 'Review client', status: 'completed' }] } })
      handle.user('Review client')
      handle.assistant(
        '- Review client',
        task('a', 'Review client', ' Review its parser.\n'),
        task('b', 'Review client', 'Review its tests.'),
        task('c', 'Review client', 'Review what has not started.'),
        task('d', 'Same task', 'Do it.'),
      )
      for (const id of ['a', 'b']) {
        const toolResult = { toolUseId: id, content: `Review client: ${id} is fine.`, isError: false }
        handle.message({ role: 'tool', content: [{ type: 'tool_result', toolResult }] })
      }
    },
  })
}

/** Clicks on the last of the rows with this text, as often as it says, and lets the time of a double click pass. */
async function click(
  { terminal, source }: RunningChat,
  text: string | RegExp,
  { times = 1, on = -1 } = {},
): Promise<string[]> {
  await terminal.waitFor(text)
  const places = terminal.screen().flatMap((row, y) => {
    const x = row.search(text)
    return x < 0 ? [] : [`${x + 1};${y + 1}`]
  })
  source.calls.length = 0
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  for (let time = 0; time < times; time++) {
    for (const end of ['M', 'm']) terminal.press(`\u001b[<0;${places.at(on)}${end}`)
  }
  vi.advanceTimersByTime(1000)
  vi.useRealTimers()
  await setImmediate()
  await terminal.settled()
  return source.calls
}

test('a click opens the session of the call that is drawn there', async () => {
  await using chat = startScene()
  expect(await click(chat, /. task Review client/, { on: 0 })).toEqual(['open older'])
})

test('a click in the sidebar opens the session of that row', async () => {
  await using chat = startScene()
  await chat.terminal.waitFor('Subagents')
  const last = /(?<=│ )✓ Review client/
  expect(await click(chat, last)).toEqual(['open older'])
})

test('a row that only has the name of a subagent opens nothing', async () => {
  await using chat = startScene()
  await chat.terminal.waitFor('Subagents')
  expect(await click(chat, '> Review client')).toEqual([])
  expect(await click(chat, '• Review client')).toEqual([])
  expect(await click(chat, 'b is fine')).toEqual([])
  // The row of the plan.
  expect(await click(chat, /(?<=│ )✓ Review client/, { on: 0 })).toEqual([])
  // It has not started.
  expect(await click(chat, /. task Review client/)).toEqual([])
  // It is one of two, and nothing says which.
  expect(await click(chat, /. task Same task/)).toEqual([])
})

test('a double click on the line of a subagent selects a word, and does not open its session', async () => {
  await using chat = startScene()
  expect(await click(chat, /(?<=. task )Review client/, { on: 0, times: 2 })).toEqual([])
  expect(chat.terminal.written).toContain(Buffer.from('Review').toString('base64'))
})
