import { describe, expect, test } from 'vitest'
import { randomFrom } from '../testing/random-from.ts'
import { randomLog } from '../testing/random-log.ts'
import { fromDisk, fromParsed, payloadOf, toDisk } from './codec.ts'
import { entryTypes } from './entry.ts'
import { lineKind, type DiskLine } from './line.ts'
import { recordTypes } from './record.ts'

type Plain = Record<string, unknown>

/** Members that no version declares, with names that a careless codec would rename. */
const undeclared = { newMember: 1, other_member: { innerName: [{ first_kept: null }], parent_id: 'x' } }

const diskContent = [
  { type: 'text', text: { content: 'a', ...undeclared }, ...undeclared },
  { type: 'image', image: { source: { type: 'base64', media_type: 'image/png', data: 'AAAA', ...undeclared } } },
  { type: 'image', image: { source: { type: 'blob', media_type: 'image/png', sha256: 'f', size: 3 } } },
  {
    type: 'tool_use',
    tool_use: { id: 'c', name: 'n', input: { filePath: 1, tool_use_id: 2, is_error: {} }, ...undeclared },
  },
  { type: 'tool_result', tool_result: { tool_use_id: 'c', is_error: true, content: 'plain', ...undeclared } },
  {
    type: 'tool_result',
    tool_result: {
      tool_use_id: 'c',
      content: [
        { type: 'image', image: { source: { type: 'url', media_type: 'image/gif', data: 'u' } } },
        { type: 'tool_result', tool_result: { tool_use_id: 'deep', content: [] } },
      ],
    },
  },
  {
    type: 'reasoning',
    reasoning: { text: 't', signature: 's', provider_metadata: { itemId: 1, item_id: 2 }, ...undeclared },
  },
  { type: 'citation', citation: { url_of: 'kept' } },
]

const apiContent = [
  { type: 'text', text: { content: 'a', ...undeclared }, ...undeclared },
  { type: 'image', image: { source: { type: 'base64', mediaType: 'image/png', data: 'AAAA', ...undeclared } } },
  { type: 'image', image: { source: { type: 'blob', mediaType: 'image/png', sha256: 'f', size: 3 } } },
  {
    type: 'tool_use',
    toolUse: { id: 'c', name: 'n', input: { filePath: 1, tool_use_id: 2, is_error: {} }, ...undeclared },
  },
  { type: 'tool_result', toolResult: { toolUseId: 'c', isError: true, content: 'plain', ...undeclared } },
  {
    type: 'tool_result',
    toolResult: {
      toolUseId: 'c',
      content: [
        { type: 'image', image: { source: { type: 'url', mediaType: 'image/gif', data: 'u' } } },
        { type: 'tool_result', toolResult: { toolUseId: 'deep', content: [] } },
      ],
    },
  },
  {
    type: 'reasoning',
    reasoning: { text: 't', signature: 's', providerMetadata: { itemId: 1, item_id: 2 }, ...undeclared },
  },
  { type: 'citation', citation: { url_of: 'kept' } },
]

const diskUsage = {
  input_tokens: 1,
  output_tokens: 2,
  cache_read_tokens: 3,
  cache_write_tokens: 4,
  reasoning_tokens: 5,
  total_tokens: 6,
  cost: 7,
}
const apiUsage = {
  inputTokens: 1,
  outputTokens: 2,
  cacheReadTokens: 3,
  cacheWriteTokens: 4,
  reasoningTokens: 5,
  totalTokens: 6,
  cost: 7,
}

interface Example {
  type: string
  /** The name of the payload in the API. */
  name: string
  disk: Plain
  api: Plain
}

