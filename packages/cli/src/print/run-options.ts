import type { ThinkingLevel } from '@tapetree/agent'
import { ruleSchema, type PermissionMode, type Effect, type Rule } from '@tapetree/agent/permissions'
import type { SettingsInput } from '@tapetree/agent/settings'
import { flag, listOption, textOption, numberOption, type Invocation } from '../command-line/command.ts'
import { usageFailure } from '../command-line/failure.ts'
import { traceUrlOf } from '../host/otlp.ts'
import { harmlessLine } from '../text/harmless.ts'

/** The command line options of `run`. */
export interface RunOptions {
  format: 'text' | 'json' | 'jsonl'
  /** Empty if the prompt comes from stdin alone. */
  prompt: string
  input: 'text' | 'jsonl'
  /** The session to continue; if absent, a new one. */
  session?: string
  model?: string
  thinkingLevel?: ThinkingLevel
  /** Applies to a session that this process opens, overriding all other settings. */
  flags: SettingsInput
  systemPrompt?: string
  toolNames?: readonly string[]
  timeoutMs?: number
  /** A file, or the JSON Schema itself. */
  outputSchema?: string
  /** Where traces are sent. */
  traceUrl?: string
  /** The given options that only the process that opens a session can apply. */
  ownerOptions: readonly string[]
}

const onlyForOwner = [
  'permission-mode',
  'sandbox',
  'allow',
  'deny',
  'tools',
  'system-prompt',
  'append-system-prompt',
  'max-turns',
  'max-cost',
  'max-cpu-seconds',
  'max-memory',
  'max-processes',
  'max-file-size',
  'otlp',
]

/** The longest timer in Node: 24 days. */
const longestTimeoutMs = 2 ** 31 - 1

