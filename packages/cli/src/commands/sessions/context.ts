import type { Context, Session, Content, ContextMessage, ToolDefinition } from '@tapetree/session'
import {
  fromDisk,
  type DiskLine,
  type MessageEntry,
  type RequestReference,
  type Entry,
  type CompactionEntry,
} from '@tapetree/session/format'
import { stylesFor, write, printJson, type Io, type Styles } from '../../command-line/io.ts'
import { flag, textOption, type Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { harmlessLine, harmless } from '../../text/harmless.ts'
import { findSession } from '../../host/find-session.ts'
import { findEntry } from '../../sessions/find-entry.ts'
import { paged } from '../../sessions/paged.ts'
import { Progress } from '../../sessions/progress.ts'
import { withStore } from '../../sessions/with-store.ts'
import { snakeNames } from '../../text/json-text.ts'
import type { Model } from '@tapetree/agent'
import { checkRequest, type RequestCheck } from '@tapetree/agent/run'
import { createModelRegistry, RegistryError } from '@tapetree/agent/models'
import { loadSettings } from '@tapetree/agent/settings'
import { counted } from '../../text/amounts.ts'
import { segmentsOf } from '../../sessions/segments.ts'

export async function runSessionsContext(invocation: Invocation, io: Io): Promise<ExitCode> {
  const [reference = 'last'] = invocation.positionals
  const at = textOption(invocation, 'at')
  using progress = new Progress(io.stderr, 'Reading the session')
  return await withStore(io, async (store) => {
    const { id } = await findSession(store, reference, { cwd: io.cwd })
    await using session = await store.open(id, { readOnly: true })
    const source = await contextSourceOf(session, at === undefined ? undefined : await findEntry(session, at))
    const context = await session.getContext({ leafId: source.leafId })
    const gaps = await contextGaps(session, source.leafId, context)
    const check = source.answer && (await checkAgain(session, source.answer, io))
    progress.close()
    if (flag(invocation, 'json')) {
      await printJson(io, {
        session_id: id,
        leaf_id: source.leafId,
        request: requestJson(source, check),
        context: snakeNames(context),
        ...gapsJson(gaps),
      })
      return exitCodes.ok
    }
    await paged(io, async (output) => {
      await write(output, headerText({ id, source, context, gaps, check }))
      for (const part of contextText(context, gaps, stylesFor(output, io.env))) await write(output, part)
    })
    return exitCodes.ok
  })
}

interface Header {
  id: string
  source: ContextSource
  context: Context
  gaps: ContextGaps
  check: CheckedRequest | undefined
}

function headerText({ id, source, context, gaps, check }: Header): string {
  const { model, thinkingLevel, provenance } = context
  const { answer, leafId } = source
  const rows = [
    ['session', id],
    ['ends with', leafId === null ? 'nothing: before the first entry' : placeOf(leafId, gaps)],
    ['is', answer ? `the context of answer ${answer.seq} (${answer.id})` : 'what the model receives next'],
    ...(model ? [['model', `${model.provider}/${model.modelId}, ${placeOf(provenance.modelId, gaps)}`]] : []),
    ...(thinkingLevel === null ? [] : [['thinking', `${thinkingLevel}, ${placeOf(provenance.thinkingLevelId, gaps)}`]]),
    ...(answer ? [['request', `sha256 ${answer.request.sha256} by ${answer.request.adapter}`]] : []),
    ...(check ? [['rebuilt', `${outcomes[check.outcome]}${check.why === undefined ? '' : ` ${check.why}`}`]] : []),
  ]
  return rows.map(([key = '', value = '']) => `${key.padEnd(10)} ${harmlessLine(value)}\n`).join('')
}

const outcomes: Record<CheckedRequest['outcome'], string> = {
  same: 'identical, byte for byte.',
  different: 'different: the provider, its adapter or the images have changed.',
  changed: 'not possible: an extension had changed the request.',
  'unknown-model': 'not possible: the model is not known here.',
}

function requestJson({ answer }: ContextSource, check: CheckedRequest | undefined): unknown {
  return answer ? snakeNames({ ...answer.request, answerId: answer.id, again: check }) : null
}

function gapsJson({ replaced, leftOut }: ContextGaps): Record<string, unknown> {
  return {
    replaced: replaced
      ? { compaction_id: replaced.compactionId, entry_ids: replaced.entries.map(({ id }) => id) }
      : null,
    left_out: leftOut.map(({ id }) => id),
  }
}

interface CheckedRequest {
  outcome: RequestCheck['outcome']
  /** Why the request could not be rebuilt. */
  why?: string
}

/** Rebuilds the request of an answer and compares. Sends nothing and reads no key. */
async function checkAgain(
  session: Session,
  answer: NonNullable<ContextSource['answer']>,
  { cwd, home, env }: Io,
): Promise<CheckedRequest> {
  const { values } = await loadSettings({ cwd, home, env })
  const registry = createModelRegistry({
    env: {},
    providers: values.providers,
    credentials: { keyFor: async () => ({ value: 'not used', origin: 'nowhere' }) },
  })
  const { provider = '', model: id = '' } = answer.message
  let model: Model | undefined
  let why: string | undefined
  try {
    model = (await registry.open({ provider, id })).model
  } catch (error) {
    if (!(error instanceof RegistryError)) throw error
    why = error.message
  }
  const outcome = (await checkRequest(session, answer.id, { model: () => model })) ?? 'unknown-model'
  return { outcome, ...(why !== undefined && { why }) }
}

/** The point that a context belongs to. */
interface ContextSource {
  /** The last entry of the context; null is before the first one. */
  leafId: string | null
  /** The answer to this request, if it was sent. */
  answer?: MessageEntry & { request: RequestReference }
}

/** At an answer, the context of that answer; anywhere else, what would be sent next. */
async function contextSourceOf(session: Session, at: string | undefined): Promise<ContextSource> {
  if (at !== undefined) {
    const entry = await session.getEntry(at)
    if (isAnswer(entry)) return { leafId: entry.request.leafId, answer: entry }
  }
  const leafId = at ?? session.leafId
  const answer = await answerFrom(session, leafId)
  return answer ? { leafId, answer } : { leafId }
}

/** The first answer requested from there. */
async function answerFrom(session: Session, leafId: string | null): Promise<ContextSource['answer']> {
  for await (const stored of session.lines()) {
    if (stored.type === 'lost' || !stored.text.includes('"request"')) continue
    const line = fromDisk(JSON.parse(stored.text) as DiskLine, stored.seq)
    if (isAnswer(line) && line.request.leafId === leafId) return line
  }
  return undefined
}

function isAnswer(line: { type: string; request?: RequestReference }): line is NonNullable<ContextSource['answer']> {
  return line.type === 'message' && typeof line.request?.sha256 === 'string'
}

/** A context for people: what is sent, in order, each with its source. */
function* contextText(context: Context, gaps: ContextGaps, { bold, dim }: Styles): Generator<string> {
  const { system, provenance, messages, repairs } = context
  const heading = (words: string): string => `\n${bold(`── ${harmlessLine(words)}`)}\n`
  if (system) {
    yield heading(`system prompt, ${placeOf(provenance.systemId, gaps)}`)
    yield `${harmless(system.prompt)}\n`
    yield heading(`${counted(system.tools.length, 'tool')}, ${placeOf(provenance.systemId, gaps)}`)
    for (const tool of system.tools) yield toolText(tool)
  }
  for (const [index, message] of messages.entries()) {
    yield heading(`${index + 1}. ${message.message.role}, ${placeOf(message.entryId, gaps)}${whyOf(message, gaps)}`)
    for (const block of message.message.content) yield `${harmless(blockText(block))}\n`
    const { bashExecution } = message.message
    if (bashExecution) yield `${harmless(`$ ${bashExecution.command}\n${bashExecution.output}`)}\n`
  }
  if (gaps.leftOut.length > 0) {
    yield heading(`not sent: ${counted(gaps.leftOut.length, 'message')} of the path`)
    for (const entry of gaps.leftOut) yield dim(`${placeOf(entry.id, gaps)}: ${leftOutBecause(entry)}\n`)
  }
  if (repairs.length > 0) yield heading('repaired so that a provider accepts it')
  for (const repair of repairs) yield `${harmlessLine(repair)}\n`
}

function placeOf(entryId: string | null, { entries }: Pick<ContextGaps, 'entries'>): string {
  if (entryId === null) return 'without a source'
  const seq = entries.get(entryId)?.seq
  return seq === undefined ? `entry ${entryId}` : `entry ${seq} (${entryId})`
}

function whyOf({ made, message }: ContextMessage, { replaced }: ContextGaps): string {
  switch (made) {
    case 'summary':
      if (message.role === 'branchSummary') return ': summarizes an abandoned branch'
      return `: replaces ${rangeOf(replaced?.entries ?? [])}`
    case 'missing-result':
      return ': synthetic, because the call has no result on this branch'
    case 'orphan-result':
      return ': a result whose call is not in the context'
    case undefined:
      return ''
    default:
      return made satisfies never
  }
}

function rangeOf(entries: readonly Entry[]): string {
  const [first, last] = [entries.at(0), entries.at(-1)]
  if (!first || !last) return 'no entries'
  return `${counted(entries.length, 'entry', 'entries')}, ${first.seq} to ${last.seq}`
}

function leftOutBecause(entry: Entry): string {
  if (entry.type === 'message' && entry.message.bashExecution?.excludeFromContext) return 'a command with `!!`'
  return 'it has nothing to send'
}

function toolText({ name, description, inputSchema }: ToolDefinition): string {
  return `${harmless(`${name}: ${description}\n  ${JSON.stringify(inputSchema)}`)}\n`
}

function blockText(block: Content): string {
  switch (block.type) {
    case 'text':
      return block.text.content
    case 'reasoning':
      return `(reasoning) ${block.reasoning.text}`
    case 'tool_use':
      return `(call ${block.toolUse.id}) ${block.toolUse.name} ${JSON.stringify(block.toolUse.input)}`
    case 'tool_result': {
      const { toolUseId, isError, content } = block.toolResult
      const said = typeof content === 'string' ? content : content.map(blockText).join('\n')
      return `(${isError ? 'error' : 'result'} of ${toolUseId}) ${said}`
    }
    case 'image': {
      const { source } = block.image
      if (source.type === 'blob') return `(image ${source.mediaType}, ${source.size} bytes, sha256 ${source.sha256})`
      if (source.type === 'url') return `(image at ${source.data})`
      return `(image ${source.mediaType}, ${source.data.length} characters of base64)`
    }
    default:
      return block satisfies never
  }
}

/** What the path contains and the model does not see as it is. */
interface ContextGaps {
  /** The active compaction and the entries that its summary replaces. */
  replaced?: { compactionId: string; entries: Entry[] }
  /** Messages after it that are not sent. */
  leftOut: Entry[]
  /** Every entry of the path, by id. */
  entries: ReadonlyMap<string, Entry>
}

async function contextGaps(session: Session, leafId: string | null, context: Context): Promise<ContextGaps> {
  const [path] = segmentsOf(await session.getTree(), leafId)
  const entries = path?.nodes.map(({ entry }) => entry) ?? []
  const compaction = compactionIn(context, entries)
  const firstKept = compaction ? entries.findIndex(({ id }) => id === compaction.compaction.firstKeptEntryId) : 0
  // If its first kept entry is missing, only what follows the summary is kept.
  const from = firstKept === -1 ? entries.findIndex(({ id }) => id === compaction?.id) : firstKept
  const sent = new Set(context.messages.map(({ entryId }) => entryId))
  return {
    ...(compaction && { replaced: { compactionId: compaction.id, entries: entries.slice(0, from) } }),
    leftOut: entries.slice(from).filter(({ id, type }) => type === 'message' && !sent.has(id)),
    entries: new Map(entries.map((entry) => [entry.id, entry])),
  }
}

function compactionIn({ messages }: Context, entries: readonly Entry[]): CompactionEntry | undefined {
  const [first] = messages
  const entry = first?.made === 'summary' ? entries.find(({ id }) => id === first.entryId) : undefined
  return entry?.type === 'compaction' ? entry : undefined
}