const entries: Example[] = [
  {
    type: 'message',
    name: 'message',
    disk: {
      role: 'assistant',
      content: diskContent,
      model: 'm',
      provider: 'p',
      api: 'a',
      usage: diskUsage,
      stop_reason: 'end',
      error: { kind: 'network', message: 'gone' },
      thinking_level: 'high',
      run_id: 'r',
      submission_id: 'q',
      duration_ms: 8,
      skipped: { 'block:some_kind': 2, 'delta:otherKind': 1 },
      bash_execution: {
        command: 'ls',
        output: 'o',
        exit_code: 1,
        cancelled: false,
        truncated: true,
        output_blob: { sha256: 'f', size: 3 },
        exclude_from_context: true,
      },
    },
    api: {
      role: 'assistant',
      content: apiContent,
      model: 'm',
      provider: 'p',
      api: 'a',
      usage: apiUsage,
      stopReason: 'end',
      error: { kind: 'network', message: 'gone' },
      thinkingLevel: 'high',
      runId: 'r',
      submissionId: 'q',
      durationMs: 8,
      skipped: { 'block:some_kind': 2, 'delta:otherKind': 1 },
      bashExecution: {
        command: 'ls',
        output: 'o',
        exitCode: 1,
        cancelled: false,
        truncated: true,
        outputBlob: { sha256: 'f', size: 3 },
        excludeFromContext: true,
      },
    },
  },
  {
    type: 'system',
    name: 'system',
    disk: {
      prompt: 'p',
      tools: [{ name: 'n', description: 'd', input_schema: { maxLength: 1, min_length: 2 } }],
      sha256: 's',
    },
    api: {
      prompt: 'p',
      tools: [{ name: 'n', description: 'd', inputSchema: { maxLength: 1, min_length: 2 } }],
      sha256: 's',
    },
  },
  {
    type: 'model_change',
    name: 'modelChange',
    disk: { provider: 'p', model_id: 'm' },
    api: { provider: 'p', modelId: 'm' },
  },
  {
    type: 'thinking_level',
    name: 'thinkingLevel',
    disk: { thinking_level: 'low' },
    api: { thinkingLevel: 'low' },
  },
  {
    type: 'compaction',
    name: 'compaction',
    disk: { summary: 's', first_kept_entry_id: 'e', tokens_before: 9 },
    api: { summary: 's', firstKeptEntryId: 'e', tokensBefore: 9 },
  },
  {
    type: 'branch_summary',
    name: 'branchSummary',
    disk: { summary: 's', from_id: null },
    api: { summary: 's', fromId: null },
  },
  {
    type: 'custom',
    name: 'custom',
    disk: { custom_type: 'c', data: { camelCase: 1, snake_case: 2, custom_type: { targetId: 3 } } },
    api: { customType: 'c', data: { camelCase: 1, snake_case: 2, custom_type: { targetId: 3 } } },
  },
  { type: 'label', name: 'label', disk: { target_id: 't', label: 'l' }, api: { targetId: 't', label: 'l' } },
  { type: 'session_info', name: 'sessionInfo', disk: { name: 'n' }, api: { name: 'n' } },
  { type: 'gap', name: 'gap', disk: { reason: 'r' }, api: { reason: 'r' } },
]

