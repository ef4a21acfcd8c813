import type { Access, ToolOutput } from '@tapetree/agent'
import type { Content, ToolUse } from '@tapetree/session'
import { isDeeperThan, isObject } from '@tapetree/session/util/json'
import { isAbsolute, resolve } from 'node:path'
import { z } from 'zod'

/** A text, or something else that is named by its type. */
const contentSchema = z.union([
  z.object({ type: z.literal('text'), text: z.string() }),
  z.object({ type: z.literal('image'), data: z.string(), mimeType: z.string() }),
  z.object({ type: z.string() }),
])

const callContentSchema = z.union([
  z.object({ type: z.literal('content'), content: contentSchema }),
  z.object({
    type: z.literal('diff'),
    path: z.string(),
    oldText: z.string().nullish(),
    newText: z.string(),
  }),
  z.object({ type: z.literal('terminal'), terminalId: z.string() }),
  z.object({ type: z.string() }),
])

const statuses = ['pending', 'in_progress', 'completed', 'failed'] as const
const kinds = ['read', 'edit', 'delete', 'move', 'search', 'execute', 'think', 'fetch', 'switch_mode', 'other'] as const

/** The members of a call that are used here. Members of another type count as absent. */
const callSchema = z.object({
  toolCallId: z.string().max(1000),
  title: z.string().nullish().catch(undefined),
  kind: z.enum(kinds).nullish().catch(undefined),
  status: z.enum(statuses).nullish().catch(undefined),
  content: z.array(callContentSchema).nullish().catch(undefined),
  locations: z
    .array(z.object({ path: z.string() }))
    .nullish()
    .catch(undefined),
  rawInput: z.unknown().optional(),
  rawOutput: z.unknown().optional(),
})

export type AgentCall = z.output<typeof callSchema>

/** What is longer is cut, so that a plan fits into one line of the log even if JSON escapes each of its characters. */
const maxPlanEntries = 100
const maxPlanText = 300

const planSchema = z.object({
  entries: z.array(z.object({ content: z.string(), status: z.enum(['pending', 'in_progress', 'completed']) })),
})

const commandsSchema = z.object({
  availableCommands: z.array(z.object({ name: z.string(), description: z.string() })).max(500),
})

/** What an agent tells about its turn. */
export type AgentUpdate =
  | { type: 'said'; kind: 'text' | 'reasoning'; text: string }
  | { type: 'call'; isNew: boolean; call: AgentCall }
  | { type: 'plan'; items: { text: string; status: 'pending' | 'in_progress' | 'completed' }[] }
  | { type: 'commands'; commands: { name: string; description: string }[] }

/** Undefined for an update that is malformed, unknown or not needed. */
export function readUpdate(update: unknown): AgentUpdate | undefined {
  if (!isObject(update)) return undefined
  switch (update['sessionUpdate']) {
    case 'agent_message_chunk':
      return said('text', update['content'])
    case 'agent_thought_chunk':
      return said('reasoning', update['content'])
    case 'tool_call':
    case 'tool_call_update': {
      const call = readCall(update)
      return call && { type: 'call', isNew: update['sessionUpdate'] === 'tool_call', call }
    }
    case 'plan': {
      const { data } = planSchema.safeParse(update)
      if (!data) return undefined
      const entries = data.entries.slice(0, maxPlanEntries)
      return {
        type: 'plan',
        items: entries.map(({ content, status }) => ({ text: cut(content, maxPlanText), status })),
      }
    }
    case 'available_commands_update': {
      const { data } = commandsSchema.safeParse(update)
      return data && { type: 'commands', commands: data.availableCommands }
    }
    default:
      return undefined
  }
}

export function readCall(given: unknown): AgentCall | undefined {
  return callSchema.safeParse(given).data
}

function said(kind: 'text' | 'reasoning', content: unknown): AgentUpdate | undefined {
  const { data } = contentSchema.safeParse(content)
  if (!data) return undefined
  const text = 'text' in data ? data.text : `[${data.type}]`
  return text === '' ? undefined : { type: 'said', kind, text }
}

/** The later members win; absent ones stay. */
export function mergeCalls(before: AgentCall, later: AgentCall): AgentCall {
  const given = Object.entries(later).filter(([, value]) => value !== undefined && value !== null)
  return { ...before, ...Object.fromEntries(given), toolCallId: before.toolCallId }
}

/** An input fits into one line of the log if its JSON has at most so many bytes besides its largest string, which may move to a blob. */
const maxInputBytes = 64 * 1024
const maxInputDepth = 32
const maxTitle = 1000

/** How a call is recorded. Its id is ours: agents use the same ids again. */
export function toolUseOf(call: AgentCall, id: string): ToolUse {
  const { toolCallId, kind } = call
  return { id, name: kind ?? 'other', input: inputOf(call), providerMetadata: { acp: { toolCallId } } }
}

/** An input that does not fit becomes one string: its JSON. */
function inputOf({ title, rawInput, locations }: AgentCall): ToolUse['input'] {
  const paths = locations?.map(({ path }) => path) ?? []
  const given = isObject(rawInput) ? rawInput : paths.length > 0 ? { paths } : {}
  const input = { ...(title && { title }), ...given }
  return fits(input) ? input : { ...(title && { title: cut(title, maxTitle) }), json: jsonOf(given) }
}

