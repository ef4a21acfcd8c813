import { gzipSync } from 'node:zlib'
import type { DiskLine } from '@tapetree/session/format'
import type { MalformedFile } from './malformed-file.ts'
import { sealAll } from './sealed-log.ts'

/** Files that are wrong as a whole: no log at all, one in a strange encoding, one whose lines contradict each other. */
export function* wholeFileWays(sealed: readonly Buffer[], plain: readonly Buffer[]): Iterable<MalformedFile> {
  yield* noLogs(plain)
  yield* strangeEndings(sealed)
  yield* strangeOrders(sealed, plain)
  yield* specExamples()
  for (const [name, lines, isReported] of contradictions) yield contradiction(name, lines, isReported)
}

function file(name: string, bytes: string | Uint8Array, shown: string[], isReported?: boolean): MalformedFile {
  return { name, bytes: typeof bytes === 'string' ? Buffer.from(bytes) : bytes, shown, isReported }
}

function logOf(lines: readonly Buffer[], newline = '\n'): Buffer {
  return Buffer.concat(lines.flatMap((line) => [line, Buffer.from(newline)]))
}

function* noLogs(plain: readonly Buffer[]): Iterable<MalformedFile> {
  const text = logOf(plain).toString()
  yield file('empty', '', [], false)
  yield file('one newline', '\n', [], false)
  yield file('a thousand newlines', '\n'.repeat(1000), [], false)
  yield file('one byte', 'x', [], true)
  yield file('NUL bytes', Buffer.alloc(4096), [], true)
  yield file('NUL bytes and a newline', `${'\0'.repeat(4096)}\n`, [], true)
  yield file('only a byte order mark', '\ufeff', [], true)
  yield file('UTF-16', Buffer.from(text, 'utf16le'), [], true)
  yield file('UTF-16 with its mark', Buffer.from(`\ufeff${text}`, 'utf16le'), [], true)
  yield file('gzip', gzipSync(text), [], true)
  yield file(
    'every byte there is',
    Buffer.from(Array.from({ length: 65_536 }, (_, index) => (index * 7919) >> 4)),
    [],
    true,
  )
  yield file('one JSON array', `[${plain.map(String).join(',\n')}]\n`, [], true)
  yield file('HTML', '<!doctype html>\n<title>404</title>\n<p>Not found\n', [], true)
  yield file('CSV', 'type,id,parent\nmessage,a,\nmessage,b,a\n', [], true)
  yield file(
    'somebody else’s JSON lines',
    '{"role":"user","content":"hi"}\n{"role":"assistant","content":"ho"}\n',
    [],
    true,
  )
  yield file('JSON lines with uuid and parentUuid', '{"type":"user","uuid":"a","parentUuid":null}\n', [], true)
}

const allShown = ['question-1', 'answer-1', 'result-1', 'label', 'compaction', 'question-2', 'answer-2']

function* strangeEndings(sealed: readonly Buffer[]): Iterable<MalformedFile> {
  const log = logOf(sealed)
  const butLast = allShown.slice(0, -1)
  yield file('a byte order mark before all', Buffer.concat([Buffer.from('\ufeff'), log]), allShown, false)
  yield file('CRLF everywhere', logOf(sealed, '\r\n'), allShown, false)
  yield file('CR everywhere', Buffer.concat([logOf(sealed, '\r'), Buffer.from('\n')]), allShown, true)
  yield file('no newline anywhere', Buffer.concat([logOf(sealed, ''), Buffer.from('\n')]), allShown, true)
  yield file('no newline at the end', log.subarray(0, -1), butLast, true)
  yield file('half a line at the end', log.subarray(0, -40), butLast, true)
  yield file('NUL bytes at the end', Buffer.concat([log, Buffer.alloc(4096)]), allShown, true)
  yield file(
    'half a line and NUL bytes at the end',
    Buffer.concat([log.subarray(0, -40), Buffer.alloc(4096)]),
    butLast,
    true,
  )
  yield file('a block of NUL bytes in the middle', logOf(sealed.toSpliced(4, 0, Buffer.alloc(4096))), allShown, true)
  yield file('blank lines at the end', Buffer.concat([log, Buffer.from('\n\n\r\n')]), allShown, false)
}