const records: Example[] = [
  {
    type: 'writer',
    name: 'writer',
    disk: { term: 1, host: 'h', process: 'p', format: 1 },
    api: { term: 1, host: 'h', process: 'p', format: 1 },
  },
  {
    type: 'leaf',
    name: 'leaf',
    disk: { target_id: null, rewind: 'undo', restore_id: 'x' },
    api: { targetId: null, rewind: 'undo', restoreId: 'x' },
  },
  {
    type: 'submission',
    name: 'submission',
    disk: {
      action: 'add',
      id: 'q',
      delivery: 'steer',
      message: 'm',
      image_ids: ['i'],
      queued_at: 'now',
      client_id: 'c',
      before_id: null,
      reason: 'r',
    },
    api: {
      action: 'add',
      id: 'q',
      delivery: 'steer',
      message: 'm',
      imageIds: ['i'],
      queuedAt: 'now',
      clientId: 'c',
      beforeId: null,
      reason: 'r',
    },
  },
  {
    type: 'run_start',
    name: 'runStart',
    disk: { run_id: 'r', leaf_id: null, submission_id: 'q', resumes: 'r0' },
    api: { runId: 'r', leafId: null, submissionId: 'q', resumes: 'r0' },
  },
  {
    type: 'run_end',
    name: 'runEnd',
    disk: { run_id: 'r', outcome: 'failed', reason: 'x', duration_ms: 4 },
    api: { runId: 'r', outcome: 'failed', reason: 'x', durationMs: 4 },
  },
  {
    type: 'attempt',
    name: 'attempt',
    disk: { run_id: 'r', item: 'i', error: { kind: 'network', message: 'm' }, content: diskContent },
    api: { runId: 'r', item: 'i', error: { kind: 'network', message: 'm' }, content: apiContent },
  },
  {
    type: 'blocked',
    name: 'blocked',
    disk: { call_id: 'c', kind: 'write', what: '.vscode', count: 2, kept: 'job-1.0', outcome: 'applied' },
    api: { callId: 'c', kind: 'write', what: '.vscode', count: 2, kept: 'job-1.0', outcome: 'applied' },
  },
  {
    type: 'tool_start',
    name: 'toolStart',
    disk: {
      run_id: 'r',
      call_id: 'c',
      name: 'n',
      entry_id: 'e',
      host: 'h',
      boot_id: 'b',
      spool: 's',
      deadline: 'd',
      input: { some_key: 1 },
      child_session: 'cs',
      sandbox: { backend: 'b', writable: ['/w'], hosts: ['h'], home: 'read-only' },
    },
    api: {
      runId: 'r',
      callId: 'c',
      name: 'n',
      entryId: 'e',
      host: 'h',
      bootId: 'b',
      spool: 's',
      deadline: 'd',
      input: { some_key: 1 },
      childSession: 'cs',
      sandbox: { backend: 'b', writable: ['/w'], hosts: ['h'], home: 'read-only' },
    },
  },
  {
    type: 'bash_start',
    name: 'bashStart',
    disk: { message_id: 'm', command: 'ls', exclude_from_context: true, host: 'h', boot_id: 'b', spool: 's' },
    api: { messageId: 'm', command: 'ls', excludeFromContext: true, host: 'h', bootId: 'b', spool: 's' },
  },
  {
    type: 'permission_request',
    name: 'permissionRequest',
    disk: {
      request_id: 'p',
      run_id: 'r',
      call_id: 'c',
      tool: 't',
      title: 'x',
      input: { filePath: 1, request_id: 2 },
      options: [{ option_id: 'o', label: 'l', kind: 'allow_once' }],
    },
    api: {
      requestId: 'p',
      runId: 'r',
      callId: 'c',
      tool: 't',
      title: 'x',
      input: { filePath: 1, request_id: 2 },
      options: [{ optionId: 'o', label: 'l', kind: 'allow_once' }],
    },
  },
  {
    type: 'permission_result',
    name: 'permissionResult',
    disk: {
      request_id: 'p',
      outcome: 'allowed',
      option_id: 'o',
      client_id: 'c',
      grant: { pathPrefix: 1, option_id: 2 },
    },
    api: { requestId: 'p', outcome: 'allowed', optionId: 'o', clientId: 'c', grant: { pathPrefix: 1, option_id: 2 } },
  },
  {
    type: 'permission_mode',
    name: 'permissionMode',
    disk: { mode: 'plan', reason: 'r' },
    api: { mode: 'plan', reason: 'r' },
  },
  {
    type: 'plan',
    name: 'plan',
    disk: { items: [{ text: 't', status: 'pending' }] },
    api: { items: [{ text: 't', status: 'pending' }] },
  },
  {
    type: 'file_read',
    name: 'fileRead',
    disk: { path: 'p', size: 1, run_id: 'r', call_id: 'c' },
    api: { path: 'p', size: 1, runId: 'r', callId: 'c' },
  },
  {
    type: 'file_write',
    name: 'fileWrite',
    disk: { path: 'p', size: 1, sha256_before: 'b', sha256_after: 'a', run_id: 'r', call_id: 'c' },
    api: { path: 'p', size: 1, sha256Before: 'b', sha256After: 'a', runId: 'r', callId: 'c' },
  },
  {
    type: 'snapshot',
    name: 'snapshot',
    disk: {
      when: 'after',
      tree: 't',
      previous: 'p',
      by: 'agent',
      run_id: 'r',
      call_id: 'c',
      entry_id: 'e',
      added: 1,
      changed: 2,
      removed: 3,
      left_out: [{ path: '.env', reason: 'secret' }],
      left_out_count: 1,
      head: 'h',
      branch: 'main',
      duration_ms: 4,
    },
    api: {
      when: 'after',
      tree: 't',
      previous: 'p',
      by: 'agent',
      runId: 'r',
      callId: 'c',
      entryId: 'e',
      added: 1,
      changed: 2,
      removed: 3,
      leftOut: [{ path: '.env', reason: 'secret' }],
      leftOutCount: 1,
      head: 'h',
      branch: 'main',
      durationMs: 4,
    },
  },
  {
    type: 'restore',
    name: 'restore',
    disk: {
      restore_id: 'r',
      phase: 'end',
      target_id: 'e',
      undoes: 'u',
      leaf_id: 'l',
      from: 'f',
      to: 't',
      changed: 1,
      kept: 2,
      conflicts: 3,
      skipped: 4,
    },
    api: {
      restoreId: 'r',
      phase: 'end',
      targetId: 'e',
      undoes: 'u',
      leafId: 'l',
      from: 'f',
      to: 't',
      changed: 1,
      kept: 2,
      conflicts: 3,
      skipped: 4,
    },
  },
  {
    type: 'check',
    name: 'check',
    disk: { command: 'npm test', exit_code: 0, duration_ms: 5, tree: 't', tree_after: 'u', entry_id: 'e' },
    api: { command: 'npm test', exitCode: 0, durationMs: 5, tree: 't', treeAfter: 'u', entryId: 'e' },
  },
  {
    type: 'working_copy',
    name: 'workingCopy',
    disk: {
      folder: '/c/sub',
      root: '/c',
      copy_of: '/w/sub',
      tree: 't',
      variants: { id: 'v', number: 1, count: 3 },
      outcome: 'chosen',
      result: 'u',
    },
    api: {
      folder: '/c/sub',
      root: '/c',
      copyOf: '/w/sub',
      tree: 't',
      variants: { id: 'v', number: 1, count: 3 },
      outcome: 'chosen',
      result: 'u',
    },
  },
  {
    type: 'workspace',
    name: 'workspace',
    disk: { name: 'app', host_id: 'host-1', host_name: 'laptop', folder: '/w', platform: 'linux' },
    api: { name: 'app', hostId: 'host-1', hostName: 'laptop', folder: '/w', platform: 'linux' },
  },
  {
    type: 'workspace_files',
    name: 'workspaceFiles',
    disk: {
      host_id: 'host-1',
      name: 'app',
      tree: 't',
      packs: [{ sha256: 'f', size: 3 }],
      left_out: [{ path: '.env', reason: 'secret' }],
      left_out_count: 1,
      head: 'h',
      branch: 'main',
    },
    api: {
      hostId: 'host-1',
      name: 'app',
      tree: 't',
      packs: [{ sha256: 'f', size: 3 }],
      leftOut: [{ path: '.env', reason: 'secret' }],
      leftOutCount: 1,
      head: 'h',
      branch: 'main',
    },
  },
  {
    type: 'usage',
    name: 'usage',
    disk: { purpose: 'title', provider: 'p', model: 'm', tokens: diskUsage },
    api: { purpose: 'title', provider: 'p', model: 'm', tokens: apiUsage },
  },
  {
    type: 'error',
    name: 'error',
    disk: { message: 'm', kind: 'k', run_id: 'r' },
    api: { message: 'm', kind: 'k', runId: 'r' },
  },
  {
    type: 'damage',
    name: 'damage',
    disk: { through_seq: 4, lost_lines: 2, places: [{ at: 1, size: 2, reason: 'x' }] },
    api: { throughSeq: 4, lostLines: 2, places: [{ at: 1, size: 2, reason: 'x' }] },
  },
  { type: 'session_end', name: 'sessionEnd', disk: { reason: 'x' }, api: { reason: 'x' } },
]

