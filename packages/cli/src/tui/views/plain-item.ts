import { callOutcome, toldDiagnostics } from '@tapetree/session/screen'
import type { AssistantPart, ToolCallPart, TranscriptItem } from '@tapetree/session/view'
import { callArgument, contentText, imageText } from '../../text/content-text.ts'
import { counted } from '../../text/amounts.ts'
import { shownText, shownWords } from '../markdown/shown-text.ts'
import { foldLines } from './folded-lines.ts'
import { bashNote, gapText } from './render-item.ts'

/** An item as text without colors, for a screen reader. The author comes first. */
export function plainItem(item: TranscriptItem): string[] {
  switch (item.type) {
    case 'user':
      return said('You', contentText(item.content))
    case 'assistant': {
      const { error } = item
      return [...item.parts.flatMap(plainPart), ...(error ? said('Error', `${error.message} (${error.kind})`) : [])]
    }
    case 'tool_result':
      return item.results.flatMap(({ content }) => said('Tool result', contentText(content)))
    case 'bash':
      return [`You ran: ${shownWords(item.command)}, ${bashNote(item)}`, ...output(item.output)]
    case 'compaction':
      return said('Summary of earlier messages', item.summary)
    case 'branch_summary':
      return said('Summary of another branch', item.summary)
    case 'custom':
      return item.custom.type === 'message' ? plainNote(contentText(item.custom.content)) : []
    case 'system':
      return []
    case 'model':
      return [`Model: ${shownWords(`${item.provider}/${item.modelId}`)}`]
    case 'thinking_level':
      return [`Thinking: ${shownWords(item.thinkingLevel)}`]
    case 'gap':
      return said('Warning', gapText(item.gap))
    default:
      item satisfies never
      return []
  }
}

function plainNote(text: string): string[] {
  const told = toldDiagnostics(text)
  return told ? said('Language server', [told.title, ...told.lines].join('\n')) : said('Note', text)
}

function plainPart(part: AssistantPart): string[] {
  switch (part.type) {
    case 'text':
      return said('Agent', part.text)
    case 'reasoning':
      return []
    case 'image':
      return [`Agent: ${shownWords(imageText(part.source))}`]
    case 'tool_call':
      return plainCall(part)
    default:
      part satisfies never
      return []
  }
}

function plainCall(call: ToolCallPart): string[] {
  const {
    state,
    note,
    output: printed,
  } = callOutcome(call, {
    isLive: true,
    news: undefined,
    now: 0,
    textOf: contentText,
  })
  const how = shownWords(note) || state
  return [`Tool ${shownWords(call.name)}: ${shownWords(callArgument(call))}, ${how}`, ...output(printed)]
}

const heardLines = 20

/** The end of the output of a command: all of it would take too long to hear. */
function output(text: string): string[] {
  const { lines, hidden } = foldLines(text, { limit: heardLines, from: 'end' })
  return hidden > 0 ? [`${counted(hidden, 'line')} before these:`, ...lines] : lines
}

function said(who: string, text: string): string[] {
  const [first = '', ...rest] = shownText(text.trim()).split('\n')
  return first === '' && rest.length === 0 ? [] : [`${who}: ${first}`, ...rest]
}
