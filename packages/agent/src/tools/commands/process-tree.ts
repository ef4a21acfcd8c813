import { setTimeout as wait } from 'node:timers/promises'
import { environmentOf, listProcesses, readProcess, type ProcessEntry } from './process-table.ts'

/** This variable of every process has the mark of its command, and those of the commands above it. */
export const markVariable = 'TAPETREE_COMMAND'

export interface TreeRoot {
  /** Descendants of this process belong to the tree; the process itself does not. */
  pid?: number
  /** The group and session of the shell: its members belong to the tree, even if their parent has ended. */
  groupId?: number
  /** Found in the environment of processes that left both parent and group. */
  mark: string
  /** No process of the tree started before this. */
  since: string
}

/**
 * The living processes of a command. An empty tree is trusted only after two equal listings without an exit in
 * between: an ended process may have started another one that the first listing missed.
 */
export function findTree(root: TreeRoot): ProcessEntry[] {
  let before: string | undefined
  for (let look = 0; look < maxLooks; look++) {
    const { living, ended } = lookAt(root)
    if (living.length > 0 || ended === before) return living
    before = ended
  }
  return []
}

const maxLooks = 100

function lookAt({ pid, groupId, mark, since }: TreeRoot): { living: ProcessEntry[]; ended: string } {
  const all = listProcesses().filter((entry) => entry.pid !== process.pid)
  const isMarked = (entry: ProcessEntry): boolean =>
    isNotBefore(entry.startTime, since) && environmentOf(entry.pid).some((variable) => hasMark(variable, mark))
  const isInGroup = (entry: ProcessEntry): boolean =>
    groupId !== undefined && (entry.groupId === groupId || entry.sessionId === groupId)
  const found = new Set(all.filter((entry) => entry.parentId === pid || isInGroup(entry) || isMarked(entry)))
  const children = Map.groupBy(all, ({ parentId }) => parentId)
  for (const parent of found) for (const child of children.get(parent.pid) ?? []) found.add(child)
  const { living = [], ended = [] } = Object.groupBy(found, ({ isZombie }) => (isZombie ? 'ended' : 'living'))
  return { living, ended: ended.map(({ pid, startTime }) => `${pid} ${startTime}`).join() }
}

function hasMark(variable: string, mark: string): boolean {
  const [name, marks = ''] = variable.split('=')
  return name === markVariable && marks.split(' ').includes(mark)
}

/** Start times are counts on Linux and dates elsewhere, which are not compared. */
function isNotBefore(startTime: string, since: string): boolean {
  const [start, from] = [Number(startTime), Number(since)]
  return Number.isNaN(start) || Number.isNaN(from) || start >= from
}

/** How long killing may take; a process that remains is blocked in the kernel, or not ours to kill. */
const killMs = 2000

/**
 * Ends every process that `find` returns: sends SIGTERM, and kills the rest after the grace period. Returns
 * those that could not be ended.
 */
export async function endTree(find: () => ProcessEntry[], graceMs: number): Promise<ProcessEntry[]> {
  const asked = find()
  send(asked, 'SIGTERM')
  send(asked, 'SIGCONT') // a stopped process cannot handle signals
  const stubborn = await whenGone(find, graceMs)
  if (stubborn.length === 0) return []
  send(stubborn, 'SIGKILL')
  return whenGone(() => {
    freeze(find)
    const left = find()
    send(left, 'SIGKILL')
    return left
  }, killMs)
}

/** The remaining processes, once there are none or the time is over. */
export async function whenGone(find: () => ProcessEntry[], withinMs: number): Promise<ProcessEntry[]> {
  const until = performance.now() + withinMs
  for (let pause = 2; ; pause = Math.min(pause * 2, 50)) {
    const left = find()
    if (left.length === 0 || performance.now() > until) return left
    await wait(pause)
  }
}

const freezeRounds = 100

/** Stops all before killing one, so that none can start another in a new group meanwhile. */
function freeze(find: () => ProcessEntry[]): void {
  const frozen = new Set<number>()
  for (let round = 0; round < freezeRounds; round++) {
    const moving = find().filter(({ pid }) => !frozen.has(pid))
    if (moving.length === 0) return
    send(moving, 'SIGSTOP')
    for (const { pid } of moving) frozen.add(pid)
  }
}

/**
 * Signals groups, because the kernel reaches all of a group at once, including processes being started. The
 * groups of a command are its own: its shell started a session, and processes cannot join a group of another
 * session.
 */
function send(processes: ProcessEntry[], signal: NodeJS.Signals): void {
  const ownGroup = readProcess(process.pid)?.groupId
  const targets = processes.map(({ pid, groupId }) => (groupId === ownGroup ? pid : -groupId))
  for (const target of new Set(targets)) {
    try {
      process.kill(target, signal)
    } catch {
      // ended meanwhile, or not ours to kill: the next listing shows which
    }
  }
}
