import type { Content } from '../line/message.ts'
import type { ToolCallPart } from './transcript-items.ts'

/** How a tool call stands, as a screen shows it beside its name. */
export interface CallOutcome {
  state: 'waiting' | 'asking' | 'running' | 'done' | 'failed' | 'denied' | 'skipped'
  /** A short note beside the name, such as the exit code. Not yet harmless. */
  note: string
  /** Its output, without the text of the note. Not yet harmless. */
  output: string
}

/** What is known about a call without a result. */
export interface CallNews {
  /** Its output so far. */
  readonly output?: string
  /** Milliseconds since the epoch. */
  readonly startedAt?: number
  /** It waits for a permission or an answer. */
  readonly isAsked?: boolean
}

export interface CallSituation {
  /** Its run is active. */
  isLive: boolean
  news: CallNews | undefined
  /** Milliseconds since the epoch. */
  now: number
  /** The text of a result, with images in words. */
  textOf: (content: string | readonly Content[]) => string
}

export function callOutcome({ name, status, result }: ToolCallPart, situation: CallSituation): CallOutcome {
  const { isLive, news, now, textOf } = situation
  if (result) return answered(name, { text: textOf(result.content), isError: result.isError })
  const output = news?.output ?? ''
  if (!isLive) return { state: 'skipped', note: 'no result', output }
  if (news?.isAsked) return { state: 'asking', note: 'waiting for you', output }
  if (status !== 'running') return { state: 'waiting', note: 'waiting', output }
  const elapsed = news?.startedAt === undefined ? '' : ` ${elapsedText(now - news.startedAt)}`
  return { state: 'running', note: `running${elapsed}`, output }
}

/** A duration for people: `4 s`, `3 min 20 s`, `2 h 5 min`. */
export function elapsedText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** The most informative argument of a call, such as the command or the path. Not yet harmless. */
export function callArgument({ name, input }: Pick<ToolCallPart, 'name' | 'input'>): string {
  if (name === 'todo_write') return ''
  for (const member of telling) {
    const value = input[member]
    if (typeof value === 'string' && value !== '') return member === 'pattern' ? value + whereOf(input) : value
  }
  const [only, ...others] = Object.values(input)
  if (typeof only === 'string' && others.length === 0) return only
  return only === undefined ? '' : JSON.stringify(input).slice(0, longestJson)
}

/** Argument names of any tool, the most informative first. */
const telling = ['command', 'pattern', 'path', 'url', 'description', 'question', 'query', 'prompt', 'jobId']
const longestJson = 1000

function whereOf({ path }: Record<string, unknown>): string {
  return typeof path === 'string' && path !== '' ? ` in ${path}` : ''
}

/** The loop and the tools describe the outcome in a sentence; this extracts the note beside the name. */
function answered(name: string, { text, isError }: { text: string; isError: boolean }): CallOutcome {
  if (isError && text.startsWith('Not run: ')) {
    return { state: 'skipped', note: `skipped: ${lowerFirst(text.slice('Not run: '.length))}`, output: '' }
  }
  const denied = isError ? denials.find((start) => text.startsWith(start)) : undefined
  if (denied !== undefined) return { state: 'denied', note: 'denied', output: text }
  if (isError && text.startsWith('A rule forbids ')) return { state: 'denied', note: 'denied by a rule', output: text }
  const state = isError ? 'failed' : 'done'
  if (!hasExit.has(name)) return { state, note: isError ? 'failed' : '', output: text }
  const [whole, words] = exitWords.exec(text) ?? []
  const output = whole === undefined ? text : text.slice(0, text.length - whole.length)
  const note = words === undefined ? (isError ? 'failed' : 'exit code 0') : lowerFirst(words)
  return { state, note, output: output === '(no output)' ? '' : output }
}

/** How the gate begins the result of a call that it did not allow. */
const denials = [
  'The user did not allow this',
  'No user is present to allow this.',
  'The request was withdrawn before it was answered.',
]

const hasExit = new Set(['bash'])

/** A command ends with its outcome, in brackets on its own line. */
const exitWords = /(?:^|\n\n)\[([^\n]{1,400}?)\.?\]$/

function lowerFirst(words: string): string {
  return words.charAt(0).toLowerCase() + words.slice(1).replace(/\.$/, '')
}