function* strangeOrders(sealed: readonly Buffer[], plain: readonly Buffer[]): Iterable<MalformedFile> {
  yield file('the header alone', logOf(sealed.slice(0, 1)), [], false)
  yield file('no header', logOf(sealed.slice(1)), allShown, true)
  yield file('a plain file without header', logOf(plain.slice(1)), allShown, true)
  yield file(
    'a plain file without header, with a mark',
    Buffer.concat([Buffer.from('\ufeff'), logOf(plain.slice(1))]),
    allShown,
    true,
  )
  yield file('the header last', logOf([...plain.slice(1), ...plain.slice(0, 1)]), allShown, true)
  yield file('every line twice', logOf(sealed.flatMap((line) => [line, line])), allShown, true)
  yield file('the log twice', logOf([...sealed, ...sealed]), allShown, true)
  yield file('a plain log twice', logOf([...plain, ...plain]), allShown, true)
  yield file('backwards', logOf(sealed.toReversed()), ['answer-2'], true)
  yield file('a plain log backwards', logOf(plain.toReversed()), allShown, true)
  yield file(
    'a plain line in a sealed log',
    logOf(sealed.toSpliced(4, 0, Buffer.from('{"type":"message","id":"x","parent_id":null}'))),
    allShown,
    true,
  )
  yield file(
    'plain lines, then sealed ones that go on',
    logOf([...plain.slice(0, 1), ...sealed.slice(1)]),
    allShown,
    false,
  )
}

/** Lines of the specification, verbatim. */
function* specExamples(): Iterable<MalformedFile> {
  const head =
    '{"type":"session","id":"sess-123","version":1,"timestamp":"2024-01-01T10:00:00Z","cwd":"/path/to/project"}'
  const said = (id: string, parent: string | null, role: string, words: string): string =>
    `{"type":"message","id":"${id}","parent_id":${JSON.stringify(parent)},"timestamp":"...","message":{"role":"${role}","content":[{"type":"text","text":{"content":"${words}"}}]}}`
  const lines = [
    head,
    said('msg-1', null, 'user', 'Hello, Agent!'),
    said('msg-2', 'msg-1', 'assistant', 'Hello! How can I help?'),
    said('msg-3', 'msg-1', 'user', 'Actually, tell me a joke.'),
    '{"type":"label","id":"lbl-1","parent_id":"msg-3","target_id":"msg-1","label":"first-greeting","timestamp":"..."}',
    '{"type":"compaction","id":"comp-1","parent_id":"lbl-1","summary":"User greeted.","first_kept_entry_id":"msg-3","tokens_before":1500,"timestamp":"..."}',
    '{"type":"thinking_level_change","id":"think-1","parent_id":"comp-1","thinking_level":"high","timestamp":"..."}',
    '{"type":"message","id":"res-1","parent_id":"think-1","message":{"role":"toolResult","content":[{"type":"tool_result","tool_result":{"tool_use_id":"c","content":"x"}}]}}',
  ]
  const shown = ['msg-1', 'msg-2', 'msg-3', 'lbl-1', 'comp-1', 'think-1', 'res-1']
  yield file('the flat lines of section 13', `${lines.join('\n')}\n`, shown, false)
}

type Contradiction = [name: string, lines: DiskLine[], isReported: boolean | undefined]

/** A sealed log of these lines behind a header and a writer record; all entries must be shown. */
function contradiction(name: string, lines: readonly DiskLine[], isReported: boolean | undefined): MalformedFile {
  const all: DiskLine[] = [
    { type: 'session', id: 's', version: 1 },
    { type: 'writer', id: 'w', writer: { term: 1, format: 1 } },
    ...lines,
  ]
  const shown = lines.flatMap(({ id, parent_id: parent }) => (parent === undefined ? [] : [id]))
  return file(
    name,
    `${sealAll(all)
      .map(({ text }) => text)
      .join('\n')}\n`,
    shown,
    isReported,
  )
}

