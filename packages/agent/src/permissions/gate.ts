import { maxWrittenLineBytes, type PermissionOption } from '@tapetree/session/format'
import type { Access, BoxKind, Gate, GateCall, Verdict } from '../tools/tool.ts'
import { judgeCall } from './judge-call.ts'
import type { Deletion } from './deleted-paths.ts'
import type { Judgement, Policy } from './policy.ts'
import type { PermissionResult, RequestOption, Requests } from './requests.ts'
import { ruleSchema, type Rule, type RuleLayers } from './rules.ts'
import { visibleText } from '../util/visible-text.ts'

export interface GatePolicy extends Omit<Policy, 'rules' | 'hasSandbox'> {
  readonly rules?: Partial<Omit<RuleLayers, 'session'>>
}

export interface PermissionGateOptions {
  requests: Requests
  /** Called for each call, so that a change of mode or settings takes effect with the next call. */
  policy: () => GatePolicy
  /** `deny` if no user can answer: a script, a server without clients. Default: the request stays pending. */
  whenUnanswered?: 'wait' | 'deny'
  /** The sandbox of the session. Without it, mode `sandboxed` is like `ask`. */
  sandbox?: GateSandbox
  /** Stores rules for later sessions of this project. Without it, the user can allow only for the session. */
  keepRules?: (rules: readonly Rule[]) => Promise<void>
}

/** What the gate must know about the sandbox of a session. */
export interface GateSandbox {
  isUsable(): Promise<boolean>
  /** What a command in it may do, for permission requests: "may write in /repo, may reach registry hosts". */
  describe(): Promise<string>
  /** The first of these files that exists and that no snapshot holds. */
  findUnheld(deletions: readonly Deletion[]): Promise<string | undefined>
}

/** Allows calls by rules and mode, and asks the user about the rest. */
export class PermissionGate implements Gate {
  readonly #options: PermissionGateOptions

  constructor(options: PermissionGateOptions) {
    this.#options = options
  }

