import type { ContentBlock, SessionUpdate, ToolCallContent, ToolCallUpdate } from '@agentclientprotocol/sdk/unstable'
import type { ImageSource } from '@tapetree/session'
import { toldDiagnostics } from '@tapetree/session/screen'
import {
  emptyTranscript,
  type AssistantItem,
  type BashItem,
  type InFlightItem,
  type ToolCallPart,
  type Transcript,
  type TranscriptItem,
  type UserItem,
} from '@tapetree/session/view'
import { contentText } from '../text/content-text.ts'
import type { EditorFeatures } from './editor.ts'
import { exitCodeOf, fenced, intendedChange, outcomeOf, resultOf, shownCall, textContent } from './tool-calls.ts'

export interface SessionUpdatesOptions {
  cwd: string
  features: EditorFeatures
  /** Whether the editor sent this message, and so shows it already. */
  isOurs: (item: UserItem) => boolean
}

/** The differences between successive transcripts, as an editor is told. Every text and every change of a call is told once. */
export class SessionUpdates {
  readonly #options: SessionUpdatesOptions
  #last: Transcript = emptyTranscript()
  /** Items up to this line are known, except for the open calls. */
  #toldSeq = 0
  /** Calls without a result, by their id for the editor. */
  readonly #open = new Map<string, { seq: number; status: ToolCallPart['status']; outputTold: number }>()
  /** How many code units of a text in flight were told, by item and part. */
  readonly #textTold = new Map<string, Map<number, number>>()

  constructor(options: SessionUpdatesOptions) {
    this.#options = options
  }

  /** Starts without the past. What an open run has done so far is told, because the editor will see the rest of it. */
  begin(transcript: Transcript): void {
    this.#last = { ...emptyTranscript(), path: transcript.path, seq: transcript.run?.seq ?? transcript.seq }
    this.#toldSeq = this.#last.seq
  }