const said = (id: string, parent: string | null, message: unknown = { role: 'user', content: [] }): DiskLine => {
  return { type: 'message', id, parent_id: parent, message }
}
const record = (type: string, payload: unknown): DiskLine => ({ type, id: `${type}-record`, [type]: payload })
const entry = (type: string, id: string, parent: string | null, payload: unknown): DiskLine => {
  return { type, id, parent_id: parent, [type]: payload }
}
const calls = (...ids: unknown[]): object => {
  return { role: 'assistant', content: ids.map((id) => ({ type: 'tool_use', tool_use: { id, name: 'n', input: {} } })) }
}
const results = (role: string, ...ids: unknown[]): object => {
  return { role, content: ids.map((id) => ({ type: 'tool_result', tool_result: { tool_use_id: id, content: 'r' } })) }
}

const contradictions: Contradiction[] = [
  ['a cycle of two', [said('a', 'b'), said('b', 'a')], true],
  ['a cycle of three', [said('a', 'c'), said('b', 'a'), said('c', 'b')], true],
  ['everybody their own parent', [said('a', 'a'), said('b', 'b'), said('c', 'c')], true],
  ['everybody before their parent', [said('c', 'b'), said('b', 'a'), said('a', null)], true],
  ['ten phantom parents', Array.from({ length: 10 }, (_, index) => said(`m${index}`, `nobody-${index}`)), true],
  [
    'two hundred entries of one id',
    Array.from({ length: 200 }, (_, index) => said('same', index === 0 ? null : 'same')),
    true,
  ],
  ['ten roots', Array.from({ length: 10 }, (_, index) => said(`m${index}`, null)), false],
  [
    'a chain of two thousand',
    Array.from({ length: 2000 }, (_, index) => said(`m${index}`, index === 0 ? null : `m${index - 1}`)),
    false,
  ],
  ['calls without results', [said('a', null, calls('1', '2', '3')), said('b', 'a')], false],
  ['results without calls', [said('a', null, results('tool', '1', '2')), said('b', 'a')], false],
  ['results before their calls', [said('a', null, results('tool', '1')), said('b', 'a', calls('1'))], false],
  [
    'results in a message of the user',
    [said('a', null, calls('1', '2')), said('b', 'a', results('user', '2', '1'))],
    false,
  ],
  ['results in an answer', [said('a', null, calls('1')), said('b', 'a', results('assistant', '1'))], false],
  ['the same result twice', [said('a', null, calls('1')), said('b', 'a', results('tool', '1', '1'))], false],
  [
    'the same call twice in a message',
    [said('a', null, calls('1', '1')), said('b', 'a', results('tool', '1', '1'))],
    false,
  ],
  [
    'the same call in two messages',
    [said('a', null, calls('1')), said('b', 'a', calls('1')), said('c', 'b', results('tool', '1'))],
    false,
  ],
  [
    'calls whose ids are no ids',
    [said('a', null, calls(5, null, {}, '__proto__', '')), said('b', 'a', results('tool', 5, null))],
    false,
  ],
  ['a tool message that says nothing', [said('a', null, { role: 'tool', content: [] })], false],
  [
    'content that is a string',
    [said('a', null, { role: 'user', content: 'hi' }), said('b', 'a', { role: 'tool', content: 'ho' })],
    false,
  ],
  [
    'content of the wrong kinds',
    [said('a', null, { role: 'assistant', content: [null, 5, [], {}, { type: 'text' }] })],
    false,
  ],
  [
    'roles nobody has',
    [said('a', null, { role: 'root', content: [] }), said('b', 'a', { role: 5 }), said('c', 'b', {})],
    false,
  ],
  ['bash output that is none', [said('a', null, { role: 'bashExecution', content: [], bash_execution: 5 })], false],
  [
    'blobs that are none',
    [
      { ...said('a', null), blobs: [null, 5, {}, { path: 5, sha256: '../..' }] },
      { ...said('b', 'a'), blobs: 'x' },
    ],
    undefined,
  ],
  [
    'a blob that is missing',
    [{ ...said('a', null), blobs: [{ path: '/message/role', sha256: 'f'.repeat(64), size: 9 }] }],
    undefined,
  ],
  ['a label on nobody', [said('a', null), entry('label', 'l', 'a', { target_id: 'nobody', label: 'x' })], false],
  ['a label on __proto__', [said('a', null), entry('label', 'l', 'a', { target_id: '__proto__', label: 'x' })], false],
  [
    'a label that is an object',
    [said('a', null), entry('label', 'l', 'a', { target_id: 'a', label: { x: 1 } })],
    false,
  ],
  ['the leaf moved to nobody', [said('a', null), record('leaf', { target_id: 'nobody' })], true],
  ['the leaf moved to nonsense', [said('a', null), record('leaf', { target_id: '\0' })], true],
  ['the leaf moved nowhere', [said('a', null), record('leaf', {})], true],
  [
    'the leaf moved to a label',
    [said('a', null), entry('label', 'l', 'a', { target_id: 'a', label: 'x' }), record('leaf', { target_id: 'l' })],
    false,
  ],
  [
    'a compaction that keeps nobody',
    [said('a', null), entry('compaction', 'c', 'a', { summary: 's', first_kept_entry_id: 'nobody' })],
    false,
  ],
  [
    'a compaction that keeps what comes later',
    [said('a', null), entry('compaction', 'c', 'a', { first_kept_entry_id: 'b' }), said('b', 'c')],
    false,
  ],
  [
    'a compaction that keeps itself',
    [said('a', null), entry('compaction', 'c', 'a', { summary: 's', first_kept_entry_id: 'c' })],
    false,
  ],
  ['a compaction without anything', [said('a', null), entry('compaction', 'c', 'a', {}), said('b', 'c')], false],
  ['a system prompt that is none', [entry('system', 'p', null, { prompt: 5, tools: 'x' }), said('a', 'p')], false],
  [
    'a model that is none',
    [entry('model_change', 'm', null, []), entry('thinking_level', 't', 'm', null), said('a', 't')],
    false,
  ],
  ['a branch summary of nobody', [entry('branch_summary', 'b', null, { from_id: 'nobody' }), said('a', 'b')], false],
  [
    'changes to messages nobody sent',
    [
      ...['edit', 'move', 'hold', 'release', 'remove', 'clear', 'fly'].map((action) =>
        record('submission', { action, id: 'q' }),
      ),
    ],
    false,
  ],
  [
    'messages without id',
    [record('submission', { action: 'add' }), record('submission', { action: 'add', id: 5 }), record('submission', 5)],
    false,
  ],
  [
    'the same message twice',
    [record('submission', { action: 'add', id: 'q' }), record('submission', { action: 'add', id: 'q' })],
    false,
  ],
  [
    'answers nobody asked for',
    [record('permission_result', { request_id: 'r', outcome: 'allowed', grant: { all: true } })],
    false,
  ],
  [
    'a permission without id',
    [record('permission_request', {}), record('permission_request', { request_id: '__proto__' })],
    false,
  ],
  [
    'a run that ends twice',
    [record('run_end', { outcome: 5 }), record('run_end', {}), record('run_start', null)],
    false,
  ],
  ['damage that is none', [record('damage', { through_seq: '1e999', places: 'x' }), record('damage', 5)], undefined],
  [
    'usage past all numbers',
    [record('usage', { tokens: { cost: 1e308, input_tokens: -1 } }), record('usage', { tokens: { cost: 1e308 } })],
    false,
  ],
  [
    'causes of the wrong kinds',
    [
      { ...said('a', null), cause: 5 },
      { ...said('b', 'a'), cause: { cmd: {} }, request: 'x' },
    ],
    false,
  ],
  [
    'a time that is none',
    [
      { ...said('a', null), timestamp: 5 as unknown as string },
      { ...said('b', 'a'), timestamp: '\0' },
    ],
    false,
  ],
]
