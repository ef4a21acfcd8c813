import type { DiffFile } from '@tapetree/session/screen'
import type { TranscriptItem } from '@tapetree/session/view'
import { counted } from '../../text/amounts.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { modeMeanings, permissionModes, type SessionSource } from '../../session-source.ts'
import { plainItem } from '../views/plain-item.ts'
import { listedFolder, type CurrentSession } from '../chat/current-session.ts'
import type { Remarks } from '../chat/remarks.ts'
import type { SessionActions } from '../chat/session-actions.ts'
import type { Question } from '../chat/rewinding.ts'
import type { Chooser } from '../chat/slash-commands.ts'
import { slashTable } from '../chat/slash-table.ts'

export interface NumberedListsOptions {
  source: SessionSource
  session: CurrentSession
  actions: SessionActions
  remarks: Remarks
  cwd: string
  choose: (choice: NumberedChoice) => void
  say: (lines: readonly string[]) => void
  /** Goes back to an entry. */
  onGo: (entryId: string) => Promise<void>
}

const offered = 20

/** Numbered lists, in place of panels. */
export class NumberedLists implements Chooser {
  readonly #options: NumberedListsOptions

  constructor(options: NumberedListsOptions) {
    this.#options = options
  }

  async help(): Promise<void> {
    const rows = slashTable.map((row) => `/${row.name}${'argument' in row ? ` ${row.argument}` : ''}: ${row.says}`)
    this.#options.say(rows)
  }

  async model(): Promise<void> {
    const { source, actions } = this.#options
    const models = (await source.models()).filter(({ isUsable }) => isUsable)
    this.#offer(
      'Models:',
      models.map(({ reference, provider, modelId }) => ({
        label: reference,
        take: () => void actions.set({ model: { provider, modelId } }),
      })),
    )
  }

  async thinking(): Promise<void> {
    const { source, session, actions } = this.#options
    const used = session.handle?.state('config')?.model
    const model = (await source.models()).find(
      ({ provider, modelId }) => provider === used?.provider && modelId === used.modelId,
    )
    const levels = model?.thinkingLevels ?? []
    this.#offer(
      'How long the model thinks:',
      levels.map((level) => ({ label: level, take: () => void actions.setThinking(level) })),
    )
  }

  async mode(): Promise<void> {
    const { actions } = this.#options
    this.#offer(
      'What the agent may do without asking:',
      permissionModes.map((mode) => ({
        label: `${mode}: ${modeMeanings[mode]}`,
        take: () => void actions.setMode(mode),
      })),
    )
  }

  async sessions(): Promise<void> {
    const { source, actions } = this.#options
    const folder = listedFolder(this.#options)
    const sessions = await source.list({ ...(folder !== undefined && { cwd: folder }), limit: offered })
    this.#offer(
      folder === undefined ? 'Sessions, newest first:' : 'Sessions of this folder, newest first:',
      sessions.map(({ id, name, firstText = '' }) => ({
        label: name || firstText.slice(0, 100) || id,
        take: () => void actions.open(id),
      })),
    )
  }

  /** Entries to return to: the user's messages. Forks and labels are left to the command line. */
  async tree(): Promise<void> {
    const { session, onGo } = this.#options
    const { handle } = session
    const items = (handle?.transcript.path.items.slice() ?? []).filter(({ type }) => type === 'user').slice(-offered)
    this.#offer(
      'Continue from one of your messages:',
      items.map((item: TranscriptItem) => ({
        label: plainItem(item)[0] ?? item.id,
        take: () => void onGo(item.id),
      })),
    )
  }

  async queue(): Promise<void> {
    const { session, actions } = this.#options
    const { handle } = session
    const waiting = handle?.transcript.waiting ?? []
    this.#offer(
      'Queued messages. A number removes one:',
      waiting.map(({ id, message, delivery }) => ({
        label: `${delivery}: ${harmlessLine(message)}`,
        take: () => void actions.attempt('Removing', async () => handle?.changeQueue('queue.remove', { id })),
      })),
    )
  }

  async diff(): Promise<void> {
    const { session, source, say } = this.#options
    const { handle } = session
    if (!handle) return say(['There is no session yet.'])
    const { sessionChanges } = await import('../chat/session-changes.ts')
    const { files, notes } = await sessionChanges({ handle, source })
    if (files.length === 0) return say(['This session has not changed any file.'])
    say([...notes, ...files.flatMap(heardChanges)])
  }

  readonly ask = async <Value>({ title, intro, choices }: Question<Value>): Promise<Value | undefined> => {
    const answer = Promise.withResolvers<Value | undefined>()
    this.#options.choose({
      question: [title, ...intro.filter((line) => line !== '')],
      options: choices.map(({ value, label, detail }) => ({
        label: detail === undefined ? label : `${label}: ${detail}`,
        take: () => answer.resolve(value),
      })),
      leave: () => {
        this.#options.remarks.say('Nothing changed.')
        answer.resolve(undefined)
      },
    })
    return answer.promise
  }

  #offer(question: string, options: NumberedChoice['options']): void {
    const { choose, remarks } = this.#options
    if (options.length === 0) return remarks.say(`${question} there are none.`)
    choose({ question: [question], options, leave: () => remarks.say('Nothing changed.') })
  }
}

/** A choice that is read aloud and answered with a number. */
export interface NumberedChoice {
  /** Already harmless. */
  question: readonly string[]
  options: readonly { label: string; take: () => void }[]
  /** Set if free text is an answer too. */
  takeWords?: (words: string) => void
  /** Called for an empty line. */
  leave: () => void
  /** Whether another client may have answered meanwhile. */
  isOpen?: () => boolean
}

export function choiceLines({ question, options, takeWords }: NumberedChoice): string[] {
  const numbers = options.length === 0 ? '' : `Type a number from 1 to ${options.length}`
  const words = takeWords ? (numbers === '' ? 'Type your answer' : ', or your own text') : ''
  return [
    ...question,
    ...options.map(({ label }, index) => `${index + 1}. ${harmlessLine(label)}`),
    `${numbers}${words}. An empty line postpones it.`,
  ]
}

/** Handles typed input. Returns a message if it is not a valid answer. */
export function answerChoice(choice: NumberedChoice, line: string): string | undefined {
  const typed = line.trim()
  if (typed === '') {
    choice.leave()
    return undefined
  }
  const option = /^\d+$/.test(typed) ? choice.options[Number(typed) - 1] : undefined
  if (option) {
    option.take()
    return undefined
  }
  if (choice.takeWords) {
    choice.takeWords(typed)
    return undefined
  }
  return `${harmlessLine(typed)} is not one of the numbers. Type 1 to ${choice.options.length}.`
}

/** The changed lines of a file, without those around them. */
function heardChanges({ newName, oldName, hunks, notes }: DiffFile): string[] {
  const lines = hunks.flatMap((hunk) => hunk.lines).filter(({ type }) => type !== 'context')
  const shown = lines.slice(0, heardLines).map(({ type, text, newLine, oldLine }) => {
    const place = newLine ?? oldLine
    return `${type}${place === undefined ? '' : ` line ${place}`}: ${text}`
  })
  const more = lines.length > heardLines ? [`and ${counted(lines.length - heardLines, 'more line')}`] : []
  return [`File ${newName ?? oldName ?? ''}`, ...shown, ...more, ...notes]
}

const heardLines = 40
