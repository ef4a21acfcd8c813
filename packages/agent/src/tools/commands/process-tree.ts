import { setTimeout as wait } from 'node:timers/promises'
import { environmentOf, listProcesses, readProcess, type ProcessEntry } from './process-table.ts'

/** Every process of a command has its mark in this variable, beside those of commands it was started under. */
export const markVariable = 'TAPETREE_COMMAND'

export interface TreeRoot {
  /** What descends from this process belongs to the tree; the process itself does not. */
  pid?: number
  /** The group and session of the shell: who is in it belongs to the tree, also when its parent has gone. */
  groupId?: number
  /** Found in the environment of who has left both parent and group. */
  mark: string
  /** Nobody of the tree began before this. */
  since: string
}

/**
 * The living processes of a command. That there are none is only believed when two looks say so and nobody has ended between
 * them: whoever ended may have started another where the first look had been already.
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

/** How long the last resort may take; a process that is not gone by then is in the hands of the kernel, or not ours to kill. */
const killMs = 2000

/**
 * Ends every process that `find` finds: asks first, and kills those that are there after the grace. Answers with those that
 * could not be ended.
 */
export async function endTree(find: () => ProcessEntry[], graceMs: number): Promise<ProcessEntry[]> {
  const asked = find()
  send(asked, 'SIGTERM')
  send(asked, 'SIGCONT') // who is stopped cannot hear
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

/** Who is left when nobody is, or when the time is over. */
export async function whenGone(find: () => ProcessEntry[], withinMs: number): Promise<ProcessEntry[]> {
  const until = performance.now() + withinMs
  for (let pause = 2; ; pause = Math.min(pause * 2, 50)) {
    const left = find()
    if (left.length === 0 || performance.now() > until) return left
    await wait(pause)
  }
}

const freezeRounds = 100

/** Stops them all before one is killed, so that none can start another in a new group meanwhile. */
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
 * By group, because the kernel reaches all of a group at once, also those that are being started. The groups of a command are
 * its own: its shell has begun a session, and nobody can join a group of another session.
 */
function send(processes: ProcessEntry[], signal: NodeJS.Signals): void {
  const ownGroup = readProcess(process.pid)?.groupId
  const targets = processes.map(({ pid, groupId }) => (groupId === ownGroup ? pid : -groupId))
  for (const target of new Set(targets)) {
    try {
      process.kill(target, signal)
    } catch {
      // they have ended meanwhile, or are not ours to kill: whoever looks next sees which
    }
  }
}
