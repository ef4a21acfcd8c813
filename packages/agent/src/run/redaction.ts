import type { Content, Message } from '@tapetree/session'
import type { EntryDraft, RecordDraft } from '@tapetree/session/format'
import type { Redaction } from '@tapetree/session/log-store'
import type { RedactingStream, Redactor } from '@tapetree/redact'
import { fileKindOf } from '../tools/files/file-kind.ts'
import type { Model, ModelPart } from '../models/model.ts'
import { derivedIterable } from '../util/derived-iterable.ts'

type Draft = EntryDraft | RecordDraft

/**
 * Redacts content of users, tools and files before it is kept. Of model output only the text is redacted: a call must
 * run as it is in the log, and signed content must be sent back unchanged.
 */
export function redactionOf(redactor: Redactor): Redaction {
  return {
    draft: (draft) => redactDraft(draft, redactor),
    // An image is not text: what looks like a key in it is coincidence, and a change would corrupt it.
    blob: (bytes) => (fileKindOf(bytes).type === 'image' ? bytes : redactor.bytes(bytes)),
  }
}

/** Whether lines of a type are redacted. */
const isRedacted: Record<Draft['type'], boolean> = {
  message: true,
  attempt: true,
  compaction: true,
  branch_summary: true,
  custom: true,
  label: true,
  session_info: true,
  gap: true,
  unknown: true,
  submission: true,
  permission_result: true,
  plan: true,
  blocked: true,
  error: true,
  check: true,
  bash_start: true,
  unknown_record: true,
  // We write these, or the model made them and they must be found again unchanged.
  system: false,
  model_change: false,
  thinking_level: false,
  writer: false,
  leaf: false,
  run_start: false,
  run_end: false,
  tool_start: false,
  permission_request: false,
  permission_mode: false,
  file_read: false,
  file_write: false,
  snapshot: false,
  workspace_files: false,
  restore: false,
  working_copy: false,
  workspace: false,
  usage: false,
  damage: false,
  session_end: false,
}

function redactDraft<D extends Draft>(draft: D, redactor: Redactor): D {
  if (!isRedacted[draft.type]) return draft
  if (draft.type === 'message') return { ...draft, message: redactMessage(draft.message, redactor) }
  if (draft.type === 'attempt') {
    const { attempt } = draft
    const error = redactor.json(attempt.error)
    return { ...draft, attempt: { ...attempt, error, content: redactSaid(attempt.content, redactor) } }
  }
  // The trees of a check must be found again.
  if (draft.type === 'check')
    return { ...draft, check: { ...draft.check, command: redactor.text(draft.check.command) } }
  // The spool folder must be found again.
  if (draft.type === 'bash_start')
    return { ...draft, bashStart: { ...draft.bashStart, command: redactor.text(draft.bashStart.command) } }
  return redactor.json(draft)
}

function redactMessage(message: Message, redactor: Redactor): Message {
  if (message.role !== 'assistant') return redactor.json(message)
  return { ...message, content: redactSaid(message.content, redactor) }
}

function redactSaid(content: readonly Content[], redactor: Redactor): Content[] {
  return content.map((block) => {
    if (block.type !== 'text' || block.text.providerMetadata) return block
    return { ...block, text: { content: redactor.text(block.text.content) } }
  })
}

/** The same model with redacted text, so that draft, screens and log have the same content. */
export function redactingModel(model: Model, redactor: Redactor): Model {
  return {
    provider: model.provider,
    id: model.id,
    api: model.api,
    limits: model.limits,
    ...(model.costOf && { costOf: (usage) => model.costOf?.(usage) }),
    prepare: (request) => {
      const call = model.prepare(request)
      return { reference: call.reference, stream: (signal) => redactParts(call.stream(signal), redactor) }
    },
  }
}

/** A key may arrive in two deltas: text that could be the beginning of one is held back until that is clear. */
function redactParts(parts: AsyncIterable<ModelPart>, redactor: Redactor): AsyncIterable<ModelPart> {
  return derivedIterable(parts, (iterator) => {
    const redacted = new RedactedParts(iterator, redactor)
    return () => redacted.next()
  })
}

class RedactedParts {
  readonly #parts: AsyncIterator<ModelPart>
  readonly #redactor: Redactor
  readonly #open = new Map<number, RedactingStream>()
  /** Parts to return before reading more. */
  readonly #ready: ModelPart[] = []
  #end: { error?: unknown } | undefined

  constructor(parts: AsyncIterator<ModelPart>, redactor: Redactor) {
    this.#parts = parts
    this.#redactor = redactor
  }

  next(): Promise<IteratorResult<ModelPart>> {
    const ready = this.#ready.shift()
    if (ready) return Promise.resolve({ done: false, value: ready })
    if (!this.#end) return this.#parts.next().then(this.#take, this.#fail)
    if ('error' in this.#end) return Promise.reject(this.#end.error)
    return Promise.resolve({ done: true, value: undefined })
  }

  readonly #take = (
    result: IteratorResult<ModelPart>,
  ): IteratorResult<ModelPart> | Promise<IteratorResult<ModelPart>> => {
    if (result.done) {
      this.#giveAll()
      this.#end = {}
      return this.next()
    }
    const part = result.value
    if (part.type === 'text_delta') {
      const text = this.#streamOf(part.part).write(part.text)
      if (text === part.text) return result
      return text === '' ? this.next() : { done: false, value: { ...part, text } }
    }
    if (part.type === 'text_end') this.#give(part.part)
    if (part.type === 'finish') this.#giveAll()
    if (this.#ready.length === 0) return result
    this.#ready.push(part)
    return this.next()
  }

  /** Returns the text before the error first. */
  readonly #fail = (error: unknown): Promise<IteratorResult<ModelPart>> => {
    this.#giveAll()
    this.#end = { error }
    return this.next()
  }

  #streamOf(part: number): RedactingStream {
    let stream = this.#open.get(part)
    if (!stream) this.#open.set(part, (stream = this.#redactor.stream()))
    return stream
  }

  #giveAll(): void {
    for (const part of this.#open.keys()) this.#give(part)
  }

  #give(part: number): void {
    const text = this.#open.get(part)?.end() ?? ''
    this.#open.delete(part)
    if (text !== '') this.#ready.push({ type: 'text_delta', part, text })
  }
}
