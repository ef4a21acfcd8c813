import type { Choice, SessionHandle } from '@tapetree/client'
import type { TranscriptItem } from '@tapetree/session/view'
import { didYouMean } from '../../text/did-you-mean.ts'
import {
  permissionModes,
  thinkingLevels,
  type OfferedModel,
  type OpenedSession,
  type SessionSource,
} from '../../session-source.ts'
import type { RememberedChoices } from '../chat-services.ts'
import type { Activities } from './activities.ts'
import type { CurrentSession } from './current-session.ts'
import type { Remarks, Validity } from './remarks.ts'
import type { Writes } from './writes.ts'

export interface SessionActionsOptions {
  source: SessionSource
  session: CurrentSession
  remarks: Remarks
  activities: Activities
  writes: Writes
  /** Keeps a choice for new sessions in this project. Absent if there is no place for it. */
  remember: ((choices: RememberedChoices) => Promise<void>) | undefined
}

/** Modes that a user chooses for a while: they are never remembered by themselves. */
const passingModes: readonly string[] = ['plan', 'auto']

const recent = 200

/** Actions on the current session, and switching to others. A refused action shows why and changes nothing. */
export class SessionActions {
  readonly #options: SessionActionsOptions
  /** The handles on which commands typed here run, one for each command. */
  readonly #commands = new Set<{ handle: SessionHandle }>()

  constructor(options: SessionActionsOptions) {
    this.#options = options
  }

  /** Whether a run of the shown session, or a command typed there, can be stopped. */
  get isAtWork(): boolean {
    return this.runsCommand || this.#options.session.isBusy
  }

