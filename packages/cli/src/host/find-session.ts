import {
  isId,
  SessionError,
  type Place,
  type SessionInfo,
  type SessionQuery,
  type SessionStore,
  type SessionPage,
} from '@tapetree/session'
import { nearestWord } from '../text/did-you-mean.ts'
import { fitText } from '../text/display-width.ts'
import { exitCodes } from '../command-line/exit-code.ts'
import { Failure } from '../command-line/failure.ts'
import { harmlessLine } from '../text/harmless.ts'
import { isEmptySession, sessionTitle, shortIds } from '../text/describe-entry.ts'

export interface FindSessionOptions {
  /** `last` is the newest conversation of this folder; if absent, of all folders. */
  cwd?: string
  /** Where to look. */
  place?: Place
}

/** A shorter id prefix is ambiguous: ids begin with the time. */
const minPrefixLength = 4
const maxListed = 8
const newestPerPage = 20
/** How many names are compared to find a similar one. */
const maxCompared = 1000

/** Where sessions are looked up. */
export interface SearchedSessions extends ListedSessions {
  /** Looks up a full id without listing all sessions. */
  byId: (id: string) => Promise<SessionInfo | undefined>
  /** The commands that list sessions and that restore one, as the user would type them. */
  commands: { list: string; restore?: (id: string) => string }
}

/** Finds a session on this machine by id, id prefix, name, or `last`. */
export async function findSession(
  store: SessionStore,
  reference: string,
  options: FindSessionOptions = {},
): Promise<SessionInfo> {
  const sessions = {
    list: (query: SessionQuery) => store.list(query),
    byId: (id: string) => sessionOfId(store, id),
    commands: { list: 'tapetree sessions list', restore: (id: string) => `tapetree sessions restore ${id}` },
  }
  return findSessionIn(sessions, reference, options)
}

/** The same for any place. */
export async function findSessionIn(
  sessions: SearchedSessions,
  reference: string,
  { cwd, place = 'active' }: FindSessionOptions = {},
): Promise<SessionInfo> {
  if (reference === 'last') return newestSession(sessions, { place, ...(cwd !== undefined && { cwd }) })
  const whole = place === 'active' && isId(reference) ? await sessions.byId(reference) : undefined
  if (whole) return whole
  const all = await allSessions(sessions, place)
  const [only, ...others] = sessionsMeant(all, reference)
  if (!only) throw await notFound(sessions, reference, { all, place })
  if (others.length > 0) throw ambiguous(reference, { meant: [only, ...others], next: [sessions.commands.list] })
  return only
}

/** The newest conversation of a user. Skips sessions of subagents and sessions without messages. */
async function newestSession(from: SearchedSessions, query: { cwd?: string; place: Place }): Promise<SessionInfo> {
  let cursor: string | undefined
  do {
    const page = await from.list({ ...query, limit: newestPerPage, ...(cursor !== undefined && { cursor }) })
    const newest = page.sessions.find((session) => !session.subagent && !isEmptySession(session))
    if (newest) return newest
    cursor = page.cursor
  } while (cursor !== undefined)
  const where = query.cwd === undefined ? '' : ` in ${harmlessLine(query.cwd)}`
  throw new Failure(exitCodes.notFound, `There is no session${where} yet.`, {
    type: 'session-not-found',
    next: ['tapetree', from.commands.list],
  })
}

/** Reads one log instead of listing all. */
async function sessionOfId(store: SessionStore, id: string): Promise<SessionInfo | undefined> {
  try {
    await using session = await store.open(id, { readOnly: true })
    return session.info
  } catch (error) {
    if (error instanceof SessionError && error.code === 'session-not-found') return undefined
    throw error
  }
}

/** An id takes precedence over a name, a name over an id prefix. */
function sessionsMeant(all: readonly SessionInfo[], reference: string): SessionInfo[] {
  const byId = all.filter(({ id }) => id === reference)
  if (byId.length > 0) return byId
  const byName = all.filter(({ name }) => name !== '' && name === reference)
  if (byName.length > 0 || reference.length < minPrefixLength) return byName
  return all.filter(({ id }) => id.startsWith(reference))
}

async function notFound(
  sessions: SearchedSessions,
  reference: string,
  { all, place }: { all: readonly SessionInfo[]; place: Place },
): Promise<Failure> {
  const shown = harmlessLine(reference)
  const message = `There is no session ${JSON.stringify(shown)}.`
  const type = 'session-not-found'
  const { list, restore } = sessions.commands
  if (place === 'active') {
    for (const other of ['archive', 'trash'] as const) {
      const [there] = sessionsMeant(await allSessions(sessions, other), reference)
      if (!there) continue
      const why = `It is in the ${other}.`
      return new Failure(exitCodes.notFound, message, { type, why, next: restore ? [restore(there.id)] : [] })
    }
  }
  const near = similar(all, reference)
  return new Failure(exitCodes.notFound, message, {
    type,
    ...(near.length > 0 && { why: `Did you mean ${labelsOf(near).join(' or ')}?` }),
    next: [list],
  })
}

/** Sessions with a similar name, with the text in their name or first message, or with that id prefix. */
function similar(all: readonly SessionInfo[], reference: string): SessionInfo[] {
  const wanted = reference.toLowerCase()
  const start = wanted.slice(0, 8)
  const names = new Set(all.slice(0, maxCompared).flatMap(({ name }) => (name === '' ? [] : name)))
  const nearest = nearestWord(reference, [...names])
  const hasIt = ({ id, name, firstText = '' }: SessionInfo): boolean =>
    (nearest !== undefined && name === nearest) ||
    name.toLowerCase().includes(wanted) ||
    firstText.toLowerCase().includes(wanted) ||
    (start.length === 8 && id.startsWith(start))
  return wanted === '' ? [] : all.filter(hasIt).slice(0, 3)
}

function ambiguous(
  reference: string,
  { meant, next }: { meant: readonly SessionInfo[]; next: readonly string[] },
): Failure {
  const listed = labelsOf(meant).slice(0, maxListed)
  const more = meant.length > maxListed ? ` and ${meant.length - maxListed} more` : ''
  const isName = meant.some(({ name }) => name === reference)
  const hint = isName ? 'Use an id.' : 'Ids begin with a time, so use more of the id.'
  return new Failure(exitCodes.usage, `${JSON.stringify(harmlessLine(reference))} matches ${meant.length} sessions.`, {
    type: 'session-ambiguous',
    why: `They are ${listed.join(', ')}${more}. ${hint}`,
    next,
  })
}

/** The shortest distinct id prefixes, with titles. */
function labelsOf(sessions: readonly SessionInfo[]): string[] {
  const ids = shortIds(sessions.map(({ id }) => id))
  return sessions.map((session) => {
    const id = ids.get(session.id) ?? session.id
    const title = fitText(sessionTitle(session), 40)
    return title === '' ? id : `${id} (${title})`
  })
}

/** A store, or any other paged list of sessions. */
interface ListedSessions {
  list(query: SessionQuery): Promise<SessionPage>
}

const pageSize = 1000

export async function allSessions(store: ListedSessions, place: Place): Promise<SessionInfo[]> {
  const all: SessionInfo[] = []
  let cursor: string | undefined
  do {
    const page = await store.list({ place, limit: pageSize, ...(cursor !== undefined && { cursor }) })
    all.push(...page.sessions)
    cursor = page.cursor
  } while (cursor !== undefined)
  return all
}
