import type { SessionHandle } from '@tapetree/client'
import type { Arguments, WireRewound } from '@tapetree/client/protocol'
import { counted } from '../../text/amounts.ts'
import { harmlessLine } from '../../text/harmless.ts'
import type { Activities } from './activities.ts'
import type { CurrentSession } from './current-session.ts'
import type { Remarks } from './remarks.ts'

/** A question with a few answers. */
export interface Question<Value> {
  title: string
  /** Lines above the answers. */
  intro: readonly string[]
  choices: readonly { value: Value; label: string; detail?: string }[]
}

/** Asks the user; undefined if the user leaves the question. */
export type Ask = <Value>(question: Question<Value>) => Promise<Value | undefined>

export interface RewindingOptions {
  session: CurrentSession
  remarks: Remarks
  activities: Activities
  ask: Ask
  composer: { text: string }
}

type Files = NonNullable<WireRewound['files']>
type FileChange = Files['changes'][number]
type Choices = NonNullable<Arguments<'rewind'>['choices']>
type What = 'talk' | 'files' | 'both'

const named = 5

/** Goes back in the conversation, the files or both, and takes it back. Shows first what changes. */
export class Rewinding {
  readonly #options: RewindingOptions
  /** Interrupted restores that the user was asked about. */
  readonly #asked = new Set<string>()

  constructor(options: RewindingOptions) {
    this.#options = options
  }

  /** Takes back the last message of the user and what the agent did after it. */
  async undo(): Promise<void> {
    const { remarks } = this.#options
    await this.#attempt(async (handle) => {
      const last = handle.transcript.path.items.slice(-recent).findLast(({ type }) => type === 'user')
      if (!last) return remarks.warn('There is no message of yours to undo.')
      await this.#go(handle, last.id)
    })
  }

  /** Takes back the last undo, or the last step back in the tree. */
  async redo(): Promise<void> {
    await this.#attempt(async (handle) => {
      const preview = await this.#run(handle, { dry_run: true })
      const choices = await this.#conflicts(preview?.files)
      if (!choices) return
      const done = await this.#run(handle, { choices })
      this.#options.remarks.say(['Took it back.', ...filesText(done?.files)].join('\n'))
    })
  }

  /** Moves to an entry of the tree. The text of a message of the user goes to the composer. */
  async goTo(entryId: string): Promise<void> {
    await this.#attempt((handle) => this.#go(handle, entryId))
  }

  /** Asks once about a restore of files that was interrupted. Call it after each change of the session. */
  sync(): void {
    const { session, remarks } = this.#options
    const { handle } = session
    const open = handle?.state('config')?.openRestore
    if (!handle || open === undefined || this.#asked.has(open) || !session.takesMessages || session.isBusy) return
    this.#asked.add(open)
    remarks.watch(this.#endInterrupted(handle))
  }

  async #go(handle: SessionHandle, entryId: string): Promise<void> {
    const { ask } = this.#options
    const preview = await this.#run(handle, { entry_id: entryId, dry_run: true }).catch(unlessUnknown)
    // An older server moves only the conversation.
    if (preview === 'unknown') return handle.navigate(entryId)
    const files = preview?.files
    const hasWork = files?.changes.some(({ action }) => action !== 'kept') ?? false
    const what = hasWork && files ? await ask(whatQuestion(files)) : 'talk'
    if (!what) return
    const choices = what === 'talk' ? [] : await this.#conflicts(files)
    if (!choices) return
    const done = await this.#run(handle, { entry_id: entryId, what, ...(choices.length > 0 && { choices }) })
    this.#giveBack(done?.text)
    this.#report({ what, done, files })
  }

  /** What happens to each file that the agent and others changed; undefined if the user leaves. */
  async #conflicts(files: Files | undefined): Promise<Choices | undefined> {
    const { ask } = this.#options
    const conflicts = files?.changes.filter(({ action }) => action === 'conflict') ?? []
    if (conflicts.length > 1) {
      const all = await ask(allQuestion(conflicts))
      if (all === undefined) return undefined
      if (all !== 'each') return conflicts.map(({ path }) => ({ path, choice: all }))
    }
    const choices: Choices = []
    for (const file of conflicts) {
      const choice = await ask(conflictQuestion(file))
      if (choice === undefined) return undefined
      choices.push({ path: file.path, choice })
    }
    return choices
  }

  async #endInterrupted(handle: SessionHandle): Promise<void> {
    const { ask, remarks } = this.#options
    const interrupted = await ask({
      title: 'Putting files back was interrupted',
      intro: ['Some files may have gone back already, and the conversation with them. Nothing is lost.', ''],
      choices: [
        { value: 'finish' as const, label: 'Finish', detail: 'put the rest back too' },
        { value: 'undo' as const, label: 'Undo', detail: 'return to where it started' },
        { value: 'later' as const, label: 'Later', detail: 'nothing changes; /undo asks again' },
      ],
    })
    if (interrupted === undefined || interrupted === 'later') return
    const done = await this.#run(handle, { interrupted })
    this.#giveBack(done?.text)
    remarks.say([interrupted === 'finish' ? 'Finished.' : 'Undone.', ...filesText(done?.files)].join('\n'))
  }

  /** Keeps text typed in the meantime after it. */
  #giveBack(text: string | undefined): void {
    const { composer } = this.#options
    if (text === undefined || text === '') return
    composer.text = composer.text === '' ? text : `${text}\n${composer.text}`
  }

  #report({ what, done, files }: { what: What; done: WireRewound | undefined; files: Files | undefined }): void {
    const { remarks } = this.#options
    const talk = what === 'files' ? [] : ['Went back in the conversation.']
    const state =
      what !== 'talk'
        ? filesText(done?.files)
        : [
            files?.problem === undefined
              ? 'The files stay as they are.'
              : `The files stay as they are: ${files.problem}`,
          ]
    remarks.say([...talk, ...state, '/redo takes it back.'].join('\n'))
  }

  async #run(handle: SessionHandle, args: Arguments<'rewind'>): Promise<WireRewound | undefined> {
    const label = args.dry_run ? 'Looking at the files' : 'Going back'
    return (await this.#options.activities.track(label, handle.run('rewind', args))) as WireRewound | undefined
  }

  async #attempt(work: (handle: SessionHandle) => Promise<void> | void): Promise<void> {
    const { session, remarks } = this.#options
    const { handle } = session
    if (!handle) return remarks.warn('There is no session yet.', { while: () => session.handle === undefined })
    if (session.isBusy) return remarks.warn('The agent is working. Stop it first.', { while: () => session.isBusy })
    try {
      if (handle.state('config')?.openRestore !== undefined) await this.#endInterrupted(handle)
      else await work(handle)
    } catch (error) {
      remarks.fail(error)
    }
  }
}

