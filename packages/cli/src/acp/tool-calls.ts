import type { ToolCallContent, ToolCallLocation, ToolKind } from '@agentclientprotocol/sdk/unstable'
import type { Content } from '@tapetree/session'
import { callArgument, callOutcome, parseDiff, spellInvisible, type CallOutcome } from '@tapetree/session/screen'
import type { ToolCallPart, ToolCallResult } from '@tapetree/session/view'
import { resolve } from 'node:path'

/** A tool call as editors show it. */
export interface ShownCall {
  title: string
  kind: ToolKind
  locations: ToolCallLocation[]
}

const kinds: Readonly<Record<string, ToolKind>> = {
  read: 'read',
  ls: 'read',
  job_output: 'read',
  diagnostics: 'read',
  grep: 'search',
  find: 'search',
  write: 'edit',
  edit: 'edit',
  bash: 'execute',
  job_kill: 'execute',
  fetch: 'fetch',
  task: 'think',
}

const maxTitle = 300

export function shownCall({ name, input }: Pick<ToolCallPart, 'name' | 'input'>, cwd: string): ShownCall {
  const argument = callArgument({ name, input })
  const [line = ''] = (name === 'bash' ? argument : `${name} ${argument}`).trim().split('\n', 1)
  const title = line.length > maxTitle ? `${line.slice(0, maxTitle)}…` : line
  return {
    title: spellInvisible(title === '' ? name : title),
    kind: kinds[name] ?? 'other',
    locations: places(input, cwd),
  }
}

function places(input: Record<string, unknown>, cwd: string): ToolCallLocation[] {
  const { path, offset } = input
  if (typeof path !== 'string' || path === '') return []
  const line = typeof offset === 'number' && Number.isSafeInteger(offset) && offset > 0 ? { line: offset } : {}
  return [{ path: resolve(cwd, path), ...line }]
}

/** What a call would change, before it has run. The previous text of a written file is absent: it is not known here. */
export function intendedChange({ name, input }: Pick<ToolCallPart, 'name' | 'input'>, cwd: string): ToolCallContent[] {
  const { path, oldText, newText, content } = input
  if (typeof path !== 'string') return []
  if (name === 'edit' && typeof oldText === 'string' && typeof newText === 'string')
    return [{ type: 'diff', path: resolve(cwd, path), oldText, newText }]
  if (name === 'write' && typeof content === 'string')
    return [{ type: 'diff', path: resolve(cwd, path), newText: content }]
  return []
}

/** The content of a call that has ended, and where it changed a file. */
export function resultOf(
  call: ToolCallPart & { result: ToolCallResult },
  cwd: string,
): { content: ToolCallContent[]; locations?: ToolCallLocation[] } {
  const { name, input, result } = call
  if (!result.isError && (name === 'edit' || name === 'write')) {
    const made = changesMade(input, textOf(result.content), cwd)
    if (made) return made
  }
  const { output } = outcomeOf(call)
  const text = readsAsText.has(name) ? output : fenced(output)
  return { content: [...(output === '' ? [] : [textContent(text)]), ...imagesIn(result.content)] }
}

/** Answers for people, not output of programs. */
const readsAsText = new Set(['ask_user', 'task'])

export function outcomeOf(call: ToolCallPart): CallOutcome {
  return callOutcome(call, { isLive: true, news: undefined, now: 0, textOf })
}

/** The exit code of a command that has ended; null if it was ended otherwise, for example by a time limit. */
export function exitCodeOf(call: ToolCallPart): number | null {
  const [, code] = /^exit code (\d+)/.exec(outcomeOf(call).note) ?? []
  return code === undefined ? null : Number(code)
}

/** One diff for each hunk that the result of the tool shows. */
function changesMade(
  input: Record<string, unknown>,
  text: string,
  cwd: string,
): { content: ToolCallContent[]; locations: ToolCallLocation[] } | undefined {
  const { path: given, content } = input
  if (typeof given !== 'string') return undefined
  const path = resolve(cwd, given)
  if (text.startsWith('Created ') && typeof content === 'string')
    return { content: [{ type: 'diff', path, oldText: null, newText: content }], locations: [{ path }] }
  const start = text.indexOf('\n\n')
  const hunks = start < 0 ? [] : parseDiff(text.slice(start + 2)).flatMap((file) => file.hunks)
  if (hunks.length === 0) return undefined
  const side = (hunk: (typeof hunks)[number], left: 'added' | 'removed'): string =>
    hunk.lines
      .filter(({ type }) => type !== left)
      .map(({ text: line, isUnterminated }) => (isUnterminated ? line : `${line}\n`))
      .join('')
  return {
    content: hunks.map((hunk) => ({
      type: 'diff' as const,
      path,
      oldText: side(hunk, 'added'),
      newText: side(hunk, 'removed'),
    })),
    locations: hunks.map((hunk) => {
      const line = hunk.lines.find(({ type }) => type === 'added')?.newLine ?? hunk.lines[0]?.newLine
      return { path, ...(line !== undefined && { line }) }
    }),
  }
}

export function textContent(text: string): ToolCallContent {
  return { type: 'content', content: { type: 'text', text } }
}

/** Editors render text as Markdown, and output is none. */
export function fenced(text: string): string {
  const longest = [...text.matchAll(/`+/g)].reduce((most, [run]) => Math.max(most, run.length), 2)
  const fence = '`'.repeat(longest + 1)
  return `${fence}\n${text.replace(/\n$/, '')}\n${fence}`
}

function textOf(content: string | readonly Content[]): string {
  if (typeof content === 'string') return content
  return content.map((block) => (block.type === 'text' ? block.text.content : '')).join('')
}

function imagesIn(content: string | readonly Content[]): ToolCallContent[] {
  if (typeof content === 'string') return []
  return content.flatMap((block): ToolCallContent[] => {
    if (block.type !== 'image' || block.image.source.type !== 'base64') return []
    const { data, mediaType: mimeType } = block.image.source
    return [{ type: 'content', content: { type: 'image', data, mimeType } }]
  })
}