  async admit(call: GateCall, signal: AbortSignal): Promise<Verdict> {
    const { requests, whenUnanswered = 'wait', keepRules } = this.#options
    const judgement = await this.#judgeWithFiles(call)
    const { box } = 'box' in judgement ? judgement : {}
    switch (judgement.effect) {
      case 'allow':
        return { type: 'allowed', ...(box && { box }) }
      case 'deny':
        return { type: 'denied', reason: judgement.reason }
      case 'ask': {
        const problem = await this.#problemOf(call)
        if (problem !== undefined) return { type: 'denied', reason: problem }
        if (whenUnanswered === 'deny') {
          return { type: 'denied', reason: `No user is present to allow this. ${judgement.reason}` }
        }
        const { runId, callId, tool, input } = call
        const question = {
          runId,
          callId,
          tool,
          title: titleOf(call, [judgement.reason, ...(await this.#placeOf(call, box))]),
          input,
          options: optionsFor(judgement, { canKeep: keepRules !== undefined }),
        }
        if (!isShownWhole(question)) {
          return { type: 'denied', reason: 'This is too long to be shown for permission. Do it in parts.' }
        }
        const result = await requests.ask(question, signal)
        // The rules of this judgement, not those in the answer: an answer cannot widen them.
        if (result.optionId === allowInProject && result.outcome === 'allowed') await keepRules?.(judgement.grant ?? [])
        const verdict = verdictOf(result)
        return verdict.type === 'allowed' && box ? { ...verdict, box } : verdict
      }
      default:
        judgement satisfies never
        return { type: 'denied', reason: 'It cannot be analyzed.' }
    }
  }

  async #judgeWithFiles(call: GateCall): Promise<Judgement> {
    const { sandbox } = this.#options
    const judgement = this.#judge(call, await this.#hasSandbox())
    if (judgement.effect !== 'allow' || !judgement.deletes || !sandbox) return judgement
    const unheld = await sandbox.findUnheld(judgement.deletes)
    if (unheld === undefined) return judgement
    return {
      effect: 'ask',
      reason: `It deletes ${unheld}, which no snapshot holds.`,
      ...(judgement.box && { box: judgement.box }),
    }
  }

  async #hasSandbox(): Promise<boolean> {
    const { policy, sandbox } = this.#options
    return policy().mode === 'sandboxed' && ((await sandbox?.isUsable()) ?? false)
  }

  /** Where a command runs if the user allows it. */
  async #placeOf({ access }: GateCall, box: BoxKind | undefined): Promise<string[]> {
    if (!access.some(({ type }) => type === 'command' || type === 'connect') || !(await this.#hasSandbox())) return []
    const isInside = box !== undefined || access.every(({ type }) => type === 'connect')
    if (!isInside) return ['If you allow it, it runs outside of the sandbox, with all your rights.']
    return [`In the sandbox: ${(await this.#options.sandbox?.describe()) ?? ''}.`]
  }

  /**
   * Why a call cannot succeed. The answer tells the model about files, so it is given only if the model may read them
   * without asking. If an earlier process sent the request, it stays pending.
   */
  async #problemOf(call: GateCall): Promise<string | undefined> {
    if (!call.preflight || this.#options.requests.hasAsked(call)) return undefined
    const access = call.access.flatMap((each): Access[] =>
      each.type === 'read' || each.type === 'write' ? [{ type: 'read', path: each.path }] : [],
    )
    const isReadable = this.#judge({ tool: 'read', readOnly: true, access }).effect === 'allow'
    return isReadable ? call.preflight() : undefined
  }

  #judge(call: Pick<GateCall, 'tool' | 'readOnly' | 'access'>, hasSandbox = false): Judgement {
    const { rules, ...policy } = this.#options.policy()
    return judgeCall(call, { ...policy, hasSandbox, rules: rulesInForce(rules, this.#options.requests.grants) })
  }
}

/** The rules of a policy, and those that the user granted in the session. */
export function rulesInForce(
  { user = [], project = [], trustsProject = false }: Partial<Omit<RuleLayers, 'session'>> = {},
  grants: readonly Record<string, unknown>[],
): RuleLayers {
  return { user, project, session: grants.flatMap(rulesGranted), trustsProject }
}

/** A grant comes from a file: only valid allow rules count. */
function rulesGranted(grant: Record<string, unknown>): Rule[] {
  const { rules } = grant
  if (!Array.isArray(rules)) return []
  return rules.flatMap((rule) => {
    const { data } = ruleSchema.safeParse(rule)
    return data?.effect === 'allow' ? [data] : []
  })
}

/** Screens read a request from its line of the log. A longer one would be stored apart, and they would show only its beginning. */
function isShownWhole(question: unknown): boolean {
  return Buffer.byteLength(JSON.stringify(question)) <= maxWrittenLineBytes - lineRoom
}

/** For the other members of the line, in bytes. */
const lineRoom = 8192

const allowOnce: PermissionOption = { optionId: 'allow_once', label: 'Allow once', kind: 'allow_once' }
const rejectOnce: PermissionOption = { optionId: 'reject_once', label: 'Do not allow', kind: 'reject_once' }

const allowInProject = 'allow_project'

function optionsFor(
  { grant }: Extract<Judgement, { effect: 'ask' }>,
  { canKeep }: { canKeep: boolean },
): RequestOption[] {
  if (!grant) return [allowOnce, rejectOnce]
  const always = (optionId: string, where: string): RequestOption => ({
    optionId,
    label: visibleText(`Allow in this ${where}: ${grant.map(describeRule).join(', ')}`),
    kind: 'allow_always',
    grant: { rules: [...grant] },
  })
  return [
    allowOnce,
    always('allow_always', 'session'),
    ...(canKeep ? [always(allowInProject, 'project')] : []),
    rejectOnce,
  ]
}

/** What an allow rule allows, in words. */
export function describeRule(rule: Rule): string {
  switch (rule.type) {
    case 'command':
      return `\`${typeof rule.match === 'string' ? rule.match : rule.match.map(quoted).join(' ')}\``
    case 'read':
      return `reading ${rule.match}`
    case 'write':
      return `writing in ${rule.match}`
    case 'fetch':
      return `fetching from ${rule.match}`
    case 'tool':
      return `the tool ${rule.match}`
    default:
      rule satisfies never
      return ''
  }
}

function quoted(word: string, index: number, words: string[]): string {
  const isMark = word === '*' && index === words.length - 1
  return isMark || /^[A-Za-z0-9_./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}

/**
 * The complete action, and the reason for the request. A tool that changes a file also reads it: only the change is named.
 * If reading it needs permission, the reason says so.
 */
function titleOf({ tool, access }: GateCall, reasons: readonly string[]): string {
  const written = new Set(access.flatMap((each) => (each.type === 'write' ? [each.path] : [])))
  const what = access
    .filter((each) => each.type !== 'read' || !written.has(each.path))
    .map(describeAccess)
    .filter(Boolean)
  return visibleText([...(what.length > 0 ? what : [tool]), ...reasons].join('\n'))
}

function describeAccess(access: Access): string {
  switch (access.type) {
    case 'read':
      return `Read ${access.path}`
    case 'write':
      return `Write ${access.path}`
    case 'command':
      return `Run in ${access.cwd}: ${access.command}`
    case 'fetch':
      return `Fetch ${access.url}`
    case 'connect':
      return `Reach ${targetOf(access)} from the sandbox, for: ${access.command}`
    case 'tool':
      return `Use ${access.name}`
    case 'ask':
      return ''
    default:
      access satisfies never
      return ''
  }
}

function targetOf({ host, port }: Extract<Access, { type: 'connect' }>): string {
  const name = host.includes(':') ? `[${host}]` : host
  return port === 443 || port === 80 ? name : `${name}:${port}`
}

function verdictOf({ outcome, text }: PermissionResult): Verdict {
  if (outcome === 'allowed') return { type: 'allowed' }
  if (outcome === 'cancelled') return { type: 'denied', reason: 'The request was withdrawn before it was answered.' }
  return { type: 'denied', reason: text ? `The user did not allow this: ${text}` : 'The user did not allow this.' }
}
