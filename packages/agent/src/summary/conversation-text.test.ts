import { memoryStore, text, type Content } from '@tapetree/session'
import { assistant, call, toolResult, user } from '@tapetree/session/testing'
import { expect, test } from 'vitest'
import { beginning, conversationText } from './conversation-text.ts'

test('has roles, calls and results, and nothing that was hidden from the model', async () => {
  const session = await memoryStore().create()
  await user(session, 'read it')
  const reasoning: Content = { type: 'reasoning', reasoning: { text: 'secret' } }
  await assistant(
    session,
    reasoning,
    'I will.',
    call('a', 'read', { path: 'a.ts' }),
    call('b', 'bash', { command: 'ls' }),
  )
  await toolResult(session, 'a', 'const a = 1')
  const failed = { toolUseId: 'b', isError: true, content: [text('no such'), image] }
  await session.appendMessage('tool', [{ type: 'tool_result', toolResult: failed }])
  const bash = { command: 'ls', output: 'a.ts', exitCode: 0 }
  await session.appendMessage('bashExecution', [text('ls')], { with: { bashExecution: bash } })
  await session.appendMessage('bashExecution', [], { with: { bashExecution: { ...bash, excludeFromContext: true } } })
  await session.appendModelChange('openai', 'gpt')
  await session.appendCustomEntry('state', {})
  await session.appendMessage('custom', [text('a hint')])
  await session.appendMessage('user', [image])
  await assistant(session, '')
  await toolResult(session, 'z', 'late')
  await session.branchWithSummary(session.leafId, 'it did not work')
  expect(conversationText(await session.getContextPath())).toEqual([
    '[User]\nread it',
    '[Assistant]\nI will.\n[Assistant calls read]\n{"path":"a.ts"}\n[Assistant calls bash]\n{"command":"ls"}',
    '[Result of read]\nconst a = 1',
    '[Failed result of bash]\nno such\n(an image, image/png)',
    '[User ran a command]\n$ ls\na.ts\n(exit code 0)',
    '[Note]\na hint',
    '[User]\n(an image, image/png)',
    '[Result of an earlier call]\nlate',
    '[Summary of a branch that was left]\nit did not work',
  ])
})

test('keeps the beginning and end of long output, the beginning of long input, and all messages', async () => {
  const session = await memoryStore().create()
  await user(session, 'u'.repeat(5000))
  await assistant(session, call('a', 'write', { path: 'a.ts', content: 'c'.repeat(3000) }))
  await toolResult(session, 'a', `${'a'.repeat(5000)}${'z'.repeat(5000)}`)
  const [said, called, answered] = conversationText(await session.getContextPath()) as [string, string, string]
  expect(said).toHaveLength('[User]\n'.length + 5000)
  expect(called).toMatch(/^\[Assistant calls write\]\n\{"path":"a.ts","content":"c{900,1000} …$/)
  expect(answered).toBe(`[Result of write]\n${'a'.repeat(1200)}\n… (8000 characters left out) …\n${'z'.repeat(800)}`)
})

test('no character is cut in half', async () => {
  const session = await memoryStore().create()
  await toolResult(session, 'a', `${'🌲'.repeat(1000)}x${'🌲'.repeat(1000)}`)
  const [words] = conversationText(await session.getContextPath()) as [string]
  expect(words.isWellFormed()).toBe(true)
  expect([beginning('a🌲b', 2), beginning('a🌲b', 3), beginning('a🌲b', 9)]).toEqual(['a', 'a🌲', 'a🌲b'])
})

const image: Content = { type: 'image', image: { source: { type: 'url', mediaType: 'image/png', data: 'x' } } }
