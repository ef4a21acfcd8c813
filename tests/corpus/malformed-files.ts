import type { DiskLine } from '@tapetree/session/format'
import { lineWays, type LineWay } from './malformed-lines.ts'
import type { MalformedFile } from './malformed-file.ts'
import { wholeFileWays } from './malformed-wholes.ts'
import { sealAll } from './sealed-log.ts'

/** Every way to spoil a line, at the header, an early, a middle and the last line, of a sealed log and of a plain one. */
export function* malformedFiles(): Iterable<MalformedFile> {
  const sealed = sealAll(baseLines()).map(({ text }) => Buffer.from(text))
  for (const way of [...lineWays.any, ...lineWays.sealed]) {
    for (const at of [0, 2, 3, 8]) if (fits(way, at, sealed)) yield spoiled(way, at, sealed, { isSealed: true })
  }
  const plain = baseLines().map((line) => Buffer.from(JSON.stringify(line)))
  plain.splice(1, 1)
  for (const way of lineWays.any) {
    for (const at of [0, 7]) if (fits(way, at, plain)) yield spoiled(way, at, plain, { isSealed: false })
  }
  yield* wholeFileWays(sealed, plain)
}

function fits(way: LineWay, at: number, lines: readonly Buffer[]): boolean {
  return !way.isPair || at + 1 < lines.length
}

function spoiled(
  way: LineWay,
  at: number,
  lines: readonly Buffer[],
  { isSealed }: { isSealed: boolean },
): MalformedFile {
  const line = lines[at] as Buffer
  const following = lines[at + 1] ?? Buffer.alloc(0)
  const taken = way.isPair ? 2 : 1
  const written = way.spoil(line, following).map((each) => Buffer.from(each))
  const all = [...lines.slice(0, at), ...written, ...lines.slice(at + taken)]
  const isHarmless = way.outcome === 'harmless'
  const kept = [
    ...(isHarmless || (isSealed && way.keeps?.includes('line')) ? [line] : []),
    ...(isSealed && way.keeps?.includes('following') ? [following] : []),
  ]
  const mustReport = way.outcome === 'reported' && !(way.isTraceless && at + taken === lines.length)
  const others = [...lines.slice(0, at), ...(way.hidesFollowing ? [] : lines.slice(at + taken))]
  return {
    name: `${isSealed ? 'sealed' : 'plain'}, line ${at + 1}: ${way.name}`,
    bytes: Buffer.concat(all.map((each) => Buffer.concat([each, newline]))),
    shown: [...others, ...kept].flatMap(entryId),
    isReported: isHarmless ? false : mustReport && isSealed ? true : undefined,
  }
}

const newline = Buffer.from('\n')

function entryId(line: Buffer): string[] {
  const { id, parent_id: parent } = JSON.parse(line.toString()) as DiskLine
  return parent === undefined ? [] : [id]
}

/** A small session; every id is a word. */
function baseLines(): DiskLine[] {
  const timestamp = '2026-03-01T10:00:00.000Z'
  const text = (content: string): object => ({ type: 'text', text: { content } })
  const message = (id: string, parent: string | null, role: string, ...content: object[]): DiskLine => {
    return { type: 'message', id, parent_id: parent, timestamp, message: { role, content } }
  }
  const call = { type: 'tool_use', tool_use: { id: 'call', name: 'read', input: { path: 'a.ts' } } }
  const result = { type: 'tool_result', tool_result: { tool_use_id: 'call', content: 'text of a.ts' } }
  return [
    { type: 'session', id: 'a-session', timestamp, version: 1, cwd: '/project' },
    { type: 'writer', id: 'writer', timestamp, writer: { term: 1, host: 'host', process: '1', format: 1 } },
    message('question-1', null, 'user', text('What does a.ts do?')),
    message('answer-1', 'question-1', 'assistant', text('I will look.'), call),
    message('result-1', 'answer-1', 'tool', result),
    {
      type: 'label',
      id: 'label',
      parent_id: 'result-1',
      timestamp,
      label: { target_id: 'question-1', label: 'start' },
    },
    {
      type: 'compaction',
      id: 'compaction',
      parent_id: 'result-1',
      timestamp,
      compaction: { summary: 's', first_kept_entry_id: 'question-1', tokens_before: 5 },
    },
    message('question-2', 'compaction', 'user', text('And b.ts?')),
    message('answer-2', 'question-2', 'assistant', text('Nothing.')),
  ]
}
