import { describeRule, proposeRules, ruleSchema, type PermissionHistory, type Rule } from '@tapetree/agent/permissions'
import { changeUserSettings } from '@tapetree/agent/settings'
import type { Session, SessionStore } from '@tapetree/session'
import {
  fromDisk,
  type DiskLine,
  type Line,
  type PermissionRequestRecord,
  type PermissionResultRecord,
} from '@tapetree/session/format'
import type { Io } from '../../command-line/io.ts'
import { surroundingsOf, type Surroundings } from '../../host/surroundings.ts'
import { ageOf, counted } from '../../text/amounts.ts'
import { originText } from './remembered.ts'
import type { ListedRule, PermissionOverview, ProposedRule } from '../../tui/chat-services.ts'

/** The newest sessions of the folder that approvals are read from. */
const readSessions = 30

interface OverviewPlace {
  io: Pick<Io, 'home' | 'env'>
  store: SessionStore
  cwd: string
}

/** The rules that apply in a session with their sources, and proposals from what the user allowed in this folder before. */
export async function permissionOverview(sessionId: string, place: OverviewPlace): Promise<PermissionOverview> {
  const { io, store, cwd } = place
  const around = await surroundingsOf(io, { cwd })
  const histories = await historiesIn(store, cwd)
  const now = Date.now()
  const kept = keptRules(around)
  const rules = [
    ...writtenRules(around),
    ...kept.map(({ rule, from }): ListedRule => ({
      effect: 'allow',
      text: ruleText(rule),
      from: [from, approvedText(rule, histories, now)].filter(Boolean).join(', '),
    })),
    ...grantedRules(histories.find((each) => each.sessionId === sessionId) ?? { sessionId, records: [] }, now),
  ]
  const known = [...around.settings.ruleOrigins.map(({ rule }) => rule), ...kept.map(({ rule }) => rule)]
  const proposals = proposeRules(histories, { known }).map(
    ({ rules: proposed, approvals, sessions, lastApproved }): ProposedRule => ({
      id: JSON.stringify(proposed),
      text: proposed.map(describeRule).join(', '),
      approvals,
      sessions,
      lastApproved,
    }),
  )
  return { rules, proposals }
}

/** Writes the rules of a proposal to the settings of the user, for this project. */
export async function acceptProposal({ id }: ProposedRule, { io, cwd }: Omit<OverviewPlace, 'store'>): Promise<void> {
  const { trust } = await surroundingsOf(io, { cwd })
  const allow = ruleSchema.array().parse(JSON.parse(id))
  await changeUserSettings({ allow }, { home: io.home, env: io.env, project: trust.project.root })
}

function writtenRules({ settings }: Surroundings): ListedRule[] {
  return settings.ruleOrigins.map(({ rule, origin }) => ({
    effect: rule.effect,
    text: ruleText(rule),
    from: `${originText(origin)}${origin.layer === 'project' && !settings.rules.trustsProject ? ', not trusted' : ''}`,
  }))
}

/** What the user has allowed in this project for all sessions. */
function keptRules({ settings, trust }: Surroundings): { rule: Rule; from: string }[] {
  const { root } = trust.project
  const origin = settings.origins.get(`projects.${root}`)
  const rules = settings.values.projects[root]?.allow ?? []
  return rules.map((rule) => ({ rule, from: originText(origin, true) }))
}

/** How often the user has answered requests with this rule. Empty if never in the sessions that are read. */
function approvedText(rule: Rule, histories: readonly PermissionHistory[], now: number): string {
  const text = ruleText(rule)
  const approved = histories.flatMap((history) => approvals(history).filter(({ rules }) => rules.includes(text)))
  const last = approved.map(({ timestamp }) => timestamp).sort()
  const age = last.at(-1)
  return age === undefined ? '' : `allowed ${counted(approved.length, 'time')}, last ${agoText(age, now)}`
}

function grantedRules(history: PermissionHistory, now: number): ListedRule[] {
  return approvals(history).flatMap(({ rules, timestamp }) =>
    rules.map((text): ListedRule => ({
      effect: 'allow',
      text,
      from: `allowed in this session ${agoText(timestamp, now)}`,
    })),
  )
}

/** Answers that allowed something for longer than once. */
function approvals({ records }: PermissionHistory): { rules: string[]; timestamp: string }[] {
  return [...records].flatMap((record) => {
    if (record.type !== 'permission_result' || record.permissionResult.outcome !== 'allowed') return []
    const { grant } = record.permissionResult
    const rules = ruleSchema.array().safeParse(grant?.['rules']).data ?? []
    return rules.length === 0 ? [] : [{ rules: rules.map(ruleText), timestamp: record.timestamp }]
  })
}

async function historiesIn(store: SessionStore, cwd: string): Promise<PermissionHistory[]> {
  const { sessions } = await store.list({ cwd, limit: readSessions })
  return Promise.all(
    sessions.map(async ({ id }) => {
      await using session = await store.open(id, { readOnly: true })
      return { sessionId: id, records: await permissionRecords(session) }
    }),
  )
}

type PermissionRecord = PermissionRequestRecord | PermissionResultRecord

async function permissionRecords(session: Session): Promise<PermissionRecord[]> {
  const records: PermissionRecord[] = []
  for await (const stored of session.lines()) {
    if (stored.type === 'lost' || !stored.text.includes('"permission_re')) continue
    const line = fromDisk(JSON.parse(stored.text) as DiskLine, stored.seq)
    if (isPermission(line)) records.push(line)
  }
  return records
}

function isPermission(line: Line): line is PermissionRecord {
  return line.type === 'permission_request' || line.type === 'permission_result'
}

/** As in a settings file. */
function ruleText({ type, match }: Rule): string {
  return `${type} ${typeof match === 'string' ? match : match.join(' ')}`
}

function agoText(time: string, now: number): string {
  const age = ageOf(time, now)
  return age === 'now' ? 'just now' : `${age} ago`
}