const recent = 3000

function whatQuestion(files: Files): Question<What> {
  const of = (action: FileChange['action']): FileChange[] => files.changes.filter((each) => each.action === action)
  const [restored, kept, conflicts] = [of('restored'), of('kept'), of('conflict')]
  return {
    title: 'Go back',
    intro: [
      ...(restored.length > 0 ? [`${counted(restored.length, 'file')} would go back: ${list(restored)}`] : []),
      ...(conflicts.length > 0
        ? [`${counted(conflicts.length, 'file')} changed by the agent and by others: ${list(conflicts)}`]
        : []),
      ...(kept.length > 0 ? [`${counted(kept.length, 'file')} changed only by others: kept.`] : []),
      '',
    ],
    choices: [
      { value: 'both', label: 'Conversation and files' },
      { value: 'talk', label: 'Only the conversation', detail: 'the files stay as they are' },
      { value: 'files', label: 'Only the files', detail: 'the conversation continues from here' },
    ],
  }
}

function allQuestion(conflicts: readonly FileChange[]): Question<'keep' | 'take' | 'each'> {
  return {
    title: counted(conflicts.length, 'conflict'),
    intro: [`The agent and others changed these files: ${list(conflicts)}`, ''],
    choices: [
      { value: 'each', label: 'Decide one by one' },
      { value: 'keep', label: 'Keep all as they are now' },
      { value: 'take', label: 'Let all go back', detail: '/redo brings the changes of others again' },
    ],
  }
}

function conflictQuestion({ path, can_merge: canMerge }: FileChange): Question<'keep' | 'take' | 'merge'> {
  return {
    title: `Conflict in ${harmlessLine(path)}`,
    intro: ['The agent and others changed this file.', ''],
    choices: [
      { value: 'keep', label: 'Keep it as it is now' },
      { value: 'take', label: 'Let it go back', detail: '/redo brings the changes of others again' },
      ...(canMerge
        ? [{ value: 'merge' as const, label: 'Merge', detail: 'take back only what the agent changed' }]
        : []),
    ],
  }
}

/** What happened to the files, in sentences. */
function filesText(files: Files | undefined): string[] {
  if (!files) return []
  const count = (...actions: FileChange['action'][]): FileChange[] =>
    files.changes.filter(({ action }) => actions.includes(action))
  const back = count('restored', 'merged').filter(({ path }) => !files.skipped.includes(path))
  const conflicts = count('conflict')
  return [
    back.length === 0 ? 'No file changed.' : `Put back ${counted(back.length, 'file')}: ${list(back)}.`,
    ...(conflicts.length > 0 ? [`Kept as they are: ${list(conflicts)}.`] : []),
    ...(files.skipped.length > 0
      ? [`Not put back, because someone changed them meanwhile: ${list(files.skipped.map((path) => ({ path })))}.`]
      : []),
    ...files.kept_copies.map(
      ({ path, copy }) => `A version of ${harmlessLine(path)} that was being written is in ${harmlessLine(copy)}.`,
    ),
  ]
}

function list(files: readonly (Pick<FileChange, 'path'> & Partial<FileChange>)[]): string {
  const names = files.slice(0, named).map(({ path, change }) => harmlessLine(path) + marks[change ?? 'changed'])
  return files.length > named ? `${names.join(', ')} and ${files.length - named} more` : names.join(', ')
}

const marks: Record<FileChange['change'], string> = { added: ' (comes back)', changed: '', removed: ' (is deleted)' }

/** The server does not know the operation. Checks the error by name, so that it loads nothing. */
function unlessUnknown(error: unknown): 'unknown' {
  const problem = error instanceof Error && 'problem' in error ? (error.problem as { type?: string }) : undefined
  if (problem?.type === 'invalid-command') return 'unknown'
  throw error
}
