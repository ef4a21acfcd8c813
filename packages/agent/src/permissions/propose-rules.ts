import type { PermissionRequestRecord, PermissionResultRecord } from '@tapetree/session/format'
import { ruleSchema, type Rule } from './rules.ts'

/** Requests and their answers in one session, in the order of the log. */
export interface PermissionHistory {
  sessionId: string
  records: Iterable<PermissionRequestRecord | PermissionResultRecord>
}

/** Rules that would have made past requests unnecessary. */
export interface RuleProposal {
  /** The rules that the request offered for longer than once. */
  rules: readonly Rule[]
  /** How often the user allowed just that, each time only once. */
  approvals: number
  /** In how many sessions. */
  sessions: number
  /** ISO 8601. */
  lastApproved: string
}

export interface ProposeOptions {
  /** Rules that exist already. */
  known?: readonly Rule[]
  /** Fewer approvals make no proposal. Default: 2. */
  minApprovals?: number
}

interface Tally {
  rules: Rule[]
  approvals: number
  sessions: Set<string>
  lastApproved: string
  wasRejected: boolean
}

/**
 * Rules from past approvals, those with the most approvals first. The user has allowed the same thing several times, only once each time, and has
 * never refused it. Only a proposal: nothing is allowed before the user accepts it.
 */
export function proposeRules(histories: Iterable<PermissionHistory>, options: ProposeOptions = {}): RuleProposal[] {
  const { known = [], minApprovals = 2 } = options
  const tallies = new Map<string, Tally>()
  for (const { sessionId, records } of histories) {
    const offered = new Map<string, Rule[]>()
    for (const record of records) {
      if (record.type === 'permission_request') {
        const rules = rulesOffered(record.permissionRequest.options)
        if (rules.length > 0) offered.set(record.permissionRequest.requestId, rules)
        continue
      }
      const { requestId, outcome, optionId } = record.permissionResult
      const rules = offered.get(requestId)
      // The first answer counts.
      offered.delete(requestId)
      if (rules) count(tallies, { rules, outcome, optionId, sessionId, timestamp: record.timestamp })
    }
  }
  const knownKeys = new Set(known.map(keyOf))
  return [...tallies.values()]
    .filter(({ approvals, wasRejected }) => approvals >= minApprovals && !wasRejected)
    .filter(({ rules }) => !rules.every((rule) => knownKeys.has(keyOf(rule))))
    .map(({ rules, approvals, sessions, lastApproved }) => ({
      rules,
      approvals,
      sessions: sessions.size,
      lastApproved,
    }))
    .sort((left, right) => right.approvals - left.approvals || (left.lastApproved < right.lastApproved ? 1 : -1))
}

interface Answer {
  rules: Rule[]
  outcome: PermissionResultRecord['permissionResult']['outcome']
  optionId: string | undefined
  sessionId: string
  timestamp: string
}

function count(tallies: Map<string, Tally>, { rules, outcome, optionId, sessionId, timestamp }: Answer): void {
  const key = rules.map(keyOf).join('\n')
  const tally = tallies.get(key) ?? {
    rules,
    approvals: 0,
    sessions: new Set<string>(),
    lastApproved: '',
    wasRejected: false,
  }
  tallies.set(key, tally)
  if (outcome === 'rejected') tally.wasRejected = true
  if (outcome !== 'allowed' || optionId !== 'allow_once') return
  tally.approvals++
  tally.sessions.add(sessionId)
  if (timestamp > tally.lastApproved) tally.lastApproved = timestamp
}

/** A log is a file: only valid allow rules count. */
function rulesOffered(options: readonly object[]): Rule[] {
  for (const option of options) {
    const { grant } = option as { grant?: { rules?: unknown } }
    if (!Array.isArray(grant?.rules)) continue
    const rules = grant.rules.map((rule: unknown) => ruleSchema.safeParse(rule).data)
    if (rules.every((rule): rule is Rule => rule?.effect === 'allow')) return rules
  }
  return []
}

function keyOf({ effect, type, match }: Rule): string {
  return JSON.stringify([effect, type, typeof match === 'string' ? match : match.join(' ')])
}
