import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { checkLine } from './check-line.ts'
import { fromDisk } from './codec.ts'
import { eventsOf } from '../view/event.ts'
import type { DiskLine } from './line.ts'
import { text, type MessageInput, type MessageRole } from './message.ts'
import { memoryStore } from '../stores/memory/memory-store.ts'
import { emptyTranscript, reduceTranscript } from '../view/transcript.ts'

test('unreadable blocks are dropped, and the rest of the message stays', () => {
  const content = [
    { type: 'text', text: 'flat' },
    null,
    { type: 'tool_use', tool_use: { id: 'c', name: 'read' } },
    { type: 'hologram' },
    {
      type: 'tool_result',
      tool_result: { tool_use_id: 'c', content: [{ type: 'text', text: { content: 'out' } }, 7] },
    },
    { type: 'text', text: { content: 'fine' } },
  ]
  const line = fromDisk({ type: 'message', id: 'm', parent_id: null, message: { role: 'user', content } }, 2)
  expect(checkLine(line)).toEqual({
    type: 'message',
    id: 'm',
    parentId: null,
    seq: 2,
    timestamp: '',
    message: {
      role: 'user',
      content: [
        { type: 'tool_use', toolUse: { id: 'c', name: 'read', input: {} } },
        { type: 'tool_result', toolResult: { toolUseId: 'c', content: [text('out')] } },
        text('fine'),
      ],
    },
  })
})

test('an entry or a record without its payload becomes one of an unknown type', () => {
  const types = ['compaction', 'plan'].map((type) => {
    const disk: DiskLine = { type, id: 'x', timestamp: '', ...(type === 'compaction' && { parent_id: null }) }
    return checkLine(fromDisk(disk, 2)).type
  })
  expect(types).toEqual(['unknown', 'unknown_record'])
})

test('members of a newer version cannot replace those that identify an item', () => {
  const compaction = { id: [], seq: 'x', type: 'y', summary: 's', first_kept_entry_id: 'a', tokens_before: 1 }
  const line = fromDisk({ type: 'compaction', id: 'c', parent_id: null, timestamp: '', compaction }, 1)
  const [item] = reduceTranscript(emptyTranscript(), { type: 'line', line }).path.items
  expect([item?.type, item?.id, item?.seq]).toEqual(['compaction', 'c', 1])
})

test('a note without a place in the tree is dropped', () => {
  const line = fromDisk({ type: 'session_info', id: 'n', timestamp: '', session_info: { name: 'x' } }, 1)
  expect(reduceTranscript(emptyTranscript(), { type: 'line', line }).name).toBe('')
})

test('any log can be shown', () => {
  const types = wordsIn(`
    session message system model_change thinking_level compaction branch_summary custom label
    session_info gap writer leaf submission run_start run_end attempt tool_start plan permission_request
    permission_result file_read file_write usage error damage session_end later
  `)
  const names = wordsIn(`
    role content type text tool_use tool_result reasoning image source id name input tool_use_id usage
    error message bash_execution target_id label items options action item request_id outcome tokens
    run_id call_id summary tools prompt reason submission_id
  `)
  const words = wordsIn(`
    user assistant tool bashExecution text tool_use tool_result reasoning image add x
  `)
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom<unknown>(...words, '', 0, null, true, -1),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...names), tie('value'), { maxKeys: 4 }),
    ),
  }))
  const parent = fc.constantFrom(undefined, null, 'l1', 'nowhere')
  const payload = fc.dictionary(fc.constantFrom(...names), value)
  const lines = fc.array(fc.record({ type: fc.constantFrom(...types), parent, payload, isFlat: fc.boolean() }), {
    maxLength: 8,
  })
  fc.assert(
    fc.property(lines, (written) => {
      let state = emptyTranscript()
      for (const [index, { type, parent, payload, isFlat }] of written.entries()) {
        const place = { type, id: `l${index + 1}`, ...(parent !== undefined && { parent_id: parent }) }
        const line = fromDisk(isFlat ? { ...payload, ...place } : { ...place, [type]: payload }, index + 1)
        for (const event of eventsOf(line)) expect(typeof event.timestamp).toBe('string')
        state = reduceTranscript(state, { type: 'line', line })
      }
      expect([state.seq, [...state.path.items].every(({ id }) => typeof id === 'string')]).toEqual([
        written.length,
        true,
      ])
    }),
    { numRuns: 500 },
  )
})

