import { memoryStore, text } from '@tapetree/session'
import { emptyTranscript, reduceTranscript } from '@tapetree/session/view'
import { expect, test, vi } from 'vitest'

// The module reads the address of the page.
vi.stubGlobal('location', new URL('http://127.0.0.1/'))
const { newestCalls } = await import('./jobs.tsx')

test('a command is noticed although its result and the next answer arrive together', async () => {
  const session = await memoryStore().create({})
  let transcript = emptyTranscript()
  session.subscribe(({ line }) => void (transcript = reduceTranscript(transcript, { type: 'line', line })))
  await session.appendMessage('user', 'Start the server.')
  const toolUse = { id: 'j1', name: 'bash', input: { command: 'serve', background: true } }
  await session.appendMessage('assistant', [{ type: 'tool_use', toolUse }])
  const before = newestCalls(transcript)

  const toolResult = { toolUseId: 'j1', content: 'It runs.' }
  await session.appendMessage('tool', [{ type: 'tool_result', toolResult }])
  await session.appendMessage('assistant', [text('It runs in the background.')])

  expect(newestCalls(transcript)).not.toBe(before)
})
