import { planOfOpenRun, planResume, systemClock, type Clock, type ResumePlan } from '@tapetree/agent/run'
import { newId, SessionError, type Cause, type Session, type SessionInfo } from '@tapetree/session'
import { fromDisk, type DiskLine } from '@tapetree/session/format'
import type { LiveSession } from './live-session.ts'
import type { LiveSessions } from './live-sessions.ts'
import { serverOwner } from './driver.ts'
import { RequestProblem } from '../util/problem-error.ts'

/** What a server does about runs that were interrupted when it died: resume them, wait for a person, or end them. */
export type RecoveryPolicy = 'resume' | 'ask' | 'stop'

/** Facts in the log of a session that may have been interrupted. */
export interface Evidence {
  /** Absent if no run is open and every message was handled. */
  plan?: Pick<ResumePlan, 'runId' | 'needsPerson'>
  /** False if the process died between a message and the start of its run. */
  hasOpenRun: boolean
  /** The host of its newest run; absent if it is not recorded. */
  owner?: string
  /** Whether messages are queued and not held. */
  hasWaiting: boolean
  /** Whether commands of the user have no outcome yet. */
  hasOpenCommands: boolean
  /** Lines were lost and not acknowledged. */
  isDamaged: boolean
  /** Time of the last write, in milliseconds. */
  lastWrittenAt: number
}

export type RecoveryStep =
  /** Resumes the run, or delivers queued messages. */
  | { type: 'resume' }
  | { type: 'stop'; runId: string }
  /** Opens it: that is enough for commands of the user to get their outcomes. */
  | { type: 'open' }
  /** Stays as it is; clients see that it can be resumed. */
  | { type: 'wait-for-person'; reason: string }
  | { type: 'leave' }

export interface RecoveryOptions {
  policy?: RecoveryPolicy
  /** Owners whose runs are resumed; other runs wait for a person. Default: `server`. */
  owners?: readonly string[]
  /** Only sessions written within this time are resumed. */
  withinMs?: number
  clock?: Clock
  /** Called for each session that was examined. */
  onRecovered?: (recovered: Recovered) => void
}

export interface Recovered {
  sessionId: string
  step: Exclude<RecoveryStep, { type: 'leave' }> | { type: 'failed'; error: unknown } | { type: 'owned' }
}

const hourMs = 60 * 60_000
/** A run may take long without a message: its list row is older than its last line. */
const longestRunMs = 24 * hourMs
const pageSize = 100
const sideBySide = 4
/** So many abandoned sessions are claimed at once. Few, so that the first one goes on soon, and all servers get some. */
const claimedAtOnce = 20
/** Taking one over is mostly waiting for the store. */
const takenSideBySide = 16
/** A failed attempt to continue an abandoned session is repeated so often, with this pause. */
const maxMore = 10
const againMs = 1000
/** A session that could not be continued is left to other servers for so long. They look for it more often. */
const leftMs = 10_000

/**
 * On server start: finds sessions that the previous server left interrupted, and acts on them. Changes nothing
 * else.
 */
export async function recoverSessions(sessions: LiveSessions, options: RecoveryOptions = {}): Promise<Recovered[]> {
  const { withinMs = hourMs, clock = systemClock } = options
  const since = clock.now() - withinMs
  const candidates = await findCandidates(sessions, { since, oldest: clock.now() - longestRunMs })
  return recoverEach(candidates, ({ id }, decide) => recover(sessions, id, { decide }), options)
}

/**
 * While the server runs: takes over sessions whose server has died, and acts on them in the same way. Undefined if the
 * store cannot tell, as with files.
 */
export async function recoverAbandoned(
  sessions: LiveSessions,
  options: RecoveryOptions = {},
): Promise<Recovered[] | undefined> {
  return sessions.during(async () => {
    const { clock = systemClock } = options
    const first = await claimAbandoned(sessions, clock)
    if (!first) return undefined
    return recoverEach(
      allAbandoned(sessions, { first, clock }),
      (session, decide) => takeOver(sessions, session, { decide, clock }),
      { ...options, sideBySide: takenSideBySide },
    )
  })
}

