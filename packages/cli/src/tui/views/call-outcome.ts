import type { ToolCallPart } from '@tapetree/session'
import { contentText } from '../../text/content-text.ts'
import { elapsedText } from '../../text/amounts.ts'
import type { CallNews } from './item-context.ts'

export interface CallOutcome {
  state: 'waiting' | 'asking' | 'running' | 'done' | 'failed' | 'skipped'
  /** A short note beside the name, such as the exit code. Not yet harmless. */
  note: string
  /** Its output, without the text of the note. Not yet harmless. */
  output: string
}

/** The state of a call. `isLive`: its run is active. */
export function callOutcome(
  { name, status, result }: ToolCallPart,
  { isLive, news, now }: { isLive: boolean; news: CallNews | undefined; now: number },
): CallOutcome {
  if (result) return answered(name, { text: contentText(result.content), isError: result.isError })
  const output = news?.output ?? ''
  if (!isLive) return { state: 'skipped', note: 'no result', output }
  if (news?.isAsked) return { state: 'asking', note: 'waiting for you', output }
  if (status !== 'running') return { state: 'waiting', note: 'waiting', output }
  const elapsed = news?.startedAt === undefined ? '' : ` ${elapsedText(now - news.startedAt)}`
  return { state: 'running', note: `running${elapsed}`, output }
}

/** The loop and the tools describe the outcome in a sentence; this extracts the note beside the name. */
function answered(name: string, { text, isError }: { text: string; isError: boolean }): CallOutcome {
  if (isError && text.startsWith('Not run: ')) {
    return { state: 'skipped', note: `skipped: ${lowerFirst(text.slice('Not run: '.length))}`, output: '' }
  }
  const state = isError ? 'failed' : 'done'
  if (!hasExit.has(name)) return { state, note: isError ? 'failed' : '', output: text }
  const [whole, words] = exitWords.exec(text) ?? []
  const output = whole === undefined ? text : text.slice(0, text.length - whole.length)
  const note = words === undefined ? (isError ? 'failed' : 'exit code 0') : lowerFirst(words)
  return { state, note, output: output === '(no output)' ? '' : output }
}

const hasExit = new Set(['bash'])

/** A command ends with its outcome, in brackets on its own line. */
const exitWords = /(?:^|\n\n)\[([^\n]{1,400}?)\.?\]$/

function lowerFirst(words: string): string {
  return words.charAt(0).toLowerCase() + words.slice(1).replace(/\.$/, '')
}
