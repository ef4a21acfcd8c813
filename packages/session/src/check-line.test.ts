import fc from 'fast-check'
import { expect, test } from 'vitest'
import { checkLine } from './check-line.ts'
import { fromDisk } from './codec.ts'
import { eventsOf } from './event.ts'
import type { DiskLine } from './line.ts'
import { text } from './message.ts'
import { emptyTranscript, reduceTranscript } from './transcript.ts'

test('blocks that cannot be read are left out, and the rest of the message stays', () => {
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

test('an entry or a record without its payload counts as one of an unknown type', () => {
  const types = ['compaction', 'plan'].map((type) => {
    const disk: DiskLine = { type, id: 'x', timestamp: '', ...(type === 'compaction' && { parent_id: null }) }
    return checkLine(fromDisk(disk, 2)).type
  })
  expect(types).toEqual(['unknown', 'unknown_record'])
})

test('members of a newer version cannot take the place of those that identify an item', () => {
  const compaction = { id: [], seq: 'x', type: 'y', summary: 's', first_kept_entry_id: 'a', tokens_before: 1 }
  const line = fromDisk({ type: 'compaction', id: 'c', parent_id: null, timestamp: '', compaction }, 1)
  const [item] = reduceTranscript(emptyTranscript(), { type: 'line', line }).path.items
  expect([item?.type, item?.id, item?.seq]).toEqual(['compaction', 'c', 1])
})

test('a note without a place in the tree is left out', () => {
  const line = fromDisk({ type: 'session_info', id: 'n', timestamp: '', session_info: { name: 'x' } }, 1)
  expect(reduceTranscript(emptyTranscript(), { type: 'line', line }).name).toBe('')
})

test('whatever a log says, it can be shown', () => {
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
