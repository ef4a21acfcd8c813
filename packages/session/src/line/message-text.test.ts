import { describe, expect, test } from 'vitest'
import { ByteSource } from '../util/byte-source.ts'
import { isoClock } from '../log/session-writer.ts'
import { textOfLine } from './message-text.ts'
import { Permissions, RememberedCommands } from '../state/session-state.ts'
import { Totals } from '../state/totals.ts'

describe('remembered commands', () => {
  test('the last 10,000 commands are remembered and memory stays bounded', () => {
    const commands = new RememberedCommands()
    for (let seq = 1; seq <= 50_000; seq++) commands.remember(`c${seq}`, seq)
    for (let seq = 40_001; seq <= 50_000; seq++) expect(commands.seqOf(`c${seq}`)).toBe(seq)
    expect(commands.seqOf('c1')).toBeUndefined()
    expect((commands.toCheckpoint() as unknown[]).length).toBeLessThan(13_000)
  })
})

describe('totals', () => {
  test('usage of messages and of other calls adds up, ignoring values that are not numbers', () => {
    const totals = new Totals()
    const usage = { input_tokens: 10, output_tokens: 5, cost: 0.5, cache_read_tokens: 'many' }
    totals.count({ type: 'message', id: 'a', timestamp: 't1', message: { role: 'assistant', content: [], usage } })
    totals.addUsage({ cost: 0.25, input_tokens: Number.NaN })
    totals.addUsage('nothing')
    totals.count({ type: 'custom', id: 'b' })
    expect(totals.usage).toMatchObject({ input_tokens: 10, output_tokens: 5, cost: 0.75, cache_read_tokens: 0 })
    expect(totals).toMatchObject({ entries: 2, messages: 1, modified: 't1' })
  })

  test('the first text is the start of the first user message', () => {
    const totals = new Totals()
    const said = (role: string, content: unknown): void =>
      totals.count({ type: 'message', id: 'x', message: { role, content } })
    said('assistant', [{ type: 'text', text: { content: 'not me' } }])
    said('user', 'odd')
    said('user', [
      { type: 'image' },
      { type: 'text', text: { content: '  ' } },
      { type: 'text', text: { content: ' hi ' } },
    ])
    said('user', [{ type: 'text', text: { content: 'later' } }])
    expect(totals.firstText).toBe('hi')
  })
})

describe('permissions', () => {
  test('the first answer wins, and only an allowing answer can grant', () => {
    const permissions = new Permissions()
    const place = { seq: 7, timestamp: 't' }
    for (const id of ['a', 'b', 'c']) permissions.requested({ request_id: id, tool: 'bash' }, place)
    permissions.requested({ tool: 'nameless' }, place)
    permissions.answered({ request_id: 'a', outcome: 'allowed', grant: { tool: 'bash' } })
    permissions.answered({ request_id: 'a', outcome: 'allowed', grant: { tool: 'again' } })
    permissions.answered({ request_id: 'b', outcome: 'rejected', grant: { tool: 'no' } })
    expect(permissions.pending).toEqual([{ payload: { request_id: 'c', tool: 'bash' }, ...place }])
    expect(permissions.grants).toEqual([{ tool: 'bash' }])
  })
})

describe('clock', () => {
  test('returns the time as text, and the same string within one millisecond', () => {
    const times = [0, 0, 1500, 1000]
    const clock = isoClock(() => new Date(times.shift() ?? 0))
    expect([clock(), clock(), clock(), clock()]).toEqual([
      '1970-01-01T00:00:00.000Z',
      '1970-01-01T00:00:00.000Z',
      '1970-01-01T00:00:01.500Z',
      '1970-01-01T00:00:01.000Z',
    ])
  })
})

describe('text of a line', () => {
  test.each([
    [{ type: 'message', message: { role: 'user', content: [{ type: 'text', text: { content: 'words' } }] } }, 'words'],
    [{ type: 'message', message: { role: 'user', content: 'plain' } }, 'plain'],
    [
      {
        type: 'message',
        message: { role: 'tool', content: [{ type: 'tool_result', tool_result: { content: 'out' } }] },
      },
      'out',
    ],
    [
      { type: 'message', message: { content: [{ type: 'tool_use', tool_use: { input: { path: 'a' } } }] } },
      '{"path":"a"}',
    ],
    [{ type: 'message', message: { content: [], bash_execution: { command: 'ls', output: 'files' } } }, 'ls\nfiles'],
    [{ type: 'compaction', compaction: { summary: 'sum' } }, 'sum'],
    [{ type: 'branch_summary', branch_summary: { summary: 'left' } }, 'left'],
    [{ type: 'custom', custom: { data: { a: 'hidden' } } }, ''],
    [{ type: 'message', message: { content: [7, { type: 'image', image: {} }, { type: 'text' }] } }, ''],
    [{ type: 'message', message: {} }, ''],
  ])('the text of %j is %j', (line, words) => {
    expect(textOfLine({ id: 'x', ...line })).toBe(words)
  })
})

describe('byte source', () => {
  test('yields lines and counted bytes for any chunk boundaries', async () => {
    const bytes = new TextEncoder().encode('one\n12345two\n')
    for (let size = 1; size <= bytes.length; size++) {
      const source = new ByteSource(chunks(bytes, size))
      expect(words(await source.line(100))).toBe('one')
      expect(words(await source.bytes(5))).toBe('12345')
      expect(await source.isAtEnd()).toBe(false)
      expect(words(await source.line(100))).toBe('two')
      expect(await source.isAtEnd()).toBe(true)
      expect(await source.line(100)).toBeUndefined()
      expect(await source.bytes(1)).toBeUndefined()
    }
  })

  test('a line over the limit is not buffered', async () => {
    const source = new ByteSource(chunks(new Uint8Array(1000).fill(65), 10))
    expect(await source.line(100)).toBeUndefined()
  })
})

async function* chunks(bytes: Uint8Array, size: number): AsyncIterable<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

function words(bytes: Uint8Array | undefined): string | undefined {
  return bytes && new TextDecoder().decode(bytes)
}