const context = {
  cause: { cmd: 'c', client: 'w' },
  request: { sha256: 's', adapter: 'a', adapter_version: '1', params: { maxTokens: 1, top_p: 2 }, leaf_id: null },
}
const apiContext = {
  cause: { cmd: 'c', client: 'w' },
  request: { sha256: 's', adapter: 'a', adapterVersion: '1', params: { maxTokens: 1, top_p: 2 }, leafId: null },
}

test('every entry type and record type has an example here', () => {
  const undecoded = new Set(['unknown', 'unknown_record'])
  const types = [...Object.keys(entryTypes), ...Object.keys(recordTypes)].filter((type) => !undecoded.has(type))
  expect(new Set([...entries, ...records].map(({ type }) => type))).toEqual(new Set(types))
})

test('a type that is not in the tables has no kind', () => {
  expect(['label', 'leaf', 'session', 'brand_new', 'constructor', '__proto__'].map(lineKind)).toEqual([
    'note',
    'record',
    'header',
    undefined,
    undefined,
    undefined,
  ])
})

describe.each([
  ['entry', entries, { parent_id: 'p-1' }, { parentId: 'p-1' }],
  ['record', records, {}, {}],
] as const)('a line that is an %s', (_, examples, diskParent, apiParent) => {
  test.each(examples)('of type $type uses the API names when read and the disk names when written', (example) => {
    const { type, name, disk, api } = example
    const line = diskLine({ type, ...diskParent, [type]: { ...disk, ...undeclared } })
    const read = fromDisk({ seq: 7, ...line, crc: '01234567' }, 7)
    expect(read).toEqual({
      seq: 7,
      type,
      id: 'x-1',
      ...apiParent,
      timestamp: '2026-11-20T10:00:00.000Z',
      [name]: { ...api, ...undeclared },
    })
    expect(rewritten(read)).toBe(JSON.stringify(line))
  })

  test.each(examples)('of type $type keeps its cause, its request and members of a newer version', ({ type, disk }) => {
    const line = diskLine({ type, ...diskParent, [type]: disk, ...undeclared, ...context })
    const read = fromDisk(line, 1)
    expect(read).toMatchObject({ ...undeclared, ...apiContext })
    expect(rewritten(read)).toBe(JSON.stringify(line))
  })

  test.each(examples)('of type $type may have its payload flat', ({ type, name, disk, api }) => {
    // A payload cannot be flat if one of its members has the name of a line member.
    const { id: _diskId, ...flat } = disk
    const { id: _apiId, ...expected } = api
    const line = diskLine({ type, ...diskParent, ...flat, ...undeclared })
    expect(fromDisk(line, 3)).toEqual({
      seq: 3,
      type,
      id: 'x-1',
      ...apiParent,
      timestamp: '2026-11-20T10:00:00.000Z',
      ...undeclared,
      [name]: expected,
    })
  })
})