  take(transcript: Transcript): SessionUpdate[] {
    const before = this.#last
    this.#last = transcript
    if (transcript === before) return []
    const updates: SessionUpdate[] = []
    if (before.seq > 0 && hasMoved(before, transcript)) {
      updates.push(...this.notice(movedText))
      this.#open.clear()
    }
    updates.push(...this.#takePath(transcript), ...this.#takeLive(transcript))
    if (transcript.plan !== before.plan && (transcript.plan.length > 0 || before.plan.length > 0))
      updates.push(planUpdate(transcript))
    if (transcript.name !== before.name && transcript.name !== '')
      updates.push({ sessionUpdate: 'session_info_update', title: transcript.name })
    return updates
  }

  /** The editor's id of the newest call with this id. */
  callIdOf(callId: string): string | undefined {
    return [...this.#open.keys()].findLast((id) => id.endsWith(`:${callId}`))
  }

  /** A sentence beside the conversation. */
  notice(title: string, severity: 'info' | 'warning' | 'error' = 'info'): SessionUpdate[] {
    if (this.#options.features.notices) return [{ sessionUpdate: 'notice', severity, title }]
    return [{ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: `${title}\n` } }]
  }

  #takePath(transcript: Transcript): SessionUpdate[] {
    const { items } = transcript.path
    const floor = Math.min(this.#toldSeq + 1, ...[...this.#open.values()].map(({ seq }) => seq))
    let first = items.length
    while (first > 0 && (items.at(first - 1)?.seq ?? 0) >= floor) first--
    const updates = items.slice(first).flatMap((item) => {
      if (item.seq > this.#toldSeq) return this.#tellItem(item)
      return item.type === 'assistant' ? callsOf(item).flatMap((call) => this.#tellCall(item, call)) : []
    })
    this.#toldSeq = transcript.seq
    return updates
  }

  #tellItem(item: TranscriptItem): SessionUpdate[] {
    switch (item.type) {
      case 'user':
        return this.#options.isOurs(item) ? [] : userChunks(item)
      case 'assistant':
        return this.#tellAssistant(item)
      case 'bash':
        return [bashCall(item)]
      case 'compaction':
        return this.#options.features.compaction
          ? [
              {
                sessionUpdate: 'compaction_update',
                compactionId: item.id,
                status: 'completed',
                summary: [{ type: 'text', text: item.summary }],
              },
            ]
          : this.notice('The conversation was summarized to make room.')
      case 'gap':
        return this.notice('A part of the conversation cannot be shown.', 'warning')
      case 'custom': {
        const told = item.custom.type === 'message' ? toldDiagnostics(contentText(item.custom.content)) : undefined
        return told ? this.notice(`The language server reports ${told.title}.`, 'warning') : []
      }
      case 'tool_result':
      case 'branch_summary':
      case 'system':
      case 'model':
      case 'thinking_level':
        return []
      default:
        item satisfies never
        return []
    }
  }

  #tellAssistant(item: AssistantItem): SessionUpdate[] {
    const updates = item.parts.flatMap((part, index): SessionUpdate[] => {
      switch (part.type) {
        case 'text':
        case 'reasoning':
          return this.#tellText(item.id, { part: index, kind: part.type, off: 0, text: part.text })
        case 'image':
          return []
        case 'tool_call':
          return this.#tellCall(item, part)
        default:
          return part satisfies never
      }
    })
    this.#textTold.delete(item.id)
    return updates
  }

  #takeLive({ inFlight }: Transcript): SessionUpdate[] {
    // The text of a failed attempt is over; the next attempt has another id.
    for (const item of this.#textTold.keys()) if (!inFlight.has(item)) this.#textTold.delete(item)
    return [...inFlight.values()].flatMap((live) => {
      const call = this.callIdOf(live.item)
      if (call !== undefined) return this.#tellOutput(call, live)
      return live.parts.flatMap(({ kind, ...part }) =>
        kind === 'text' || kind === 'reasoning' ? this.#tellText(live.item, { ...part, kind }) : [],
      )
    })
  }

  #tellText(
    item: string,
    { part, kind, off, text }: { part: number; kind: 'text' | 'reasoning'; off: number; text: string },
  ): SessionUpdate[] {
    const toldOf = this.#textTold.get(item) ?? new Map<number, number>()
    const told = toldOf.get(part) ?? 0
    const end = off + text.length
    if (end <= told) return []
    this.#textTold.set(item, toldOf.set(part, end))
    const sessionUpdate = kind === 'text' ? 'agent_message_chunk' : 'agent_thought_chunk'
    const content = { type: 'text' as const, text: text.slice(Math.max(0, told - off)) }
    return [{ sessionUpdate, content, messageId: item }]
  }

  #tellCall(item: AssistantItem, call: ToolCallPart): SessionUpdate[] {
    // The plan is shown instead.
    if (call.name === 'todo_write') return []
    const id = `${item.id}:${call.callId}`
    const known = this.#open.get(id)
    if (!known && item.seq <= this.#toldSeq) return []
    const updates: SessionUpdate[] = known ? [] : [this.#firstSight(id, call)]
    const state = known ?? { seq: item.seq, status: 'pending' as const, outputTold: 0 }
    if (hasResult(call)) {
      this.#open.delete(id)
      return [...updates, { sessionUpdate: 'tool_call_update', ...this.#ending(id, call, state.outputTold) }]
    }
    if (call.status === 'running' && state.status !== 'running')
      updates.push({ sessionUpdate: 'tool_call_update', toolCallId: id, status: 'in_progress' })
    this.#open.set(id, { ...state, status: call.status })
    return updates
  }

  #firstSight(id: string, call: ToolCallPart): SessionUpdate {
    const { cwd } = this.#options
    const terminal = this.#showsTerminal(call)
    return {
      sessionUpdate: 'tool_call',
      toolCallId: id,
      name: call.name,
      ...shownCall(call, cwd),
      status: 'pending',
      rawInput: call.input,
      content: terminal ? [{ type: 'terminal', terminalId: id }] : intendedChange(call, cwd),
      ...(terminal && { _meta: { terminal_info: { terminal_id: id, cwd } } }),
    }
  }

  /** A command that did not run has a reason instead of output. */
  #ending(id: string, call: FinishedCall, outputTold: number): ToolCallUpdate {
    const { state, output } = outcomeOf(call)
    const base = { toolCallId: id, status: call.result.isError ? ('failed' as const) : ('completed' as const) }
    const hasRun = state === 'done' || state === 'failed'
    if (!this.#showsTerminal(call) || !hasRun) return { ...base, ...resultOf(call, this.#options.cwd) }
    const rest = output.slice(outputTold)
    return {
      ...base,
      _meta: {
        ...(rest !== '' && { terminal_output: { terminal_id: id, data: rest } }),
        terminal_exit: { terminal_id: id, exit_code: exitCodeOf(call), signal: null },
      },
    }
  }

  #tellOutput(id: string, { parts }: InFlightItem): SessionUpdate[] {
    const known = this.#open.get(id)
    const output = parts.find(({ kind }) => kind === 'tool_output')
    if (!known || !output || !this.#options.features.terminals) return []
    const end = output.off + output.text.length
    if (end <= known.outputTold) return []
    const data = output.text.slice(Math.max(0, known.outputTold - output.off))
    known.outputTold = end
    return [
      { sessionUpdate: 'tool_call_update', toolCallId: id, _meta: { terminal_output: { terminal_id: id, data } } },
    ]
  }

  #showsTerminal({ name }: ToolCallPart): boolean {
    return name === 'bash' && this.#options.features.terminals
  }
}

type FinishedCall = ToolCallPart & { result: NonNullable<ToolCallPart['result']> }

function hasResult(call: ToolCallPart): call is FinishedCall {
  return call.result !== undefined
}

const movedText =
  'The conversation continues on another branch, chosen on another screen. Load the session again to see that branch.'

/** Whether the path no longer continues where it was: the leaf before must be an ancestor of the new one. */
function hasMoved(before: Transcript, { path }: Transcript): boolean {
  let node = path.leaf
  while (node && node.seq > before.seq) node = node.parent
  return (node?.id ?? null) !== before.path.leafId
}

function callsOf({ parts }: AssistantItem): ToolCallPart[] {
  return parts.filter((part) => part.type === 'tool_call')
}

function userChunks({ id, content }: UserItem): SessionUpdate[] {
  return content.flatMap((block): SessionUpdate[] => {
    if (block.type === 'text')
      return [
        {
          sessionUpdate: 'user_message_chunk',
          content: { type: 'text', text: block.text.content },
          messageId: id,
        },
      ]
    if (block.type !== 'image') return []
    return [{ sessionUpdate: 'user_message_chunk', content: imageOf(block.image.source), messageId: id }]
  })
}

/** Stored images have no data yet: `withStoredContent` adds it. */
function imageOf(source: ImageSource): ContentBlock {
  const { mediaType: mimeType } = source
  switch (source.type) {
    case 'base64':
      return { type: 'image', data: source.data, mimeType }
    case 'blob':
      return { type: 'image', data: '', mimeType, uri: `${blobScheme}${source.sha256}` }
    case 'url':
      return { type: 'resource_link', name: 'image', uri: source.data, mimeType }
    default:
      return source satisfies never
  }
}

/** Names an image of the session, within this process only. */
const blobScheme = 'tapetree-blob:'

/** Where content that is not in the transcript comes from. */
export interface StoredContent {
  image: (sha256: string) => Promise<Uint8Array>
  /** The text of a file as it is now; undefined if there is none. */
  file: (path: string) => Promise<string | undefined>
}

/** Adds the data of stored images, and the present text of files that are about to be written. */
export async function withStoredContent(update: SessionUpdate, stored: StoredContent): Promise<SessionUpdate> {
  if (update.sessionUpdate === 'user_message_chunk' && update.content.type === 'image') {
    const { uri, mimeType } = update.content
    if (!uri?.startsWith(blobScheme)) return update
    try {
      const data = Buffer.from(await stored.image(uri.slice(blobScheme.length))).toString('base64')
      return { ...update, content: { type: 'image', data, mimeType } }
    } catch {
      return { ...update, content: { type: 'text', text: '[An image that is no longer stored.]' } }
    }
  }
  if (update.sessionUpdate !== 'tool_call' || !update.content) return update
  return { ...update, content: await Promise.all(update.content.map((part) => withOldText(part, stored))) }
}

export async function withOldText(
  part: ToolCallContent,
  { file }: Pick<StoredContent, 'file'>,
): Promise<ToolCallContent> {
  if (part.type !== 'diff' || part.oldText !== undefined) return part
  const now = await file(part.path)
  // A call without a permission request may have written it already.
  return { ...part, oldText: now === undefined || now === part.newText ? null : now }
}

/** A command that a person ran. */
function bashCall({ id, command, output, exitCode, cancelled }: BashItem): SessionUpdate {
  return {
    sessionUpdate: 'tool_call',
    toolCallId: id,
    name: 'bash',
    title: command,
    kind: 'execute',
    status: cancelled || (exitCode ?? 0) !== 0 ? 'failed' : 'completed',
    rawInput: { command },
    content: output === '' ? [] : [textContent(fenced(output))],
  }
}

function planUpdate({ plan }: Transcript): SessionUpdate {
  const entries = plan.map(({ text, status }) => ({ content: text, status, priority: 'medium' as const }))
  return { sessionUpdate: 'plan', entries }
}
