import { resolve } from 'node:path'
import { z } from 'zod'
import { mayReachInto, mayTouch, staysWithin, type PathUse } from './paths/path-use.ts'
import { exactPath, parsePathPattern, type PathPattern } from './paths/path-pattern.ts'
import { realPath } from './paths/real-path.ts'
import { textOf, type Word } from './shell/words/word.ts'

/**
 * What is allowed without a request, what requires a request, and what is denied. The kinds of rules:
 *
 * - `command`: a program and its first words, as the shell would pass them: `npm run test` matches exactly that, `git
 * log *` any call that begins so. A list of words does the same for words with blanks. An ask or deny rule matches any
 * call with these words in this order, with any words between and after them, so that `git push` also matches `git -C
 * /repo push --force`.
 * - `read`, `write`: a path and everything below it: `/repo/src`, `~/notes`, `./src` (in the working folder), with `*`
 * and `?` within a name and `**` for any number of folders. Links are resolved first; `/repo` never matches
 * `/repo-evil`.
 * - `fetch`: a host, `*.example.com` for its subdomains, `*` for all.
 * - `tool`: the name of a tool, with `*` at its end for all names with that prefix.
 */
export type Rule = z.output<typeof ruleSchema>
export type Effect = Rule['effect']

const effect = z.enum(['allow', 'ask', 'deny'])
const words = z.union([z.string().trim().min(1), z.array(z.string()).min(1)])
const place = z.string().regex(/^(?:\/|~\/|\.\/|\*\*\/)|^[~.]$/, 'A path pattern must begin with /, ~/, ./ or **/.')

export const ruleSchema = z.discriminatedUnion('type', [
  z.strictObject({ effect, type: z.literal('command'), match: words }),
  z.strictObject({ effect, type: z.enum(['read', 'write']), match: place }),
  z.strictObject({ effect, type: z.literal('fetch'), match: z.string().min(1) }),
  z.strictObject({ effect, type: z.literal('tool'), match: z.string().min(1) }),
])

/**
 * Rules by source. A project can ask and deny; its allow rules count only if the user trusts it. `session` has the
 * grants of the user in this session.
 */
export interface RuleLayers {
  readonly user: readonly Rule[]
  readonly project: readonly Rule[]
  readonly session: readonly Rule[]
  readonly trustsProject: boolean
}

export const noRules: RuleLayers = { user: [], project: [], session: [], trustsProject: false }

/** `maybe`: it depends on something that is unknown before the command runs. */
type Match = 'yes' | 'maybe' | 'no'

/**
 * The effect of the rules, if any matches. Deny wins over ask and ask over allow, in any order and layer. A deny rule
 * that may match asks.
 */
export function effectOf(layers: RuleLayers, match: (rule: Rule) => Match): Effect | undefined {
  const { user, project, session, trustsProject } = layers
  const matched = (rules: readonly Rule[], effect: Effect): Match[] =>
    rules.filter((rule) => rule.effect === effect).map(match)
  const all = [...user, ...project, ...session]
  const denied = matched(all, 'deny')
  if (denied.includes('yes')) return 'deny'
  if (denied.includes('maybe') || matched(all, 'ask').some((each) => each !== 'no')) return 'ask'
  const allowing = [...user, ...session, ...(trustsProject ? project : [])]
  return matched(allowing, 'allow').includes('yes') ? 'allow' : undefined
}

export function matchCommand(rule: Rule, call: readonly Word[]): Match {
  if (rule.type !== 'command') return 'no'
  const wanted = typeof rule.match === 'string' ? rule.match.split(/\s+/) : rule.match
  const isOpen = wanted.at(-1) === '*'
  const start = isOpen ? wanted.slice(0, -1) : wanted
  const texts = call.map(textOf)
  if (rule.effect !== 'allow') return occursIn(start, texts)
  const isStart = start.every((word, index) => texts[index] === word)
  return isStart && (isOpen || texts.length === start.length) ? 'yes' : 'no'
}

/** Whether the words occur in the others in this order. Unknown text may be any of them. */
function occursIn([program, ...rest]: readonly string[], [name, ...others]: readonly (string | undefined)[]): Match {
  if (program !== undefined && name !== program && name?.replace(/^.*\//, '') !== program) return 'no'
  let found = rest
  for (const text of others) if (text === found[0]) found = found.slice(1)
  if (found.length === 0) return 'yes'
  return others.includes(undefined) ? 'maybe' : 'no'
}

/** The base of `./` and `~/` in a rule. */
export interface RulePlace {
  readonly cwd: string
  readonly home: string
}

export function matchPath(rule: Rule, use: PathUse & { type: 'read' | 'write' }, place: RulePlace): Match {
  if (rule.type !== use.type) return 'no'
  const places = placesOf(rule.match, place)
  if (rule.effect === 'allow') return places.some((each) => staysWithin(use, each)) ? 'yes' : 'no'
  if (places.some((each) => mayTouch(use, each))) return 'yes'
  return places.some((each) => mayReachInto(use, each)) ? 'maybe' : 'no'
}

/** The pattern as written, and with its exact prefix resolved. */
function placesOf(match: string, { cwd, home }: RulePlace): PathPattern[] {
  if (match.startsWith('**/')) return [parsePathPattern(match)]
  const path = match.startsWith('~') ? home + match.slice(1) : resolve(cwd, match)
  const [certain = '', wild = ''] = /^((?:\/[^*?/]*(?=\/|$))*)(.*)$/.exec(path)?.slice(1) ?? []
  return [parsePathPattern(path), [...exactPath(realPath(certain)), ...parsePathPattern(wild)]]
}

export function matchHost(rule: Rule, host: string): Match {
  if (rule.type !== 'fetch') return 'no'
  const wanted = rule.match.toLowerCase()
  const isMeant = wanted === '*' || wanted === host || (wanted.startsWith('*.') && host.endsWith(wanted.slice(1)))
  return isMeant ? 'yes' : 'no'
}

export function matchTool(rule: Rule, name: string): Match {
  if (rule.type !== 'tool') return 'no'
  const isMeant = rule.match.endsWith('*') ? name.startsWith(rule.match.slice(0, -1)) : name === rule.match
  return isMeant ? 'yes' : 'no'
}
