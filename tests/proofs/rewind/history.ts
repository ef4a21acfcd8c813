import { memoryStore, text, type Session } from '@tapetree/session'
import { systemClock, type Clock } from '@tapetree/session/util/wait'
import { lstatSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { ConflictChoice } from '../../../packages/agent/src/workspace/plan-restore.ts'
import { WorkspaceSnapshots, type PreparedRestore } from '../../../packages/agent/src/workspace/workspace-snapshots.ts'
import { Mutator, type Random } from './mutate.ts'
import {
  gitFingerprint,
  isEqual,
  isLeftOut,
  readFiles,
  type Files,
  type Templates,
  type WorkspaceKind,
} from './workspaces.ts'

interface HistoryCounts {
  snapshots: number
  restores: number
  files: number
}

export interface PlayedHistory {
  counts: HistoryCounts
  /** A sentence about the first thing that is wrong. */
  problem?: string
}

/** A change of the files between two moments, as the proof saw it. */
interface SeenStep {
  by: 'agent' | 'outside'
  paths: Set<string>
}

interface Moment {
  entryId: string
  files: Files
  step: number
}

/**
 * Plays one random history: messages, calls of the agent, and changes by others, between and during calls. Any moment must
 * come back byte for byte.
 */
export async function playHistory(options: {
  kind: WorkspaceKind
  folder: string
  templates: Templates
  random: Random
  /** Only these changes are made. */
  actions?: readonly string[] | undefined
}): Promise<PlayedHistory> {
  const { kind, folder, templates, random, actions } = options
  mkdirSync(folder)
  const { root, workspace } = templates.copy(kind, join(folder, 'work'))
  const session = await memoryStore().create({ cwd: workspace })
  const history = new History({ root, workspace, stores: join(folder, 'stores'), session, random, actions })
  try {
    await history.play()
    return { counts: history.counts }
  } catch (error) {
    const { message } = error as Error
    return { counts: history.counts, problem: `${kind}: ${message}\n${history.told.join('\n')}` }
  } finally {
    await history.snapshots.settled()
    await session.close()
    // A git that was killed may still have a child that writes.
    rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
  }
}

class History {
  readonly snapshots: WorkspaceSnapshots
  readonly counts: HistoryCounts = { snapshots: 0, restores: 0, files: 0 }
  /** What happened, for the report of a problem. */
  readonly told: string[] = []
  readonly #root: string
  readonly #workspace: string
  readonly #session: Session
  readonly #random: Random
  readonly #mutator: Mutator
  readonly #moments: Moment[] = []
  readonly #steps: SeenStep[] = []
  /** The files when a step last ended. */
  #files: Files
  readonly #ignoring: string | undefined
  /** Of the git folders, if nothing but our own work can have changed them since. */
  #fingerprint: string | undefined
  #calls = 0

  constructor(place: {
    root: string
    workspace: string
    stores: string
    session: Session
    random: Random
    actions?: readonly string[] | undefined
  }) {
    const { root, workspace, stores, session, random, actions } = place
    this.#root = root
    this.#workspace = workspace
    this.#session = session
    this.#random = random
    this.#mutator = new Mutator(workspace, { random, actions })
    this.#files = this.#read()
    this.#ignoring = this.#files.get('.gitignore')
    this.snapshots = new WorkspaceSnapshots({ session, folder: workspace, storesFolder: stores, clock: steadyClock() })
  }

  async play(): Promise<void> {
    await this.#say()
    const length = 2 + this.#small(5)
    for (let step = 0; step < length; step += 1) {
      const choice = this.#random()
      if (choice < 0.15) await this.#say()
      else if (choice < 0.3) this.#changeOutside()
      else if (choice < 0.85) await this.#call()
      else await this.#rewind()
    }
    await this.#rewind()
  }

  async #say(): Promise<void> {
    this.#endStep('outside')
    const entryId = await this.#session.appendMessage('user', 'next')
    this.told.push(`message ${entryId}`)
    await this.#untouched(async () => {
      this.snapshots.runStarted({ runId: 'run', entryId })
      await this.snapshots.settled()
    })
    this.#remember(entryId)
  }

  #changeOutside(): void {
    this.#change('outside', 1 + this.#small(3))
  }

  #change(by: SeenStep['by'], count: number): void {
    for (let left = count; left > 0; left -= 1) this.told.push(`${by}: ${this.#mutator.change()}`)
    this.#fingerprint = undefined
  }

  async #call(): Promise<void> {
    const callId = `call${++this.#calls}`
    const call = { runId: 'run', callId, access: [{ type: 'tool' as const, name: 'x', readOnly: false }] }
    this.#endStep('outside')
    await this.#untouched(() => this.snapshots.beforeCall(call))
    // Some of these may be by others: what happens during a call cannot be told apart.
    this.#change('agent', 1 + this.#small(4))
    this.#endStep('agent')
    const result = { type: 'tool_result' as const, toolResult: { toolUseId: callId, content: [text('done')] } }
    const entryId = await this.#session.appendMessage('tool', [result])
    await this.#untouched(async () => {
      this.snapshots.afterCall(call)
      await this.snapshots.settled()
    })
    this.#remember(entryId)
  }

  /** Goes to a random moment, and sometimes back again. */
  async #rewind(): Promise<void> {
    this.#endStep('outside')
    const moment = this.#moments[this.#small(this.#moments.length)] as Moment
    const before = this.#files
    const leftOut = this.#leftOut()
    // Without it, the ignored files were ordinary files at that moment.
    const isIgnoring = moment.files.get('.gitignore') === this.#ignoring
    this.told.push(`rewind to ${moment.entryId}`)
    const prepared = await this.#untouched(() => this.snapshots.prepare(moment.entryId))
    this.#checkPlan(prepared, { wanted: moment.files, since: moment.step })
    await this.#restore(prepared, { wanted: moment.files, takesAll: this.#random() < 0.6 })
    if (this.#random() < 0.5) {
      this.told.push('undo it')
      await this.#restore(await this.snapshots.prepareUndo(), { wanted: before, takesAll: true })
    }
    if (isIgnoring && !isEqual(this.#leftOut(), leftOut)) throw new Error('A file that no snapshot holds was touched.')
  }

  async #restore(prepared: PreparedRestore, { wanted, takesAll }: { wanted: Files; takesAll: boolean }): Promise<void> {
    const all = [...prepared.restored, ...prepared.kept, ...prepared.conflicts]
    const choices = new Map<string, ConflictChoice>(takesAll ? all.map(({ path }) => [path, 'take']) : [])
    const expected = new Map(this.#read())
    for (const { path } of takesAll ? all : prepared.restored) {
      const local = this.#local(path)
      const content = wanted.get(local)
      if (content === undefined) expected.delete(local)
      else expected.set(local, content)
    }
    const done = await this.#untouched(() => this.snapshots.restore(prepared, choices))
    this.counts.restores += 1
    this.counts.files += done.changed.length
    // A file cannot go where a kept file or folder is.
    for (const path of done.skipped) {
      if (takesAll && !this.#isBlocked(path)) throw new Error(`${JSON.stringify(path)} was skipped.`)
      const now = this.#read().get(this.#local(path))
      if (now === undefined) expected.delete(this.#local(path))
      else expected.set(this.#local(path), now)
    }
    const difference = firstDifference(this.#read(), expected)
    if (difference !== undefined) throw new Error(`After a restore ${difference}`)
    this.#endStep('agent')
  }

  /** A left-out file or a repository is in the way, or inside of the folder that is. No snapshot holds a git folder. */
  #isBlocked(path: string): boolean {
    const local = this.#local(path)
    const place = join(this.#workspace, local)
    const isFolder = lstatSync(place, { throwIfNoEntry: false })?.isDirectory() ?? false
    if (isFolder && readdirSync(place, { recursive: true }).some((each) => basename(String(each)) === '.git'))
      return true
    return this.#leftOut()
      .keys()
      .some((each) => each.startsWith(`${local}/`) || local.startsWith(`${each}/`) || each === local)
  }

  #checkPlan(prepared: PreparedRestore, { wanted, since }: { wanted: Files; since: number }): void {
    const different = pathsThatDiffer(this.#read(), wanted)
    const by = { agent: new Set<string>(), outside: new Set<string>() }
    for (const step of this.#steps.slice(since)) for (const path of step.paths) by[step.by].add(path)
    const expected = [...different].map((path) => {
      const isAgents = by.agent.has(path)
      const isOthers = by.outside.has(path)
      return `${isAgents && !isOthers ? 'restored' : isOthers && !isAgents ? 'kept' : 'conflicts'} ${path}`
    })
    const planned = (['restored', 'kept', 'conflicts'] as const).flatMap((type) =>
      prepared[type].flatMap(({ path }) => (isLeftOut(path) ? [] : [`${type} ${this.#local(path)}`])),
    )
    const missing = expected.filter((each) => !planned.includes(each))
    const surplus = planned.filter((each) => !expected.includes(each))
    if (missing.length + surplus.length > 0)
      throw new Error(`The plan lacks ${JSON.stringify(missing)} and has ${JSON.stringify(surplus)} instead.`)
  }

  /** Runs work of ours, which must not change anything in a git folder. */
  async #untouched<T>(work: () => Promise<T>): Promise<T> {
    const before = this.#fingerprint ?? gitFingerprint(this.#root)
    const result = await work()
    this.counts.snapshots += 1
    const { state } = this.snapshots
    if (state.type === 'off') throw new Error(state.reason)
    if (state.type === 'on' && state.problem !== undefined) throw new Error(state.problem)
    this.#fingerprint = gitFingerprint(this.#root)
    if (this.#fingerprint !== before) throw new Error('Something in a git folder was changed.')
    return result
  }

  #endStep(by: SeenStep['by']): void {
    const now = this.#read()
    const paths = pathsThatDiffer(this.#files, now)
    if (paths.size > 0) this.#steps.push({ by, paths })
    this.#files = now
  }

  #remember(entryId: string): void {
    this.#moments.push({ entryId, files: this.#files, step: this.#steps.length })
  }

  #read(): Map<string, string> {
    return readFiles(this.#workspace, (path) => !isLeftOut(path))
  }

  #leftOut(): Map<string, string> {
    return readFiles(this.#workspace, isLeftOut)
  }

  #local(path: string): string {
    return this.#workspace === this.#root ? path : path.slice('sub/'.length)
  }

  #small(limit: number): number {
    return Math.floor(this.#random() * limit)
  }
}

/** A busy machine must not look like a large workspace, whose calls are not recorded one by one. */
function steadyClock(): Clock {
  let time = 0
  let calls = 0
  return { ...systemClock, now: () => (time += (++calls % 5) * 20) }
}

function pathsThatDiffer(before: Files, after: Files): Set<string> {
  return new Set([...before.keys(), ...after.keys()].filter((path) => before.get(path) !== after.get(path)))
}

function firstDifference(actual: Files, expected: Files): string | undefined {
  const [path] = pathsThatDiffer(actual, expected)
  if (path === undefined) return undefined
  const shown = (files: Files): string => JSON.stringify(files.get(path)?.slice(0, 60) ?? 'nothing')
  return `${JSON.stringify(path)} is ${shown(actual)} instead of ${shown(expected)}.`
}