describe('a header', () => {
  const header = {
    type: 'session',
    id: 's-1',
    timestamp: 't',
    version: 1,
    cwd: '/project',
    parent_session: 's-0',
    parent_entry: 'm-0',
    ...undeclared,
  }

  test('is read and written with all its members', () => {
    const read = fromDisk({ seq: 1, ...header, crc: 'ffffffff' }, 1)
    expect(read).toEqual({
      seq: 1,
      type: 'session',
      id: 's-1',
      timestamp: 't',
      version: 1,
      cwd: '/project',
      parentSession: 's-0',
      parentEntry: 'm-0',
      ...undeclared,
    })
    expect(rewritten(read)).toBe(JSON.stringify(header))
  })
})

describe('older files', () => {
  test('thinking_level_change is a thinking level, flat or nested', () => {
    const base = { type: 'thinking_level_change', id: 't', parent_id: null, timestamp: 'x' }
    const expected = { type: 'thinking_level', thinkingLevel: { thinkingLevel: 'high' } }
    expect(fromDisk({ ...base, thinking_level: 'high' }, 1)).toMatchObject(expected)
    expect(fromDisk({ ...base, thinking_level: { thinking_level: 'high' } }, 1)).toMatchObject(expected)
    expect(payloadOf({ ...base, thinking_level: { thinking_level: 'high' } })).toEqual({ thinking_level: 'high' })
  })

  test('role toolResult is tool', () => {
    const line = diskLine({ type: 'message', parent_id: 'p', message: { role: 'toolResult', content: [] } })
    expect(fromDisk(line, 1)).toMatchObject({ message: { role: 'tool', content: [] } })
    expect(line['message']).toEqual({ role: 'toolResult', content: [] })
  })

  test('a flat label is distinguished from its payload because it is not an object', () => {
    const line = diskLine({ type: 'label', parent_id: 'p', target_id: 'm-1', label: 'greeting' })
    expect(fromDisk(line, 1)).toMatchObject({ type: 'label', label: { targetId: 'm-1', label: 'greeting' } })
    expect(payloadOf(line)).toBe(line)
    expect(payloadOf(diskLine({ type: 'label', label: { target_id: 'm-1' } }))).toEqual({ target_id: 'm-1' })
  })
})

