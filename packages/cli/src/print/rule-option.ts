import { ruleSchema, type Effect, type Rule } from '@tapetree/agent'
import { usageFailure } from '../command-line/failure.ts'
import { harmlessLine } from '../text/harmless.ts'

/** A rule as it is typed behind `--allow` and `--deny`: `command npm run *`, or JSON where the words have blanks in them. */
type WrittenRule = string | { type: string; match: string | string[] }

const forms =
  'A rule is "command <words>", "read <place>", "write <place>", "fetch <host>" or "tool <name>"; a place begins with /, ~/, ./ or **/.'

/** What was typed, once it is known to be a rule. */
export function ruleOption(typed: string, effect: Exclude<Effect, 'ask'>): WrittenRule {
  const written = typed.trimStart().startsWith('{') ? fromJson(typed) : fromWords(typed)
  const parsed = ruleSchema.safeParse({ effect, ...written })
  if (!parsed.success) {
    throw usageFailure(`--${effect} ${JSON.stringify(harmlessLine(typed))} is no rule. ${forms}`, [
      'tapetree run --help',
    ])
  }
  const { type, match } = parsed.data
  return { type, match }
}

/** The other way round: what to type for a rule. */
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
    // What cannot be read is no rule, and is said so.
    return {}
  }
}
