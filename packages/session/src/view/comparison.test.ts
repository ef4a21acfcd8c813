import { expect, test } from 'vitest'
import { fromDisk, type DiskLine, type Line } from '../format.ts'
import { memoryStore, text, type Session } from '../index.ts'
import { compareEntries, summarizeEntry } from './comparison.ts'

async function linesOf(session: Session): Promise<Line[]> {
  const lines: Line[] = []
  for await (const line of session.lines())
    if (line.type === 'line') lines.push(fromDisk(JSON.parse(line.text) as DiskLine, line.seq))
  return lines
}

test('two branches are compared by messages, usage, the time of their runs and their checks', async () => {
  const session = await memoryStore().create({ cwd: '/' })
  const fork = await session.appendMessage('user', [text('do it')])
  const usage = { inputTokens: 10, outputTokens: 5, cost: 0.5 }
  const answer = { with: { usage, runId: 'r1' } }
  const left = await session.appendMessage('assistant', [text('one way')], answer)
  await session.append({ type: 'run_end', runEnd: { runId: 'r1', outcome: 'completed', durationMs: 1200 } })
  await session.append({ type: 'check', check: { command: 'npm test', exitCode: 1, durationMs: 30 } })
  await session.branch(fork)
  await session.appendMessage('assistant', [text('another way')], { with: { usage, runId: 'r2' } })
  const right = await session.appendMessage('assistant', [text('done')], { with: { usage, runId: 'r2' } })
  await session.append({ type: 'run_end', runEnd: { runId: 'r2', outcome: 'completed', durationMs: 800 } })
  await session.append({
    type: 'check',
    check: { command: 'npm test', exitCode: 0, durationMs: 40, entryId: right },
  })
  const compared = compareEntries(await linesOf(session), { left, right, labels: new Map([[left, 'slow']]) })
  expect(compared).toMatchObject({
    commonAncestor: fork,
    left: {
      leafId: left,
      messageCount: 1,
      entries: [{ preview: 'one way', label: 'slow', role: 'assistant' }],
      usage: { totalTokens: 15, cost: 0.5 },
      runMs: 1200,
      checks: [{ command: 'npm test', exitCode: 1, durationMs: 30 }],
    },
    right: {
      messageCount: 2,
      usage: { totalTokens: 30, cost: 1 },
      runMs: 800,
      checks: [{ command: 'npm test', exitCode: 0, durationMs: 40 }],
    },
  })
})

test('an entry compared with its ancestor has all entries on one side', async () => {
  const session = await memoryStore().create({ cwd: '/' })
  const first = await session.appendMessage('user', [text('one')])
  const second = await session.appendMessage('assistant', [text('two')])
  const lines = await linesOf(session)
  const compared = compareEntries(lines, { left: first, right: second, labels: new Map() })
  expect([compared.commonAncestor, compared.left.entryCount, compared.right.entryCount]).toEqual([first, 0, 1])
  const compareUnknown = (): unknown => compareEntries(lines, { left: first, right: 'none', labels: new Map() })
  expect(compareUnknown).toThrow('No entry none')
})

test('what a language server has told the model is summarized by its title', async () => {
  await using session = await memoryStore().create({})
  await session.appendMessage('custom', '<diagnostics>\nNew:\na.ts:1:1 error: No.\na.ts:2:1 error: No.\n</diagnostics>')
  const [node] = await session.getTree()
  expect(node && summarizeEntry(node.entry, new Map()).preview).toBe('2 errors in a.ts')
})