  get runsCommand(): boolean {
    return [...this.#commands].some(({ handle }) => handle === this.#options.session.handle)
  }

  async cancel(): Promise<void> {
    // Without a run id it stops commands too.
    await this.#with('Stopping', (handle) => (this.runsCommand ? handle.run('cancel', {}) : handle.abort()))
  }

  /**
   * A shell command of the user; `isPrivate` hides it from the model. Resolves when it is done or when the user leaves its session, and
   * rejects if it is refused.
   */
  async runCommand(handle: SessionHandle, text: string, { isPrivate }: { isPrivate: boolean }): Promise<void> {
    const command = { handle }
    this.#commands.add(command)
    try {
      const work = handle.run('bash', { command: text, ...(isPrivate && { exclude_from_context: true }) })
      await this.#options.activities.track('Running your command', work)
    } catch (error) {
      if (!this.#hasLeft(handle)) throw error
    } finally {
      this.#commands.delete(command)
    }
  }

  #hasLeft(handle: SessionHandle): boolean {
    const { status } = handle
    const isClosed = status.type === 'closed' && status.reason === 'closed'
    return isClosed || handle !== this.#options.session.handle
  }

  async retry(): Promise<void> {
    await this.#with('Retrying', (handle) => handle.run('retry', {}))
  }

  async resume(): Promise<void> {
    await this.#with('Resuming', async (handle) => {
      const result = await handle.run('resume', { by_person: true })
      const { run_id: runId } = (result as { run_id?: string | null } | undefined) ?? {}
      if (runId === null)
        this.#options.remarks.say('There is no interrupted run to resume. /sessions opens another session.')
    })
  }

  async compact(instructions: string): Promise<void> {
    await this.#with('Summarizing', async (handle) => {
      const result = await handle.run('compact', instructions === '' ? {} : { instructions })
      const why = notCompacted[(result as { outcome?: string } | undefined)?.outcome ?? '']
      if (why !== undefined) this.#options.remarks.say(why)
    })
  }

  async rename(name: string): Promise<void> {
    const { remarks } = this.#options
    if (name === '') return remarks.warn('/name needs a name, for example: /name date parser')
    await this.#with('Naming', async (handle) => {
      // The change may arrive a moment after the answer to the command.
      const before = handle.transcript.name
      await handle.run('rename', { name })
      remarks.say(
        `Renamed the session to ${name}.`,
        this.#whileShown(handle, () => [name, before].includes(handle.transcript.name)),
      )
    })
  }

  /** Labels the current entry; an empty label removes it. */
  async label(label: string): Promise<void> {
    const { remarks } = this.#options
    await this.#with('Labelling', async (handle) => {
      const { leafId } = handle.transcript.path
      if (leafId === null) return remarks.warn('There is nothing to label yet.')
      const before = handle.transcript.labels.get(leafId)
      if (label === '' && before === undefined) {
        return remarks.warn('There is no label to remove. To set one: /label before the rewrite')
      }
      if (label === before) return remarks.say(`This entry already has the label ${label}.`)
      await handle.run('label', { entry_id: leafId, label })
      const isHere = this.#whileShown(handle, () => handle.transcript.path.leafId === leafId)
      remarks.say(label === '' ? 'Removed the label.' : `Labeled this entry ${label}.`, isHere)
    })
  }

  /** Choices of model and thinking are kept for new sessions in this project. */
  async set(choice: Choice): Promise<void> {
    const { model, thinkingLevel } = choice
    const work = this.#with('Setting', async (handle) => {
      await handle.set(choice)
      await this.remember({
        ...(model && { model: `${model.provider}/${model.modelId}` }),
        ...(thinkingLevel && { thinkingLevel }),
      })
    })
    await this.#options.writes.hold(work)
  }

  /** A session goes on even if a choice cannot be kept. */
  async remember(choices: RememberedChoices): Promise<void> {
    const { remember, writes, remarks } = this.#options
    if (!remember || Object.keys(choices).length === 0) return
    try {
      await writes.add(() => remember(choices))
    } catch (error) {
      remarks.warn(`Not remembered: ${error instanceof Error ? error.message : String(error)}`)
    }
  }

  async nextMode(): Promise<void> {
    const current = permissionModes.findIndex((mode) => mode === this.#options.session.handle?.state('config')?.mode)
    await this.setMode(permissionModes[(current + 1) % permissionModes.length] ?? 'ask', { isPassing: true })
  }

  /** Kept for new sessions in this project, unless the user only passes through it or it is meant for a while. */
  async setMode(name: string, { isPassing = passingModes.includes(name) } = {}): Promise<void> {
    const mode = permissionModes.find((each) => each === name)
    const { remarks, writes } = this.#options
    if (!mode) return remarks.warn(noSuch('mode', name, permissionModes))
    const current = (): string | null | undefined => this.#options.session.handle?.state('config')?.mode
    const before = current()
    const chosen = this.set({ mode }).then(async () => {
      if (!isPassing && current() !== undefined) await this.remember({ mode })
    })
    await writes.hold(chosen)
    remarks.say(`Permission mode: ${mode}.`, { while: () => current() === mode || current() === before })
  }

  async setThinking(name: string): Promise<void> {
    const thinkingLevel = thinkingLevels.find((each) => each === name)
    const { remarks } = this.#options
    if (!thinkingLevel) return remarks.warn(noSuch('level', name, thinkingLevels))
    await this.set({ thinkingLevel })
  }

  /** By `provider/id`, or a part that matches only one model. */
  async setModel(reference: string): Promise<void> {
    const { source, remarks } = this.#options
    await this.#with('Loading models', async () => {
      const offered = await source.models()
      const exact = offered.filter((model) => model.reference === reference)
      const [model, ...others] = exact.length > 0 ? exact : offered.filter((each) => each.reference.includes(reference))
      if (!model) {
        const names = offered.map((each) => each.reference)
        return remarks.warn(`There is no model ${reference}.${didYouMean(reference, names)} /model lists them.`)
      }
      if (others.length > 0) return remarks.warn(`Several models match ${reference}. /model lists them.`)
      await this.set({ model: { provider: model.provider, modelId: model.modelId } })
    })
  }

  models(): Promise<OfferedModel[]> {
    return this.#options.source.models()
  }

  /** The folder that has the log of a session; undefined if its store has no folders. */
  async folderOf(sessionId: string): Promise<string | undefined> {
    const sessions = await this.#options.source.list({}).catch(() => [])
    return sessions.find(({ id }) => id === sessionId)?.path
  }

  async create(): Promise<void> {
    await this.#show('Starting a session', () => this.#options.source.create())
  }

  async open(sessionId: string): Promise<void> {
    await this.#show('Opening the session', () => this.#options.source.open(sessionId))
  }

  /** Without an entry, copies everything. */
  async fork(sessionId = this.#options.session.handle?.sessionId, entryId?: string): Promise<void> {
    const { source, remarks, session } = this.#options
    if (sessionId === undefined) return remarks.warn('There is no session to fork yet.')
    const { handle } = session
    if (handle?.sessionId === sessionId && handle.transcript.path.leafId === null) {
      return remarks.warn('There is nothing to fork yet: the session has no messages.')
    }
    if (!(await this.#show('Forking', () => source.fork(sessionId, entryId)))) return
    const { handle: fork } = session
    if (!fork) return
    remarks.say(`This is a copy of the session. The original is unchanged: /sessions`, this.#whileShown(fork))
  }

  /** The text of the last answer; empty if there is none. */
  lastAnswer(): string {
    const items = this.#options.session.handle?.transcript.path.items.slice(-recent) ?? []
    return wordsOf(items.findLast((item) => wordsOf(item) !== ''))
  }

  /** Shows why an action is refused and returns false. */
  async attempt(label: string, work: () => Promise<unknown>): Promise<boolean> {
    const { remarks, activities } = this.#options
    try {
      await activities.track(label, work())
      return true
    } catch (error) {
      remarks.fail(error)
      return false
    }
  }

  async #with(label: string, work: (handle: SessionHandle) => Promise<unknown> | void): Promise<void> {
    const { session, remarks } = this.#options
    const { handle } = session
    if (!handle) return remarks.warn('There is no session yet.', { while: () => session.handle === undefined })
    await this.attempt(label, async () => work(handle))
  }

  #whileShown(handle: SessionHandle, isTrue = () => true): Validity {
    return { while: () => this.#options.session.handle === handle && isTrue() }
  }

  async #show(label: string, open: () => Promise<OpenedSession>): Promise<boolean> {
    return this.attempt(label, async () => this.#options.session.show(await open()))
  }
}

/** The message for each outcome without a summary. */
const notCompacted: Readonly<Record<string, string>> = {
  'nothing-to-cut': 'There is too little to summarize yet: the newest messages are kept as they are.',
  futile: 'The summary was longer than the messages it replaces, so nothing was changed.',
  superseded: 'The session has continued from another entry, so nothing was changed.',
}

function noSuch(kind: string, name: string, names: readonly string[]): string {
  return `There is no ${kind} ${name}.${didYouMean(name, names)} Known: ${names.join(', ')}.`
}

function wordsOf(item: TranscriptItem | undefined): string {
  if (item?.type !== 'assistant') return ''
  return item.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n\n')
}