function fits(input: object): boolean {
  if (isDeeperThan(maxInputDepth, input)) return false
  const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))
  return bytesOf(input) - bytesOf(largestString(input)) <= maxInputBytes
}

function largestString(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value !== 'object' || value === null) return ''
  let largest = ''
  for (const inner of Object.values(value)) {
    const text = largestString(inner)
    if (text.length > largest.length) largest = text
  }
  return largest
}

/** Of a value that was JSON before. It may be nested too deeply for the stack. */
export function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value)
  } catch {
    return '(nested too deeply)'
  }
}

function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1).toWellFormed()}…`
}

/**
 * What a call would touch, for the gate. A call that does not say it is judged by its name. A command never counts as one for the sandbox:
 * the agent runs it by itself, and the sandbox of the agent has the network of the machine.
 */
export function accessOf(call: AgentCall, cwd: string): Access[] {
  const { kind, locations, content, rawInput } = call
  const input = isObject(rawInput) ? rawInput : {}
  const diffs = content?.flatMap((each) => ('path' in each ? [each.path] : [])) ?? []
  const paths = [...new Set([...(locations ?? []).map(({ path }) => path), ...diffs])].map((path) =>
    absolute(path, cwd),
  )
  const other: Access[] = [{ type: 'tool', name: kind ?? 'other', readOnly: false }]
  switch (kind) {
    case 'read':
    case 'search':
      return paths.length > 0 ? paths.map((path) => ({ type: 'read', path, isRecursive: kind === 'search' })) : other
    case 'edit':
    case 'delete':
    case 'move':
      return paths.length > 0 ? paths.map((path) => ({ type: 'write', path })) : other
    case 'execute': {
      const command = commandOf(input['command'])
      if (command === undefined) return other
      const folder = typeof input['cwd'] === 'string' ? absolute(input['cwd'], cwd) : cwd
      return [{ type: 'command', command, cwd: folder }]
    }
    case 'fetch':
      return typeof input['url'] === 'string' ? [{ type: 'fetch', url: input['url'] }] : other
    default:
      return other
  }
}

/** Agents name a command as one string or as a list of arguments, the last of which may be a script for `bash -c`. */
function commandOf(command: unknown): string | undefined {
  if (typeof command === 'string') return command
  if (!Array.isArray(command) || command.length === 0) return undefined
  const words = command.filter((word) => typeof word === 'string')
  if (words.length !== command.length) return undefined
  const [shell = '', flag = '', script] = words
  if (words.length === 3 && script !== undefined && /(^|\/)(ba|z)?sh$/.test(shell) && /^-l?c$/.test(flag)) return script
  return words.map(quoted).join(' ')
}

/** A word of a shell command. */
export function quoted(word: string): string {
  return /^[A-Za-z0-9_./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}

function absolute(path: string, cwd: string): string {
  return isAbsolute(path) ? path : resolve(cwd, path)
}

const maxImages = 20

/** The result of a call that has ended. */
export function outputOf(call: AgentCall, terminalText: (terminalId: string) => string | undefined): ToolOutput {
  const isError = call.status === 'failed'
  const blocks = call.content?.flatMap((each) => blockOf(each, terminalText)) ?? []
  const images = blocks.filter(({ type }) => type === 'image').slice(0, maxImages)
  const text = textOf(blocks) || rawText(call.rawOutput) || '(no output)'
  const content = images.length === 0 ? text : [{ type: 'text' as const, text: { content: text } }, ...images]
  return { content, ...(isError && { isError }) }
}

/** The text that a call has shown so far. */
export function shownText(call: AgentCall, terminalText: (terminalId: string) => string | undefined): string {
  return textOf(call.content?.flatMap((each) => blockOf(each, terminalText)) ?? [])
}

function textOf(blocks: readonly Content[]): string {
  return blocks.flatMap((block) => (block.type === 'text' ? [block.text.content] : [])).join('\n')
}

function blockOf(
  each: NonNullable<AgentCall['content']>[number],
  terminalText: (terminalId: string) => string | undefined,
): Content[] {
  const text = (content: string): Content[] => [{ type: 'text', text: { content } }]
  if ('terminalId' in each) return text(terminalText(each.terminalId) ?? '')
  if ('newText' in each) return text(diffText(each))
  if (!('content' in each)) return []
  const { content } = each
  if ('text' in content) return text(content.text)
  if (!('data' in content)) return text(`[${content.type}]`)
  const { mimeType: mediaType, data } = content
  return [{ type: 'image', image: { source: { type: 'base64', mediaType, data } } }]
}

const maxDiffLines = 400

function diffText({
  path,
  oldText,
  newText,
}: {
  path: string
  oldText?: string | null | undefined
  newText: string
}): string {
  const lines = (text: string, mark: string): string[] =>
    text === '' ? [] : text.split('\n').map((line) => mark + line)
  const shown = [...lines(oldText ?? '', '-'), ...lines(newText, '+')]
  const cut =
    shown.length > maxDiffLines
      ? [...shown.slice(0, maxDiffLines), `(${shown.length - maxDiffLines} more lines)`]
      : shown
  return [path, ...cut].join('\n')
}

function rawText(raw: unknown): string {
  if (raw === undefined || raw === null) return ''
  return typeof raw === 'string' ? raw : jsonOf(raw)
}
