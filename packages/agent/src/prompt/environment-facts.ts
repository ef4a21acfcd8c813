import { oneLine, escapeMarkup } from '../util/visible-text.ts'
import { gitStateOf, type GitChanges, type GitStatePlace, type GitState } from './git-state.ts'

/**
 * Facts that change during a session. They precede the message of the user: in the system prompt they would invalidate
 * the cache.
 */
export interface EnvironmentFacts {
  /** In the time zone of the user, such as `Thursday, 2026-01-01`. */
  date: string
  /** Absent outside of a repository. */
  git?: GitState
}

export interface FactPlace extends GitStatePlace {
  /** Default: that of this machine. */
  timeZone?: string
  /** The agent works on another machine: the repository here is not its own. */
  isElsewhere?: boolean
}

export async function environmentFacts(place: FactPlace): Promise<EnvironmentFacts> {
  const git = place.isElsewhere ? undefined : await gitStateOf(place)
  return { date: dateText(place.clock.now(), place.timeZone), ...(git && { git }) }
}

/** The block for the message. Equal facts give equal text, so that a repetition can be omitted. */
export function environmentText({ date, git }: EnvironmentFacts): string {
  const lines = [`Date: ${date}`, ...(git ? [`Git: ${gitText(git)}`] : [])]
  return ['<environment>', ...lines, '</environment>'].join('\n')
}

function dateText(now: number, timeZone: string | undefined): string {
  const format = new Intl.DateTimeFormat('en', {
    calendar: 'gregory',
    numberingSystem: 'latn',
    weekday: 'long',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    ...(timeZone !== undefined && { timeZone }),
  })
  const parts = new Map(format.formatToParts(now).map(({ type, value }) => [type, value]))
  return `${parts.get('weekday')}, ${parts.get('year')}-${parts.get('month')}-${parts.get('day')}`
}

function gitText({ branch, upstream, changes }: GitState): string {
  const parts = [
    branch === undefined ? 'no branch is checked out' : `branch ${shownBranch(branch)}`,
    ...(upstream ? upstreamText(upstream) : []),
    ...(changes ? [changesText(changes)] : []),
  ]
  return parts.join('; ')
}

const maxBranchLength = 200

/** The name of a branch is untrusted. */
function shownBranch(branch: string): string {
  const short = branch.length > maxBranchLength ? `${branch.slice(0, maxBranchLength)}…` : branch
  return `"${escapeMarkup(oneLine(short))}"`
}

function upstreamText({ ahead, behind }: { ahead: number; behind: number }): string[] {
  if (ahead === 0 && behind === 0) return ['level with its upstream']
  return [`${ahead} ahead of and ${behind} behind its upstream`]
}

function changesText({ staged, unstaged, untracked, conflicted, isCut }: GitChanges): string {
  const counts = Object.entries({ staged, unstaged, untracked, conflicted }).filter(([, count]) => count > 0)
  if (counts.length === 0) return 'no changes'
  const files = counts.map(([kind, count]) => `${count} ${kind}`).join(', ')
  return `files: ${files}${isCut ? ', and more' : ''}`
}

/** Returns a function that gives the facts if they changed since its last call. */
export function watchEnvironment(
  place: Pick<GitStatePlace, 'cwd' | 'clock' | 'trustedRoot' | 'environment' | 'box'> & { isElsewhere?: boolean },
): () => Promise<string | undefined> {
  let told = ''
  return async () => {
    const text = environmentText(await environmentFacts(place))
    if (text === told) return undefined
    told = text
    return text
  }
}