function wordsIn(list: string): string[] {
  return list.trim().split(/\s+/)
}

describe('drafts', () => {
  test.each<[string, unknown, unknown]>([
    ['a string', 'hi', [text('hi')]],
    ['text blocks as other SDKs have them', [{ type: 'text', text: 'hi' }], [text('hi')]],
    ['our own blocks', [text('hi')], [text('hi')]],
  ])('%s is stored as our blocks', async (_, content, stored) => {
    await using session = await memoryStore().create()
    await session.appendMessage('user', content as MessageInput)
    const { messages } = await session.getContext()
    expect(messages.map(({ message }) => message.content)).toEqual([stored])
  })

  test.each<[string, unknown, unknown, string]>([
    ['role', 'system', 'hi', '"system" is not a role of a message.'],
    ['content', 'user', undefined, 'content is a string or a list of blocks, not undefined.'],
    ['block', 'user', [text('a'), 7], 'content[1] is a block with a type, not 7.'],
    ['type', 'user', [{ type: 'hologram' }], 'content[0] has the unknown type "hologram".'],
    ['text', 'user', [{ type: 'text' }], 'content[0] needs text with content, not undefined.'],
    ['image', 'user', [{ type: 'image', image: { source: {} } }], 'content[0] needs image with source'],
    ['call', 'assistant', [{ type: 'tool_use', toolUse: { id: 'c', name: 'x' } }], 'toolUse with id, name, input'],
    [
      'result',
      'tool',
      [{ type: 'tool_result', toolResult: { toolUseId: 'c', content: null } }],
      'content[0].toolResult.content is a string or a list of blocks, not null.',
    ],
  ])('a message with a malformed %s is rejected with the reason, and nothing is written', async (...row) => {
    const [, role, content, problem] = row
    await using session = await memoryStore().create()
    const { seq } = session.head
    const appended = session.appendMessage(role as MessageRole, content as MessageInput)
    await expect(appended).rejects.toMatchObject({ code: 'invalid-entry', message: expect.stringContaining(problem) })
    expect(session.head.seq).toBe(seq)
  })

  test('a malformed payload is rejected with the name of the member', async () => {
    await using session = await memoryStore().create()
    await expect(session.appendModelChange('p', 7 as never)).rejects.toThrow(
      'modelId of a model_change line is missing or malformed: 7.',
    )
  })

  test('any draft is rejected, or reads back unchanged', async () => {
    const leaf = fc.oneof(fc.string(), fc.integer(), fc.constant(null), fc.constant(undefined), fc.boolean())
    const type = fc.constantFrom('text', 'image', 'tool_use', 'tool_result', 'reasoning', 'video')
    const payload = fc.oneof(
      leaf,
      fc.record(
        { content: leaf, text: leaf, source: leaf, id: leaf, name: leaf, input: fc.object(), toolUseId: leaf },
        { requiredKeys: [] },
      ),
    )
    const block = fc.oneof(
      fc.anything(),
      fc.record(
        { type, text: payload, image: payload, toolUse: payload, toolResult: payload, reasoning: payload },
        { requiredKeys: ['type'] },
      ),
      fc.string().map((words) => text(words)),
    )
    const content = fc.oneof(fc.anything(), fc.array(block, { maxLength: 4 }))
    await fc.assert(
      fc.asyncProperty(content, async (given) => {
        await using session = await memoryStore().create()
        const id = await session.appendMessage('user', given as MessageInput).catch((error: unknown) => {
          expect(error).toMatchObject({ code: 'invalid-entry' })
        })
        if (id === undefined) return
        const entry = await session.getEntry(id)
        const read = entry.type === 'message' ? entry.message.content : []
        expect(read).toHaveLength(typeof given === 'string' ? 1 : (given as unknown[]).length)
        expect(checkLine({ ...entry })).toEqual(entry)
      }),
      { numRuns: 500 },
    )
  })
})
