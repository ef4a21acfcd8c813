import type { Session } from '@tapetree/session'
import fc from 'fast-check'
import { mkdir, symlink } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { script, scriptedModel } from '../testing/scripted-model.ts'
import { TestAgent } from '../testing/test-agent.ts'
import { TestFolder } from '../testing/test-folder.ts'
import { editTool } from '../tools/builtin/edit.ts'
import { fetchTool } from '../tools/builtin/fetch.ts'
import { writeTool } from '../tools/builtin/write.ts'
import { PermissionGate, type GatePolicy } from './gate.ts'

type Call = { tool: 'edit' | 'write' | 'fetch'; input: Record<string, unknown> }

interface Outcome {
  /** Whether the user was asked and allowed it. */
  isAsked: boolean
  isError: boolean
  text: string
}

/** One call of the model, by a user who allows every request. */
async function outcomeOf(folder: TestFolder, call: Call, policy: Partial<GatePolicy> = {}): Promise<Outcome> {
  const agent = await TestAgent.open({
    model: scriptedModel(script().toolCall('a', call.tool, call.input).step().text('Done.')),
    tools: [editTool, writeTool, fetchTool({ fetch: () => Promise.reject(new Error('no network')) })],
    cwd: folder.path,
    gate: (requests) =>
      new PermissionGate({
        requests,
        policy: () => ({ mode: 'ask', cwd: folder.path, home: '/home/me', ...policy }),
      }),
  })
  let isAsked = false
  agent.session.subscribe(({ line }) => {
    if (line.type !== 'permission_request') return
    isAsked = true
    void agent.requests.answer({ requestId: line.permissionRequest.requestId, outcome: 'allowed' })
  })
  await agent.prompt('go')
  const result = await resultOf(agent.session)
  await agent.close()
  return { isAsked, ...result }
}

async function resultOf(session: Session): Promise<{ isError: boolean; text: string }> {
  for (const entry of await session.getContextPath()) {
    const [block] = entry.type === 'message' ? entry.message.content : []
    if (block?.type !== 'tool_result') continue
    const { content, isError = false } = block.toolResult
    return { isError, text: typeof content === 'string' ? content : '' }
  }
  throw new Error('The call has no result.')
}

const edit = (path: string, oldText: string, newText = 'new'): Call => ({
  tool: 'edit',
  input: { path, oldText, newText },
})
const write = (path: string): Call => ({ tool: 'write', input: { path, content: 'new' } })

test.each([
  ['an edit whose old text is not in the file', edit('a', 'nowhere'), 'a was not changed.'],
  ['an edit whose old text occurs twice', edit('twice', 'x'), 'twice was not changed.'],
  ['an edit that changes nothing', edit('a', 'one', 'one'), 'oldText and newText are the same'],
  ['an edit of a file that does not exist', edit('b', 'one'), 'b'],
  ['an edit of a binary file', edit('binary', 'one'), 'binary is not valid UTF-8'],
  ['an edit of a folder', edit('folder', 'one'), 'folder is a folder'],
  ['a write over a folder', write('folder'), 'folder is a folder'],
  ['a write below a file', write('a/b/c'), 'A part of the path is a file'],
  [
    'a fetch from this machine',
    { tool: 'fetch', input: { url: 'http://127.0.0.1:9/' } } satisfies Call,
    'private network',
  ],
])('%s fails without a request to the user', async (_name, call, problem) => {
  await using folder = await TestFolder.make({
    a: 'one\n',
    twice: 'x\nx\n',
    binary: Uint8Array.of(0xff, 0xfe, 0, 0xd8),
  })
  await mkdir(folder.at('folder'))
  const { isAsked, isError, text } = await outcomeOf(folder, call)
  expect({ isAsked, isError }).toEqual({ isAsked: false, isError: true })
  expect(text).toContain(problem)
})

test('a valid edit still requires a request, and is then made', async () => {
  await using folder = await TestFolder.make({ a: 'one\n' })
  expect(await outcomeOf(folder, edit('a', 'one'))).toMatchObject({ isAsked: true, isError: false })
  expect(await folder.read('a')).toBe('new\n')
  expect(await outcomeOf(folder, write('deep/down/b'))).toMatchObject({ isAsked: true, isError: false })
})

test('for a file that requires a request to read, the request comes before any information about it', async () => {
  await using folder = await TestFolder.make({ '.env': 'TOKEN=abc\n' })
  const refused = await outcomeOf(folder, edit('.env', 'TOKEN=xyz'))
  expect(refused).toMatchObject({ isAsked: true, isError: true })
})

test('a deny rule applies before anything is reported about the call', async () => {
  await using folder = await TestFolder.make({ a: 'one\n' })
  const rules: GatePolicy['rules'] = { user: [{ effect: 'deny', type: 'tool', match: 'edit' }] }
  const { text } = await outcomeOf(folder, edit('a', 'nowhere'), { rules })
  expect(text).toBe('A rule forbids the tool edit.')
})

test('a preview creates no folders', async () => {
  await using folder = await TestFolder.make({ a: 'one\n' })
  await outcomeOf(folder, write('a/b'))
  const rejected: GatePolicy['rules'] = { user: [{ effect: 'deny', type: 'write', match: 'new/**' }] }
  await outcomeOf(folder, write('new/b'), { rules: rejected })
  await expect(folder.read('new/b')).rejects.toThrow('ENOENT')
})

test('after a user allows a random call, it does exactly what the request showed', { timeout: 60_000 }, async () => {
  const path = fc.constantFrom(
    'a',
    'twice',
    'folder',
    'folder/b',
    'new',
    'new/deep/b',
    'link',
    'dangling',
    'loop',
    'a/b',
    '.',
    '..',
  )
  const piece = fc.constantFrom('one', 'two', 'x', 'one\ntwo', 'nowhere', ' one ', 'ONE')
  const call: fc.Arbitrary<Call> = fc.oneof(
    fc
      .record({ path, oldText: piece, newText: piece, replaceAll: fc.boolean() })
      .map((input) => ({ tool: 'edit' as const, input })),
    fc.record({ path, content: piece }).map((input) => ({ tool: 'write' as const, input })),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 4 }), async (calls) => {
      await using folder = await TestFolder.make({ a: 'one\ntwo\n', twice: 'x\none\nx\n', 'folder/c': 'one' })
      await symlink('a', folder.at('link'))
      await symlink('nothing', folder.at('dangling'))
      await symlink('loop', folder.at('loop'))
      for (const each of calls) {
        const { isAsked, isError } = await outcomeOf(folder, each)
        expect(isAsked).toBe(!isError)
      }
    }),
    { numRuns: 60 },
  )
})