async function takeOver(
  sessions: LiveSessions,
  session: Session,
  { decide, clock }: { decide: Decide; clock: Clock },
): ReturnType<typeof recover> {
  const { held, leftUntil } = takeOversOf(sessions)
  await sessions.closeOutdated(session)
  const step = await tryToContinue(sessions, session, { decide, clock })
  try {
    if (step?.type === 'failed') {
      leftUntil.set(session.id, clock.now() + leftMs)
      await closeUnlessWorking(sessions, session.id)
    }
    // A server that is stopped may have begun to continue it. Once it is closed without this, no server looks for it.
    const handOver = !step || step.type === 'failed' || sessions.isClosing
    await session.close(handOver ? { handOver } : {})
  } finally {
    held.delete(session.id)
  }
  return step ?? { type: 'leave' }
}

/** Undefined if this server begins no work any more. */
async function tryToContinue(
  sessions: LiveSessions,
  session: Session,
  { decide, clock }: { decide: Decide; clock: Clock },
): Promise<Awaited<ReturnType<typeof recover>> | undefined> {
  let step: Awaited<ReturnType<typeof recover>> | undefined
  for (let attempt = 0; attempt <= maxMore && !sessions.isDraining && !sessions.isClosing; attempt++) {
    if (attempt > 0) await clock.wait(againMs)
    step = await recover(sessions, session.id, { decide, session, isHeld: true })
    if (step.type !== 'failed' || session.storage.type === 'lost' || sessions.isFull) break
  }
  return step
}

/** Otherwise it stays claimed here for as long as it is open. */
async function closeUnlessWorking(sessions: LiveSessions, sessionId: string): Promise<void> {
  const live = await sessions.peek(sessionId)
  if (!live || live.isWatched || live.isWorking) return
  live.startOver()
  await sessions.release(sessionId)
}

/** The next sessions are claimed when the ones before them are under way. */
async function* allAbandoned(
  sessions: LiveSessions,
  { first, clock }: { first: readonly Session[]; clock: Clock },
): AsyncGenerator<Session, void> {
  for (let claimed = first; ; claimed = (await claimAbandoned(sessions, clock)) ?? []) {
    yield* claimed
    if (claimed.length < claimedAtOnce || sessions.isDraining || sessions.isClosing) return
  }
}

async function claimAbandoned(sessions: LiveSessions, clock: Clock): Promise<Session[] | undefined> {
  const { held, leftUntil } = takeOversOf(sessions)
  for (const [id, until] of leftUntil) if (until <= clock.now()) leftUntil.delete(id)
  const isWanted = (header: Uint8Array): boolean => leftUntil.size === 0 || !leftUntil.has(idIn(header) ?? '')
  const claimed = await sessions.store.openAbandoned({ limit: claimedAtOnce, isWanted })
  for (const { id } of claimed ?? []) held.add(id)
  return claimed
}

/** Undefined if the line is damaged. */
function idIn(header: Uint8Array): string | undefined {
  try {
    return (JSON.parse(Buffer.from(header).toString()) as DiskLine).id
  } catch {
    // The session is claimed, which reports the damage.
    return undefined
  }
}

interface TakeOvers {
  /** Sessions that `recoverAbandoned` is taking over. */
  held: Set<string>
  /** Sessions that this server could not continue, and when it may claim them again. */
  leftUntil: Map<string, number>
}

const takeOvers = new WeakMap<LiveSessions, TakeOvers>()

function takeOversOf(sessions: LiveSessions): TakeOvers {
  const known = takeOvers.get(sessions) ?? { held: new Set(), leftUntil: new Map() }
  takeOvers.set(sessions, known)
  return known
}

interface RecoveryRules {
  policy: RecoveryPolicy
  /** What was written before is not continued. */
  since: number
  owners: readonly string[]
}

type Decide = (evidence: Evidence) => RecoveryStep

