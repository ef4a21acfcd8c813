import { usageQuerySchema, usageReportSchema, type UsageReport } from '@tapetree/client/protocol'
import { systemClock, type Clock } from '@tapetree/agent/run'
import { SessionError, type Session, type SessionInfo } from '@tapetree/session'
import { setImmediate } from 'node:timers/promises'
import type { ReachableSessions } from '../../live/reachable-sessions.ts'
import { RequestProblem } from '../../util/problem-error.ts'
import type { Routes } from '../app.ts'
import { json } from '../responses.ts'
import { readSession } from './parameters.ts'

const defaultDays = 30
const maxSessions = 100

export function addUsage(routes: Routes, clock: Clock = systemClock): void {
  routes.add(
    'view',
    {
      method: 'get',
      path: '/api/usage',
      operationId: 'getUsage',
      summary: 'Sum up calls, tokens and cost by day, model and session',
      request: { query: usageQuerySchema },
      responses: { 200: json(usageReportSchema, 'Of the sessions that the caller can reach.') },
    },
    async (context) => {
      const { days = defaultDays, time_zone: timeZone = 'UTC', place = 'active' } = context.req.valid('query')
      const dayOf = dayIn(timeZone)
      const since = dayOf(new Date(clock.now() - (days - 1) * 24 * 60 * 60 * 1000))
      return context.json(
        await report(context.get('sessions'), {
          since,
          dayOf,
          places: place === 'all' ? ['active', 'archive'] : [place],
        }),
        200,
      )
    },
  )
}

type Counts = UsageReport['total']
type DayOf = (time: Date) => string
type Place = 'active' | 'archive'

/** Reads the logs that changed since the first day, one after another. */
async function report(
  sessions: ReachableSessions,
  { since, dayOf, places }: { since: string; dayOf: DayOf; places: readonly Place[] },
): Promise<UsageReport> {
  const seen = new Set<string>()
  const sums = { day: new Map<string, Counts>(), model: new Map<string, Counts>(), session: new Map<string, Counts>() }
  const total = noUsage()
  const names = new Map<string, string>()
  const archived = new Set<string>()
  for (const { place, ...info } of await changedSince(sessions, { since, dayOf, places })) {
    if (place === 'archive') archived.add(info.id)
    for (const call of await callsOf(sessions, info.id, place)) {
      const day = dayOf(new Date(call.timestamp))
      if (day < since || seen.has(call.id)) continue
      seen.add(call.id)
      names.set(info.id, info.name || info.firstText || '')
      const rows = [rowOf(sums.day, day), rowOf(sums.model, call.model), rowOf(sums.session, info.id), total]
      for (const row of rows) add(row, call.usage)
    }
    await setImmediate()
  }
  return {
    since,
    days: [...sums.day].map(([day, row]) => ({ day, ...row })).sort((left, right) => (left.day < right.day ? -1 : 1)),
    models: byCost(sums.model).map(([model, row]) => {
      const [provider = '', modelId = ''] = JSON.parse(model) as string[]
      return { provider, model_id: modelId, ...row }
    }),
    sessions: byCost(sums.session)
      .slice(0, maxSessions)
      .map(([id, row]) => ({
        id,
        name: names.get(id) ?? '',
        ...(archived.has(id) && { is_archived: true as const }),
        ...row,
      })),
    total,
  }
}

/** The oldest first: calls of a fork count for the session that it was made from. */
async function changedSince(
  sessions: ReachableSessions,
  { since, dayOf, places }: { since: string; dayOf: DayOf; places: readonly Place[] },
): Promise<(SessionInfo & { place: Place })[]> {
  const all: (SessionInfo & { place: Place })[] = []
  for (const place of places) {
    const page = await sessions.store.list({ place, limit: Infinity })
    all.push(...page.sessions.map((info) => ({ ...info, place })))
  }
  return all
    .filter(({ modified }) => dayOf(new Date(modified)) >= since)
    .sort((left, right) => Date.parse(left.created) - Date.parse(right.created))
}

interface ModelCall {
  /** The id of the line: the same in a fork. */
  id: string
  timestamp: string
  /** Provider and id, as JSON. */
  model: string
  usage: Record<string, unknown>
}

async function callsOf(sessions: ReachableSessions, sessionId: string, place: Place): Promise<ModelCall[]> {
  try {
    if (place === 'active') return await readSession(sessions, sessionId, callsIn)
    await using session = await sessions.store.open(sessionId, { place })
    return await callsIn(session)
  } catch (error) {
    // It was moved or deleted meanwhile.
    if (error instanceof SessionError && error.code === 'session-not-found') return []
    throw error
  }
}

async function callsIn(session: Session): Promise<ModelCall[]> {
  const calls: ModelCall[] = []
  for await (const stored of session.lines()) {
    if (stored.type !== 'line' || !stored.text.includes('"usage":')) continue
    const line = JSON.parse(stored.text) as LineWithUsage
    const { provider = '', model = '' } = (line.type === 'usage' ? line.usage : line.message) ?? {}
    const usage = line.type === 'usage' ? line.usage?.tokens : line.type === 'message' ? line.message?.usage : undefined
    if (usage)
      calls.push({ id: line.id, timestamp: line.timestamp ?? '', model: JSON.stringify([provider, model]), usage })
  }
  return calls
}

/** The members of a stored line that count. */
interface LineWithUsage {
  id: string
  type: string
  timestamp?: string
  message?: { provider?: string; model?: string; usage?: Record<string, unknown> }
  usage?: { provider?: string; model?: string; tokens?: Record<string, unknown> }
}

function noUsage(): Counts {
  return { calls: 0, input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0, cost: 0 }
}

function rowOf(rows: Map<string, Counts>, key: string): Counts {
  const row = rows.get(key) ?? noUsage()
  rows.set(key, row)
  return row
}

const counted = ['input_tokens', 'output_tokens', 'cache_read_tokens', 'cache_write_tokens', 'cost'] as const

function add(row: Counts, usage: Record<string, unknown>): void {
  row.calls++
  for (const name of counted) {
    const count = usage[name]
    if (typeof count === 'number' && Number.isFinite(count)) row[name] += count
  }
}

function byCost(rows: ReadonlyMap<string, Counts>): [string, Counts][] {
  return [...rows].sort(([, left], [, right]) => right.cost - left.cost || right.input_tokens - left.input_tokens)
}

/** The format of Sweden is `2026-11-16`. */
function dayIn(timeZone: string): DayOf {
  let format: Intl.DateTimeFormat
  try {
    format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short' })
  } catch {
    throw new RequestProblem(422, 'unknown-time-zone', `The time zone ${JSON.stringify(timeZone)} is not known.`)
  }
  return (time) => (Number.isNaN(time.getTime()) ? '' : format.format(time))
}