export function runOptionsOf(invocation: Invocation): RunOptions {
  const { positionals, values } = invocation
  const session = sessionOption(invocation)
  const model = textOption(invocation, 'model')
  const thinkingLevel = textOption(invocation, 'thinking') as ThinkingLevel | undefined
  const systemPrompt = textOption(invocation, 'system-prompt')
  const tools = textOption(invocation, 'tools')
  const timeoutMs = timeoutOf(invocation)
  const outputSchema = textOption(invocation, 'output-schema')
  const traceUrl = traceUrlOf(invocation)
  const input = textOption(invocation, 'input') === 'jsonl' ? 'jsonl' : 'text'
  if (input === 'jsonl' && outputSchema !== undefined) {
    throw usageFailure(
      '--output-schema applies to one answer, but --input jsonl may have many prompts. Use only one of them.',
    )
  }
  return {
    format: formatOf(invocation),
    prompt: positionals.join(' '),
    input,
    ...(session !== undefined && { session }),
    ...(model !== undefined && { model }),
    ...(thinkingLevel !== undefined && { thinkingLevel }),
    flags: flagsOf(invocation),
    ...(systemPrompt !== undefined && { systemPrompt }),
    ...(tools !== undefined && { toolNames: namesIn(tools) }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(outputSchema !== undefined && { outputSchema }),
    ...(traceUrl !== undefined && { traceUrl }),
    ownerOptions: onlyForOwner.filter((name) => values[name] !== undefined).map((name) => `--${name}`),
  }
}

function timeoutOf(invocation: Invocation): number | undefined {
  const [seconds, minutes] = [numberOption(invocation, 'timeout'), numberOption(invocation, 'max-minutes')]
  if (seconds !== undefined && minutes !== undefined)
    throw usageFailure('--timeout and --max-minutes limit the same time. Use only one of them.')
  if (seconds === undefined && minutes === undefined) return undefined
  return Math.min((seconds ?? 0) * 1000 + (minutes ?? 0) * 60_000, longestTimeoutMs)
}

function formatOf(invocation: Invocation): RunOptions['format'] {
  const [json, jsonl] = [flag(invocation, 'json'), flag(invocation, 'jsonl')]
  if (json && jsonl)
    throw usageFailure('--json prints one object at the end, --jsonl a line for each event. Use only one of them.')
  return jsonl ? 'jsonl' : json ? 'json' : 'text'
}

function sessionOption(invocation: Invocation): string | undefined {
  const session = textOption(invocation, 'session')
  if (!flag(invocation, 'continue')) return session
  if (session !== undefined)
    throw usageFailure('--continue and --session name different sessions. Use only one of them.')
  return 'last'
}

function flagsOf(invocation: Invocation): SettingsInput {
  const turns = numberOption(invocation, 'max-turns')
  if (turns !== undefined && !Number.isInteger(turns)) throw usageFailure('--max-turns must be a whole number.')
  const cost = numberOption(invocation, 'max-cost')
  const append = textOption(invocation, 'append-system-prompt')
  const allow = listOption(invocation, 'allow').map((rule) => ruleOption(rule, 'allow'))
  const deny = listOption(invocation, 'deny').map((rule) => ruleOption(rule, 'deny'))
  const { mode, sandbox } = modeOf(invocation, commandLimitsOf(invocation))
  const thinkingLevel = textOption(invocation, 'thinking') as ThinkingLevel | undefined
  const permissions = {
    ...(mode !== undefined && { mode }),
    ...(allow.length > 0 && { allow }),
    ...(deny.length > 0 && { deny }),
  }
  const run = { ...(turns !== undefined && { turns }), ...(cost !== undefined && { cost }) }
  return {
    ...(thinkingLevel !== undefined && { thinkingLevel }),
    ...(Object.keys(permissions).length > 0 && { permissions }),
    ...(sandbox && { sandbox }),
    ...(Object.keys(run).length > 0 && { limits: { run } }),
    ...(append !== undefined && { systemPrompt: { append } }),
  }
}

type CommandLimits = NonNullable<NonNullable<SettingsInput['sandbox']>['limits']>

/** Limits of commands. */
function commandLimitsOf(invocation: Invocation): CommandLimits {
  const [cpuSeconds, processes] = (['max-cpu-seconds', 'max-processes'] as const).map((name) => {
    const value = numberOption(invocation, name)
    if (value !== undefined && !Number.isInteger(value)) throw usageFailure(`--${name} must be a whole number.`)
    return value
  })
  const memoryBytes = sizeOption(invocation, 'max-memory')
  const fileBytes = sizeOption(invocation, 'max-file-size')
  return {
    ...(cpuSeconds !== undefined && { cpuSeconds }),
    ...(memoryBytes !== undefined && { memoryBytes }),
    ...(processes !== undefined && { processes }),
    ...(fileBytes !== undefined && { fileBytes }),
  }
}

/** Bytes, from a number with a unit of 1024 or one of its powers. */
function sizeOption(invocation: Invocation, name: string): number | undefined {
  const text = textOption(invocation, name)
  if (text === undefined) return undefined
  const [, number, unit = ''] = /^(\d+(?:\.\d+)?)([kmgt]?)(?:i?b)?$/i.exec(text.trim()) ?? []
  const bytes = Math.round(Number(number) * 1024 ** ' kmgt'.indexOf(unit.toLowerCase() || ' '))
  if (Number.isSafeInteger(bytes) && bytes > 0) return bytes
  throw usageFailure(`--${name} must be a size such as 500M or 2G, not ${JSON.stringify(harmlessLine(text))}.`)
}

/** If a sandbox is required or commands have limits, the mode is `sandboxed`, or `plan`, in which commands only read. */
export function modeOf(
  invocation: Invocation,
  limits: CommandLimits = {},
): { mode?: PermissionMode; sandbox?: SettingsInput['sandbox'] } {
  const mode = textOption(invocation, 'permission-mode') as PermissionMode | undefined
  const isLimited = Object.keys(limits).length > 0
  if (textOption(invocation, 'sandbox') === undefined && !isLimited) return mode === undefined ? {} : { mode }
  if (mode !== undefined && mode !== 'sandboxed' && mode !== 'plan') {
    const option = isLimited ? 'A limit of commands' : '--sandbox required'
    throw usageFailure(
      `${option} runs commands in a sandbox, and mode ${mode} runs them outside. Use --permission-mode sandboxed.`,
    )
  }
  return { mode: mode ?? 'sandboxed', sandbox: { isRequired: true, ...(isLimited && { limits }) } }
}

function namesIn(tools: string): string[] {
  const names = tools.split(',').map((name) => name.trim())
  return names.filter((name) => name !== '')
}

/** A rule as typed after `--allow` and `--deny`: `command npm run *`, or JSON if words contain spaces. */
type WrittenRule = string | { type: string; match: string | string[] }

const forms =
  'A rule is "command <words>", "read <place>", "write <place>", "fetch <host>" or "tool <name>"; a place begins with /, ~/, ./ or **/.'

/** The typed text, validated as a rule. */
function ruleOption(typed: string, effect: Exclude<Effect, 'ask'>): WrittenRule {
  const { type, match } = parseRule(typed, effect)
  return { type, match }
}

/** The rule that the user typed after `--allow` or `--deny`. */
export function parseRule(typed: string, effect: Exclude<Effect, 'ask'>): Rule {
  const written = typed.trimStart().startsWith('{') ? fromJson(typed) : fromWords(typed)
  const parsed = ruleSchema.safeParse({ effect, ...written })
  if (!parsed.success) {
    throw usageFailure(`--${effect} ${JSON.stringify(harmlessLine(typed))} is not a rule. ${forms}`, [
      'tapetree run --help',
    ])
  }
  return parsed.data
}

/** The reverse: what to type for a rule. */
export function ruleText({ type, match }: Pick<Rule, 'type' | 'match'>): string {
  if (typeof match === 'string') return `${type} ${match}`
  const isPlain = match.every((word) => /^\S+$/.test(word))
  return isPlain ? `${type} ${match.join(' ')}` : JSON.stringify({ type, match })
}

function fromWords(typed: string): { type?: string | undefined; match?: string | undefined } {
  const [, type, match] = /^\s*(\w+)\s+(.*\S)\s*$/s.exec(typed) ?? []
  return { type, match }
}

function fromJson(typed: string): object {
  try {
    const value: unknown = JSON.parse(typed)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    // Unreadable text is not a rule and is reported as such.
    return {}
  }
}