describe('a type that this build does not know', () => {
  test('is a node with a parent and a record without one, and keeps its line as it is', () => {
    const line = diskLine({ type: 'bookmark_group', parent_id: null, bookmark_group: { target_ids: [] } })
    expect(fromDisk(line, 5)).toEqual({
      type: 'unknown',
      id: 'x-1',
      parentId: null,
      seq: 5,
      timestamp: '2026-11-20T10:00:00.000Z',
      unknown: { type: 'bookmark_group', line },
    })
    const { parent_id: _, timestamp: __, ...record } = line
    expect(fromDisk(record as DiskLine, 6)).toEqual({
      type: 'unknown_record',
      id: 'x-1',
      seq: 6,
      timestamp: '',
      unknownRecord: { type: 'bookmark_group', line: record },
    })
  })
})

describe('reserved names', () => {
  test('__proto__ is a member like any other', () => {
    const text =
      '{"type":"custom","id":"x","parent_id":null,"timestamp":"t","custom":{"custom_type":"c","data":{},"__proto__":{"isAdmin":true}},"__proto__":{"isAdmin":true}}'
    const read = fromDisk(JSON.parse(text) as DiskLine, 1)
    expect((read as unknown as Plain)['isAdmin']).toBeUndefined()
    expect(Object.getPrototypeOf(read)).toBe(Object.prototype)
    expect(rewritten(read)).toBe(text)
  })

  test('undefined members are not written; null and empty ones are', () => {
    const draft = { type: 'label', label: { targetId: 'm', label: null }, gone: undefined, kept: '' }
    expect(toDisk(draft, { id: 'x', parentId: null, timestamp: 't' })).toEqual({
      type: 'label',
      id: 'x',
      parent_id: null,
      timestamp: 't',
      label: { target_id: 'm', label: null },
      kept: '',
    })
  })

  test('a value that is not an object passes through where an object belongs', () => {
    const line = diskLine({
      type: 'message',
      parent_id: 'p',
      message: { role: 'user', content: ['a', null, 3], usage: 'free' },
    })
    expect(fromDisk(line, 1)).toMatchObject({ message: { role: 'user', content: ['a', null, 3], usage: 'free' } })
  })
})

function diskLine(members: { type: string; [member: string]: unknown }): DiskLine {
  const { type, parent_id: parent, ...rest } = members
  return {
    type,
    id: 'x-1',
    ...(parent !== undefined && { parent_id: parent as string | null }),
    timestamp: '2026-11-20T10:00:00.000Z',
    ...rest,
  }
}

/** The line as it would be written again, byte for byte. */
function rewritten(line: ReturnType<typeof fromDisk>): string {
  const parentId = 'parentId' in line ? line.parentId : undefined
  const draft = line as unknown as { type: string; [member: string]: unknown }
  return JSON.stringify(toDisk(draft, { id: line.id, timestamp: line.timestamp, parentId }))
}

test('a line that is given away decodes like one that is copied, for random logs and all kinds of content', () => {
  const seed = Math.floor(Math.random() * 2 ** 32)
  const random = randomFrom(seed)
  const lines = Array.from({ length: 50 }, () => randomLog(random, { lines: 40 })).flat()
  const message = {
    type: 'message',
    id: 'm',
    parent_id: null,
    crc: '0',
    message: { role: 'toolResult', content: diskContent },
  }
  for (const text of [...lines, JSON.stringify(message)]) {
    const stored = JSON.parse(text) as DiskLine
    const copied = fromDisk(structuredClone(stored), 7)
    expect({ seed, line: fromParsed(stored, 7) }).toEqual({ seed, line: copied })
  }
})
