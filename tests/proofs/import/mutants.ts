import type { Content } from '@tapetree/session'
import { sources } from '../../../packages/cli/src/import/sources.ts'
import type { NewLine, SourceReader, Taken } from '../../../packages/cli/src/import/import-source.ts'
import { replaceMember, type Mutant } from '../mutants/catch-mutant.ts'
import type { SourceName } from '../../../packages/cli/src/import/import-source.ts'

/** Faults of a reader, each in every source. */
export const readerMutants: Record<string, (taken: Taken, place: number) => Taken> = {
  'every ninth kept line is lost': (taken, place) =>
    taken.lines.length > 0 && place % 9 === 4 ? { ...taken, lines: [] } : taken,
  'a kept line is called bookkeeping': (taken, place) =>
    taken.fate.type === 'kept' && place % 7 === 3
      ? { ...taken, lines: [], fate: { type: 'dropped', reason: 'bookkeeping' } }
      : taken,
  'long text is cut': (taken) => withContent(taken, (block) => cutBlock(block)),
  'results are empty': (taken) => withContent(taken, emptyResult),
  'images become text': (taken) =>
    withContent(taken, (block) => (block.type === 'image' ? { type: 'text', text: { content: '[image]' } } : block)),
  'thinking is left out': (taken) => withContent(taken, (block) => (block.type === 'reasoning' ? undefined : block)),
  'a proof of thinking could be sent': (taken) => withContent(taken, signed),
  'the input of calls is left out': (taken) =>
    withContent(taken, (block) =>
      block.type === 'tool_use' ? { ...block, toolUse: { ...block.toolUse, input: {} } } : block,
    ),
  'keys change from import to import': (taken) => ({
    ...taken,
    lines: taken.lines.map((line) => ({ ...line, key: `${line.key} ${process.hrtime.bigint()}` })),
  }),
  'a line comes twice': (taken, place) => (place % 11 === 5 ? { ...taken, lines: twice(taken.lines) } : taken),
  'parents are forgotten': (taken, place) =>
    place % 5 === 2 ? { ...taken, lines: taken.lines.map((line) => ({ ...line, parent: 'nowhere' })) } : taken,
  'a permission is imported': (taken, place) =>
    place === 6 ? { ...taken, lines: [...taken.lines, permission(taken)] } : taken,
  'a reason is made up': (taken) =>
    taken.fate.type === 'dropped' ? { ...taken, fate: { type: 'dropped', reason: 'whatever' as 'empty' } } : taken,
  'usage is counted twice': (taken) => ({
    ...taken,
    lines: taken.lines.map((line) =>
      line.draft.type === 'usage'
        ? {
            ...line,
            draft: { ...line.draft, usage: { ...line.draft.usage, tokens: doubled(line.draft.usage.tokens) } },
          }
        : line.draft.type === 'message' && line.draft.message.usage
          ? {
              ...line,
              draft: { ...line.draft, message: { ...line.draft.message, usage: doubled(line.draft.message.usage) } },
            }
          : line,
    ),
  }),
  'times are lost': (taken) => ({
    ...taken,
    lines: taken.lines.map((line) => ({ ...line, timestamp: '2020-01-01T00:00:00.000Z' })),
  }),
  'what becomes of a line depends on how many there are': (taken, place) => ({
    ...taken,
    lines: taken.lines.map((line) => ({ ...line, key: place > 8 ? `${line.key} late` : line.key })),
  }),
}

/** Adds a fault to the readers of all sources. */
export function inAllReaders(change: (taken: Taken, place: number) => Taken): Mutant {
  return () => {
    const mends = (Object.keys(sources) as SourceName[]).map((name) =>
      replaceMember(sources[name], 'reader', (original) => (session) => asReader(original(session), change)),
    )
    return () => {
      for (const mend of mends) mend()
    }
  }
}

function asReader(reader: SourceReader, change: (taken: Taken, place: number) => Taken): SourceReader {
  let place = 0
  return {
    take: (line) => change(reader.take(line), (place += 1)),
    get leaf() {
      return reader.leaf
    },
    get started() {
      return reader.started
    },
  }
}

function withContent(taken: Taken, change: (block: Content) => Content | undefined): Taken {
  const lines = taken.lines.map((line): NewLine => {
    if (line.draft.type !== 'message') return line
    const content = line.draft.message.content.flatMap((block) => change(block) ?? [])
    return { ...line, draft: { ...line.draft, message: { ...line.draft.message, content } } }
  })
  return { ...taken, lines }
}

function cutBlock(block: Content): Content {
  if (block.type === 'text') return { type: 'text', text: { content: block.text.content.slice(0, 20) } }
  return block
}

function emptyResult(block: Content): Content {
  return block.type === 'tool_result' ? { ...block, toolResult: { ...block.toolResult, content: '' } } : block
}

function signed(block: Content): Content {
  return block.type === 'reasoning' ? { ...block, reasoning: { ...block.reasoning, signature: 'proof' } } : block
}

function twice(lines: NewLine[]): NewLine[] {
  return lines.flatMap((line) => [line, { ...line, key: `${line.key} again`, parent: line.key }])
}

function permission({ lines }: Taken): NewLine {
  const timestamp = lines[0]?.timestamp ?? '2026-01-01T00:00:00.000Z'
  return { key: 'mode', parent: null, timestamp, draft: { type: 'permission_mode', permissionMode: { mode: 'auto' } } }
}

function doubled<T extends object>(counts: T): T {
  return Object.fromEntries(Object.entries(counts).map(([name, value]) => [name, Number(value) * 2])) as T
}
