import {
  fromDisk,
  type Context,
  type Session,
  type DiskLine,
  type MessageEntry,
  type RequestReference,
} from '@tapetree/session'
import { stylesFor } from '../../command-line/color.ts'
import { flag, textOption, type Invocation } from '../../command-line/command.ts'
import { exitCodes, type ExitCode } from '../../command-line/exit-code.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { findSession } from '../../host/find-session.ts'
import { write, printJson, type Io } from '../../command-line/io.ts'
import { contextGaps, type ContextGaps } from '../../sessions/context-path.ts'
import { contextText, placeOf } from '../../sessions/context-text.ts'
import { findEntry } from '../../sessions/find-entry.ts'
import { paged } from '../../sessions/paged.ts'
import { Progress } from '../../sessions/progress.ts'
import { withStore } from '../../sessions/with-store.ts'
import { snakeNames } from '../../text/json-text.ts'
import {
  checkRequest,
  createModelRegistry,
  loadSettings,
  RegistryError,
  type Model,
  type RequestCheck,
} from '@tapetree/agent'

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