async function recoverEach<T extends { id: string }>(
  candidates: Iterable<T> | AsyncIterable<T>,
  recoverOne: (candidate: T, decide: Decide) => ReturnType<typeof recover>,
  options: RecoveryOptions & { sideBySide?: number },
): Promise<Recovered[]> {
  const { policy = 'resume', withinMs = hourMs, clock = systemClock, owners = [serverOwner], onRecovered } = options
  const since = clock.now() - withinMs
  const all: Recovered[] = []
  const left = Symbol.iterator in candidates ? candidates[Symbol.iterator]() : candidates[Symbol.asyncIterator]()
  const work = async (): Promise<void> => {
    for (let next = await left.next(); !next.done; next = await left.next()) {
      const candidate = next.value
      const step = await recoverOne(candidate, (evidence) => decideRecovery(evidence, { policy, since, owners }))
      if (step.type === 'leave') continue
      const recovered = { sessionId: candidate.id, step }
      all.push(recovered)
      onRecovered?.(recovered)
    }
  }
  await Promise.all(Array.from({ length: options.sideBySide ?? sideBySide }, work))
  return all
}

/**
 * While the server runs: acts in the same way on interrupted sessions that a client opens before `recoverAbandoned` finds
 * them. They are claimed from then on, and once they are closed again, no server looks for them. The returned function
 * ends this.
 */
export function recoverOpened(sessions: LiveSessions, options: RecoveryOptions = {}): () => void {
  const { policy = 'resume', withinMs = hourMs, clock = systemClock, owners = [serverOwner], onRecovered } = options
  const { held } = takeOversOf(sessions)
  const continueRun = async ({ driver, session }: LiveSession): Promise<void> => {
    if (held.has(session.id)) return
    if (session.openRun === null && session.inbox.messages.length === 0 && !(await driver.canResume())) return
    const since = clock.now() - withinMs
    const decide = (evidence: Evidence): RecoveryStep => decideRecovery(evidence, { policy, since, owners })
    const step = await recover(sessions, session.id, { decide, session })
    if (step.type !== 'leave') onRecovered?.({ sessionId: session.id, step })
  }
  return sessions.observe((live) => {
    // If it is closed meanwhile, whoever opens it next does this.
    continueRun(live).catch(() => undefined)
    return () => undefined
  })
}

export function decideRecovery(evidence: Evidence, options: RecoveryRules): RecoveryStep {
  const step = decideAboutRun(evidence, options)
  // An interrupted run keeps its position. Queued messages are not delivered by opening the session.
  return step.type !== 'resume' && !evidence.plan && evidence.hasOpenCommands ? { type: 'open' } : step
}

function decideAboutRun(
  { plan, hasOpenRun, owner, hasWaiting, isDamaged, lastWrittenAt }: Evidence,
  { policy, since, owners }: RecoveryRules,
): RecoveryStep {
  if (!plan && !hasWaiting) return { type: 'leave' }
  if (owner === undefined || !owners.includes(owner)) {
    return hasOpenRun ? waitFor(`It was interrupted in ${owner ?? 'an unknown process'}.`) : { type: 'leave' }
  }
  if (lastWrittenAt < since) return plan ? waitFor('It was interrupted too long ago.') : { type: 'leave' }
  if (isDamaged) return waitFor('Its log has lost lines.')
  switch (policy) {
    case 'resume':
      return plan?.needsPerson ? waitFor(`Run ${plan.runId} was resumed twice without progress.`) : { type: 'resume' }
    case 'ask':
      return waitFor('A person decides.')
    case 'stop':
      return plan && hasOpenRun ? { type: 'stop', runId: plan.runId } : { type: 'leave' }
    default:
      policy satisfies never
      return { type: 'leave' }
  }
}

function waitFor(reason: string): RecoveryStep {
  return { type: 'wait-for-person', reason }
}

/** List rows whose log must be read. */
async function findCandidates(
  { store }: LiveSessions,
  { since, oldest }: { since: number; oldest: number },
): Promise<SessionInfo[]> {
  const found: SessionInfo[] = []
  let cursor: string | undefined
  do {
    const page = await store.list({ limit: pageSize, ...(cursor !== undefined && { cursor }) })
    const recent = page.sessions.filter(({ modified }) => Date.parse(modified) >= oldest)
    found.push(
      ...recent.filter(({ status, modified, stopped }) => {
        if (status === 'running' || status === 'requires_action' || stopped) return true
        // The process may have died between a message and its run, or before delivering queued messages.
        return status === 'idle' && Date.parse(modified) >= since
      }),
    )
    // Newest first: the rest is older still.
    cursor = recent.length < page.sessions.length ? undefined : page.cursor
  } while (cursor !== undefined)
  return found
}

