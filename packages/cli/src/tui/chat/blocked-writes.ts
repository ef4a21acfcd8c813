import type { Arguments, WireBlockedWrites } from '@tapetree/client/protocol'
import { counted } from '../../text/amounts.ts'
import { harmlessLine } from '../../text/harmless.ts'
import { keptFileLines } from '../../text/kept-file.ts'
import type { Activities } from './activities.ts'
import type { CurrentSession } from './current-session.ts'
import type { Remarks } from './remarks.ts'
import type { Ask, Question } from './rewinding.ts'

export interface BlockedWritesOptions {
  session: CurrentSession
  remarks: Remarks
  activities: Activities
  ask: Ask
}

type Write = WireBlockedWrites['writes'][number]

/** Shows the control files that the sandbox took back, and lets the user apply or discard them. */
export class BlockedWrites {
  readonly #options: BlockedWritesOptions

  constructor(options: BlockedWritesOptions) {
    this.#options = options
  }

  async show(): Promise<void> {
    const { session, remarks, ask } = this.#options
    try {
      const found = await this.#run({})
      if (!found) return
      if (found.writes.length === 0) return remarks.say(['Nothing was blocked.', ...homeText(found)].join('\n'))
      const write = found.writes.length === 1 ? found.writes[0] : await ask(whichQuestion(found))
      const choice = write && (await ask(whatQuestion(write, session.handle?.sessionId ?? 'last')))
      if (!write || !choice || choice === 'leave') return
      await this.#run({ [choice]: write.id })
      const done = choice === 'apply' ? 'Applied' : 'Discarded'
      remarks.say(`${done} ${harmlessLine(write.path)}.`)
    } catch (error) {
      remarks.fail(error)
    }
  }

  async #run(args: Arguments<'blocked'>): Promise<WireBlockedWrites | undefined> {
    const { session, remarks, activities } = this.#options
    const { handle } = session
    if (handle) return (await activities.track('Looking at files', handle.run('blocked', args))) as WireBlockedWrites
    remarks.warn('There is no session yet.', { while: () => session.handle === undefined })
    return undefined
  }
}

function whichQuestion(found: WireBlockedWrites): Question<Write> {
  return {
    title: 'Blocked writes',
    intro: ['Commands made these files, which control what other programs run.', ...homeText(found), ''],
    choices: found.writes.map((write) => ({
      value: write,
      label: harmlessLine(write.path),
      detail: write.is_occupied ? 'cannot be applied: it exists already' : counted(write.file_count, 'file'),
    })),
  }
}

function whatQuestion(
  { path, files, file_count: count, is_occupied: isOccupied }: Write,
  sessionId: string,
): Question<'apply' | 'discard' | 'leave'> {
  const lines = files.flatMap(keptFileLines)
  const isWhole = lines.length <= maxLines && files.length === count
  return {
    title: `Blocked: ${harmlessLine(path)}`,
    intro: [
      ...lines.slice(0, maxLines),
      ...(isWhole ? [] : [`… This is not all of it. To read more: tapetree sessions blocked ${sessionId}`]),
      ...(isOccupied ? ['It cannot be applied: something is at its path now.'] : []),
      '',
    ],
    choices: [
      { value: 'leave', label: 'Leave it out', detail: 'it stays in this list' },
      ...(isOccupied ? [] : [{ value: 'apply' as const, label: 'Apply', detail: 'it takes effect in other programs' }]),
      { value: 'discard', label: 'Discard', detail: 'it is deleted' },
    ],
  }
}

/** More does not fit on a screen together with the choices. */
const maxLines = 40

function homeText({ home }: WireBlockedWrites): string[] {
  if (!home || home.file_count === 0) return []
  const names = home.files.slice(0, 5).map(({ path }) => `~/${harmlessLine(path)}`)
  const more = home.file_count > names.length ? ` and ${home.file_count - names.length} more` : ''
  return [
    `Commands wrote ${counted(home.file_count, 'file')} to the home folder: ${names.join(', ')}${more}. They are kept in ${harmlessLine(home.folder)}.`,
  ]
}
