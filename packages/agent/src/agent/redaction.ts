import type { Content, EntryDraft, Message, RecordDraft, Redaction } from '@tapetree/session'
import type { Redactor } from '../redaction/redactor.ts'
import { fileKindOf } from '../tools/files/file-kind.ts'

type Draft = EntryDraft | RecordDraft

/**
 * What comes from users, tools and files is redacted before it is kept. What the model made itself stays as it was said, but for its
 * text: a call must be carried out as it stands in the log, and what is signed must come back as it was.
 */
export function redactionOf(redactor: Redactor): Redaction {
  return {
    draft: (draft) => redactDraft(draft, redactor),
    // A picture is no text: what looks like a key in it is chance, and changing it would break it.
    blob: (bytes) => (fileKindOf(bytes).type === 'image' ? bytes : redactor.bytes(bytes)),
  }
}

/** These hold what was written by us, or what the model made and must be found again as it was. */
const asTheyAre = new Set<Draft['type']>([
  ...(['writer', 'leaf', 'run_start', 'run_end', 'tool_start', 'permission_request', 'permission_mode'] as const),
  ...([
    'file_read',
    'file_write',
    'usage',
    'damage',
    'session_end',
    'system',
    'model_change',
    'thinking_level',
  ] as const),
])

function redactDraft<D extends Draft>(draft: D, redactor: Redactor): D {
  if (asTheyAre.has(draft.type)) return draft
  if (draft.type === 'message') return { ...draft, message: redactMessage(draft.message, redactor) }
  if (draft.type === 'attempt') {
    const { attempt } = draft
    return { ...draft, attempt: { ...attempt, content: redactSaid(attempt.content, redactor) } }
  }
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