async function recover(
  sessions: LiveSessions,
  sessionId: string,
  { decide, session, isHeld = false }: { decide: Decide; session?: Session; isHeld?: boolean },
): Promise<Recovered['step'] | { type: 'leave' }> {
  try {
    const evidence = await (session ? evidenceIn(session) : evidenceOf(sessions, sessionId))
    if (evidence === 'owned') return { type: 'owned' }
    const step = decide(evidence)
    const command = commandFor(step)
    if (!command && step.type !== 'open') return step
    const live = await sessions.get(sessionId)
    // Clients may have watched it here while another process wrote it.
    if (isHeld) await live.becomeWritable()
    // Another process owns it, and resumes it if needed.
    if (live.driver.readOnly) return { type: 'owned' }
    if (!command) return step
    // It is at work again already.
    if (live.driver.isBusy) return { type: 'leave' }
    const { error } = await live.perform(newId(), 'server', command)
    return error ? { type: 'failed', error: new RequestProblem(error.status, error.type, error.detail ?? '') } : step
  } catch (error) {
    // Another process owns it, and resumes it if needed.
    if (error instanceof SessionError && error.code === 'session-owned') return { type: 'owned' }
    return { type: 'failed', error }
  }
}

function commandFor(step: RecoveryStep): { op: string; args: object } | undefined {
  if (step.type === 'resume') return { op: 'resume', args: { by_person: false } }
  return step.type === 'stop' ? { op: 'cancel', args: { run_id: step.runId } } : undefined
}

/** A session of another process is not opened: it would be watched here for nobody. */
async function evidenceOf(sessions: LiveSessions, sessionId: string): Promise<Evidence | 'owned'> {
  await using session = await sessions.store.open(sessionId, { readOnly: true })
  if ((await session.currentOwner()) && !(await sessions.peek(sessionId))) return 'owned'
  return await evidenceIn(session)
}

/** Takes no longer if the open run is long: what counts of it is in the state of the session, and in its last line. */
async function evidenceIn(session: Session): Promise<Evidence> {
  const hasOpenRun = session.openRun !== null
  const plan = planOfOpenRun(session) ?? (await planResume(session, []))
  const hasWaiting = (session.nextWaiting('steer') ?? session.nextWaiting('follow-up')) !== undefined
  const { openRunStart } = session
  const owner = openRunStart ? openRunStart.owner : plan || hasWaiting ? await newestOwner(session) : undefined
  return {
    ...(plan && { plan }),
    ...(owner !== undefined && { owner }),
    lastWrittenAt: plan || hasWaiting ? Date.parse((await session.lastLine())?.timestamp ?? '') || 0 : 0,
    hasOpenRun,
    hasWaiting,
    hasOpenCommands: session.openCommands.length > 0,
    isDamaged: session.damage.some(({ isNew }) => isNew),
  }
}

/**
 * The host of the newest run. Before the first run there are only messages: one that came through our endpoints was meant to
 * start it. A subagent is resumed by its parent.
 */
async function newestOwner(session: Session): Promise<string | undefined> {
  let owner: string | undefined
  let hasRun = false
  for await (const stored of session.lines({ after: (session.openRun?.seq ?? 1) - 1 })) {
    if (stored.type !== 'line') continue
    const disk = JSON.parse(stored.text) as DiskLine & { cause?: Partial<Cause> }
    const line = fromDisk(disk, stored.seq)
    if (line.type === 'run_start') owner = line.runStart.owner
    hasRun ||= line.type === 'run_start'
    const cameByDoor = disk.cause?.client !== undefined && disk.cause.client !== 'task'
    if (!hasRun && cameByDoor) owner = serverOwner
  }
  return owner
}
